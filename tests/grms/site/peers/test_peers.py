"""Partners that are slow, dead, someone else, or come back."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from grms.daemon.ports import free_port, free_ports
from grms.site.model.events import Event, OfferFailed, PartnerDown
from grms.site.peers.peers import QUESTIONS_MAX
from grms.v1 import (
    job_pb2,
    operator_pb2,
    partner_pb2,
    request_pb2,
)
from tests.grms.mqtt import Cable
from tests.grms.site.daemons import document, running
from tests.grms.site.peers.partner import Partner, full, full_site, listening
from tests.waiting import until


async def test_a_partner_that_says_it_is_someone_else_is_not_asked(tmp_path: Path) -> None:
    """Neither is one that speaks another version, or has no processors."""
    for partner, text in (
        (Partner("eve"), "says it is 'eve'"),
        (Partner(processors=0), "0 processors"),
        (Partner(), "version 9"),
    ):
        port = free_port()
        if "version" in text:
            partner.version = 9
        async with listening(partner, port):
            name = f"site{port}"
            configuration = document(tmp_path, name, partners={"away": port})
            async with running(configuration, tmp_path) as site:
                link = site.core.links.links["away"]
                await until(lambda link=link, text=text: text in link.problem)  # type: ignore[misc]  # binds the loop's values
                await full(site)
                assert (await site.submit("k")).executed_on == name
                assert partner.offers == 0


async def test_an_offer_without_answer_is_looked_into(tmp_path: Path) -> None:
    """The job is neither kept nor offered elsewhere until the partner says what became of it."""
    partner = Partner()
    partner.pause_s = 60.0
    limits = {"offer_timeout_s": 0.2}
    async with full_site(partner, tmp_path, limits=limits) as site:
        job = await site.submit("k")
        assert job.state == job_pb2.JOB_STATE_OFFERING
        # Never heard of: it is taken back, and stays home.
        found = site.core.engine.state.job(job.job_id)
        assert found is not None
        await until(lambda: found.state.name == "QUEUED")
        assert partner.offers == 1
        partner.state = partner_pb2.OFFER_STATE_ACCEPTED
        job = await site.submit("l")
        other = site.core.engine.state.job(job.job_id)
        assert other is not None
        await until(lambda: other.state.name == "DELEGATED")


async def test_a_silent_partner_is_asked_no_more(tmp_path: Path) -> None:
    """After some calls without an answer the breaker opens, and jobs stay home at once."""
    partner, port = Partner(), free_port()
    partner.pause_s = 60.0
    limits = {"offer_timeout_s": 0.1}
    configuration = document(tmp_path, partners={"away": port}, limits=limits)
    async with listening(partner, port) as server, running(configuration, tmp_path) as site:
        await site.linked()
        await full(site)
        for number in range(3):
            await site.submit(f"k{number}")
        link = site.core.links.links["away"]
        await server.stop(None)
        await until(lambda: not link.up)
        offers = partner.offers
        job = await site.submit("quick")
        assert job.executed_on == "home"
        assert partner.offers == offers


async def test_a_partner_that_speaks_again_is_asked_again(tmp_path: Path) -> None:
    """It was silent, and counted as down, though it says who it is."""
    partner, port = Partner(), free_port()
    partner.pause_s = partner.question_s = 3600.0
    partner.state = partner_pb2.OFFER_STATE_ACCEPTED
    limits = {"offer_timeout_s": 0.1}
    configuration = document(tmp_path, partners={"away": port}, limits=limits)
    async with listening(partner, port), running(configuration, tmp_path) as site:
        await site.linked()
        link, state = site.core.links.links["away"], site.core.engine.state
        downs: list[Event] = []
        site.core.engine.on_event(
            lambda event, _commands: downs.append(event) if isinstance(event, PartnerDown) else None
        )
        await full(site)
        number = 0
        while not downs:
            number += 1
            await site.submit(f"k{number}")
        partner.pause_s = partner.question_s = 0.0
        offers = partner.offers
        while partner.offers == offers:
            await until(lambda: link.up)
            number += 1
            await site.submit(f"k{number}")
        first = state.job("home-2")
        assert first is not None
        await until(lambda: first.state.name == "DELEGATED")


async def test_a_partner_that_comes_back_is_asked_again(tmp_path: Path) -> None:
    """It need not be told: it is looked for."""
    port = free_port()
    configuration = document(tmp_path, partners={"away": port})
    async with running(configuration, tmp_path) as site:
        link = site.core.links.links["away"]
        for _ in range(2):
            partner = Partner()
            async with listening(partner, port):
                await until(lambda: link.up)
            await until(lambda: not link.up)


async def test_dead_partners_do_not_hold_up_decisions(tmp_path: Path) -> None:
    """Of sixty-four partners eight die at once while jobs come: every one is decided in time."""
    ports = free_ports(64)
    names = [f"p{number:02d}" for number in range(64)]
    limits = {"offer_timeout_s": 1.0, "decision_timeout_s": 3.0}
    configuration = document(
        tmp_path,
        partners=dict(zip(names, ports, strict=True)),
        limits=limits,
        location=names,
    )
    async with asyncio.TaskGroup() as group:
        stop = asyncio.Event()
        partners = [Partner(name) for name in names]

        async def play(partner: Partner, port: int) -> None:
            async with listening(partner, port):
                await stop.wait()

        for partner, port in zip(partners, ports, strict=True):
            group.create_task(play(partner, port), name=partner.name)
        async with running(configuration, tmp_path) as site:
            await site.linked()
            await full(site)
            for partner in partners[:8]:
                partner.pause_s = 60.0
            begin = time.monotonic()
            jobs = await asyncio.gather(*(site.submit(f"k{n}") for n in range(20)))
            for job in jobs:
                found = site.core.engine.state.job(job.job_id)
                assert found is not None
                await until(
                    lambda found=found: found.state.name in {"DELEGATED", "QUEUED"}  # type: ignore[misc]  # binds the loop's value
                )
            # A first deadline, a question, and whatever the machine is busy with; long before
            # the dead ones would have said a word.
            assert time.monotonic() - begin < 0.7 * partners[0].pause_s
        stop.set()


async def test_a_lost_partners_jobs_are_suspect(tmp_path: Path) -> None:
    """After the configured time jobs there are SUSPECT, or decided anew where that is wanted."""
    for answer, state in (("wait", "SUSPECT"), ("resubmit", "QUEUED")):
        partner, port = Partner(), free_port()
        name = f"site-{answer}"
        configuration = document(
            tmp_path, name, partners={"away": port}, suspect=answer, suspect_after_s=0.3
        )
        async with running(configuration, tmp_path) as site:
            async with listening(partner, port):
                await site.linked()
                await full(site)
                job = await site.submit("k")
                found = site.core.engine.state.job(job.job_id)
                assert found is not None
                await until(lambda found=found: found.state.name == "DELEGATED")  # type: ignore[misc]  # binds the loop's value
            await until(lambda found=found, state=state: found.state.name == state)  # type: ignore[misc]  # same


async def test_ends_are_reported_until_they_are_acknowledged(tmp_path: Path) -> None:
    """A home site that is down meanwhile learns of its job's end when it is back."""
    ports = {"home": free_port(), "away": free_port()}
    first = document(tmp_path, "home", partners={"away": ports["away"]}, port=ports["home"])
    second = document(tmp_path, "away", partners={"home": ports["home"]}, port=ports["away"])
    async with running(second, tmp_path) as away:
        memory = away.core.engine.state.memory
        async with running(first, tmp_path) as home:
            await home.linked()
            await full(home)
            job = await home.submit("goes", processors=2, run_time_s=1.0)
            await until(lambda: bool(memory.at_lrms))
        await until(lambda: not memory.at_lrms)
        assert memory.books["home"].guests
        async with running(first, tmp_path) as again:
            ended = await again.ended(job.job_id)
            assert ended.executed_on == "away"
            assert ended.outcome == request_pb2.OUTCOME_COMPLETED
            await until(lambda: not memory.books["home"].guests)


async def test_a_partner_that_moves_while_it_is_asked_is_followed(tmp_path: Path) -> None:
    """What is closed under a question is no answer, and no end of asking either."""
    ports = {"home": free_port(), "away": free_port()}
    asked = asyncio.Event()

    async def accept_and_be_silent(
        _reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        asked.set()
        await ended.wait()
        writer.close()

    ended = asyncio.Event()
    silent = await asyncio.start_server(accept_and_be_silent, "127.0.0.1", 0)
    nowhere = silent.sockets[0].getsockname()[1]
    first = document(tmp_path, "home", partners={"away": nowhere}, port=ports["home"])
    second = document(tmp_path, "away", partners={"home": ports["home"]}, port=ports["away"])
    async with running(first, tmp_path) as home, running(second, tmp_path):
        link = home.core.links.links["away"]
        for _ in range(5):
            asked.clear()
            link.move(f"127.0.0.1:{nowhere}")
            await asked.wait()
            link.move(f"127.0.0.1:{ports['away']}")
            await until(lambda: link.up)
    ended.set()
    silent.close()
    await silent.wait_closed()


async def test_a_partner_that_has_moved_is_followed(tmp_path: Path) -> None:
    """The connection to where it was is given up, and the way back is the same."""
    ports = {"home": free_port(), "away": free_port()}
    first = document(tmp_path, "home", partners={"away": free_port()}, port=ports["home"])
    second = document(tmp_path, "away", partners={"home": ports["home"]}, port=ports["away"])
    async with running(first, tmp_path) as home, running(second, tmp_path):
        link = home.core.links.links["away"]
        nowhere = link.address
        assert nowhere is not None
        await until(lambda: link.problem != "not reached yet")
        assert not link.up
        link.move(nowhere)
        link.move(f"127.0.0.1:{ports['away']}")
        await until(lambda: link.up)
        link.move(nowhere)
        assert not link.up
        assert link.problem == f"it has moved to {nowhere}"
        link.move(f"127.0.0.1:{ports['away']}")
        await until(lambda: link.up)


async def test_a_wrong_partner_is_not_held_on_to(tmp_path: Path) -> None:
    """Whoever is at the address by now is asked, even while the other one still answers."""
    wrong, right = free_port(), free_port()
    async with (
        listening(Partner("eve"), wrong),
        listening(Partner(), right),
        Cable(wrong) as cable,
        running(document(tmp_path, partners={"away": cable.port}), tmp_path) as site,
    ):
        link = site.core.links.links["away"]
        await until(lambda: "says it is 'eve'" in link.problem)
        assert not link.up
        cable.target = right
        await until(lambda: link.up)


async def test_a_dead_partner_is_tried_with_pauses(tmp_path: Path) -> None:
    """A partner that refuses connections is not asked again and again without a break."""
    configuration = document(tmp_path, partners={"away": free_port()})
    async with running(configuration, tmp_path) as site:
        link, attempts = site.core.links.links["away"], 0
        introduce = link._introduce

        async def counted() -> None:
            nonlocal attempts
            attempts += 1
            await introduce()

        link._introduce = counted  # type: ignore[method-assign]  # counted here
        begin = time.monotonic()
        await until(lambda: attempts >= 4)
        # At least half of 0.2, 0.4 and 0.8 s.
        assert time.monotonic() - begin >= 0.5


async def test_a_partner_that_is_back_is_found_at_once(tmp_path: Path) -> None:
    """Who calls is looked for at once, however long the pause between attempts has become."""
    port, own = free_port(), free_port()
    configuration = document(tmp_path, partners={"away": port}, port=own)
    async with running(configuration, tmp_path) as site:
        link = site.core.links.links["away"]
        await until(lambda: "not reached" not in link.problem)
        link._backoff.next_s = lambda: 1e6  # type: ignore[method-assign]  # a long pause
        link._look.set()
        async with listening(Partner(), port):
            request = partner_pb2.DescribeRequest(site="away", processors=1000, protocol_version=1)
            await site.partner.Describe(request, timeout=300)
            await until(lambda: link.up)


async def test_a_partner_that_is_back_is_not_asked_everything_at_once(tmp_path: Path) -> None:
    """With many jobs there it is asked about each of them, a few at a time, and stays up."""
    partner, port, jobs = Partner(), free_port(), 3 * QUESTIONS_MAX
    partner.state = partner_pb2.OFFER_STATE_ACCEPTED
    partner.question_s = 0.02
    configuration = document(tmp_path, partners={"away": port})
    async with running(configuration, tmp_path) as site:
        link = site.core.links.links["away"]
        async with listening(partner, port):
            await site.linked()
            await full(site)
            await asyncio.gather(*(site.submit(f"k{number}") for number in range(jobs)))
            book = site.core.engine.state.partners["away"]
            await until(lambda: len(book.open) == jobs)
        await until(lambda: not link.up)
        async with listening(partner, port):
            await until(lambda: partner.asked >= jobs)
            assert link.up
        assert 1 < partner.asked_at_once_most <= QUESTIONS_MAX


class ByzantinePartner(Partner):
    """A partner that says what the protocol does not have.

    Attributes:
        answer: to an offer.
        state: to every question about one.
        well: it answers questions as it should.
    """

    def __init__(self, answer: int = 0, state: int = 0) -> None:
        super().__init__()
        self.answer: Any = answer
        self.state: Any = state
        self.well = False

    async def Offer(self, request: Any, context: Any) -> partner_pb2.OfferResponse:  # noqa: ARG002, N802  # gRPC's
        """Says what is no answer."""
        self.offers += 1
        return partner_pb2.OfferResponse(answer=self.answer)

    async def Resolve(self, request: Any, context: Any) -> partner_pb2.OfferStatus:  # noqa: ARG002, N802  # gRPC's
        """Says what is no state, unless it is well."""
        self.asked += 1
        state = partner_pb2.OFFER_STATE_UNKNOWN if self.well else self.state
        return partner_pb2.OfferStatus(state=state)


async def test_a_partner_that_answers_rubbish_is_named_and_asked_no_more(
    tmp_path: Path,
) -> None:
    """After one offer; the next job stays at home. The first is shown as stuck when it is overdue."""
    partner = ByzantinePartner()
    limits = {"undecided_timeout_s": 0.5}
    async with full_site(partner, tmp_path, limits=limits) as site:
        first = await site.submit("k")
        # A submission is answered while its offer is still open.
        await until(lambda: bool(site.core.engine.state.partners["away"].faulty))
        assert (await site.submit("l")).executed_on == "home"
        assert partner.offers == 1
        shown = (await site.operator.Partners(operator_pb2.PartnersRequest())).partners[0]
        assert (shown.faulty, shown.faults, shown.reachable) == (True, 1, True)
        assert "faulty: asked about an offer: state is 0" in shown.problem
        job = site.core.engine.state.job(first.job_id)
        assert job is not None
        await until(lambda: job.overdue)
        assert job.reason.startswith("away has not said for ")


async def test_a_connection_that_begins_anew_has_the_answers_that_are_on_their_way(
    tmp_path: Path,
) -> None:
    """An offer that was made before a certificate was renewed is answered; the next goes the new way."""
    partner = Partner()
    made, may = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        made.set()
        await may.wait()

    partner.on_offer, partner.state = wait, partner_pb2.OFFER_STATE_ACCEPTED
    told: list[Event] = []
    async with full_site(partner, tmp_path) as site:
        link, state = site.core.links.links["away"], site.core.engine.state
        site.core.engine.on_event(lambda event, _commands: told.append(event))
        jobs = [await site.submit("k")]
        await made.wait()
        link.renew()
        assert not link.up
        may.set()
        await until(lambda: link.up)
        jobs.append(await site.submit("l"))
        for job in jobs:
            found = state.job(job.job_id)
            assert found is not None
            await until(lambda found=found: found.state.name == "DELEGATED")  # type: ignore[misc]  # binds the loop's value
        assert partner.offers == 2
        assert not [event for event in told if isinstance(event, OfferFailed)]


async def test_a_partner_that_is_well_again_is_asked_again(tmp_path: Path) -> None:
    """A probe finds it out; the daemon's own pause is shortened here."""
    partner, port = ByzantinePartner(), free_port()
    configuration = document(tmp_path, partners={"away": port})
    async with listening(partner, port), running(configuration, tmp_path) as site:
        await site.linked()
        memory = site.core.engine.state.memory
        memory.settings = replace(memory.settings, probe_first_s=0.1, probe_most_s=0.1)
        await full(site)
        await site.submit("k")
        book = site.core.engine.state.partners["away"]
        await until(lambda: bool(book.faulty))
        partner.well, partner.answer = True, partner_pb2.ANSWER_ACCEPTED
        await until(lambda: not book.faulty)
        job = await site.submit("l")
        found = site.core.engine.state.job(job.job_id)
        assert found is not None
        await until(lambda: found.state.name == "DELEGATED")


async def test_another_version_is_shown_as_such(tmp_path: Path) -> None:
    """Neither down nor faulty: incompatible; and it is noticed by both sides."""
    partner, port = Partner(), free_port()
    partner.version = 9
    configuration = document(tmp_path, partners={"away": port}, port=free_port())
    async with listening(partner, port), running(configuration, tmp_path) as site:
        book = site.core.engine.state.partners["away"]
        await until(lambda: book.incompatible == 9)
        shown = (await site.operator.Partners(operator_pb2.PartnersRequest())).partners[0]
        assert (shown.incompatible, shown.faulty) == (9, False)
        assert "version 9" in shown.problem
        partner.version = 1
        await until(lambda: book.incompatible == 0 and book.reachable)
        # It asks, and says by that that it is of another version.
        describe = partner_pb2.DescribeRequest(site="away", processors=1, protocol_version=3)
        answer = await site.partner.Describe(describe)
        assert answer.protocol_version == 1
        assert book.incompatible == 3
