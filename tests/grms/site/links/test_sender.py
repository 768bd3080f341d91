"""What is said to partners of before, and of now."""

from pathlib import Path
from typing import Any

from grms.kit.ports import free_ports
from grms.site.facts.events import RoundDue
from grms.v1 import partner_pb2
from tests.grms.site.daemons import document, running
from tests.grms.site.links.partner import Partner, full, listening
from tests.waiting import run, until


def test_only_who_can_hold_places_is_asked_in_a_round(tmp_path: Path) -> None:
    """An older program would start a job that waits here; one of now starts it when it has left."""

    async def scene() -> None:
        old, new, ports = Partner("old"), Partner("new"), free_ports(2)
        new.reserves = True
        new.state = partner_pb2.OFFER_STATE_ACCEPTED
        partners = dict(zip(("old", "new"), ports, strict=True))
        more: dict[str, Any] = {"reoffer": 3600, "location": ["old", "new"], "rails": "start-now"}
        configuration = document(tmp_path, partners=partners, **more)
        async with running(configuration, tmp_path) as site:
            await full(site)
            job = await site.submit("k", processors=4)
            state = site.core.engine.state
            found = state.job(job.job_id)
            assert found is not None
            assert found.state.name == "QUEUED"
            async with listening(old, ports[0]), listening(new, ports[1]):
                await site.linked()
                # Whatever the core would think of it, such an offer is not sent.
                link, book = site.core.links.links["new"], state.partners["new"]
                link.reserves = False
                site.core.engine.tell(RoundDue)
                await until(lambda: book.next_number == 2 and found.state.name == "QUEUED")
                assert new.offers == 0
                link.reserves = True
                site.core.engine.tell(RoundDue)
                await until(lambda: found.state.name == "DELEGATED")
                load = site.core.engine.load()
                assert load is not None
                assert load.processors_waiting == 0
                assert (old.offers, new.held, new.confirmed) == (0, [2], [2])

    run(scene)
