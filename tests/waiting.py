"""Waiting in asynchronous tests: for a condition, and never for ever."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

TIME_OUT_S = 600.0

T = TypeVar("T")


def run(scene: Callable[[], Awaitable[None]]) -> None:
    """Runs a scene, for ten minutes at most."""

    async def limited() -> None:
        async with asyncio.timeout(TIME_OUT_S):
            await scene()

    asyncio.run(limited())


async def until(condition: Callable[[], bool]) -> None:
    """Returns as soon as a condition holds."""
    while not condition():  # noqa: ASYNC110  # what is waited for has no event of its own
        await asyncio.sleep(0.005)


@asynccontextmanager
async def meanwhile(work: Coroutine[Any, Any, T]) -> AsyncIterator["asyncio.Task[T]"]:
    """Has work go on within the context, and ends it after that; what became of it is the task's."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
