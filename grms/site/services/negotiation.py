"""Many questions of a partner in one call: each is answered as it would be by itself.

A call of gRPC costs several times what its message does. So two sites that talk keep one call open, and
each question in it has a number (`PartnerService.Negotiate`). The handlers are those of the single calls;
what is told about a call, its refusal and its length, is told about each question.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NoReturn, cast

import grpc
from grpc import aio

from grms.kit.refusals import DETAILS_KEY, GARBLED, Context, Garbled, refuse
from grms.site.sockets.door import Door
from grms.v1 import partner_pb2

QUESTIONS_MAX: Final = 250
"""Questions of one negotiation that are being answered; the next one is read when one of them is over."""

NEGOTIATIONS_MAX: Final = 4
"""Negotiations over one connection. One is enough; the one before may be ending. Those that this site has
ended before the partner did count for as long as the connection lasts."""

QUESTION_BYTES_MAX: Final = 1 << 16
"""Largest question of a negotiation: what is larger is a call of its own, which counts as one."""

Answerer = Callable[[Any, Context], Awaitable[Any]]
"""Answers a request as the handler of a call does."""

Guard = Callable[[Answerer, str], Answerer]
"""Returns what answers a method, with what is done for every call of it."""

REPLIES: Final = {"offer": "offer", "resolve": "status", "withdraw": "status", "report": "report"}
"""Which member of a reply the answer to each question is."""


class QuestionRefusedError(aio.AbortError):
    """A question has no answer; as a call it would have ended so.

    Attributes:
        error: how.
    """

    def __init__(self, error: partner_pb2.CallError) -> None:
        super().__init__(error.text)
        self.error = error


class QuestionContext:
    """What a handler has of a call, for one question of a negotiation."""

    def __init__(self, peer: str) -> None:
        self._peer = peer

    def peer(self) -> str:
        """Returns the connection's source."""
        return self._peer

    def done(self) -> bool:
        """Returns whether nobody waits any more: then the question's task has been cancelled."""
        return False

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()
    ) -> NoReturn:
        """Ends the question without an answer."""
        found = next((value for key, value in trailing_metadata if key == DETAILS_KEY), b"")
        number = code.value[0]
        raise QuestionRefusedError(partner_pb2.CallError(code=number, text=details, details=found))


class Negotiations:
    """The negotiations of all partners.

    Args:
        door: lets partners in.
        questions_max: being answered at one time, of one partner over all its negotiations.
    """

    def __init__(self, door: Door, questions_max: int) -> None:
        self._door = door
        self._questions_max = questions_max
        self._rooms: dict[str, asyncio.Semaphore] = {}
        self._reading: set[asyncio.Task[str]] = set()

    def close(self) -> None:
        """Reads no further question; those that were read are answered."""
        for reading in self._reading:
            reading.cancel()

    async def hold(self, context: Context, answerers: Mapping[str, Answerer]) -> None:
        """Answers the questions of one call until the partner or `close` ends it.

        Args:
            context: of the call.
            answerers: by the member of `PartnerCall` that they answer.
        """
        door, peer = self._door, context.peer()
        await door.check_admitted(context)
        await door.check_stopping(context)
        open_now, whole = door.begin_negotiation(peer), True
        try:
            if open_now > NEGOTIATIONS_MAX:
                door.count("negotiations", context)
                text = f"{NEGOTIATIONS_MAX} negotiations are open over this connection"
                await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, text)
            # No partner waits for the room of another.
            room = self._rooms.setdefault(door.who(context), asyncio.Semaphore(self._questions_max))
            async with asyncio.TaskGroup() as group:
                talk = _Talk(context, answerers, room, group)
                reading = group.create_task(talk.read(), name="negotiation")
                self._reading.add(reading)
                reading.add_done_callback(self._reading.discard)
            problem = "" if reading.cancelled() else reading.result()
            # The partner has not ended its side, and need not do so any more: its stream looks open for ever.
            whole = not problem and not reading.cancelled()
        finally:
            if whole:
                door.end_negotiation(peer)
        if problem:
            door.count("invalid", context, problem)
            await refuse(context, grpc.StatusCode.INVALID_ARGUMENT, problem)


class _Talk:
    # One negotiation: reads its questions and begins to answer them, in the order in which they come.

    def __init__(
        self,
        context: Context,
        answerers: Mapping[str, Answerer],
        room: asyncio.Semaphore,
        group: asyncio.TaskGroup,
    ) -> None:
        self._context = context
        self._answerers = answerers
        self._room = room
        self._own_room = asyncio.Semaphore(QUESTIONS_MAX)
        self._group = group
        self._writing = asyncio.Lock()
        self._asked: dict[int, asyncio.Task[None]] = {}
        self._of_question = cast("Context", QuestionContext(context.peer()))

    async def read(self) -> str:
        """Reads until the end; returns why it cannot go on, or nothing."""
        while True:
            call: Any = await self._context.read()
            if call is aio.EOF:
                return ""
            if isinstance(call, Garbled):
                return GARBLED
            kind, number = call.WhichOneof("call"), call.number
            if kind == "no_longer_awaited":
                if (task := self._asked.get(number)) is not None:
                    task.cancel()
                continue
            if call.ByteSize() > QUESTION_BYTES_MAX:
                size = call.ByteSize()
                return f"question {number} has {size} bytes; here it may have {QUESTION_BYTES_MAX}"
            if number in self._asked:
                return f"question {number} is being answered, and cannot be asked again"
            await self._own_room.acquire()
            await self._room.acquire()
            self._asked[number] = self._group.create_task(self._serve(kind, call), name="question")

    async def _serve(self, kind: str | None, call: Any) -> None:
        try:
            try:
                reply = await self._replied(kind, call)
            finally:
                # From here on it is not cancelled: a write that is broken off would end the whole call.
                del self._asked[call.number]
            async with self._writing:
                await self._context.write(reply)
        finally:
            # Only now: who asks and does not read is asked no further.
            self._room.release()
            self._own_room.release()

    async def _replied(self, kind: str | None, call: Any) -> partner_pb2.PartnerReply:
        reply = partner_pb2.PartnerReply(number=call.number)
        answerer = None if kind is None else self._answerers.get(kind)
        if kind is None or answerer is None:
            reply.error.code = grpc.StatusCode.UNIMPLEMENTED.value[0]
            reply.error.text = "there is no such question"
            return reply
        try:
            answer = await answerer(getattr(call, kind), self._of_question)
            getattr(reply, REPLIES[kind]).CopyFrom(answer)
        except QuestionRefusedError as refused:
            reply.error.CopyFrom(refused.error)
        return reply
