"""What every batch system behind the port has to do, as scenes that are played side by side.

A `World` is a batch system with the hands of its users and operators. Scenes of the first kind disturb
nobody and are all played at one time, on one adapter; scenes of the second kind put a whole machine
into disorder and come one after the other. So a real cluster costs the time of its slowest scene and
not of all, and what went wrong in one scene does not hide the others.
"""

import asyncio
import re
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import structlog

from grms.lrms.base import (
    Accepted,
    Appeared,
    Away,
    Back,
    LoadSeen,
    Lost,
    LrmsPhase,
    LrmsRefusedError,
    LrmsUnavailableError,
    Program,
    QueuePlace,
    Requeued,
    Started,
    queue_place_of,
)
from grms.lrms.preemption import EndedBy, preemption_of
from grms.util.outcomes import Outcome
from tests.grms.lrms.worlds import NAME, Site, World

_log = structlog.get_logger()

WAITS = "while ! test -e go; do sleep 0.1; done"
"""A script that ends when its site says `go`."""

LIFE = ["Accepted", "Started", "Ended"]


# --- scenes that disturb nobody ------------------------------------------------------------------


async def plain(site: Site) -> None:
    """Arguments, environment and name arrive, the folder is the job's own, exit code 0 comes back."""
    program = Program(
        '#!/bin/sh\necho ran >>runs\nprintf "%s|" "$#" "$@" "$VALUE" "${SLURM_JOB_NAME:-$JOB_NAME}"\n'
        'test "${SLURM_SUBMIT_DIR:-${SGE_O_WORKDIR:-$PWD}}" = "$(pwd)" && printf own\n',
        ("a b", "$(id)", "", "#SBATCH -n 99\n#$ -N x"),
        {"VALUE": "x'y\"z\n,=|", "BASH_ENV": "/nowhere"},
    )
    job = site.job(1, "", program=program, processors=2)
    await site.lrms.submit(job)
    end = (await site.ended(job.key)).end
    assert (end.outcome, end.exit_code, end.signal) == (Outcome.COMPLETED, 0, None)
    assert site.kinds(job.key) == LIFE
    assert site.output(job.key) == f"4|a b|$(id)||#SBATCH -n 99\n#$ -N x|x'y\"z\n,=||{NAME}|own"
    assert site.runs(job.key) == 1


async def exit_code(site: Site) -> None:
    """What the script returns comes back."""
    job = site.job(2, "exit 7")
    await site.lrms.submit(job)
    end = (await site.ended(job.key)).end
    assert (end.outcome, end.exit_code, end.signal) == (Outcome.FAILED, 7, None)


async def killed_by_signal(site: Site) -> None:
    """The signal that ended it comes back."""
    job = site.job(3, "kill -SEGV $$")
    await site.lrms.submit(job)
    end = (await site.ended(job.key)).end
    assert (end.outcome, end.exit_code, end.signal) == (Outcome.FAILED, None, 11)


async def submitted_twice(site: Site) -> None:
    """The second submission changes nothing, whether the job waits, runs or has ended."""
    job = site.job(4, WAITS)
    for _ in range(2):
        await site.lrms.submit(job)
    await site.told(job.key, Started)
    await site.lrms.submit(job)
    site.go(job.key)
    await site.ended(job.key)
    await site.lrms.submit(job)
    await site.looks(3)
    assert (site.runs(job.key), site.kinds(job.key)) == (1, LIFE)


async def wider_than_the_machine(site: Site) -> None:
    """It is refused at once, whatever the batch system would do with it."""
    with pytest.raises(LrmsRefusedError, match="10000 processors"):
        await site.lrms.submit(site.job(5, "true", 10_000))
    assert await site.lrms.look_up(f"{site.name}/1/5") is None


async def shorter_than_a_look(site: Site) -> None:
    """Its start and its end are both told, in order."""
    job = site.job(6, "true")
    await site.lrms.submit(job)
    await site.ended(job.key)
    started = site.of(job.key)[1]
    assert isinstance(started, Started)
    assert started.start_time > 1.5e9
    assert site.kinds(job.key) == LIFE


async def time_limit(site: Site) -> None:
    """A job that takes longer than it asked for."""
    job = site.job(7, "sleep 300", seconds=site.world.limit_s)
    await site.lrms.submit(job)
    await site.told(job.key, Started)
    site.world.end_limit(await site.number(job.key))
    end = (await site.ended(job.key)).end
    assert (end.outcome, end.exit_code) == (Outcome.TIMEOUT, None)


async def cancelled_by_others(site: Site) -> None:
    """Whoever ends a waiting job: that is heard."""
    job = site.job(8, "sleep 300")
    await site.lrms.submit(job, held=True)
    await site.told(job.key, Accepted)
    site.world.cancel(await site.number(job.key))
    end = (await site.ended(job.key)).end
    assert (end.outcome, end.run_time) == (Outcome.CANCELLED, 0.0)
    assert end.reason in {"it was cancelled before it began", "deleted"}
    assert site.kinds(job.key) == ["Accepted", "Ended"]


async def killed_by_others(site: Site) -> None:
    """The same for one that runs; Grid Engine cannot tell it from a signal of the job's own."""
    job = site.job(9, "sleep 300")
    await site.lrms.submit(job)
    await site.told(job.key, Started)
    site.world.cancel(await site.number(job.key))
    end = (await site.ended(job.key)).end
    own = (end.outcome, end.signal) == (Outcome.FAILED, 9)
    assert end.outcome is Outcome.CANCELLED or own


async def cancelled(site: Site) -> None:
    """By the site: one that waits and one that runs; then there is nothing to cancel."""
    waits, runs = site.job(10, "sleep 300"), site.job(11, "sleep 300")
    await site.lrms.submit(waits, held=True)
    await site.lrms.submit(runs)
    await site.told(runs.key, Started)
    for job in (waits, runs):
        assert await site.lrms.cancel(job.key)
        assert (await site.ended(job.key)).end.outcome is Outcome.CANCELLED
        assert not await site.lrms.cancel(job.key)
    assert (site.runs(waits.key), site.runs(runs.key)) == (0, 1)
    assert not await site.lrms.cancel(f"{site.name}/1/999")


async def cancelled_together(site: Site) -> None:
    """Many at one time, held and running, with one that has ended since and one of somebody else's, which goes on."""
    jobs = [site.job(number, "sleep 300") for number in range(40, 48)]
    for job in jobs:
        await site.lrms.submit(job, held=job is not jobs[0])
    await site.told(jobs[0].key, Started)
    for job in jobs[1:]:
        await site.told(job.key, Accepted)
    others = site.world.others(1, held=True)
    rows = [row for row in (await site.system.look()).rows if _number(row.name) in range(40, 48)]
    assert len(rows) == len(jobs)
    site.world.cancel(await site.number(jobs[-1].key))
    await site.ended(jobs[-1].key)
    await site.system.cancel_all(rows)
    for job in jobs[:-1]:
        assert (await site.ended(job.key)).end.outcome in {
            Outcome.CANCELLED,
            Outcome.FAILED,  # Grid Engine says of one that ran that a signal ended it
        }
    await site.system.cancel_all(rows)
    assert [site.runs(job.key) for job in jobs] == [1] + [0] * 7
    site.world.cancel(others)


def _number(name: str) -> int:
    return int(re.split(r"[/+]", name)[-1]) if re.search(r"[/+]\d+$", name) else 0


async def cancelled_only_if_it_waits(site: Site) -> None:
    """One that runs goes on; one that waits never starts."""
    waits, runs = site.job(12, "true"), site.job(13, WAITS)
    await site.lrms.submit(waits, held=True)
    await site.lrms.submit(runs)
    wide = site.job(28, "true", site.world.slots)  # it does not fit now
    await site.lrms.submit(wide)
    assert await site.lrms.cancel(wide.key, only_waiting=True)
    assert not await site.lrms.cancel(wide.key, only_waiting=True)
    end = (await site.ended(wide.key)).end
    assert (end.outcome, end.run_time) == (Outcome.CANCELLED, 0.0)
    await site.told(runs.key, Started)
    assert not await site.lrms.cancel(runs.key, only_waiting=True)
    assert await site.lrms.cancel(waits.key, only_waiting=True)
    site.go(runs.key)
    assert (await site.ended(runs.key)).end.outcome is Outcome.COMPLETED
    assert (await site.ended(waits.key)).end.outcome is Outcome.CANCELLED
    assert (site.runs(waits.key), site.runs(runs.key)) == (0, 1)


async def elsewhere(site: Site) -> None:
    """What is elsewhere does not start before it is back, and then runs once; what has ended there never does."""
    back, over, wide = (
        site.job(60, "true"),
        site.job(61, "true"),
        site.job(62, "true", site.world.slots),  # it does not fit beside the one that runs
    )
    runs = site.job(63, WAITS)
    await site.lrms.submit(runs)
    await site.told(runs.key, Started)
    for job in (back, over):
        for _ in range(2):
            await site.lrms.keep_place(job)
    await site.lrms.submit(wide)
    await site.phase(wide.key, LrmsPhase.WAITING)
    assert await site.lrms.leave(wide.key)
    end = (await site.ended(wide.key)).end
    assert (end.outcome, end.run_time) == (Outcome.CANCELLED, 0.0)
    await site.looks(3)
    for job in (back, over):
        assert (site.of(job.key), await site.lrms.look_up(job.key)) == ([], None)
    for key in (over.key, f"{wide.key}/2"):
        assert not await site.lrms.cancel(key)
    await site.lrms.submit(back)
    assert (await site.ended(back.key)).end.outcome is Outcome.COMPLETED
    assert [site.runs(job.key) for job in (back, over, wide)] == [1, 0, 0]
    assert site.kinds(back.key) == LIFE
    kept = {QueuePlace.KEPT, QueuePlace.BEHIND}
    assert queue_place_of(site.lrms) in kept
    site.go(runs.key)
    await site.ended(runs.key)


async def held_and_released(site: Site) -> None:
    """It waits as long as the site wants, and then runs once."""
    job = site.job(14, "true")
    await site.lrms.submit(job, held=True)
    await site.phase(job.key, LrmsPhase.HELD)
    await site.looks(2)
    assert site.runs(job.key) == 0
    await site.lrms.release(job.key)
    await site.lrms.release(job.key)
    await site.ended(job.key)
    assert (site.kinds(job.key), site.runs(job.key)) == (LIFE, 1)


async def held_by_its_user(site: Site) -> None:
    """That hold stays until the user lets go."""
    job = site.job(15, "true", site.world.slots)  # it does not fit now
    await site.lrms.submit(job)
    await site.phase(job.key, LrmsPhase.WAITING)
    await asyncio.sleep(1.5)  # Slurm notes at the next second that the job could have started
    number = await site.number(job.key)
    site.world.hold(number)
    await site.phase(job.key, LrmsPhase.HELD)
    await site.looks(3)
    await site.phase(job.key, LrmsPhase.HELD)
    site.world.unhold(number)
    await site.phase(job.key, LrmsPhase.WAITING)
    assert await site.lrms.cancel(job.key)
    await site.ended(job.key)


async def requeued(site: Site) -> None:
    """It waits again, and what comes then is told."""
    job = site.job(16, "test -e once && exit 0; touch once; sleep 300")
    await site.lrms.submit(job)
    await site.told(job.key, Started)
    await site.until(lambda: site.runs(job.key) == 1)
    number = await site.number(job.key)
    site.world.requeue(number)
    await site.told(job.key, Requeued)
    record = await site.lrms.look_up(job.key)
    assert record is not None
    assert record.restarted == (record.phase in {LrmsPhase.WAITING, LrmsPhase.HELD})
    await asyncio.to_thread(site.world.hasten, number)
    await site.ended(job.key)
    assert site.kinds(job.key) == ["Accepted", "Started", "Requeued", "Started", "Ended"]
    assert site.runs(job.key) == 2


async def lost_answer(site: Site) -> None:
    """The batch system has the job, and nobody knows: it is found and not repeated."""
    job = site.job(17, "true")
    site.system.lose += 1
    before = site.system.submissions
    with pytest.raises(LrmsUnavailableError):
        await site.lrms.submit(job)
    await site.lrms.submit(job)
    await site.ended(job.key)
    assert (site.runs(job.key), site.kinds(job.key)) == (1, LIFE)
    assert site.system.submissions == before + 1


async def not_set_up_for_preemption(site: Site) -> None:
    """It says that it ends no guests, and one that may be ended runs as any other; protection changes nothing."""
    found = preemption_of(site.lrms)
    assert (found.ended_by, found.protects) == (EndedBy.NOBODY, False)
    assert found.why
    site.lrms.protect(on=True)
    job = replace(site.job(18, "true"), partner="H", preemptible=True, protected=True)
    await site.lrms.submit(job)
    assert (await site.ended(job.key)).end.outcome is Outcome.COMPLETED
    assert (site.kinds(job.key), site.runs(job.key)) == (LIFE, 1)


async def nobody_is_named(site: Site) -> None:
    """A job that was never there is none."""
    assert await site.lrms.look_up(f"{site.name}/1/998") is None
    with pytest.raises(LrmsRefusedError):
        await site.lrms.release(f"{site.name}/1/998")


PEACEFUL = (
    plain,
    exit_code,
    killed_by_signal,
    submitted_twice,
    wider_than_the_machine,
    shorter_than_a_look,
    cancelled_by_others,
    killed_by_others,
    cancelled,
    cancelled_together,
    cancelled_only_if_it_waits,
    elsewhere,
    held_and_released,
    requeued,
    not_set_up_for_preemption,
    nobody_is_named,
)
"""Scenes on one adapter at one time."""


# --- scenes that put everything into disorder ----------------------------------------------------


async def waiting_is_counted(site: Site) -> None:
    """Of others: each element of an array, and nothing that is held."""
    snapshot = await site.lrms.snapshot()
    assert (snapshot.free, snapshot.waiting) == (snapshot.processors, 0)
    size = snapshot.processors
    first = site.world.others(size)
    await site.until(lambda: _load(site, "free") == 0)
    waits = site.world.others(2, tasks=3)
    site.world.others(5, held=True)
    await site.until(lambda: _load(site, "waiting") == 6)
    job = site.job(30, "true", 4)
    await site.lrms.submit(job)
    await site.until(lambda: _load(site, "waiting") == 10)
    await held_by_its_user(site)
    for number in (waits, first):
        site.world.cancel(number)
    await site.ended(job.key)
    await site.until(lambda: _load(site, "waiting") == 0)


def _load(site: Site, name: str) -> int:
    loads = [event.load for event in site.events if isinstance(event, LoadSeen)]
    return int(getattr(loads[-1], name)) if loads else -1


async def preempted(site: Site) -> None:
    """A job whose node an urgent one takes waits again."""
    job = site.job(31, "test -e once && exit 0; touch once; sleep 300")
    await site.lrms.submit(job)
    await site.told(job.key, Started)
    number = await site.number(job.key)
    urgent = site.world.preempt(number)
    await site.told(job.key, Requeued)
    site.world.cancel(urgent)
    await asyncio.to_thread(site.world.hasten, number)
    await site.ended(job.key)
    assert site.kinds(job.key).count("Started") == 2


async def preempted_for_good(strict: Site) -> None:
    """A job that may not run anew ends when an urgent one takes its node, whatever its exit code, and says so."""
    job = strict.job(33, "trap 'exit 0' TERM; sleep 300 & wait")
    await strict.lrms.submit(job)
    await strict.told(job.key, Started)
    urgent = strict.world.preempt(await strict.number(job.key))
    end = (await strict.ended(job.key)).end
    strict.world.cancel(urgent)
    assert (end.outcome, end.exit_code, end.signal) == (Outcome.PREEMPTED, None, None)
    assert (strict.kinds(job.key), strict.runs(job.key)) == (LIFE, 1)
    record = await strict.lrms.look_up(job.key)
    assert record is not None
    assert record.end == end


async def node_fails(strict: Site) -> None:
    """A job that may not run anew ends when its node fails, and says so."""
    doomed = strict.job(32, "sleep 300")
    await strict.lrms.submit(doomed)
    await strict.told(doomed.key, Started)
    strict.world.break_node(await strict.number(doomed.key))
    end = (await strict.ended(doomed.key)).end
    strict.world.mend_nodes()
    assert end.outcome is Outcome.NODE_FAIL
    assert strict.runs(doomed.key) == 1


async def a_new_life(site: Site) -> None:
    """A site that is started again finds its jobs, repeats none, and goes on with what it wanted."""
    done, runs, waits, kept = (site.job(number, "true") for number in range(40, 44))
    runs = site.job(41, WAITS)
    await site.lrms.open()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(site.lrms.run())
        for job in (done, runs):
            await site.lrms.submit(job)
        await site.ended(done.key)
        await site.told(runs.key, Started)
        task.cancel()
    # Nobody looks any more: these are submitted and never released.
    await site.lrms.submit(waits)
    await site.lrms.submit(kept, held=True)
    site.events.clear()
    site.again()
    await site.lrms.open()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(site.lrms.run())
        for job in (done, runs, waits):
            await site.lrms.submit(job)
        await site.lrms.submit(kept, held=True)
        await site.told(runs.key, Appeared)
        site.go(runs.key)
        for job in (done, runs, waits):
            await site.ended(job.key)
            assert site.runs(job.key) == 1
        await site.phase(kept.key, LrmsPhase.HELD)
        assert await site.lrms.cancel(kept.key)
        await site.ended(kept.key)
        assert site.system.submissions == 0
        task.cancel()
    assert site.kinds(done.key) == ["Started", "Ended"]
    assert site.kinds(runs.key) == ["Appeared", "Ended"]


async def controller_away(site: Site) -> None:
    """It dies within seconds of what it acknowledged, and comes back.

    What it has forgotten is submitted again; what it has undone is done again; nothing runs twice.
    """
    lost, undone, back = site.job(50, "true"), site.job(51, "true"), site.job(52, "true", 2)
    await site.lrms.submit(undone, held=True)
    await site.lrms.submit(back, held=True)
    if site.world.forgets:
        await asyncio.sleep(7.0)  # older than a crash can undo
    await site.lrms.submit(lost, held=True)
    assert await site.lrms.cancel(undone.key)
    await site.ended(undone.key)
    site.world.kill_controller()
    await site.until(lambda: any(isinstance(event, Away) for event in site.events))
    with pytest.raises(LrmsUnavailableError):
        await site.lrms.submit(site.job(53, "true"))
    site.world.start_controller()
    await site.until(lambda: any(isinstance(event, Back) for event in site.events))
    if site.world.forgets:
        await site.told(lost.key, Lost)
        await site.lrms.submit(lost, held=True)
        assert site.lrms.anomalies.submission_forgotten == 1
    for job in (lost, back):
        await site.lrms.release(job.key)
        await site.ended(job.key)
        assert site.runs(job.key) == 1
    await site.looks(2)
    assert site.runs(undone.key) == 0
    record = await site.lrms.look_up(undone.key)
    assert record is not None
    assert record.end is not None


# --- all of them ---------------------------------------------------------------------------------


class Play:
    """Plays scenes and keeps what went wrong.

    Attributes:
        failures: by name of the scene; empty where nothing went wrong.
    """

    def __init__(self) -> None:
        self.failures: dict[str, str] = {}

    async def scene(self, scene: Callable[[Site], Awaitable[None]], site: Site) -> None:
        """Plays a scene."""
        name = scene.__name__
        self.failures[name] = ""
        began = time.monotonic()
        try:
            await scene(site)
        except Exception:  # noqa: BLE001  # whatever it is, the test shows it
            events = "\n".join(map(str, [e for e in site.events if not isinstance(e, LoadSeen)]))
            self.failures[name] = f"{traceback.format_exc()}\n{site.name}:\n{events}"
        _log.info("scene", name=name, seconds=round(time.monotonic() - began, 1))

    async def followed(self, site: Site, *scenes: Callable[[Site], Awaitable[None]]) -> None:
        """Plays scenes side by side at a site that follows its batch system."""
        await site.lrms.open()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(site.lrms.run())
            await asyncio.gather(*(self.scene(scene, site) for scene in scenes))
            task.cancel()
        await site.lrms.close()


async def play(world: World, other: World, folder: Path) -> dict[str, str]:
    """Plays all scenes that a batch system can have, and returns what went wrong, by scene.

    Args:
        world: the batch system.
        other: another one of the same kind, whose controller will die.
        folder: for the sites' files.
    """
    plays = Play()

    def site(name: str, *, requeue: bool = False, node: int = 0) -> Site:
        return Site(world, name, folder / name, requeue=requeue, node=node)

    async with asyncio.TaskGroup() as group:
        crashed = Site(other, "C", folder / "C")
        group.create_task(plays.followed(crashed, controller_away))
        await plays.followed(site("W"), waiting_is_counted)
        # Slurm looks at limits every half minute.
        group.create_task(plays.followed(site("T", node=3), time_limit))
        await asyncio.gather(
            plays.followed(site("M", requeue=True), *PEACEFUL),
            plays.followed(site("L"), lost_answer),
            plays.scene(a_new_life, site("N")),
        )
        if world.preempts:
            await plays.followed(site("P", requeue=True, node=1), preempted)
            await plays.followed(site("G", node=1), preempted_for_good)
        if world.nodes_fail:
            await plays.followed(site("F", node=2), node_fails)
    return plays.failures
