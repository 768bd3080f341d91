"""Job tables and schedules as data frames: to and from pandas, polars and Arrow.

pandas, polars and pyarrow are optional (the extra `frames`); each is imported where it is asked for.
Programs that take an `__arrow_c_stream__`, such as polars and DuckDB, take tables as they are.
"""

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from lrms_sim.jobs import JobTable
    from lrms_sim.schedule import Schedule

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

_ROWS_SHOWN: Final = 3


def job_columns(jobs: "JobTable") -> dict[str, npt.NDArray[Any]]:
    """Returns the columns of a job table by name, without copying them."""
    return {name: getattr(jobs, name) for name in JOB_COLUMNS}


def schedule_columns(schedule: "Schedule") -> dict[str, npt.NDArray[Any]]:
    """Returns the columns of a schedule by name, machines by theirs."""
    names = np.array([machine.name for machine in schedule.machines], dtype=object)
    columns = job_columns(schedule.jobs)
    for name in SCHEDULE_COLUMNS[len(JOB_COLUMNS) :]:
        column = getattr(schedule, name)
        columns[name] = names[column] if name in {"submitted_to", "executed_on"} else column
    return columns


def to_pandas(columns: dict[str, npt.NDArray[Any]]) -> Any:
    """Returns a `pandas.DataFrame`.

    Raises:
        ModuleNotFoundError: pandas is not installed.
    """
    import pandas as pd  # noqa: PLC0415  # optional

    return pd.DataFrame(columns)


def to_polars(columns: dict[str, npt.NDArray[Any]]) -> Any:
    """Returns a `polars.DataFrame`.

    Raises:
        ModuleNotFoundError: polars is not installed.
    """
    import polars as pl  # noqa: PLC0415  # optional

    return pl.DataFrame({name: _plain(column) for name, column in columns.items()})


def to_arrow(columns: dict[str, npt.NDArray[Any]]) -> Any:
    """Returns a `pyarrow.Table`.

    Raises:
        ModuleNotFoundError: pyarrow is not installed.
    """
    import pyarrow as pa  # noqa: PLC0415  # optional

    return pa.table({name: pa.array(_plain(column)) for name, column in columns.items()})


def _plain(column: npt.NDArray[Any]) -> Any:
    return column.tolist() if column.dtype == object else column


def column_of(frame: Any, name: str) -> npt.NDArray[Any]:
    """Returns a column of a frame of any kind, or of a mapping.

    Raises:
        ValueError: it is not there, or holds what is missing.
    """
    try:
        column = np.asarray(frame[name])
    except (KeyError, IndexError) as error:
        raise ValueError(f"the frame has no column {name!r}") from error
    except Exception as error:
        # Each library of frames has an error of its own for that.
        if type(error).__name__ != "ColumnNotFoundError":
            raise
        raise ValueError(f"the frame has no column {name!r}") from error
    if column.dtype == object and any(value is None for value in column.tolist()):
        raise ValueError(f"column {name!r} of the frame has missing values")
    return column


def names_in(frame: Any) -> set[str]:
    """Returns the names of a frame's columns."""
    names = getattr(frame, "column_names", None)
    if names is None:
        names = frame.columns if hasattr(frame, "columns") else frame.keys()
    return {str(name) for name in names}


def summary(columns: dict[str, npt.NDArray[Any]], title: str) -> str:
    """Returns a few rows as text, for people."""
    count = len(next(iter(columns.values())))
    rows = list(range(min(count, _ROWS_SHOWN)))
    rows += [row for row in range(count - _ROWS_SHOWN, count) if row >= _ROWS_SHOWN]
    cells = [list(columns)] + [[_shown(column[row]) for column in columns.values()] for row in rows]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in cells
    ]
    if count > 2 * _ROWS_SHOWN:
        lines.insert(1 + _ROWS_SHOWN, "…")
    return "\n".join([title, *lines])


def _shown(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)
