"""A job whose partner ends it for an own job, above two real batch systems: it goes home, and runs again to its end."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from grms.cli.main import run_command
from grms.client import Client
from grms.lrms.base import place_words
from grms.lrms.preemption import EndedBy, preemption_of
from grms.site.model.records import GuestPreemptible, JobEnded, JobSentHome, RerunAllowed
from grms.util.outcomes import Outcome
from grms.v1 import job_pb2
from tests.clusters.slurm import SlurmCluster, need_slurm
from tests.grms.lrms.slurm.test_real_preemption import OFF, ON, PARTITIONS
from tests.grms.site.daemons import Running, two_sites
from tests.grms.site.test_real_batch import free_at, table
from tests.waiting import TIME_OUT_S, until

pytestmark = pytest.mark.services

CPUS = 4
GIVEN = b"given\n"
ALONE, GUEST, _ = PARTITIONS.strip().splitlines(keepends=True)
"""Lines of partitions: of all jobs, and of guests."""


@dataclass
class Returns:
    """Two sites: jobs of home may be run again, and away ends such guests for own jobs.

    Attributes:
        home: the one whose user submits the job.
        away: its partner.
        clusters: their batch systems, by name.
        folder: of the test.
    """

    home: Running
    away: Running
    clusters: dict[str, SlurmCluster]
    folder: Path

    def own(self, site: str) -> str:
        """Submits a job of a cluster's own users that needs all of it, and returns its number."""
        words = ("--parsable", f"--ntasks={CPUS}", "--wrap=exec sleep 300", "--output=/dev/null")
        return self.clusters[site].ask("sbatch", *words).strip()

    def queue(self, site: str) -> list[str]:
        """Returns the partition, state and number of each job of a cluster that has not ended."""
        return self.clusters[site].ask("squeue", "-h", "-a", "-o", "%P %t %i").splitlines()

    def runs(self) -> list[str]:
        """Returns what the job's runs have noted, each at its beginning and at its end."""
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []

    async def submitted(self) -> str:
        """Submits home's job, which ends once there is a file `gate`, or well on SIGTERM, and returns its name."""
        request = job_pb2.SubmitRequest(idempotency_key="leaves")
        request.request.processors = CPUS // 2
        request.request.requested_time_s = 600.0
        program = request.request.program
        log = self.folder / "log"
        program.script = (
            f'#!/bin/sh\ntrap "exit 0" TERM\necho "begins in $SLURM_JOB_PARTITION" >>{log}\n'
            f"cat data; while ! test -e {self.folder}/gate; do sleep 0.1; done\n"
            f'echo made >made; echo "ends in $SLURM_JOB_PARTITION" >>{log}\n'
        )
        program.outputs.append("made")
        given = program.inputs.add(
            name="data", size_bytes=len(GIVEN), sha256=hashlib.sha256(GIVEN).digest()
        )
        put = job_pb2.PutInputRequest(file=given, content=GIVEN)
        await self.home.jobs.PutInput(put, timeout=TIME_OUT_S)
        job = await self.home.jobs.Submit(request, timeout=TIME_OUT_S)
        return str(job.job_id)

    async def ended(self, job_id: str, where: str, capfd: pytest.CaptureFixture[str]) -> None:
        """Looks at the job, and at what its last run has left, as its user does once it has ended."""
        socket = self.folder / "home.sock"
        async with Client(socket, timeout_s=TIME_OUT_S) as user:
            job = await user.wait(job_id)
            assert (job.outcome, job.exit_code, job.executed_on) == (Outcome.COMPLETED, 0, where)
            assert [(sent.site, sent.times) for sent in job.sent_home] == [("away", 1)]
            results = await user.results(job_id, wait=True)
            assert (results.complete, results.problem) == (True, "")
            said = {
                file.name: b"".join([some async for some in user.fetch(job_id, file.name)])
                for file in results.files
            }
        assert said == {"stdout": GIVEN, "stderr": b"", "made": b"made\n"}
        words = ["status", job_id, "--socket", str(socket)]
        assert await asyncio.to_thread(run_command, words) == 0
        shown = capfd.readouterr().out
        assert re.search(
            rf": ended, completed on {where} .* submission, sent home by away\b", shown
        )
        assert re.search(r"^  sent home +by away, .* lost$", shown, re.MULTILINE)


@asynccontextmanager
async def returns(folder: Path, ended_by: EndedBy, *, rounds: bool) -> AsyncIterator[Returns]:
    """Starts it; with rounds home offers again what waits there."""
    need_slurm()
    slurm = ended_by is EndedBy.BATCH_SYSTEM
    with ExitStack() as stack:
        clusters = {
            "home": SlurmCluster(folder / "cluster-home", nodes=1, cpus=CPUS),
            "away": SlurmCluster(
                folder / "cluster-away",
                nodes=1,
                cpus=CPUS,
                partitions=ALONE + GUEST if slurm else ALONE,
                preemption=ON if slurm else OFF,
            ),
        }
        for cluster in clusters.values():
            stack.callback(cluster.down)
            cluster.up()
        here, there = (table(each, folder / f"spool-{name}") for name, each in clusters.items())
        there["preemption"] = {"partition": "guest"} if slurm else {}
        there["partitions"] = ["main"]
        async with two_sites(
            folder,
            {"lrms": here, "requeue": "allow", **({"reoffer": 1.0} if rounds else {})},
            {"lrms": there, "guests": {"preemptible": True}},
        ) as (home, away):
            yield Returns(home, away, clusters, folder)


def first_key(sites: Returns) -> str:
    """Returns under which key home's batch system has the job, or its place."""
    (job,) = sites.home.core.engine.state.jobs()
    return job.lrms_key


@pytest.mark.parametrize("again", ["home", "away"])
@pytest.mark.parametrize(
    ("ended_by", "where"),
    [(EndedBy.BATCH_SYSTEM, "guest"), (EndedBy.DAEMON, "main")],
    ids=["slurm", "daemon"],
)
async def test_a_guest_goes_for_an_own_job_and_runs_again(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    ended_by: EndedBy,
    where: str,
    again: str,
) -> None:
    """At home, or at the partner once more: to its end once, with one set of results."""
    async with returns(tmp_path, ended_by, rounds=again == "away") as sites:
        filler = sites.own("home")
        await until(lambda: free_at(sites.home) == 0 and free_at(sites.away) == CPUS)
        assert preemption_of(sites.away.core.driver.lrms).ended_by is ended_by
        job_id = await sites.submitted()
        await until(lambda: sites.runs() == [f"begins in {where}"])
        lrms, kept = sites.home.core.driver.lrms, "it keeps its place by a marker, job "
        await until(lambda: place_words(lrms, first_key(sites), away=True).startswith(kept))
        (shown,) = (await sites.home.jobs.List(job_pb2.ListRequest(), timeout=TIME_OUT_S)).jobs
        assert shown.place.startswith(kept)
        own = sites.own("away")
        job = sites.home.core.engine.state.job(job_id)
        assert job is not None
        await until(lambda: bool(job.sent_home) or job.outcome is not None)
        assert job.outcome is None
        await until(lambda: f"main R {own}" in sites.queue("away"))
        sites.clusters[again].ask("scancel", filler if again == "home" else own)
        await until(lambda: len(sites.runs()) == 2)
        (tmp_path / "gate").touch()
        second = "main" if again == "home" else where
        await sites.ended(job_id, again, capfd)
        assert sites.runs() == [
            f"begins in {where}",
            f"begins in {second}",
            f"ends in {second}",
        ]
        here, there = ([*site.core.journal.records()] for site in (sites.home, sites.away))
    runs = 1 + (again == "away")
    lost = [record.lost for record in here if isinstance(record, JobSentHome)]
    assert [sent.lost for sent in job.sent_home] == lost
    assert sum(isinstance(record, RerunAllowed) for record in here) >= runs
    assert [record.outcome for record in here if isinstance(record, JobEnded)] == [
        Outcome.COMPLETED
    ]
    assert sum(isinstance(record, GuestPreemptible) for record in there) == runs
    outcomes = [Outcome.PREEMPTED, Outcome.COMPLETED][:runs]
    assert [record.outcome for record in there if isinstance(record, JobEnded)] == outcomes


COUNTED = 60


async def test_a_guest_that_writes_its_state_goes_on_from_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It counts at the partner, is ended there, counts on there, and at last at home; what it has written stays nowhere."""
    script = (
        f"#!/bin/sh\nset -e\nat=0\n"
        f'test "${{HANSE_RESTART_COUNT:-0}}" -eq 0 || at=$(cat state.txt)\n'
        f'echo "from $at in $SLURM_JOB_PARTITION, run ${{SLURM_RESTART_COUNT:-0}}" >>{tmp_path}/log\n'
        f"while test $at -lt {COUNTED}; do\n"
        f"at=$((at + 1))\necho $at >>{tmp_path}/counted\necho $at >half\nmv half state.txt\nsleep 0.2\n"
        f"done\necho made >made\n"
    )
    counted, socket = tmp_path / "counted", tmp_path / "home.sock"

    def numbers() -> list[int]:
        return [int(line) for line in counted.read_text().split()] if counted.exists() else []

    async with returns(tmp_path, EndedBy.BATCH_SYSTEM, rounds=True) as sites:
        filler = sites.own("home")
        await until(lambda: free_at(sites.home) == 0 and free_at(sites.away) == CPUS)
        async with Client(socket, timeout_s=TIME_OUT_S) as user:
            submitted = await user.submit(
                processors=CPUS // 2,
                requested_time_s=600.0,
                script=script,
                outputs=["made"],
                checkpoint_s=1.0,
                checkpoint_files=["state*"],
            )
        job = sites.home.core.engine.state.job(submitted.job_id)
        assert job is not None
        for times in (1, 2):
            await until(lambda times=times: len(numbers()) >= times * COUNTED // 4)  # type: ignore[misc]  # a loop's value
            own = sites.own("away")
            await until(
                lambda times=times: (
                    sum(each.kept_times for each in job.sent_home) == times  # type: ignore[misc]  # same
                    or job.outcome is not None
                    or bool(job.sent_home and job.sent_home[0].problem)
                )
            )
            assert (job.outcome, job.state_there) == (None, None)
            (told,) = job.sent_home
            assert (told.site, told.times, told.problem) == ("away", times, "")
            assert told.kept > times * (COUNTED // 4 * 0.2 - 1.0)
            assert 0 <= told.lost < 30.0
            # Then there is room again, there or here.
            sites.clusters["away" if times == 1 else "home"].ask(
                "scancel", own if times == 1 else filler
            )
        async with Client(socket, timeout_s=TIME_OUT_S) as user:
            ended = await user.wait(submitted.job_id)
            assert (ended.outcome, ended.executed_on) == (Outcome.COMPLETED, "home")
            results = await user.results(submitted.job_id, wait=True)
            assert {file.name for file in results.files} == {"stdout", "stderr", "made"}
        runs = [re.fullmatch(r"from (\d+) in (\w+), run (\d)", line) for line in sites.runs()]
        assert [(run[2], run[3]) for run in runs if run is not None] == [
            ("guest", "0"),
            ("guest", "1"),
            ("main", "2"),
        ]
        begins = [int(run[1]) for run in runs if run is not None]
        assert begins == sorted(set(begins))
        assert begins[0] == 0
        assert begins[1] >= COUNTED // 4 - 1
        # Each number once, but for one of each run that was counted and not written any more.
        assert sorted(set(numbers())) == [*range(1, COUNTED + 1)]
        assert len(numbers()) <= COUNTED + 2
        words = ["status", submitted.job_id, "--socket", str(socket)]
        assert await asyncio.to_thread(run_command, words) == 0
        shown = capfd.readouterr().out
        assert re.search(r"^  sent home +by away 2 times, .* kept, .* lost$", shown, re.MULTILINE)
        await until(lambda: not [*(tmp_path / "spool-away").rglob("state.txt")])
