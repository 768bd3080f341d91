"""What a user sees while something takes long: bars on a terminal, or log lines if asked for."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import structlog
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

LogFormat = Literal["console", "json"]


class Bars:
    """A bar for each stage of a run, on standard error, if that is a terminal.

    Attributes:
        progress: rich's; `None` if nothing is shown.
    """

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self._tasks: dict[str, TaskID] = {}
        self._step: TaskID | None = None

    def update(self, stage: str, done: int, total: int | None) -> None:
        """Shows the progress of a stage; each new one, named for people, gets a bar.

        `total` is `None` if unknown.
        """
        if self.progress is None:
            return
        if stage not in self._tasks:
            self._tasks[stage] = self.progress.add_task(stage, total=total)
        self.progress.update(self._tasks[stage], completed=done, total=total)

    def step(self, stage: str) -> None:
        """Shows a stage of unknown length in place of the previous one."""
        if self.progress is None:
            return
        if self._step is not None:
            self.progress.remove_task(self._step)
        self._step = self.progress.add_task(stage, total=None)


@contextmanager
def bars(*, wanted: bool = True, download: bool = False) -> Iterator[Bars]:
    """Yields bars that disappear when the block ends; none are shown unless `wanted`.

    With `download` the counts are bytes.
    """
    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield Bars(None)
        return
    how_far = DownloadColumn() if download else TimeElapsedColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), how_far)
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bars(progress)


def event_log(*, verbose: bool, log_format: LogFormat) -> Callable[..., None]:
    """Returns a function that takes an event's name, keys and values.

    `verbose` writes every event to standard error; otherwise only warnings in plain words.
    `log_format` is `console`, or `json` for one object per line.
    """
    if not verbose:
        return _only_warnings
    renderer = (
        structlog.processors.JSONRenderer()
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), sort_keys=False)
    )
    logger = structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            renderer,
        ],
    )

    def notify(event: str, **values: object) -> None:
        write = logger.warning if event == "warning" else logger.info
        write(event, **values)

    return notify


def _only_warnings(event: str, **values: object) -> None:
    if event == "warning":
        print(f"warning: {values['text']}", file=sys.stderr)  # noqa: T201  # a command speaks to its user
