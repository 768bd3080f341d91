"""Many questions to one partner in one call: who gets which answer, and what becomes of all when it breaks."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from grpc import aio
from hypothesis import given
from hypothesis import strategies as st

from grms.kit.refusals import DETAILS_KEY
from grms.site.links.calls import SenselessError, answer_to
from grms.site.links.conversation import QUESTION_BYTES, Conversation
from grms.v1 import partner_pb2
from tests.examples import FEW
from tests.waiting import run

YES, NO = partner_pb2.ANSWER_ACCEPTED, partner_pb2.ANSWER_DECLINED
LONG = 3600.0


class FakeStream:
    """An open call whose other end is the test.

    Attributes:
        sent: what was written.
        ended: no further question comes.
        cancelled: it was broken off.
        holds: nothing can be written while this is not set.
    """

    def __init__(self) -> None:
        self.sent: list[partner_pb2.PartnerCall] = []
        self.ended = self.cancelled = False
        self.holds = asyncio.Event()
        self.holds.set()
        self._answers: asyncio.Queue[Any] = asyncio.Queue()

    async def write(self, request: partner_pb2.PartnerCall) -> None:
        """Takes a question."""
        await self.holds.wait()
        self.sent.append(request)

    async def read(self) -> Any:
        """Returns what the test says."""
        answer = await self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def done_writing(self) -> None:
        """Notes it."""
        self.ended = True

    def cancel(self) -> bool:
        """Notes it."""
        self.cancelled = True
        return True

    def say(self, answer: Any) -> None:
        """Gives an answer, the end, bytes that are none, or an error."""
        self._answers.put_nowait(answer)


@dataclass
class FakeStub:
    """A partner's methods.

    Attributes:
        streams: the calls that were opened.
        single: what was asked in calls of their own.
    """

    streams: list[FakeStream] = field(default_factory=list)
    single: list[Message] = field(default_factory=list)

    def Negotiate(self) -> FakeStream:  # noqa: N802  # gRPC's name
        """Opens one."""
        self.streams.append(FakeStream())
        return self.streams[-1]

    async def Offer(self, request: Any, timeout: float) -> Any:  # noqa: ASYNC109, N802  # same
        """Declines."""
        self.single.append(request)
        assert timeout > 0
        return partner_pb2.OfferResponse(answer=NO)

    Resolve = Withdraw = Report = Offer


def offer(number: int) -> partner_pb2.OfferRequest:
    """Returns an offer."""
    request = partner_pb2.OfferRequest(site="home", settled_below=1)
    request.offer.number = number
    return request


def reply(number: int, answer: Any = YES) -> partner_pb2.PartnerReply:
    """Returns the answer to an offer."""
    return partner_pb2.PartnerReply(number=number, offer=partner_pb2.OfferResponse(answer=answer))


async def turns() -> None:
    """Lets everything that can happen now happen."""
    for _ in range(20):
        await asyncio.sleep(0)


class Scene:
    """A conversation and its partner.

    Args:
        offers: so many have been made.
    """

    def __init__(self, offers: int = 0) -> None:
        self.stub = FakeStub()
        self.conversation = Conversation(self.stub)
        self.asked = [self.ask(number) for number in range(1, offers + 1)]

    def ask(self, number: int, timeout_s: float = LONG) -> asyncio.Task[Any]:
        """Makes an offer."""
        coroutine = answer_to(self.conversation.Offer(offer(number), timeout=timeout_s))
        return asyncio.create_task(coroutine, name=f"offer {number}")

    @property
    def stream(self) -> FakeStream:
        """The call that was opened last."""
        return self.stub.streams[-1]

    async def failures(self) -> list[BaseException | None]:
        """Returns what the offers have ended with; all have."""
        await turns()
        assert self.conversation.under_way == 0
        return [task.exception() for task in self.asked]


def scene(number: int = 0) -> Callable[[Callable[[Scene], Awaitable[None]]], None]:
    """Plays a scene with so many offers under way."""

    def play(act: Callable[[Scene], Awaitable[None]]) -> None:
        async def played() -> None:
            found = Scene(number)
            await turns()
            await act(found)
            found.conversation.close()
            await turns()

        run(played)
        gc.collect()

    return play


@FEW
@given(st.permutations(range(1, 7)), st.integers(0, 63))
def test_each_has_its_own_answer(order: list[int], yes: int) -> None:
    """In whatever order the answers come; one call is enough for all."""

    @scene(6)
    async def _(found: Scene) -> None:
        answers = {number: YES if yes >> number & 1 else NO for number in order}
        assert [call.offer.offer.number for call in found.stream.sent] == [1, 2, 3, 4, 5, 6]
        for number in order:
            found.stream.say(reply(number, answers[number]))
        got = await asyncio.gather(*found.asked)
        assert {n: each.answer for n, each in enumerate(got, 1)} == answers
        assert len(found.stub.streams) == 1
        assert found.conversation.under_way == 0


def test_every_kind_has_its_own_answer() -> None:
    """Status to questions and withdrawals, an empty answer to reports; another kind makes no sense."""

    @scene()
    async def _(found: Scene) -> None:
        talk = found.conversation
        status = partner_pb2.OfferStatus(state=partner_pb2.OFFER_STATE_DECLINED)
        done = partner_pb2.ReportResponse()
        for number, (ask, request, answer, wrong) in enumerate(
            (
                (talk.Resolve, partner_pb2.ResolveRequest(), {"status": status}, {"report": done}),
                (talk.Withdraw, partner_pb2.WithdrawRequest(), {"status": status}, {}),
                (talk.Report, partner_pb2.ReportRequest(), {"report": done}, {"status": status}),
            )
        ):
            method: Any = ask
            right: Any = answer
            other: Any = wrong
            first, second = (asyncio.create_task(method(request, LONG), name=n) for n in "ab")
            await turns()
            asked = found.stream.sent[-1]
            assert asked.WhichOneof("call") == method.__name__.lower()
            found.stream.say(partner_pb2.PartnerReply(number=2 * number + 1, **right))
            found.stream.say(partner_pb2.PartnerReply(number=2 * number + 2, **other))
            assert await first in (status, done)
            with pytest.raises(SenselessError, match="it answers"):
                await second


@pytest.mark.parametrize("number", [0, 4, 2**64 - 1])
def test_an_answer_to_what_was_not_asked_ends_all(number: int) -> None:
    """The partner makes no sense; whatever is under way has no answer."""

    @scene(3)
    async def _(found: Scene) -> None:
        stream = found.stream
        stream.say(reply(number))
        failures = await found.failures()
        assert {type(failure) for failure in failures} == {SenselessError}
        assert "was not asked" in str(failures[0])
        assert stream.cancelled


def test_bytes_that_are_no_answer_end_all() -> None:
    """Nobody can say whose answer they are."""

    @scene(2)
    async def _(found: Scene) -> None:
        found.stream.say(None)
        failures = await found.failures()
        assert [str(failure) for failure in failures] == ["its answer cannot be read"] * 2


def test_an_answer_that_comes_twice_or_late_is_nobodys() -> None:
    """The others go on."""

    @scene(3)
    async def _(found: Scene) -> None:
        late = found.ask(4, timeout_s=0.0)
        with pytest.raises(aio.AioRpcError) as error:
            await late
        assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        found.stream.say(reply(4))
        found.stream.say(reply(1))
        found.stream.say(reply(1, NO))
        found.stream.say(reply(3))
        found.stream.say(reply(2, NO))
        assert [each.answer for each in await asyncio.gather(*found.asked)] == [YES, NO, YES]
        assert len(found.stub.streams) == 1


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (aio.EOF, grpc.StatusCode.UNAVAILABLE),
        *(
            (aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), details="gone"), code)
            for code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.PERMISSION_DENIED)
        ),
    ],
    ids=["ended", "broken", "refused"],
)
def test_a_call_that_breaks_answers_nothing(end: Any, code: grpc.StatusCode) -> None:
    """What is under way fails as it would by itself; the next question opens another call."""

    @scene(3)
    async def _(found: Scene) -> None:
        found.stream.say(reply(2))
        found.stream.say(end)
        first, second, third = await found.failures()
        assert second is None
        for failure in (first, third):
            assert isinstance(failure, aio.AioRpcError)
            assert failure.code() is code
        again = found.ask(9)
        await turns()
        assert len(found.stub.streams) == 2
        assert [call.number for call in found.stream.sent] == [1]
        found.stream.say(reply(1))
        assert (await again).answer == YES


def test_a_partner_that_does_not_know_the_call_makes_no_sense() -> None:
    """It has said that it does."""

    @scene(1)
    async def _(found: Scene) -> None:
        code = grpc.StatusCode.UNIMPLEMENTED
        found.stream.say(aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), details="?"))
        (failure,) = await found.failures()
        assert isinstance(failure, SenselessError)


def test_a_channel_that_is_closed_is_no_answer_and_no_end_of_asking() -> None:
    """GRPC cancels a call whose channel is closed."""

    @scene(2)
    async def _(found: Scene) -> None:
        found.stream.say(asyncio.CancelledError())
        assert [type(failure) for failure in await found.failures()] == [ConnectionError] * 2


def test_a_refusal_is_that_of_a_call() -> None:
    """Status, text and details for programs; a status that nobody knows, and one that is none."""

    @scene(4)
    async def _(found: Scene) -> None:
        for number, (code, details) in enumerate(
            ((8, b"\x08\x08"), (6, b""), (77, b""), (0, b"")), 1
        ):
            error = partner_pb2.CallError(code=code, text="no", details=details)
            found.stream.say(partner_pb2.PartnerReply(number=number, error=error))
        many, other, unknown, none = await found.failures()
        assert isinstance(many, aio.AioRpcError)
        assert many.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert many.details() == "no"
        assert dict(list(many.trailing_metadata())) == {DETAILS_KEY: b"\x08\x08"}
        assert isinstance(other, aio.AioRpcError)
        assert other.code() is grpc.StatusCode.ALREADY_EXISTS
        assert not other.trailing_metadata()
        assert isinstance(unknown, aio.AioRpcError)
        assert unknown.code() is grpc.StatusCode.UNKNOWN
        assert isinstance(none, SenselessError)


def test_who_does_not_wait_any_more_says_so() -> None:
    """Once it was sent; what was not is never sent."""

    @scene(1)
    async def _(found: Scene) -> None:
        stream = found.stream
        stream.holds.clear()
        sent, unsent = found.ask(2), found.ask(3)
        await turns()
        unsent.cancel()
        await turns()
        stream.holds.set()
        await turns()
        assert [call.number for call in stream.sent] == [1, 2]
        sent.cancel()
        await turns()
        assert stream.sent[-1].number == 2
        assert stream.sent[-1].HasField("no_longer_awaited")
        assert found.conversation.under_way == 1
        stream.say(reply(1))
        await found.asked[0]


def test_a_deadline_is_kept_though_nothing_can_be_sent() -> None:
    """A partner that reads nothing holds up nobody."""

    @scene()
    async def _(found: Scene) -> None:
        found.ask(1)
        await turns()
        found.stream.holds.clear()
        with pytest.raises(aio.AioRpcError) as error:
            await found.ask(2, timeout_s=0.01)
        assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_what_is_large_has_a_call_of_its_own() -> None:
    """Else a partner with a small limit would end the call for all."""

    @scene()
    async def _(found: Scene) -> None:
        request = offer(1)
        request.site = "x" * QUESTION_BYTES
        answer = await found.conversation.Offer(request, timeout=LONG)
        assert answer.answer == NO
        assert found.stub.single == [request]
        assert not found.stub.streams


def test_a_conversation_that_is_finished_has_its_answers() -> None:
    """No further question comes in that call; the next one opens another."""

    @scene(2)
    async def _(found: Scene) -> None:
        stream = found.stream
        finished = asyncio.create_task(found.conversation.finish(LONG), name="finish")
        await turns()
        assert stream.ended
        assert found.conversation.under_way == 2
        stream.say(reply(1))
        stream.say(reply(2))
        stream.say(aio.EOF)
        await finished
        assert await found.failures() == [None, None]
        found.ask(3)
        await turns()
        assert len(found.stub.streams) == 2


def test_a_partner_that_does_not_answer_is_not_waited_for_too_long() -> None:
    """What is under way then has no answer."""

    @scene(2)
    async def _(found: Scene) -> None:
        await found.conversation.finish(0.0)
        assert [type(failure) for failure in await found.failures()] == [ConnectionError] * 2
        assert found.stream.cancelled


def test_each_deadline_is_its_own() -> None:
    """One that is asked later and waits for less ends too, and who has more time waits on."""

    @scene()
    async def _(found: Scene) -> None:
        patient, hasty = found.ask(1), found.ask(2, timeout_s=0.02)
        await turns()
        hastier = found.ask(3, timeout_s=0.01)
        await asyncio.wait([hasty, hastier])
        for task in (hasty, hastier):
            error = task.exception()
            assert isinstance(error, aio.AioRpcError)
            assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await turns()
        assert found.conversation.under_way == 1
        found.stream.say(reply(1))
        await patient
