"""Runs calls that wait for nobody but one another, as several submissions that go in one.

No time passes: a loop is asked to go on until it has nothing to do, so that all is the same each time.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import cache
from typing import Any, Final, TypeVar

R = TypeVar("R")

ROUNDS_MAX: Final = 1000
"""After so many rounds of the loop calls wait for what never comes."""


class _StillLoop(asyncio.SelectorEventLoop):
    # Nothing is waited for until a time is over.
    def time(self) -> float:
        return 0.0


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = _StillLoop()
    loop.set_exception_handler(lambda _loop, _context: None)  # whoever is over asks for no result
    return loop


def run_together(
    several: Sequence[Coroutine[Any, Any, R]], *, is_over: Callable[[], bool]
) -> list[R | Exception]:
    """Runs what waits for nobody but one another to the end; returns the result, or the error, of each.

    As soon as `is_over` whatever is left is given up, and nothing is returned.
    """
    loop = _loop()
    tasks = [loop.create_task(each) for each in several]
    rounds = 0
    while not (is_over() or all(task.done() for task in tasks)):
        rounds += 1
        if rounds > ROUNDS_MAX:
            raise AssertionError("a call waits for what never comes")
        _one_round(loop)
    while left := asyncio.all_tasks(loop):
        for task in left:
            task.cancel()
        _one_round(loop)
    if is_over():
        return []
    return [_outcome(task) for task in tasks]


def _one_round(loop: asyncio.AbstractEventLoop) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def _outcome(task: asyncio.Task[R]) -> R | Exception:
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, Exception):
        return error
    raise error
