"""Job tables and schedules as data frames: to and from pandas, polars and Arrow.

pandas, polars and pyarrow are optional (the extra `frames`) and imported on use. Programs that take
an `__arrow_c_stream__`, such as polars and DuckDB, take tables as they are. A Parquet file is the
Arrow table, with everything that is no column in its metadata.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from html import escape
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

JOB_COLUMNS: Final = (
    "job_id",
    "submit_time",
    "processors",
    "requested_time",
    "run_time",
    "user",
)
"""Columns of a job table, in their order; those of `JobTable`."""

SCHEDULE_COLUMNS: Final = (
    *JOB_COLUMNS,
    "start_time",
    "end_time",
    "wait_time",
    "response_time",
    "submitted_to",
    "executed_on",
    "log_job_id",
)
"""Columns of a schedule's frame; `submitted_to` and `executed_on` are names of machines."""

METADATA: Final = b"hanse"
"""Key of an Arrow table's metadata, and of a Parquet file's, for JSON with what is no column."""

_ROWS_SHOWN: Final = 3


class Framed(ABC):
    """What a job table and a schedule have in common: rows, and columns with names."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int:
        """Returns the number of jobs."""

    @abstractmethod
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the columns of a frame by name, in their order."""

    @abstractmethod
    def title(self) -> str:
        """Returns a line on what this is, for people."""

    @abstractmethod
    def select(self, rows: npt.NDArray[np.int64]) -> Self:
        """Returns the chosen rows, in their present order."""

    @classmethod
    @abstractmethod
    def from_frame(cls, frame: Any) -> Self:
        """Builds one of a frame, or of a mapping of columns."""

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a Parquet file, as `from_frame` does a frame.

        Raises:
            ModuleNotFoundError: pyarrow is not installed.
            OSError: the file cannot be read.
            ValueError: it is no Parquet file, or a column is missing or invalid.
        """
        return cls.from_frame(read_parquet(path))

    def __getitem__(self, rows: slice) -> Self:
        """Returns some rows, as `jobs[:1000]` or `jobs[100:200]`; the step must be positive.

        Raises:
            TypeError: `rows` is no slice; `select` takes masks and numbers of rows.
            ValueError: the order would not be kept.
        """
        if not isinstance(rows, slice):
            raise TypeError(f"rows is {rows!r}; a slice is expected, `select` takes masks")
        chosen = range(*rows.indices(len(self)))
        if chosen.step < 1:
            raise ValueError(f"the step is {chosen.step}; it must be at least 1")
        return self.select(np.array(chosen, np.int64))

    def __repr__(self) -> str:
        return _summary(self.columns(), self.title())

    def _repr_html_(self) -> str:
        return _html(self.columns(), self.title())

    def to_pandas(self) -> Any:
        """Returns a `pandas.DataFrame` with a row for each job; needs pandas."""
        return pandas_frame(self.columns())

    def to_polars(self) -> Any:
        """Returns a `polars.DataFrame` with a row for each job; needs polars."""
        return polars_frame({name: _plain(column) for name, column in self.columns().items()})

    def to_arrow(self) -> Any:
        """Returns a `pyarrow.Table` with a row for each job; needs pyarrow."""
        import pyarrow as pa  # noqa: PLC0415  # optional

        table = pa.table({name: pa.array(_plain(each)) for name, each in self.columns().items()})
        said = self.metadata()
        return table.replace_schema_metadata({METADATA: said}) if said else table

    def metadata(self) -> str:
        """Returns what the columns do not say, as JSON; "" where there is nothing."""
        return ""

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes a Parquet file, which `from_parquet`, pandas, polars and DuckDB read; an old one is replaced.

        Raises:
            ModuleNotFoundError: pyarrow is not installed.
            OSError: the file cannot be written.
        """
        import pyarrow.parquet as pq  # noqa: PLC0415  # optional

        from lrms_sim.util.files import replacing  # noqa: PLC0415  # for this alone

        with replacing(path) as temporary:
            pq.write_table(self.to_arrow(), temporary)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Exports the columns as Arrow's C stream; needs pyarrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def pandas_frame(columns: Mapping[str, Any]) -> Any:
    """Returns a `pandas.DataFrame` of columns by name; needs pandas."""
    import pandas as pd  # noqa: PLC0415  # optional

    return pd.DataFrame(columns)


def polars_frame(columns: Mapping[str, Any]) -> Any:
    """Returns a `polars.DataFrame` of columns by name; needs polars."""
    import polars as pl  # noqa: PLC0415  # optional

    return pl.DataFrame(columns)


def _plain(column: npt.NDArray[Any]) -> Any:
    return column.tolist() if column.dtype == object else column


def need_parquet() -> None:
    """Raises ModuleNotFoundError without pyarrow, for checks before long work."""
    import pyarrow.parquet  # noqa: F401, PLC0415  # optional


def read_parquet(path: str | os.PathLike[str]) -> Any:
    """Returns a Parquet file as a `pyarrow.Table`.

    Raises:
        ModuleNotFoundError: pyarrow is not installed.
        OSError: the file cannot be read.
        ValueError: it is no Parquet file.
    """
    import pyarrow as pa  # noqa: PLC0415  # optional
    import pyarrow.parquet as pq  # noqa: PLC0415  # optional

    try:
        return pq.read_table(path, partitioning=None)
    except pa.ArrowException as error:
        raise ValueError(f"{path}: no Parquet file: {error}") from error


def metadata_of(frame: Any) -> str:
    """Returns the metadata of a table; "" for frames without."""
    schema = getattr(frame, "schema", None)
    found = (getattr(schema, "metadata", None) or {}).get(METADATA, b"")
    return bytes(found).decode("utf-8", "replace")


def column_of(frame: Any, name: str) -> Any:
    """Returns a column of any frame or mapping, unchanged; `ValueError` if it is missing."""
    try:
        return frame[name]
    except (KeyError, IndexError) as error:
        raise ValueError(f"the frame has no column {name!r}") from error
    except Exception as error:
        # Each library of frames has an error of its own for that.
        if type(error).__name__ != "ColumnNotFoundError":
            raise
        raise ValueError(f"the frame has no column {name!r}") from error


def without_index(frame: Any) -> Any:
    """Returns a frame of pandas whose index, where it has the name of a column, is one; others as they are."""
    named = getattr(getattr(frame, "index", None), "names", ())
    lost = [name for name in named if name in SCHEDULE_COLUMNS and name not in frame.columns]
    return frame.reset_index(level=lost) if lost else frame


def names_in(frame: Any) -> set[str]:
    """Returns the names of a frame's columns."""
    names = getattr(frame, "column_names", None)
    if names is None:
        names = frame.columns if hasattr(frame, "columns") else frame.keys()
    return {str(name) for name in names}


def _summary(columns: dict[str, npt.NDArray[Any]], title: str) -> str:
    cells, is_cut = _few(columns)
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in cells
    ]
    if is_cut:
        lines.insert(1 + _ROWS_SHOWN, "…")
    return "\n".join([title, *lines])


def _html(columns: dict[str, npt.NDArray[Any]], title: str) -> str:
    (head, *rows), is_cut = _few(columns)
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    if is_cut:
        lines.insert(_ROWS_SHOWN, f'<td colspan="{len(head)}">…</td>')
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    caption = f'<caption style="text-align:left">{escape(title)}</caption>'
    return f"<table>{caption}<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def _few(columns: dict[str, npt.NDArray[Any]]) -> tuple[list[list[str]], bool]:
    """Returns head and cells of the first and the last rows, and whether others lie between."""
    count = len(next(iter(columns.values())))
    rows = list(range(min(count, _ROWS_SHOWN)))
    rows += [row for row in range(count - _ROWS_SHOWN, count) if row >= _ROWS_SHOWN]
    cells = [[_shown(column[row]) for column in columns.values()] for row in rows]
    return [list(columns), *cells], count > 2 * _ROWS_SHOWN


def _shown(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)
