"""Small work does not wait behind large work, and no place is lost."""

import asyncio

from grms.site.staging.fair_slots import LARGE_BYTES, FairSlots
from tests.waiting import until


async def test_the_smallest_comes_first_and_large_work_leaves_a_place() -> None:
    """In the order of their sizes; who gives up takes no place with it."""
    turns, inside, gates = FairSlots(3), [], dict[int, asyncio.Event]()

    async def work(size: int) -> None:
        async with turns.turn(size):
            inside.append(size)
            await gates.setdefault(size, asyncio.Event()).wait()

    large = [LARGE_BYTES + number for number in range(1, 5)]
    tasks = {size: asyncio.create_task(work(size)) for size in large}
    await until(lambda: len(inside) == 2)
    assert inside == large[:2]
    tasks |= {size: asyncio.create_task(work(size)) for size in (9, 3, 5)}
    await until(lambda: 9 in inside)
    tasks[3].cancel()  # while it waits
    tasks[9].cancel()  # while it has its place
    await until(lambda: 5 in inside)
    assert 3 not in inside
    gates[5].set()
    await tasks[5]
    tasks[7] = asyncio.create_task(work(7))
    await until(lambda: 7 in inside)
    gates[large[0]].set()
    await until(lambda: large[2] in inside)
    assert large[3] not in inside
    for size in (7, large[1], large[2]):
        gates[size].set()
    await until(lambda: large[3] in inside)
    gates[large[3]].set()
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    tasks = {size: asyncio.create_task(work(size)) for size in (11, 12, 13)}
    await until(lambda: {11, 12, 13} <= set(inside))
    for task in tasks.values():
        task.cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)


async def test_a_place_that_was_just_given_is_given_back() -> None:
    """Whoever is cancelled before it notices."""
    turns = FairSlots(2)

    async def work() -> None:
        async with turns.turn(1):
            await asyncio.Event().wait()

    holders = [asyncio.create_task(work()) for _ in range(2)]
    await asyncio.sleep(0)
    waits = asyncio.create_task(work())
    await asyncio.sleep(0)
    holders[0].cancel()
    await asyncio.sleep(0)  # the place is given now
    waits.cancel()
    holders[1].cancel()
    await asyncio.gather(*holders, waits, return_exceptions=True)
    async with turns.turn(1), turns.turn(1):
        pass
