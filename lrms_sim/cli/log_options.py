"""What commands that read a log have in common: its options, reading it, and the files they write."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrms_sim.util.files import check_written
from lrms_sim.util.messages import shown
from lrms_sim.util.option_fields import FloatRange, field_options
from lrms_sim.workload.preparation_report import PreparationOptions

if TYPE_CHECKING:
    from lrms_sim.workload.swf_log import SwfLog

EXIT_NOTHING = 1
"""Status of the process where a log has no job that could be replayed."""

PROCESSORS_MAX = 2**31 - 1
LONG_BYTES = 16_000_000
"""Reading a log of this size shows how far it is."""

FILE = click.Path(path_type=Path, dir_okay=False)
LOG = click.Path(path_type=Path, dir_okay=False, allow_dash=True)
PROCESSORS = click.IntRange(1, PROCESSORS_MAX)
"""Types of options: a file, a file to read or `-` for standard input, the size of a machine."""


def located_log(_: click.Context, __: click.Parameter, value: Path) -> Path:
    """Returns the file of a log that is named by its path or by its key, or `-` for standard input."""
    from lrms_sim.util.log_files import STANDARD_INPUT  # noqa: PLC0415  # help and errors come at once
    from lrms_sim.util.trace_folders import located  # noqa: PLC0415  # same

    return value if str(value) == STANDARD_INPUT else located(value)


_DAYS = FloatRange(0, 1e6)


def counting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options that say which jobs count, and how: `warm_up`, `cool_down`, `tau`."""
    for option in (
        click.option(
            "--tau",
            type=FloatRange(0, 1e9, min_open=True),
            default=10.0,
            show_default=True,
            metavar="S",
            help="Shorter run times count as this in bounded slowdowns, seconds.",
        ),
        click.option(
            "--cool-down",
            type=_DAYS,
            default=0.0,
            metavar="DAYS",
            help="Nor do those submitted in the last days.  [default: 0]",
        ),
        click.option(
            "--warm-up",
            type=_DAYS,
            default=0.0,
            metavar="DAYS",
            help="Jobs submitted in the first days run but do not count.  [default: 0]",
        ),
    ):
        command = option(command)
    return command


preparation_options = field_options(PreparationOptions)
"""Gives a command an option for each rule of `PreparationOptions`."""


@contextmanager
def user_errors() -> Iterator[None]:
    """Turns what our own modules say of a user's input into a message without a traceback."""
    try:
        yield
    except ValueError as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Names the user's file in system errors, not the temporary one."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise click.ClickException(f"{path}: cannot be written: {reason}") from error


def read_log(trace: Path) -> "SwfLog":
    """Reads a log, with a progress bar for long ones; `SwfError` if it cannot be read."""
    from lrms_sim.workload.swf import SwfError, read_swf  # noqa: PLC0415  # see above

    try:
        long = sys.stderr.isatty() and trace.stat().st_size >= LONG_BYTES
    except OSError:
        long = False
    if not long:
        return read_swf(trace)
    from rich.console import Console  # noqa: PLC0415  # see above
    from rich.progress import open as open_with_bar  # noqa: PLC0415  # same

    shown = Console(stderr=True)
    try:
        with open_with_bar(
            trace, "rb", description="reading", console=shown, transient=True
        ) as file:
            return read_swf(file)
    except OSError as error:
        raise SwfError(str(trace), None, f"cannot be read: {error.strerror or error}") from error


def processors_of(log: "SwfLog") -> int:
    """Returns the size of a log's machine.

    Raises:
        click.ClickException: the header does not give exactly one.
    """
    header = log.header
    key = header.size_key
    said = [value for value in header.values(key) if value]
    processors = header.size
    if processors is not None and 1 <= processors <= PROCESSORS_MAX and len(set(said)) == 1:
        return processors
    if not said:
        found = f"does not say {key}"
    elif len(set(said)) > 1:
        found = f"says {key} {len(said)} times: {', '.join(said[:5])}"
    elif processors is None:
        found = f"says {shown(said[0])} for {key}, which is no whole number"
    else:
        found = f"says {processors} for {key}"
    raise click.ClickException(
        f"{log.path}: the header {found}; give the machine's size with --processors"
    )


def check_outputs(written: Sequence[Path | None], read: Sequence[Path | None] = ()) -> None:
    """Refuses before the work what could not be written after it, or would replace what is read."""
    for path in written:
        if path is None:
            continue
        if not path.parent.is_dir():
            raise click.ClickException(
                f"{path}: cannot be written: there is no folder {path.parent}"
            )
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise click.ClickException(f"{path}: cannot be written: permission denied")
    check_written(written, read, click.ClickException)
