"""Many questions in one call: each is answered as a call of its own, and the call ends in order."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from google.rpc import status_pb2
from grpc import aio

from grms.kit.refusals import DETAILS_KEY, GARBLED, Context, Garbled, Unexpected, refuse
from grms.site import parts
from grms.site.links.link import LinkSettings
from grms.site.services.negotiation import (
    NEGOTIATIONS_MAX,
    QUESTION_BYTES_MAX,
    Negotiations,
)
from grms.site.sockets.door import Door
from grms.v1 import job_pb2, partner_pb2, request_pb2
from tests.grms.site.daemons import metrics, running, two_sites
from tests.grms.site.services.test_partners import alone, offer, status_of
from tests.waiting import run, until


class OpenDoor:
    """A door that lets everybody in.

    Attributes:
        open: negotiations now.
        counted: reasons of refusals.
    """

    def __init__(self) -> None:
        self.open = 0
        self.counted: list[str] = []

    async def check_admitted(self, context: Context) -> None:
        """Lets it in."""

    async def check_stopping(self, context: Context) -> None:
        """Lets it in."""

    def who(self, _context: Context) -> str:
        """Returns who it is."""
        return "site:away"

    def begin_negotiation(self, _peer: str) -> int:
        """Counts it."""
        self.open += 1
        return self.open

    def end_negotiation(self, _peer: str) -> None:
        """Counts it."""
        self.open -= 1

    def count(self, reason: str, _context: Any = None, _text: str = "") -> None:
        """Keeps the reason."""
        self.counted.append(reason)


class AbortedError(aio.AbortError):
    """The whole call was ended."""


class FakeContext:
    """The call, whose other end is the test.

    Attributes:
        questions: what the partner says.
        replies: what it was answered.
        blocked: the partner reads nothing while this is not set.
    """

    def __init__(self) -> None:
        self.questions: asyncio.Queue[Any] = asyncio.Queue()
        self.replies: list[partner_pb2.PartnerReply] = []
        self.blocked = asyncio.Event()
        self.blocked.set()

    def peer(self) -> str:
        """Returns a source."""
        return "unix:peer"

    async def read(self) -> Any:
        """Returns the next question."""
        return await self.questions.get()

    async def write(self, reply: partner_pb2.PartnerReply) -> None:
        """Takes a reply."""
        await self.blocked.wait()
        self.replies.append(reply)

    async def abort(self, code: grpc.StatusCode, details: str, **_: Any) -> None:
        """Ends the call."""
        raise AbortedError(code, details)


class Desk:
    """Answers offers when the test says so.

    Attributes:
        asked: numbers of offers, in the order in which they came.
        cancelled: of those that nobody waited for any more.
        may: let answers go, by number.
    """

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.cancelled: list[int] = []
        self.may: dict[int, asyncio.Event] = {}

    async def offer(self, request: partner_pb2.OfferRequest, context: Context) -> Any:
        """Answers; those without a number are refused, and 13 is an error of the program."""
        number = request.offer.number
        assert context.peer() == "unix:peer"
        self.asked.append(number)
        if not number:
            code = grpc.StatusCode.RESOURCE_EXHAUSTED
            await refuse(context, code, "no number", field="offer", retry_s=2.0)
        try:
            await self.may.setdefault(number, asyncio.Event()).wait()
        except asyncio.CancelledError:
            self.cancelled.append(number)
            raise
        if number == 13:
            raise ZeroDivisionError
        return partner_pb2.OfferResponse(answer=partner_pb2.ANSWER_ACCEPTED)


class Scene:
    """A negotiation that is being held.

    Attributes:
        unfinished: it ends before the partner has ended its side.

    Args:
        questions_max: see `Negotiations`.
    """

    def __init__(self, questions_max: int = 100) -> None:
        self.door = OpenDoor()
        self.desk = Desk()
        self.context = FakeContext()
        self.negotiations = Negotiations(cast("Door", self.door), questions_max)
        self.took: list[str] = []
        self.unfinished = False
        log: Any = Quiet()
        guarded = Unexpected(log, took=lambda method, _: self.took.append(method)).guarded
        self.answerers = {"offer": guarded(self.desk.offer, "Offer")}
        context = cast("Context", self.context)
        self.held = asyncio.create_task(
            self.negotiations.hold(context, self.answerers), name="held"
        )

    def ask(self, number: int, offered: int | None = None) -> None:
        """Asks a question; the offer has the same number unless it is told."""
        request = offer(number if offered is None else offered)
        self.context.questions.put_nowait(partner_pb2.PartnerCall(number=number, offer=request))

    def say(self, message: Any) -> None:
        """Says something else."""
        self.context.questions.put_nowait(message)

    async def answer(self, number: int) -> None:
        """Lets an answer go, and waits for it."""
        had = len(self.context.replies)
        self.desk.may.setdefault(number, asyncio.Event()).set()
        await until(lambda: len(self.context.replies) > had)

    async def asked(self, count: int) -> None:
        """Returns when so many questions have come."""
        await until(lambda: len(self.desk.asked) >= count)


class Quiet:
    """A log that nobody reads."""

    def error(self, _event: str, **_: Any) -> None:
        """Writes nothing."""


def scene(questions_max: int = 100) -> Callable[[Callable[[Scene], Awaitable[None]]], None]:
    """Plays a scene; the negotiation has to be over in its end."""

    def play(act: Callable[[Scene], Awaitable[None]]) -> None:
        async def played() -> None:
            found = Scene(questions_max)
            await act(found)
            assert found.held.done()
            assert found.door.open == (1 if found.unfinished else 0)

        run(played)

    return play


def numbers(found: Scene) -> list[int]:
    """Returns the numbers of replies, in order."""
    return [reply.number for reply in found.context.replies]


def test_questions_are_answered_as_their_answers_come() -> None:
    """Several at one time, in any order; the call is over when the last one is answered."""

    @scene()
    async def _(found: Scene) -> None:
        for number in (1, 2, 3):
            found.ask(number)
        await found.asked(3)
        await found.answer(3)
        await found.answer(1)
        found.say(aio.EOF)
        await found.answer(2)
        await found.held
        assert numbers(found) == [3, 1, 2]
        assert {reply.offer.answer for reply in found.context.replies} == {
            partner_pb2.ANSWER_ACCEPTED
        }
        assert found.took == ["Offer"] * 3


def test_a_refusal_and_an_error_are_those_of_a_call() -> None:
    """Status, text and details; the others go on. A question that is none is not implemented."""

    @scene()
    async def _(found: Scene) -> None:
        found.ask(1, offered=0)
        found.ask(2, offered=13)
        found.say(partner_pb2.PartnerCall(number=3))
        found.say(partner_pb2.PartnerCall(number=4, resolve=status_of(1)))
        await until(lambda: len(found.context.replies) == 3)
        await found.answer(13)
        found.say(aio.EOF)
        await found.held
        errors = {reply.number: reply.error for reply in found.context.replies}
        assert {number: error.code for number, error in errors.items()} == {
            1: 8,
            2: 13,
            3: 12,
            4: 12,
        }
        assert errors[1].text == "no number"
        status = status_pb2.Status.FromString(errors[1].details)
        assert (status.code, status.message, len(status.details)) == (8, "no number", 2)
        assert found.took == ["Offer"] * 2


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (partner_pb2.PartnerCall(number=1, offer=offer(7)), "question 1 is being answered"),
        (Garbled(), GARBLED),
    ],
    ids=["twice", "garbled"],
)
def test_what_makes_no_sense_ends_the_call(wrong: Any, text: str) -> None:
    """After what was asked before has its answer; it is counted."""

    @scene()
    async def _(found: Scene) -> None:
        found.ask(1)
        await found.asked(1)
        found.say(wrong)
        found.ask(2)
        await found.answer(1)
        with pytest.raises(AbortedError) as error:
            await found.held
        assert error.value.args[0] is grpc.StatusCode.INVALID_ARGUMENT
        assert text in error.value.args[1]
        found.unfinished = True
        assert found.desk.asked == numbers(found) == [1]
        assert found.door.counted == ["invalid"]


def test_a_number_may_come_again_when_it_was_answered() -> None:
    """It is another question then."""

    @scene()
    async def _(found: Scene) -> None:
        for _ in range(2):
            found.ask(1)
            await found.answer(1)
        found.say(aio.EOF)
        await found.held
        assert numbers(found) == [1, 1]


def test_what_nobody_waits_for_is_given_up() -> None:
    """As a call is that is cancelled; an unknown number is nothing."""

    @scene()
    async def _(found: Scene) -> None:
        found.ask(1)
        found.ask(2)
        await found.asked(2)
        for number in (1, 9):
            nothing = partner_pb2.NoLongerAwaited()
            found.say(partner_pb2.PartnerCall(number=number, no_longer_awaited=nothing))
        await until(lambda: found.desk.cancelled == [1])
        await found.answer(2)
        found.say(aio.EOF)
        await found.held
        assert numbers(found) == [2]


def test_who_does_not_read_is_asked_no_further() -> None:
    """No more is read than may be under way; then nothing until an answer has been taken."""

    @scene(questions_max=2)
    async def _(found: Scene) -> None:
        for number in range(1, 5):
            found.ask(number)
            found.desk.may[number] = asyncio.Event()
            found.desk.may[number].set()
        found.context.blocked.clear()
        await found.asked(2)
        for _ in range(20):
            await asyncio.sleep(0)
        assert found.desk.asked == [1, 2]
        found.context.blocked.set()
        found.say(aio.EOF)
        await found.held
        assert sorted(numbers(found)) == [1, 2, 3, 4]


def test_a_site_that_stops_answers_what_was_asked() -> None:
    """And reads nothing more."""

    @scene()
    async def _(found: Scene) -> None:
        found.ask(1)
        await found.asked(1)
        found.negotiations.close()
        found.unfinished = True
        found.ask(2)
        await found.answer(1)
        await found.held
        assert numbers(found) == [1]


def test_a_partner_that_goes_leaves_nothing_behind() -> None:
    """Whatever is under way is given up with the call."""

    @scene()
    async def _(found: Scene) -> None:
        found.ask(1)
        await found.asked(1)
        found.held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await found.held
        assert found.desk.cancelled == [1]


def test_one_connection_has_few_of_them() -> None:
    """One more is refused, and those that are open go on."""

    @scene()
    async def _(found: Scene) -> None:
        await until(lambda: found.door.open == 1)
        found.door.open = NEGOTIATIONS_MAX
        with pytest.raises(AbortedError) as error:
            await found.negotiations.hold(cast("Context", FakeContext()), found.answerers)
        assert error.value.args[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert found.door.counted == ["negotiations"]
        found.door.open = 1
        found.say(aio.EOF)
        await found.held


# --- with a daemon -------------------------------------------------------------------------------


async def asked_in(call: Any, message: partner_pb2.PartnerCall) -> partner_pb2.PartnerReply:
    """Asks in an open call; returns the next reply."""
    await call.write(message)
    reply: partner_pb2.PartnerReply = await call.read()
    return reply


def test_an_error_in_a_negotiation_is_that_of_the_call(tmp_path: Path) -> None:
    """Letter by letter: status, text and details; counted as often, and its time taken."""

    async def scene() -> None:
        configuration = alone(tmp_path, limits={"offers_per_s": 0.001}, **metrics())
        async with running(configuration, tmp_path) as site:
            site.reach("away")
            call = site.partner.Negotiate()
            first = await asked_in(call, partner_pb2.PartnerCall(number=1, offer=offer(1)))
            assert first.offer.answer == partner_pb2.ANSWER_ACCEPTED
            assert site.core.observer is not None
            figures = site.core.observer.metrics.values
            nameless = partner_pb2.ResolveRequest(site="away")
            for kind, wrong, reason in (
                ("offer", offer(1, site="eve"), "not_listed"),
                ("resolve", nameless, "invalid"),
                ("offer", offer(2), "offers_rate"),
            ):
                name = f'hanse_refusals_total{{reason="{reason}"}}'
                before = figures()[name]
                question: dict[str, Any] = {kind: wrong}
                reply = await asked_in(call, partner_pb2.PartnerCall(number=2, **question))
                method = site.partner.Offer if kind == "offer" else site.partner.Resolve
                with pytest.raises(aio.AioRpcError) as error:
                    await method(wrong, timeout=300)
                assert reply.error.code == error.value.code().value[0]
                assert figures()[name] == before + 2
                if reason != "offers_rate":  # which says how long to wait
                    assert reply.error.text == error.value.details()
                    trailing = dict(list(error.value.trailing_metadata() or ()))
                    assert reply.error.details == trailing[DETAILS_KEY]
            method = "grms.v1.PartnerService/Offer"
            assert figures()[f'hanse_call_seconds_count{{method="{method}"}}'] == 5
            call.cancel()

    run(scene)


def test_garbage_ends_the_call_and_nothing_else(tmp_path: Path) -> None:
    """Nobody can tell whose question it was; the site serves on."""

    async def scene() -> None:
        configuration = alone(tmp_path)
        async with (
            running(configuration, tmp_path) as site,
            aio.insecure_channel(configuration["listen"]["partners"]) as channel,
        ):
            site.reach("away")
            raw: Any = channel.stream_stream("/grms.v1.PartnerService/Negotiate")
            call = raw()
            await call.write(b"\xff\xff\xff")
            with pytest.raises(aio.AioRpcError) as error:
                await call.read()
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert error.value.details() == GARBLED
            again = site.partner.Negotiate()
            reply = await asked_in(again, partner_pb2.PartnerCall(number=1, offer=offer(1)))
            assert reply.offer.answer == partner_pb2.ANSWER_ACCEPTED
            again.cancel()

    run(scene)


def test_a_daemon_that_stops_ends_negotiations(tmp_path: Path) -> None:
    """It does not wait for a partner that keeps its call open; a new one is refused."""

    async def scene() -> None:
        # Were it waited for, it would be for an hour.
        async with running(alone(tmp_path, limits={"drain_s": 3600.0}), tmp_path) as site:
            call = site.partner.Negotiate()
            await asked_in(call, partner_pb2.PartnerCall(number=1, offer=offer(1)))
            site.daemon.stop()
            assert await call.read() is aio.EOF

    run(scene)


@pytest.mark.parametrize("here", [True, False], ids=["one call", "single calls"])
def test_two_sites_speak_either_way(
    here: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A job goes, is cancelled there and its end comes back, in one call or in as many as it takes."""
    if not here:
        settings_of = parts._link_settings

        def as_before(*arguments: Any) -> LinkSettings:
            return replace(settings_of(*arguments), negotiates=False)

        monkeypatch.setattr(parts, "_link_settings", as_before)

    async def scene() -> None:
        async with two_sites(tmp_path, metrics(), metrics()) as (home, away):
            await home.submit("fills", processors=4, run_time_s=30.0)
            job = await home.submit("goes", processors=2, run_time_s=50.0)
            await until(lambda: bool(away.core.engine.state.memory.at_lrms))
            await home.jobs.Cancel(job_pb2.CancelRequest(job_id=job.job_id))
            job = await home.ended(job.job_id)
            assert job.outcome == request_pb2.OUTCOME_CANCELLED
            for site, asks in ((home, ("Offer", "Withdraw")), (away, ("Report",))):
                assert site.core.observer is not None
                other = away if site is home else home
                assert other.core.observer is not None
                figures = other.core.observer.metrics.values()
                for method in asks:
                    name = f'hanse_call_seconds_count{{method="grms.v1.PartnerService/{method}"}}'
                    assert figures[name] == 1
                link = site.core.links.links[other.name]
                assert (link.asker is link.stub) is not here

    run(scene)


def test_a_question_larger_than_those_of_a_negotiation_ends_it() -> None:
    """What is large is a call of its own: hundreds of them in one call would be hundreds of megabytes."""

    async def scene() -> None:
        made = Scene()
        made.ask(1)
        await made.asked(1)
        large = offer(2)
        large.site = "x" * QUESTION_BYTES_MAX
        made.say(partner_pb2.PartnerCall(number=2, offer=large))
        await made.answer(1)
        with pytest.raises(AbortedError) as error:
            await made.held
        assert error.value.args[0] is grpc.StatusCode.INVALID_ARGUMENT
        assert f"here it may have {QUESTION_BYTES_MAX}" in error.value.args[1]

    run(scene)
