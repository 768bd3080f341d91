"""Progress bars, if standard error is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(words: str, total: int, *, least: int = 2) -> Iterator[Callable[[int], None] | None]:
    """Yields a function that is called with the amount done.

    Nothing is shown if the total is below `least`, or if standard error is no terminal.
    """
    if total < least or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  # help and errors come at once
    from rich.progress import Progress  # noqa: PLC0415  # same

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(words, total=total)
        yield lambda done: progress.update(task, completed=done)
