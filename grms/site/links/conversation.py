"""Offers, questions and reports to one partner, on one call that stays open where the partner knows that.

Whoever asks sees no difference to a call for each: an answer, or one of the errors of such a call. When the
open call breaks, everything that is under way in it fails as it would without the partner
(UNAVAILABLE: outcome unknown), and the next question opens another one.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

import grpc
from google.protobuf.message import Message
from grpc import aio

from grms.kit.refusals import DETAILS_KEY
from grms.site.links.calls import SenselessError
from grms.v1 import partner_pb2

QUESTION_BYTES: Final = 900
"""Larger requests are calls of their own. A partner whose limit a message exceeds ends the whole call; the
least limit that a site can have is 1,024 bytes."""

_ANSWERS = {"offer": "offer", "resolve": "status", "withdraw": "status", "report": "report"}
_STATUS = {code.value[0]: code for code in grpc.StatusCode}


class Stream(Protocol):
    """The open call, as gRPC has it."""

    async def write(self, request: partner_pb2.PartnerCall) -> None:
        """Sends a question."""

    async def read(self) -> Any:
        """Returns the next answer; `aio.EOF` at the end, None for bytes that are no answer."""

    async def done_writing(self) -> None:
        """Says that no further question comes."""

    def cancel(self) -> bool:
        """Breaks the call off."""


class Conversation:
    """Asks one partner.

    Attributes:
        under_way: questions that have no answer yet.

    Args:
        stub: by which the partner's methods are called.
    """

    def __init__(self, stub: Any) -> None:
        self._stub = stub
        self._talk: _Talk | None = None
        self._talks: set[_Talk] = set()

    @property
    def under_way(self) -> int:
        """Returns how many questions have no answer yet."""
        return sum(len(talk.waiting) for talk in self._talks)

    async def Offer(self, request: partner_pb2.OfferRequest, timeout: float) -> Any:  # noqa: ASYNC109, N802  # as gRPC's stub has it
        """Offers a job; timeout in seconds."""
        return await self._ask("offer", self._stub.Offer, request, timeout)

    async def Resolve(self, request: partner_pb2.ResolveRequest, timeout: float) -> Any:  # noqa: ASYNC109, N802  # same
        """Asks what became of an offer."""
        return await self._ask("resolve", self._stub.Resolve, request, timeout)

    async def Withdraw(self, request: partner_pb2.WithdrawRequest, timeout: float) -> Any:  # noqa: ASYNC109, N802  # same
        """Takes an offer back."""
        return await self._ask("withdraw", self._stub.Withdraw, request, timeout)

    async def Report(self, request: partner_pb2.ReportRequest, timeout: float) -> Any:  # noqa: ASYNC109, N802  # same
        """Tells of ended jobs."""
        return await self._ask("report", self._stub.Report, request, timeout)

    async def finish(self, grace_s: float) -> None:
        """Lets the open call end when what is under way has its answers, and breaks it off at last.

        Args:
            grace_s: so long is waited for these, seconds.
        """
        self._talk = None
        talks = list(self._talks)
        for talk in talks:
            talk.finish()
        if talks and grace_s > 0:
            await asyncio.wait([talk.reader for talk in talks], timeout=grace_s)
        self.close()

    def close(self) -> None:
        """Breaks everything off; what is under way has no answer."""
        self._talk = None
        for talk in list(self._talks):
            talk.close()

    async def _ask(
        self,
        kind: str,
        call: Callable[..., Any],
        request: Message,
        timeout_s: float,
    ) -> Any:
        if request.ByteSize() > QUESTION_BYTES:
            return await call(request, timeout=timeout_s)
        talk = self._talk
        if talk is None or talk.over:
            talk = self._talk = _Talk(self._stub.Negotiate(), self._talks.discard)
            self._talks.add(talk)
        return await talk.ask(kind, request, timeout_s)


class _Talk:
    # One open call: who waits for which number.

    def __init__(self, stream: Stream, ended: Callable[["_Talk"], None]) -> None:
        self._stream = stream
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._last = 0
        self._finishing = False
        self._outbox: deque[partner_pb2.PartnerCall] = deque()
        self.waiting: dict[int, tuple[str, asyncio.Future[Any], float]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.over = False
        self._writer: asyncio.Task[None] | None = None
        self.reader = self._loop.create_task(self._read(), name="negotiation")

    async def ask(self, kind: str, request: Message, timeout_s: float) -> Any:
        self._last += 1
        number = self._last
        answer: asyncio.Future[Any] = self._loop.create_future()
        deadline = self._loop.time() + timeout_s
        self.waiting[number] = kind, answer, deadline
        question: dict[str, Any] = {kind: request}
        self._send(partner_pb2.PartnerCall(number=number, **question))
        self._watch(deadline)
        try:
            return await answer
        finally:
            self._give_up(number)

    def finish(self) -> None:
        # The partner answers what it has read and ends the call.
        self._finishing = True
        self._write_on()

    def close(self) -> None:
        # The reader's end breaks the call off, too.
        self.reader.cancel()
        self._end(ConnectionError("the connection was given up"))

    # --- questions -----------------------------------------------------------------------------

    def _send(self, call: partner_pb2.PartnerCall) -> None:
        self._outbox.append(call)
        self._write_on()

    def _write_on(self) -> None:
        if self._writer is None and not self.over:
            self._writer = self._loop.create_task(self._write(), name="questions")

    async def _write(self) -> None:
        try:
            while self._outbox:
                call = self._outbox.popleft()
                if call.number in self.waiting or call.HasField("no_longer_awaited"):
                    await self._stream.write(call)
            if self._finishing:
                await self._stream.done_writing()
        except (aio.AioRpcError, asyncio.InvalidStateError, ConnectionError):
            pass  # the call is over, and the reader is told how
        except asyncio.CancelledError:
            # So gRPC ends it when the channel is closed.
            if self._is_cancelled():
                raise
        finally:
            self._writer = None

    def _watch(self, deadline: float) -> None:
        # One timer serves all: nearly every question has its answer long before its deadline.
        timer = self._timer
        if timer is None or deadline < timer.when():
            if timer is not None:
                timer.cancel()
            self._timer = self._loop.call_at(deadline, self._expire, deadline)

    def _expire(self, due: float) -> None:
        self._timer = None
        # A timer may be early by what the clock cannot tell apart.
        now = max(due, self._loop.time())
        text, rest = "Deadline Exceeded", []
        for _, answer, deadline in self.waiting.values():
            if deadline > now:
                rest.append(deadline)
            elif not answer.done():
                answer.set_exception(_error(grpc.StatusCode.DEADLINE_EXCEEDED, text))
        if rest:
            self._watch(min(rest))

    def _give_up(self, number: int) -> None:
        # The one way out for those whose deadline has passed and for those who are cancelled.
        if self.waiting.pop(number, None) is None or self.over:
            return
        for call in self._outbox:
            if call.number == number:
                return  # it was not sent, and will not be
        nothing = partner_pb2.NoLongerAwaited()
        self._send(partner_pb2.PartnerCall(number=number, no_longer_awaited=nothing))

    # --- answers -------------------------------------------------------------------------------

    async def _read(self) -> None:
        error: Exception
        try:
            while True:
                reply = await self._stream.read()
                if reply is aio.EOF:
                    break
                self._take(reply)
        except (aio.AioRpcError, SenselessError, ConnectionError) as found:
            error = found
        except asyncio.CancelledError:
            if self._is_cancelled():
                self._stream.cancel()
                raise
            error = ConnectionError("the connection was given up")
        else:
            text = "the partner has ended the conversation"
            error = _error(grpc.StatusCode.UNAVAILABLE, text)
        self._stream.cancel()
        self._end(error)

    def _take(self, reply: Any) -> None:
        if reply is None:
            raise SenselessError("its answer cannot be read")
        if not 1 <= reply.number <= self._last:
            raise SenselessError(f"it answers question {reply.number}, which was not asked")
        asked = self.waiting.pop(reply.number, None)
        if asked is None or asked[1].done():
            return  # nobody waits any more, or it comes twice
        kind, answer, _ = asked
        found = reply.WhichOneof("reply")
        if found == "error":
            answer.set_exception(_refusal(reply.error))
        elif found == _ANSWERS[kind]:
            answer.set_result(getattr(reply, found))
        else:
            answer.set_exception(SenselessError(f"it answers {kind} by {found or 'nothing'}"))

    def _end(self, error: Exception) -> None:
        self.over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self.waiting = self.waiting, {}
        for _, answer, _ in waiting.values():
            if not answer.done():
                answer.set_exception(error)
        self._outbox.clear()
        self._ended(self)

    @staticmethod
    def _is_cancelled() -> bool:
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0


def _refusal(error: partner_pb2.CallError) -> Exception:
    if not error.code:
        return SenselessError("it answers by an error that is none")
    code = _STATUS.get(error.code, grpc.StatusCode.UNKNOWN)
    return _error(code, error.text, error.details)


def _error(code: grpc.StatusCode, text: str, details: bytes = b"") -> aio.AioRpcError:
    trailing = aio.Metadata(*([(DETAILS_KEY, details)] if details else []))
    return aio.AioRpcError(code, aio.Metadata(), trailing, details=text)
