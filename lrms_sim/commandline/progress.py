"""How far something is that takes long, where somebody sees it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(words: str, total: int, *, least: int = 2) -> Iterator[Callable[[int], None] | None]:
    """Yields what is to be told how much is done.

    Args:
        words: what is done.
        total: how much there is.
        least: nothing is shown where there is less; nor where standard error is no terminal.
    """
    if total < least or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  # help and errors come at once
    from rich.progress import Progress  # noqa: PLC0415  # same

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(words, total=total)
        yield lambda done: progress.update(task, completed=done)
