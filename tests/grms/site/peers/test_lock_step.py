"""What is said in a lock-step replay is said until it has an answer."""

from pathlib import Path
from typing import Any

from grms.daemon.clock import VirtualClock
from grms.daemon.ports import free_port
from grms.v1 import job_pb2, partner_pb2
from tests.grms.site.daemons import Running, document, running
from tests.grms.site.peers.partner import Partner, full, listening
from tests.waiting import until


def replayed(folder: Path, port: int) -> dict[str, Any]:
    """Returns the configuration of a site that knows the size of its partner, which may not be there yet."""
    partner = {"name": "away", "address": f"127.0.0.1:{port}", "processors": 8}
    return document(folder, clock={"kind": "virtual"}) | {"partners": [partner]}


async def until_there(site: Running, job_id: str, state: str) -> None:
    """Waits until a job is in a state."""
    found = site.core.engine.state.job(job_id)
    assert found is not None
    await until(lambda: found.state.name == state)


async def offering(site: Running) -> job_pb2.Job:
    """Returns a job that a site offers to its partner, as its machine is full."""
    assert isinstance(site.core.clock, VirtualClock)
    site.core.clock.advance(0.0)
    await full(site)
    job = await site.submit("k")
    assert job.state == job_pb2.JOB_STATE_OFFERING
    return job


async def test_who_is_not_there_is_waited_for(tmp_path: Path) -> None:
    """The job goes to the partner whose turn it is, and to the rules that one is never away."""
    partner, port = Partner(), free_port()
    partner.state = partner_pb2.OFFER_STATE_ACCEPTED
    configuration = replayed(tmp_path, port)
    async with running(configuration, tmp_path) as site:
        job = await offering(site)
        async with listening(partner, port):
            await until_there(site, job.job_id, "DELEGATED")
            assert partner.offers == 1
        await until(lambda: not site.core.links.links["away"].up)
        assert site.core.engine.state.partners["away"].reachable


async def test_an_offer_that_was_lost_is_made_again(tmp_path: Path) -> None:
    """The site has died before it was sent, and the partner has never heard of it."""
    partner, port = Partner(), free_port()
    configuration = replayed(tmp_path, port)
    async with running(configuration, tmp_path) as site:
        job = await offering(site)
    async with running(configuration, tmp_path) as site:
        # A decision that goes on after the restart would not pass it over.
        assert site.core.engine.state.partners["away"].reachable
        async with listening(partner, port):
            await until_there(site, job.job_id, "DELEGATED")
        assert (partner.asked, partner.offers) == (1, 1)
