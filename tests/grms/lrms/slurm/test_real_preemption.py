"""Guests above a real Slurm that are ended for jobs of others: by Slurm, or by this site where Slurm does not."""

import asyncio
import re
import shutil
import subprocess
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from grms.lrms.account_mapping import own_name
from grms.lrms.base import Ended, Hindered, LrmsEvent, LrmsJob, Program, Started
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.guests_without_room import NO_ROOM
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.reconciler import Reconciler
from grms.lrms.batch.subprocesses import Programs
from grms.lrms.checks import Finding, FindingLevel
from grms.lrms.preemption import EndedBy, Preemption, WithPreemption, preemption_of
from grms.lrms.slurm.slurm import Slurm, SlurmSettings
from grms.lrms.slurm.slurm_check import SlurmCheck
from grms.lrms.slurm.slurm_preemption import GuestPartitions
from grms.lrms.slurm.slurm_preemption_lines import preemption_lines
from grms.util.outcomes import Outcome
from lrms_sim.workload.requests import Request
from tests.clusters.slurm import PATH, SlurmCluster, need_slurm
from tests.clusters.up import up
from tests.grms.lrms.told import Told, followed

pytestmark = pytest.mark.services

DEADLINE_S = 300.0
LASTS = "#!/bin/sh\necho ran >>runs\nexec sleep 300\n"

LINGERS = """#!/bin/sh
echo ran >>runs
trap 'touch told; (trap "" TERM; exec sleep 2); trap - TERM; kill -TERM $$' TERM
sleep 300 &
wait
"""
"""Takes some time to end."""

PARTITIONS = """
PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 DefaultTime=60 PreemptMode=OFF State=UP
PartitionName=guest Nodes=ALL PriorityTier=0 PreemptMode=CANCEL GraceTime=0 DefaultTime=60 MaxTime=12:00:00 State=UP
PartitionName=guestp Nodes=ALL PriorityTier=0 PreemptMode=CANCEL GraceTime=0 DefaultTime=60 MaxTime=12:00:00 State=UP
"""
ON = "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\nKillWait=1\n"
OFF = "PreemptType=preempt/none\nPreemptMode=OFF\nKillWait=1\n"
BOTH = GuestPartitions("guest", "guestp")


@dataclass
class Guests(Told):
    """A site with guests, above a cluster.

    Attributes:
        guests: partitions by the site's file.
        switch: words of the site's file.
    """

    cluster: SlurmCluster
    spool: Path
    guests: GuestPartitions = BOTH
    switch: tuple[str, ...] = ("scontrol",)
    events: list[LrmsEvent] = field(default_factory=list)
    lrms: BatchLrms = field(init=False)

    def __post_init__(self) -> None:
        """Makes the adapter."""
        self.again()

    def again(self) -> None:
        """Makes an adapter that remembers nothing."""
        settings = SlurmSettings(
            "A",
            own_name(),
            partitions=("main",),
            completion_log=self.cluster.completion_log,
            guests=self.guests,
            switch=self.switch,
            guest_wait_s=1.0,
        )
        slurm = Slurm(Programs(self.cluster.environment, timeout_s=20.0), settings)
        self.lrms = BatchLrms(slurm, Spool(self.spool), poll_s=0.5, settle_s=0.0, preempting=slurm)
        self.lrms.listen(self.events.extend)

    def guest(self, number: int, processors: int = 1, **more: object) -> LrmsJob:
        """Returns a guest that may be ended."""
        job = LrmsJob(
            f"H/1/{number}",
            processors,
            600.0,
            partner="H",
            program=Program(LASTS),
            preemptible=True,
        )
        return replace(job, **more)  # type: ignore[arg-type]  # of the job

    async def running(self, *jobs: LrmsJob) -> None:
        """Submits jobs, and returns when all run."""
        for job in jobs:
            await self.lrms.submit(job)
        for job in jobs:
            await self.told(job.key, Started)
        await self.until(lambda: all(self.runs(job.key) == 1 for job in jobs))

    def outcomes(self) -> dict[str, Outcome]:
        """Returns how jobs have ended."""
        return {event.key: event.end.outcome for event in self.events if isinstance(event, Ended)}

    def folder(self, key: str) -> Path:
        """Returns the folder of a job."""
        return self.spool / key.replace("/", "+")

    def own(self, *options: str) -> str:
        """Submits a job of the cluster's own users, and returns its number."""
        words = ("--parsable", "--wrap=sleep 300", "--output=/dev/null", *options)
        return self.cluster.ask("sbatch", *words).strip()

    def state(self, number: str) -> str:
        """Returns the state of a job."""
        return self.cluster.ask("squeue", "-h", "-t", "all", "-j", number, "-o", "%t").strip()

    def mode(self) -> str:
        """Returns the mode of the partition of protected guests."""
        return self.cluster.ask("sinfo", "-h", "-p", "guestp", "-O", "PreemptMode").split()[0]


async def above(
    folder: Path, preemption: str, scene: Callable[[Guests], Awaitable[None]], **more: object
) -> None:
    """Plays a scene above a cluster."""
    need_slurm()
    cluster = SlurmCluster(
        folder / "slurm", nodes=2, cpus=4, partitions=PARTITIONS, preemption=preemption
    )
    with up(cluster):
        await scene(Guests(cluster, folder / "spool", **more))  # type: ignore[arg-type]  # of guests


async def test_slurm_ends_guests(tmp_path: Path) -> None:
    """When an own job needs their processors; not the protected ones while these are, also after a reconfiguration.

    A guest that comes when there is no room any more is told to wait for it, and can be had back; an own job waits on.
    """

    async def scene(site: Guests) -> None:
        async with followed(site.lrms):
            safe = [site.guest(number, protected=True) for number in (1, 2)]
            others = [site.guest(number) for number in range(3, 9)]
            await site.looks(1)
            assert isinstance(site.lrms, WithPreemption)
            assert preemption_of(site.lrms) == Preemption(
                EndedBy.BATCH_SYSTEM, 0.0, 1.0, protects=True
            )
            site.lrms.protect(on=True)
            await site.running(*safe, *others)
            await site.until(lambda: site.mode() == "OFF")
            number = site.own("--ntasks=6")
            await site.until(lambda: len(site.outcomes()) == 6)
            assert site.outcomes() == {job.key: Outcome.PREEMPTED for job in others}
            await site.until(lambda: site.state(number) == "R")
            # Slurm forgets it now, and is told again.
            site.cluster.ask("scontrol", "reconfigure")
            await site.until(lambda: site.mode() == "CANCEL")
            await site.until(lambda: site.mode() == "OFF")
            waits = site.own("--ntasks=2")
            await site.looks(4)
            assert (site.state(waits), len(site.outcomes())) == ("PD", 6)
            site.lrms.protect(on=False)
            await site.until(lambda: len(site.outcomes()) == 8)
            await site.until(lambda: site.state(waits) == "R")
            assert set(site.outcomes().values()) == {Outcome.PREEMPTED}
            assert all(site.runs(job.key) == 1 for job in (*safe, *others))
            late = site.guest(9)
            own = LrmsJob("A/1/1", 1, 600.0, program=Program(LASTS))
            for job in (own, late):
                await site.lrms.submit(job)
            await site.told(late.key, Hindered)
            assert site.of(late.key, Hindered) == [Hindered(late.key, NO_ROOM)]
            await site.looks(4)
            assert site.of(own.key, Hindered) == []
            assert await site.lrms.cancel(late.key, only_waiting=True)
            assert (site.runs(late.key), site.runs(own.key)) == (0, 0)

    await above(tmp_path, ON, scene)


async def test_a_controller_dies_while_it_ends_a_guest(tmp_path: Path) -> None:
    """It comes back without that knowledge, and says that the guest has failed: it was ended for another job all the same."""

    async def scene(site: Guests) -> None:
        guest = site.guest(1, 8, program=Program(LINGERS))
        async with followed(site.lrms):
            await site.running(guest)
            (number,) = site.cluster.ask("squeue", "-h", "-a", "-o", "%i").split()
            saved, started = site.cluster.folder / "state/job_state", time.time()

            def is_known() -> bool:
                # It is written some seconds after a change, and not without one.
                site.cluster.ask("scontrol", "update", f"jobid={number}", "comment=again")
                return saved.stat().st_mtime > started + 1.0

            await site.until(is_known)
        site.own("--ntasks=8")
        await site.until((site.folder(guest.key) / "told").exists)
        site.cluster.kill_controller()
        await site.until(lambda: (site.folder(guest.key) / "begun.died").stat().st_size > 0)
        site.cluster.start_controller()
        site.again()
        async with followed(site.lrms), asyncio.timeout(DEADLINE_S):
            record = await site.lrms.look_up(guest.key)
            while record is None or record.end is None:
                record = await site.lrms.look_up(guest.key)
            assert site.state(number) in {"F", "PR"}
            assert record.end.outcome is Outcome.PREEMPTED
            assert site.runs(guest.key) == 1

    await above(tmp_path, ON.replace("KillWait=1", "KillWait=30"), scene)


@pytest.mark.parametrize("guests", [BOTH, GuestPartitions()], ids=["partitions", "none"])
async def test_the_site_ends_guests(tmp_path: Path, guests: GuestPartitions) -> None:
    """Where Slurm ends none: so many as a waiting job needs, and none that must run once."""

    async def scene(site: Guests) -> None:
        async with followed(site.lrms):
            once = site.guest(1, request=Request.of_processors(1, 600.0))
            assert once.request is not None
            once = replace(once, request=replace(once.request, requeue=False))
            plain = site.guest(2, preemptible=False)
            others = [site.guest(number) for number in range(3, 9)]
            await site.running(once, plain, *others)
            found = preemption_of(site.lrms)
            assert found.ended_by is EndedBy.DAEMON
            assert ("preempt/none" in found.why) == bool(guests.partition)
            await site.looks(3)
            assert site.outcomes() == {}
            number = site.own("--ntasks=2")
            await site.until(lambda: site.state(number) == "R")
            await site.until(lambda: len(site.outcomes()) == 2)
            assert set(site.outcomes().values()) == {Outcome.PREEMPTED}
            wide = site.own("--ntasks=8")  # it never fits while the other one runs
            last = site.own("--ntasks=4", "--time=1")
            await site.until(lambda: site.state(last) == "R")
            await site.until(lambda: len(site.outcomes()) == 6)
            assert set(site.outcomes()) == {job.key for job in others}
            assert site.state(wide) == "PD"

    await above(tmp_path, OFF, scene, guests=guests)


async def test_the_printed_lines_do_it(tmp_path: Path) -> None:
    """A Slurm that ends no guests is told so, with what the site does instead; with the lines it does."""
    need_slurm()
    plain = "PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 DefaultTime=60 State=UP\n"
    cluster = SlurmCluster(tmp_path / "slurm", nodes=1, cpus=4, partitions=plain, preemption=OFF)
    spool = tmp_path / "jobs"
    spool.mkdir()
    bare = GuestPartitions()
    with up(cluster):
        programs = Programs(cluster.environment, timeout_s=20.0)

        async def found(guests: GuestPartitions) -> dict[str, Finding]:
            settings = SlurmSettings("A", own_name(), guests=guests, switch=("scontrol",))
            check = SlurmCheck(programs, settings, 6.0, spool)
            return {each.what: each for each in await check.findings()}

        before = (await found(bare))["preemption"]
        assert before.level is FindingLevel.DOUBT
        for word in ("PreemptMode=OFF", "the daemon cancels guests", "as long as it lives"):
            assert word in before.text
        assert "grms lrms preemption" in before.cure
        lines = await preemption_lines(programs, SlurmSettings("A", own_name(), guests=bare), ())
        conf = cluster.folder / "slurm.conf"
        for each in lines:
            if each.file == "slurm.conf":
                conf.write_text(applied(conf.read_text(), each.lines))
        (sudo,) = [each for each in lines if "sudoers" in each.file]
        if (visudo := shutil.which("visudo", path=PATH)) is not None:
            written = tmp_path / "sudoers"
            written.write_text("".join(f"{line}\n" for line in sudo.lines))
            words = (visudo, "-c", "-f", str(written))
            assert subprocess.run(words, capture_output=True, check=False).returncode == 0  # noqa: S603, ASYNC221  # of the test
        cluster.ask("scontrol", "reconfigure")
        after = await found(BOTH)
        assert after["preemption"].text.startswith("Slurm ends guests in guest for own jobs")
        assert "there is no oci.conf" in after["images"].text
        (cluster.folder / "oci.conf").touch()
        assert "jobs run in container images" in (await found(BOTH))["images"].text
        (cluster.folder / "oci.conf").unlink()
        names = ("preemption", "guests in guest", "guests in guestp", "protection")
        assert [after[name].level for name in names] == [FindingLevel.GOOD] * 4
        site = Guests(cluster, tmp_path / "spool")
        async with followed(site.lrms):
            guest = site.guest(1, 4)
            await site.running(guest)
            number = site.own("--ntasks=4")
            await site.told(guest.key, Ended)
            assert site.outcomes() == {guest.key: Outcome.PREEMPTED}
            await site.until(lambda: site.state(number) == "R")


def applied(conf: str, lines: Sequence[str]) -> str:
    """Returns a slurm.conf with lines, as an operator writes them: keys replaced, words added, partitions at the end."""
    for line in lines:
        key = line.partition("=")[0]
        if line.startswith("#"):
            _, name, _, word = line.split()
            conf = re.sub(rf"^({name} .*)$", rf"\1 {word}", conf, flags=re.MULTILINE)
        elif key == "PartitionName":
            conf += f"{line}\n"
        else:
            conf = re.sub(rf"^{key}=.*$", line, conf, flags=re.MULTILINE)
    return conf


async def test_the_daemon_dies_before_it_has_ended_a_guest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has noted why: however the guest is cancelled then, its end is told as it was meant, and so it is afterwards."""

    async def scene(site: Guests) -> None:
        guest = site.guest(1, 8)
        async with followed(site.lrms):
            await site.running(guest)
            noted = Spool(site.spool)

            async def none(_orders: object, _rows: object) -> None:
                return None

            monkeypatch.setattr(Reconciler, "_end_again", none)
            site.own("--ntasks=8")
            await site.until(lambda: noted.evidence(guest.key).evicted)
        monkeypatch.undo()
        site.again()
        async with followed(site.lrms):
            await site.told(guest.key, Ended)
            assert site.outcomes() == {guest.key: Outcome.PREEMPTED}
        site.again()
        record = await site.lrms.look_up(guest.key)
        assert record is not None
        assert record.end is not None
        assert record.end.outcome is Outcome.PREEMPTED

    await above(tmp_path, OFF, scene)
