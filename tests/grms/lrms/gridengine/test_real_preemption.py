"""Guests above a real Grid Engine that are ended for jobs of others: by Grid Engine, or by this site where it does not."""

import asyncio
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from grms.daemon.clock import WallClock
from grms.lrms.adapter import LrmsSite
from grms.lrms.base import Ended, LoadSeen, LrmsEvent, LrmsJob, LrmsRefusedError, Program, Started
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.checks import Finding, FindingLevel
from grms.lrms.gridengine.gridengine_adapter import ADAPTER, GridEngineTable
from grms.lrms.preemption import EndedBy, Preemption, preemption_of
from grms.util.outcomes import Outcome
from tests.clusters.gridengine import GridEngineCluster, need_gridengine
from tests.clusters.up import up
from tests.grms.lrms.told import Told, followed

pytestmark = pytest.mark.services

DEADLINE_S = 120.0
LASTS = "#!/bin/sh\ntrap 'exit 0' TERM\necho ran >>runs\nsleep 300 & wait\n"


@dataclass
class Guests(Told):
    """A site with guests, above a cell.

    Attributes:
        table: of the site's file.
    """

    cell: GridEngineCluster
    folder: Path
    table: GridEngineTable
    events: list[LrmsEvent] = field(default_factory=list)
    lrms: BatchLrms = field(init=False)

    def __post_init__(self) -> None:
        """Makes the adapter."""
        self.again()

    @property
    def site(self) -> LrmsSite:
        """The site."""
        return LrmsSite("A", self.cell.slots, WallClock(), self.folder)

    def again(self) -> None:
        """Makes an adapter that remembers nothing."""
        lrms = ADAPTER.made(self.table, self.site)
        assert isinstance(lrms, BatchLrms)
        self.lrms = lrms
        lrms.listen(self.events.extend)

    async def running(self, *jobs: LrmsJob) -> None:
        """Submits jobs, and returns when all run."""
        for job in jobs:
            await self.lrms.submit(job)
        await self.until(lambda: all(self.runs(job.key) == 1 for job in jobs))
        await self.until(lambda: all(self.of(job.key, Started) for job in jobs))

    def outcomes(self) -> dict[str, Outcome]:
        """Returns how jobs have ended."""
        return {event.key: event.end.outcome for event in self.events if isinstance(event, Ended)}

    def load(self) -> tuple[int, int | None]:
        """Returns the processors that own jobs, and guests, would have at the last look."""
        seen = [event for event in self.events if isinstance(event, LoadSeen)][-1]
        return seen.load.free, seen.load.idle

    def own(self, slots: int) -> str:
        """Submits a job of the cell's own users, and returns its number."""
        words = ("-terse", "-b", "y", "-q", "main", "-o", "/dev/null", "-e", "/dev/null")
        wide = ("-pe", "smp", str(slots)) if slots > 1 else ()
        return self.cell.ask("qsub", *words, *wide, "sleep", "300").strip()

    def states(self) -> dict[str, str]:
        """Returns the states of all jobs, by number."""
        lines = self.cell.ask("qstat", "-u", "*").splitlines()[2:]
        return {line.split()[0]: line.split()[4] for line in lines}

    async def findings(self) -> dict[str, Finding]:
        """Returns what the check says."""
        assert ADAPTER.check is not None
        return {each.what: each for each in await ADAPTER.check(self.table, self.site, None)}


def guest(number: int, slots: int = 1, *, preemptible: bool = True) -> LrmsJob:
    """Returns a guest that may be ended."""
    program = Program(LASTS)
    return LrmsJob(
        f"H/1/{number}", slots, 600.0, partner="H", program=program, preemptible=preemptible
    )


def table(cell: GridEngineCluster, **more: object) -> GridEngineTable:
    """Returns the table of a site's file."""
    return GridEngineTable.model_validate(
        {
            "kind": "gridengine",
            "root": str(cell.folder),
            "master_port": cell.ports[0],
            "execution_port": cell.ports[1],
            "programs": cell.programs,
            "queues": ["main"],
            "poll_s": 0.2,
            "records_s": 0.5,
            **more,
        }
    )


async def test_the_printed_commands_do_it(tmp_path: Path) -> None:
    """A cell that ends no guests is told so, and the site ends some; with the commands Grid Engine does.

    All guests of the host go once an own job has begun there, which does not wait for that; each is told once as preempted,
    also where no record ever says how it ended. One that an operator deletes is none of them.
    """
    need_gridengine()
    cell = GridEngineCluster(tmp_path / "cell", slots=4)
    with up(cell):
        await by_the_site(Guests(cell, tmp_path / "bare", table(cell, preemption={})))
        set_up = table(cell, preemption={"queue": "guest", "wait_s": 1.0})
        site = Guests(cell, tmp_path / "A", set_up)
        before = (await site.findings())["queue"]
        assert (before.level, before.text) == (FindingLevel.MISSING, "there is no 'guest'")
        assert ADAPTER.preemption is not None
        commands, own_file = await ADAPTER.preemption(set_up, site.site)
        assert 'queue = "guest"' in own_file.lines
        subprocess.run(  # noqa: S603, ASYNC221  # of the test
            ["/bin/sh", "-ec", "\n".join(commands.lines)],
            env={"PATH": f"{cell.programs}:/usr/bin:/bin", **cell.environment},
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
        left = await ADAPTER.preemption(set_up, site.site)
        assert [each.file for each in left] == ["the site's file"]  # nothing is left to do
        found = await site.findings()
        names = ("preemption", "guests in guest")
        assert [found[name].level for name in names] == [FindingLevel.GOOD] * 2
        await by_grid_engine(site)
        forgetful = set_up.model_copy(update={"records_s": 0.0})
        await without_records(Guests(cell, tmp_path / "B", forgetful))


async def by_the_site(site: Guests) -> None:
    """Without a queue of guests: so many as a waiting job needs."""
    site.folder.mkdir()
    found = (await site.findings())["preemption"]
    assert found.level is FindingLevel.DOUBT
    assert "the daemon deletes some when an own job waits for slots" in found.text
    async with followed(site.lrms):
        staying = guest(1, preemptible=False)
        await site.running(staying, guest(2), guest(3, 2))
        assert preemption_of(site.lrms).ended_by is EndedBy.DAEMON
        assert site.load() == (0, None)
        number = site.own(1)
        await site.until(lambda: site.states()[number] == "r")
        await site.until(lambda: bool(site.outcomes()))
        assert len(site.outcomes()) == 1
        assert set(site.outcomes().values()) == {Outcome.PREEMPTED}
        await site.lrms.cancel(staying.key)
        await site.until(lambda: len(site.outcomes()) == 2)
        assert site.outcomes()[staying.key] is Outcome.CANCELLED
        site.cell.ask("qdel", "-u", "*")
        await site.until(lambda: len(site.outcomes()) == 3 and not site.states())


async def by_grid_engine(site: Guests) -> None:
    """All guests of the host, once an own job has begun there."""
    async with followed(site.lrms):
        deleted, others = guest(1), [guest(2), guest(3, 2)]
        await site.running(deleted, *others)
        assert preemption_of(site.lrms) == Preemption(EndedBy.BATCH_SYSTEM)
        assert site.load() == (4, 0)  # own jobs would have all of it
        (row,) = [number for number in site.states() if number_of(site, deleted) == number]
        site.cell.ask("qdel", row)
        await site.until(lambda: bool(site.outcomes()))
        assert site.outcomes() == {deleted.key: Outcome.FAILED}
        number = site.own(1)

        def has_begun() -> bool:
            assert len(site.outcomes()) == 1  # it waits for none of them
            return site.states()[number] in {"t", "r"}

        await site.until(has_begun)
        await site.until(lambda: len(site.outcomes()) == 3)
        assert all(site.outcomes()[each.key] is Outcome.PREEMPTED for each in others)
        await site.until(lambda: site.states() == {number: "r"})
        assert all(
            (site.runs(each.key), len(site.of(each.key, Ended))) == (1, 1) for each in others
        )
        with pytest.raises(LrmsRefusedError) as caught:
            await site.lrms.submit(guest(4))
        assert caught.value.passing
        assert site.load()[1] == 0
        site.cell.ask("qdel", number)
        await site.until(lambda: site.load()[1] == 4)
        await site.running(guest(5))
        site.again()  # it has ended while nobody looked
        await site.lrms.open()
        number = site.own(1)
        await site.until(lambda: site.states() == {number: "r"})
        async with asyncio.timeout(DEADLINE_S):
            record = await site.lrms.look_up("H/1/5")
            while record is None or record.end is None:
                record = await site.lrms.look_up("H/1/5")
        assert record.end.outcome is Outcome.PREEMPTED
        site.cell.ask("qdel", number)
        await site.until(lambda: not site.states())


async def without_records(site: Guests) -> None:
    """The folder says it, and the master that it has no such job."""
    site.folder.mkdir()
    Path(site.table.accounting).unlink()
    Path(site.table.accounting).mkdir()  # nothing is ever written there
    async with followed(site.lrms):
        gone = guest(6)
        await site.running(gone)
        site.own(1)
        await site.until(lambda: bool(site.outcomes()))
        assert site.outcomes() == {gone.key: Outcome.PREEMPTED}
        await site.until(lambda: len(site.states()) == 1)


def number_of(site: Guests, job: LrmsJob) -> str:
    """Returns the number of a job."""
    tracked = site.lrms._tracker.job(job.key)  # nobody else knows it
    assert tracked is not None
    return tracked.number
