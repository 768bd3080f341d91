"""Two daemons, and jobs that ask for more than processors, or for more than home has."""

from dataclasses import replace
from pathlib import Path

import pytest
from grpc import aio

from grms.daemon.job_needs import read_needs, write_needs
from grms.daemon.ports import free_port
from grms.site.model.records import GuestDeclined, JobDelegated, JobUnplaced
from grms.v1 import job_pb2, operator_pb2, partner_pb2
from lrms_sim.machine.node_kinds import NodeKind
from lrms_sim.workload.requests import Gpus, Memory, Request
from tests.grms.site.daemons import Running, document, running, two_sites
from tests.recorder import Exchange, Recorder
from tests.scenarios.test_traffic import message, violations
from tests.waiting import until

NAMED = Request(
    tasks=2,
    cores_per_task=1,
    memory=Memory(1024, "node"),
    gpus=Gpus(1, "task", "v100"),
    features=("skylake",),
    licences=(("matlab", 1),),
    partition="batch",
    account="proj",
    qos="long",
    modules=("gcc/12",),
)
NODES = [{"nodes": 2, "cores": 6, "memory_mib": 4000, "gpus": 1}, {"nodes": 2, "cores": 2}]


def asks(request: Request, key: str = "k") -> job_pb2.SubmitRequest:
    """Returns a submission of a job that runs for a moment."""
    message = job_pb2.SubmitRequest(idempotency_key=key)
    message.request.processors = request.processors
    message.request.requested_time_s = 60.0
    message.request.simulated.run_time_s = 0.05
    message.request.needs.CopyFrom(write_needs(request))
    return message


def records(site: Running) -> list[object]:
    """Returns what a site has in its journal."""
    return list(site.core.journal.records())


async def test_a_job_wider_than_home_runs_where_there_is_room(tmp_path: Path) -> None:
    """Home is free, and could never run it; the partner is known to be large enough."""
    async with two_sites(tmp_path, there={"processors": 16, "nodes": NODES}) as (home, _):
        await home.linked()
        job = await home.ended((await home.submit("wide", 10)).job_id)
        assert job.executed_on == "away"
        assert job.start_time_s > 0
        book = home.core.engine.state.partners["away"]
        assert book.nodes == (NodeKind("1", 2, 6, 4000, 1), NodeKind("2", 2, 2))
        with pytest.raises(aio.AioRpcError, match="no partner of this site is known"):
            await home.submit("wider", 17)


async def test_what_cannot_run_anywhere_now_waits_for_its_partner(tmp_path: Path) -> None:
    """It is shown why; as soon as the partner takes jobs again it has it."""
    async with two_sites(tmp_path, there={"processors": 16}) as (home, away):
        await home.linked()
        await away.operator.Drain(operator_pb2.DrainRequest())
        given = await home.submit("wide", 10)
        state = home.core.engine.state
        await until(lambda: bool(state.memory.unplaced))
        found = await home.jobs.Get(job_pb2.GetRequest(job_id=given.job_id))
        assert found.state == job_pb2.JOB_STATE_RECEIVED
        assert "this site has 4; no partner has taken it so far" in found.reason
        await away.operator.Resume(operator_pb2.ResumeRequest())
        (job,) = state.memory.unplaced.values()
        job.unplaced_time = -1e9  # as if the pause were over
        ended = await home.ended(given.job_id)
        assert ended.executed_on == "away"
        kinds = [type(record) for record in records(home)]
        assert kinds.count(JobUnplaced) == 1
        assert kinds.count(JobDelegated) == 1


async def test_a_partner_that_declines_keeps_nothing_of_the_job(tmp_path: Path) -> None:
    """It has learned the request, and its operator which name means nothing there; the user is shown all of it."""
    async with two_sites(tmp_path, there={"processors": 16, "nodes": NODES}) as (home, away):
        await home.linked()
        named = Request(tasks=2, partition="batch", account="proj")
        given = await home.jobs.Submit(asks(named))
        assert given.request.needs.account == "proj"
        job = await home.ended(given.job_id)
        assert job.executed_on == "home"  # a simulated machine has no partitions
        (kept,) = [record for record in records(away) if type(record).__name__[:5] == "Guest"]
        assert isinstance(kept, GuestDeclined)
        (shown,) = (await away.operator.Partners(operator_pb2.PartnersRequest())).partners
        assert "partition batch of home has no meaning here" in shown.problem
        (other,) = (await home.operator.Partners(operator_pb2.PartnersRequest())).partners
        assert "meaning" not in other.problem


async def test_what_a_partner_that_declines_has_been_told(tmp_path: Path) -> None:
    """The request and nothing else: every field is on the list, and of what runs and whose it is there is none.

    No machine of processors runs such a job, at home neither: it waits there.
    """
    exchanges: list[Exchange] = []
    ports = {name: free_port() for name in ("home", "away")}
    async with Recorder("home", "away", f"127.0.0.1:{ports['away']}", exchanges.append) as way:
        home = document(tmp_path, "home", 4, {"away": way.port}, ports["home"])
        away = document(tmp_path, "away", 8, {"home": ports["home"]}, ports["away"])
        async with running(home, tmp_path) as here, running(away, tmp_path):
            await here.linked()
            given = asks(NAMED)
            given.name = "a word of mine"
            given.request.requested_time_s = 2.0
            given.request.ClearField("simulated")
            given.request.program.script = "#!/bin/sh\necho secret\n"
            given.request.home.folder = str(tmp_path)
            given.request.home.environment.append(b"SECRET=here")
            job = await here.jobs.Submit(given)
            home_job = here.core.engine.state.job(job.job_id)
            assert home_job is not None
            await until(lambda: home_job.job in here.core.engine.state.memory.unplaced)
            assert "a simulated machine has processors alone" in home_job.reason
            assert "no partner has taken it so far" in home_job.reason
    assert violations(exchanges) == []
    said = [message(each, answer=False) for each in exchanges]
    (offer,) = [one for one in said if isinstance(one, partner_pb2.OfferRequest)]
    assert read_needs(offer.job.needs, 2.0) == replace(NAMED, wall_time=2.0)
    assert {type(one).__name__ for one in said} == {"DescribeRequest", "OfferRequest"}
    for secret in (b"secret", b"SECRET", b"word of mine", str(tmp_path).encode()):
        assert not any(secret in each.request for each in exchanges)


async def test_a_request_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    """With the field, and what is wrong."""
    async with two_sites(tmp_path) as (home, _):
        message = asks(Request(tasks=2, gpus=Gpus(1)))
        message.request.processors = 3
        with pytest.raises(aio.AioRpcError, match="needs are 2 processors"):
            await home.jobs.Submit(message)
