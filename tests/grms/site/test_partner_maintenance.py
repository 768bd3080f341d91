"""A partner whose batch system takes no jobs, or not such ones: its partners' jobs run all the same, and none has failed."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grms.daemon.ports import free_port
from grms.policy.files import save_rule_base
from grms.policy.transfer import Gaussian, Rule, RuleBase
from grms.site.model.lifecycle import GuestState, JobState
from grms.v1 import job_pb2, operator_pb2, request_pb2
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.slurm import REAL_SLURM, SlurmCluster, need_slurm
from tests.grms.site.daemons import Running, document, running
from tests.waiting import TIME_OUT_S, until

CPUS = 4
LIMIT = "QOSMaxSubmitJobPerUserLimit"
PLUGIN = """
function slurm_job_submit(job, partition, uid)
  local file = io.open("{folder}/full", "r")
  if file == nil then return slurm.SUCCESS end
  file:close()
  slurm.log_user("{limit}")
  return slurm.ESLURM_ACCOUNTING_POLICY
end
function slurm_job_modify(job, record, partition, uid) return slurm.SUCCESS end
"""
"""A limit of submissions without a database: where a file is, no job is taken."""

Cluster = SlurmCluster | FakeSlurm


@dataclass
class Pair:
    """Two sites above two batch systems: north would give all jobs away, and south takes all that it can run.

    Attributes:
        north: the one whose users submit jobs.
        south: its partner.
        clusters: their batch systems, by name.
        folder: of the test.
    """

    north: Running
    south: Running
    clusters: Mapping[str, Cluster]
    folder: Path

    def operator(self, site: str, **values: str) -> None:
        """Does what an operator does: sets a partition of a site, by `scontrol`."""
        cluster = self.clusters[site]
        if isinstance(cluster, SlurmCluster):
            words = [f"{key}={value}" for key, value in values.items()]
            cluster.ask("scontrol", "update", "partitionname=main", *words)
            return
        part = cluster.machine.partitions["main"]
        part.state = values.get("State", part.state).lower()
        part.limit = f"{values['MaxTime']}:00" if "MaxTime" in values else part.limit

    def full(self, *, full: bool = True) -> None:
        """Lets south's batch system refuse further submissions, or take them again."""
        cluster = self.clusters["south"]
        if isinstance(cluster, FakeSlurm):
            cluster.machine.refuses = LIMIT if full else ""
        elif full:
            (cluster.folder / "full").touch()
        else:
            (cluster.folder / "full").unlink()

    async def submit(self, key: str, script: str = "#!/bin/sh\n", **more: Any) -> job_pb2.Job:
        """Submits a job of north's user."""
        request = job_pb2.SubmitRequest(idempotency_key=key)
        request.request.processors = more.get("processors", 1)
        request.request.requested_time_s = more.get("requested_time_s", 600.0)
        request.request.program.script = script
        job: job_pb2.Job = await self.north.jobs.Submit(request, timeout=TIME_OUT_S)
        return job

    async def runs(self, key: str, where: str, script: str = "#!/bin/sh\n", **more: Any) -> None:
        """Submits a job, and looks where it has run to its end."""
        job = await self.north.ended((await self.submit(key, script, **more)).job_id)
        assert (job.outcome, job.exit_code) == (request_pb2.OUTCOME_COMPLETED, 0), job
        assert job.executed_on == where, job

    async def taken(self, says: Callable[[str], bool], seconds: float = 600.0) -> None:
        """Waits until south's look says of a job of so long whether, and why, it is not taken."""

        def seen() -> bool:
            load = self.south.core.driver.load()
            refuses = None if load is None else load.refuses
            return refuses is not None and says(refuses(1, seconds))

        await until(seen)

    async def problem(self, site: Running, partner: str) -> str:
        """Returns what a site's operator is told of a partner."""
        answer = await site.operator.Partners(operator_pb2.PartnersRequest(), timeout=TIME_OUT_S)
        (found,) = [one.problem for one in answer.partners if one.name == partner]
        return str(found)

    def stuck(self) -> list[str]:
        """Returns why north's jobs do not go on, as far as they do not."""
        state, now = self.north.core.engine.state, self.north.core.engine.clock.now()
        return [why for job in state.jobs() if (why := state.why_stuck(job, now))]


@asynccontextmanager
async def pair(kind: type[Cluster], folder: Path) -> AsyncIterator[Pair]:
    """Starts it."""
    if kind is SlurmCluster:
        need_slurm()
    ports = {name: free_port() for name in ("north", "south")}
    with ExitStack() as stack:
        clusters: dict[str, Cluster] = {}
        tables = {}
        for name in ports:
            place = folder / f"cluster-{name}"
            cluster = kind(place, nodes=1, cpus=CPUS)
            if isinstance(cluster, SlurmCluster):
                cluster.more = "JobSubmitPlugins=lua\n"
                place.mkdir()
                (place / "job_submit.lua").write_text(PLUGIN.format(folder=place, limit=LIMIT))
            stack.callback(cluster.down)
            cluster.up()
            clusters[name] = cluster
            tables[name] = {
                "kind": "slurm",
                "poll_s": 0.4,
                "settle_s": 0.0,
                "spool": str(folder / f"spool-{name}"),
                "completion_log": cluster.completion_log,
            }
            if isinstance(cluster, SlurmCluster):
                tables[name]["configuration"] = cluster.environment["SLURM_CONF"]
            else:
                tables[name]["programs"] = cluster.programs
        async with AsyncExitStack() as daemons:
            sites = []
            for name, partner in (("north", "south"), ("south", "north")):
                written = document(
                    folder, name, CPUS, {partner: ports[partner]}, ports[name], lrms=tables[name]
                )
                written["partners"][0]["transfer"] = str(folder / f"{name}.json")
                wide = Gaussian(0.0, 1e3)
                rule = Rule(wide, wide, accept=name == "south")
                save_rule_base(RuleBase((rule,), name), folder / f"{name}.json")
                sites.append(await daemons.enter_async_context(running(written, folder)))
            for site in sites:
                await site.linked()
            await until(lambda: all(site.core.driver.load() is not None for site in sites))
            yield Pair(sites[0], sites[1], clusters, folder)


KINDS = pytest.mark.parametrize("kind", [FakeSlurm, REAL_SLURM])


@KINDS
async def test_jobs_of_partners_do_not_fail_for_maintenance(
    kind: type[Cluster], tmp_path: Path
) -> None:
    """Drained, inactive, down, shorter limits: counted at the next look; limits of submissions when they are met."""
    async with pair(kind, tmp_path) as sites:
        south = sites.north.core.engine.state.partners["south"]
        await sites.runs("well", "south")
        for state, seconds in (("DRAIN", 8000.0), ("INACTIVE", 4000.0), ("DOWN", 2000.0)):
            sites.operator("south", State=state)
            # As soon as that, south may have said yes; a little later it says no.
            await sites.runs(f"at once {state}", "north", requested_time_s=seconds)
            await sites.taken(lambda why, state=state: why == f"main is {state}")  # type: ignore[misc]  # it is text
            before = south.offered, south.accepted
            await sites.runs(state, "north")
            assert (south.offered, south.accepted) == (before[0] + 1, before[1])
            sites.operator("south", State="UP")
            await sites.taken(lambda why: not why)
        await sites.runs(
            "big", "south", "#!/bin/sh\n" + ("#" + "x" * 98 + "\n") * 3000, requested_time_s=60.0
        )
        sites.operator("south", MaxTime="5")
        await sites.taken(lambda why: why == "the longest job in main may run 5 min")
        await sites.runs("too long", "north")
        await sites.runs("short", "south", requested_time_s=300.0)
        sites.operator("south", MaxTime="1440")
        await sites.taken(lambda why: not why)
        sites.full()
        await sites.runs("full", "north", requested_time_s=900.0)
        assert "sends jobs back undone (" in await sites.problem(sites.north, "south")
        why = await sites.problem(sites.south, "north")
        assert "of its jobs were sent back undone" in why
        assert "submit limit" in why or LIMIT in why
        offered = south.offered
        await sites.runs("not asked", "north", requested_time_s=900.0)
        assert south.offered == offered
        sites.full(full=False)
        await sites.runs("another kind", "south", requested_time_s=60.0)


@KINDS
async def test_what_waits_where_nothing_starts_goes_home(
    kind: type[Cluster], tmp_path: Path
) -> None:
    """A partner's job leaves the queue of a partition that has gone down, before it is decided anew."""
    gate = tmp_path / "gate"
    holds = f"#!/bin/sh\nwhile ! test -e {gate}; do sleep 0.1; done\n"
    async with pair(kind, tmp_path) as sites:
        first = await sites.submit("first", holds, processors=CPUS)
        state = sites.south.core.engine.state
        await until(lambda: state.guest_counts()[GuestState.RUNNING] == 1)
        second = await sites.submit("second")
        await until(lambda: state.guest_counts()[GuestState.SUBMITTED] == 1)
        sites.operator("south", State="DOWN")
        job = await sites.north.ended(second.job_id)
        assert (job.outcome, job.executed_on) == (request_pb2.OUTCOME_COMPLETED, "north"), job
        gate.touch()
        job = await sites.north.ended(first.job_id)
        assert (job.outcome, job.executed_on) == (request_pb2.OUTCOME_COMPLETED, "south"), job


@KINDS
async def test_own_jobs_wait_for_the_own_maintenance(kind: type[Cluster], tmp_path: Path) -> None:
    """Where no partner takes them they wait, are shown with the reason, and can be cancelled; then they run."""
    async with pair(kind, tmp_path) as sites:
        sites.operator("south", State="DRAIN")
        await sites.taken(bool)
        sites.operator("north", State="DRAIN")
        waits, goes = await sites.submit("waits"), await sites.submit("goes")
        text = "the batch system does not take it now: "
        await until(lambda: [why[: len(text)] for why in sites.stuck()] == [text] * 2)
        get = job_pb2.GetRequest(job_id=waits.job_id)
        assert (await sites.north.jobs.Get(get, timeout=TIME_OUT_S)).reason.startswith(text)
        cancel = job_pb2.CancelRequest(job_id=goes.job_id)
        await sites.north.jobs.Cancel(cancel, timeout=TIME_OUT_S)
        job = await sites.north.ended(goes.job_id)
        assert (job.outcome, job.reason) == (
            request_pb2.OUTCOME_CANCELLED,
            "cancelled before the batch system took it",
        )
        sites.operator("north", State="UP")
        job = await sites.north.ended(waits.job_id)
        assert (job.outcome, job.executed_on) == (request_pb2.OUTCOME_COMPLETED, "north"), job
        # One that is handed to a partition that is down waits there, as with sbatch.
        sites.operator("north", State="DOWN")
        down = await sites.submit("down")
        text = "main is DOWN (Slurm says PartitionDown)"
        await until(lambda: sites.stuck() == [text])
        waiting = sites.north.core.engine.state.job(down.job_id)
        assert waiting is not None
        assert waiting.state is JobState.QUEUED
        sites.operator("north", State="UP")
        assert (await sites.north.ended(down.job_id)).outcome == request_pb2.OUTCOME_COMPLETED
        assert sites.stuck() == []
