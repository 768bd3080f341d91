"""What is said to partners."""

from pathlib import Path
from typing import Any

from grms.daemon.ports import free_port
from grms.site.model.events import RoundDue
from grms.v1 import partner_pb2
from tests.grms.site.daemons import document, running
from tests.grms.site.peers.partner import Partner, full, listening
from tests.waiting import run, until


def test_a_job_that_waits_is_given_away_when_it_has_left(tmp_path: Path) -> None:
    """The partner is asked to hold a place, and told to start the job once it is out of the queue."""

    async def scene() -> None:
        partner, port = Partner(), free_port()
        partner.state = partner_pb2.OFFER_STATE_ACCEPTED
        more: dict[str, Any] = {"reoffer": 3600, "rails": "start-now"}
        configuration = document(tmp_path, partners={"away": port}, **more)
        async with running(configuration, tmp_path) as site:
            await full(site)
            job = await site.submit("k", processors=4)
            found = site.core.engine.state.job(job.job_id)
            assert found is not None
            assert found.state.name == "QUEUED"
            async with listening(partner, port):
                await site.linked()
                engine = site.core.engine
                engine.tell(RoundDue(*engine.stamp()))
                await until(lambda: found.state.name == "DELEGATED")
                load = site.core.engine.load()
                assert load is not None
                assert load.processors_waiting == 0
                assert (partner.held, partner.confirmed) == ([1], [1])

    run(scene)
