"""What a user sees of a training run: a live line on a terminal, plain lines otherwise."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from grms.learning.evolution.termination import GenerationRecord

LINE_INTERVAL_S = 1.0
"""Least time between two plain lines, seconds; the first and the last always appear."""

Show = Callable[[GenerationRecord], None]


class Pace:
    """Speed and remaining time of a session.

    `generations` and `seconds` are the limits, if any; `earlier` is the last record of the previous
    session of a resumed run.
    """

    def __init__(
        self,
        generations: int | None,
        seconds: float | None,
        earlier: GenerationRecord | None = None,
    ) -> None:
        self._generations = generations
        self._seconds = seconds
        self._begin = earlier or GenerationRecord(0, 0, 0.0, 0.0, 0.0, 0.0)

    def evaluations_per_s(self, record: GenerationRecord) -> float:
        """Returns evaluations per second in this session."""
        elapsed = record.elapsed_s - self._begin.elapsed_s
        return (record.evaluations - self._begin.evaluations) / elapsed if elapsed > 0 else 0.0

    def left_s(self, record: GenerationRecord) -> float | None:
        """Returns the seconds until a limit stops the run; `None` if unknown."""
        left = []
        done = record.generation - self._begin.generation
        if self._generations is not None and done > 0:
            each = (record.elapsed_s - self._begin.elapsed_s) / done
            left.append(max(0, self._generations - record.generation) * each)
        if self._seconds is not None:
            left.append(max(0.0, self._seconds - record.elapsed_s))
        return min(left) if left else None

    def words(self, record: GenerationRecord) -> tuple[str, str]:
        """Returns how far a run is, and what it has found at which speed."""
        limit = "" if self._generations is None else f"/{self._generations}"
        left = self.left_s(record)
        far = f"generation {record.generation}{limit}"
        found = (
            f"best {value_words(record.best)}  mean {value_words(record.mean)}  "
            f"{self.evaluations_per_s(record):,.0f} evaluations/s"
        )
        return far if left is None else f"{far}  {duration(left)} left", found


def value_words(value: float) -> str:
    """Returns a fitness value as text: seconds without decimals, ratios with."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def duration(seconds: float) -> str:
    """Returns seconds as minutes and seconds, or hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def shown(
    pace: Pace,
    generations: int | None,
    console: Console,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Show]:
    """Yields a function that shows each generation."""
    if console.is_terminal:
        # Two lines beside the bar: one would not fit on 80 columns.
        columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("the first generation", total=generations)

            def update(record: GenerationRecord) -> None:
                description = "\n".join(pace.words(record))
                progress.update(task, completed=record.generation, description=description)

            yield update
        return
    last: list[float] = []
    pending: list[str] = []

    def write(record: GenerationRecord) -> None:
        pending[:] = ["  ".join(pace.words(record))]
        now = clock()
        if not last or now - last[0] >= LINE_INTERVAL_S:
            last[:] = [now]
            console.print(pending.pop(), markup=False, highlight=False, soft_wrap=True)

    try:
        yield write
    finally:
        for line in pending:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
