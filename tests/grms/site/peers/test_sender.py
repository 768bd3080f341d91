"""What is said to partners."""

import asyncio
import contextlib
import gc
import sys
import warnings
from pathlib import Path
from typing import Any

import grpc
import pytest

from grms.daemon.ports import free_port
from grms.daemon.rpc.requests import refuse
from grms.site.model.commands import SendOffer, SendResolve, SendWithdraw
from grms.site.model.events import RoundDue
from grms.site.model.jobs import OfferId, Request
from grms.site.peers import peers
from grms.v1 import partner_pb2
from tests.grms.site.daemons import document, running
from tests.grms.site.peers.partner import Partner, full, listening
from tests.waiting import run, until


async def test_a_job_that_waits_is_given_away_when_it_has_left(tmp_path: Path) -> None:
    """The partner is asked to hold a place, and told to start the job once it is out of the queue."""
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


async def test_very_many_offers_of_one_moment_are_sent_some_at_a_time(tmp_path: Path) -> None:
    """Else the deadlines of the last would pass while the partner answers the first, and it would count as down."""
    partner, port, at_once = Partner(), free_port(), [0, 0]

    async def counted() -> None:
        at_once[0] += 1
        at_once[1] = max(at_once)
        await asyncio.sleep(0.05)
        at_once[0] -= 1

    partner.on_offer = counted
    limits = {"offer_timeout_s": 200.0}
    configuration = document(tmp_path, partners={"away": port}, limits=limits)
    async with running(configuration, tmp_path) as site, listening(partner, port):
        await site.linked()
        await full(site)
        await site.submit("many", array="1-300")
        memory = site.core.engine.state.memory
        elements = [job for job in memory.jobs.values() if job.array]
        await until(lambda: all(job.state.name == "DELEGATED" for job in elements))
        assert partner.offers == 300
        assert 1 < at_once[1] <= peers.OFFERS_MAX


class Bounded(Partner):
    """A partner that takes no offer before it has refused some as too many."""

    def __init__(self, refused: int, details: bytes = b"") -> None:
        super().__init__()
        self.state = partner_pb2.OFFER_STATE_DECLINED
        self.refused = refused
        self.details = details

    async def Offer(self, request: Any, context: Any) -> partner_pb2.OfferResponse:  # noqa: N802  # gRPC's
        """Says when to come again."""
        code, text = grpc.StatusCode.RESOURCE_EXHAUSTED, "too many offers"
        if self.refused > 0:
            self.refused -= 1
            if self.details:
                metadata = (("grpc-status-details-bin", self.details),)
                await context.abort(code, text, trailing_metadata=metadata)
            await refuse(context, code, text, retry_s=0.02)
        return await super().Offer(request, context)


@pytest.mark.parametrize(
    ("partner", "waited_s", "becomes"),
    [
        (Bounded(4), 10.0, ("DELEGATED", 0)),
        (Bounded(10**6), 0.1, ("QUEUED", 0)),
        (Bounded(1, b"\xff\xff"), 10.0, ("QUEUED", 1)),
    ],
)
async def test_who_takes_no_more_now_is_asked_again_when_it_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    partner: Bounded,
    waited_s: float,
    becomes: tuple[str, int],
) -> None:
    """It has answered, and has not looked at the offer; one that says no moment is asked what became of it."""
    monkeypatch.setattr(peers, "OFFER_WAITED_S", waited_s)
    port = free_port()
    home = running(document(tmp_path, partners={"away": port}), tmp_path)
    async with home as site, listening(partner, port):
        await site.linked()
        await full(site)
        job = await site.submit("k", processors=4)
        found = site.core.engine.state.job(job.job_id)
        assert found is not None
        await until(lambda: found.state.name == becomes[0])
        assert partner.asked == becomes[1]
        assert site.core.engine.state.partners["away"].reachable


def test_a_daemon_that_ends_as_a_question_begins_leaves_none_unasked(tmp_path: Path) -> None:
    """The question was made with the task that asks it, which had not begun: Python warned that nobody awaits it."""

    async def scene() -> None:
        offer = OfferId(1, 1)
        commands: list[Any] = [
            SendOffer(0, "away", offer, 1, Request(1, 10.0), b""),
            SendResolve(0, "away", offer, 0.0),
            SendWithdraw(0, "away", offer, 0.0, cancel=True),
        ]
        async with running(document(tmp_path, partners={"away": free_port()}), tmp_path) as site:
            client = site.core.links._senders["away"]
            for command in commands:
                with contextlib.suppress(asyncio.CancelledError):
                    async with asyncio.TaskGroup() as group:
                        client.send(command, group)
                        raise asyncio.CancelledError

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unraisable: list[Any] = []
        before, sys.unraisablehook = sys.unraisablehook, unraisable.append
        try:
            run(scene)
            gc.collect()
        finally:
            sys.unraisablehook = before
    assert [str(each.exc_value) for each in unraisable] == []
