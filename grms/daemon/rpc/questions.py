"""What the services of both daemons ask their engine, and how a call ends to which it has no answer."""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar, Final, Generic, NoReturn, ParamSpec, TypeVar

import grpc

from grms.daemon.loop import Event, Loop, NotWrittenError, State
from grms.daemon.messages import WireError
from grms.daemon.rpc_errors import Context, refuse

E = TypeVar("E", bound=Event)
S = TypeVar("S", bound=State[Any, Any])
T = TypeVar("T")
P = ParamSpec("P")

LOOK_S: Final = 5.0
"""Longest wait of a question about the state for a write of the journal that hangs, seconds."""


class Questions(Generic[E, S]):
    """Asks a daemon's engine for calls; a refusal ends the call.

    Attributes:
        refuse: the kind of answer that refuses. Its `refusal` is an enumeration whose values are statuses of gRPC in
            words, its `reason` is for a person, its `field` the wrong one of the request.
        daemon: what callers call it.
        again: what callers are told who should repeat a request that may have been taken.
        stopping: the daemon ends, and nothing new is accepted.
    """

    refuse: ClassVar[type[Any]]
    daemon: ClassVar[str] = "daemon"
    again: ClassVar[str] = ""

    def __init__(self, engine: Loop[E, Any, S]) -> None:
        self.engine = engine
        self.stopping = False

    def count(self, reason: str, context: Context | None = None, text: str = "") -> None:
        """Takes note of a refusal, for whoever counts them."""

    async def ask(self, context: Context, event: E, read: Callable[[Any], T]) -> T:
        """Returns what is read in the engine's answer to an event; a refusal ends the call.

        `read` is called with the answer while the state is exactly what the journal says.
        """
        kind = self.refuse
        try:
            found: Any = await self.engine.ask(
                event, lambda answer: answer if isinstance(answer, kind) else read(answer)
            )
        except NotWrittenError as error:
            text = (
                f"the journal cannot be written ({error}); this is done when it can be{self.again}"
            )
            self.count("unavailable", context, text)
            await refuse(context, grpc.StatusCode.UNAVAILABLE, text)
        if isinstance(found, kind):
            self.count(found.refusal.name.lower(), context, found.reason)
            status = grpc.StatusCode[found.refusal.value.replace(" ", "_").upper()]
            await refuse(context, status, found.reason, field=found.field)
        answer: T = found
        return answer

    async def look(
        self,
        context: Context,
        read: Callable[[S], T],
        *,
        then: str = "ask again then",
        settled: Callable[[], bool] = lambda: False,
    ) -> T:
        """Returns what is read in the state, all of it durable; ends the call if it is not.

        `then` tells a caller who cannot be shown anything what to do, or what happens. `settled` says whether what is
        looked at is durable, though other parts of the state are not.
        """
        try:
            async with asyncio.timeout(LOOK_S):
                return await self.engine.look(read)
        except TimeoutError:
            text = f"the journal is being written, for more than {LOOK_S:g} s: {then}"
            await refuse(context, grpc.StatusCode.UNAVAILABLE, text, retry_s=1.0)
        except NotWrittenError as error:
            if settled():
                return read(self.engine.state)
            self.count("journal", context, str(error))
            text = (
                f"the journal cannot be written ({error}); what is not in it is not shown: {then}"
            )
            await refuse(context, grpc.StatusCode.UNAVAILABLE, text, retry_s=1.0)

    async def check_journal(self, context: Context) -> None:
        """Refuses what would have to be journaled while that cannot be, or the daemon ends."""
        if problem := self.engine.problem:
            self.count("journal", context, problem)
            text = (
                f"the journal cannot be written ({problem}); nothing new is taken, but what was asked just before is "
                f"done when it can be{self.again}"
            )
            await refuse(context, grpc.StatusCode.UNAVAILABLE, text, retry_s=1.0)
        await self.check_stopping(context)

    async def check_stopping(self, context: Context) -> None:
        """Refuses everything new once the daemon ends."""
        if self.stopping:
            self.count("stopping", context)
            text = f"the {self.daemon} is being stopped"
            await refuse(context, grpc.StatusCode.UNAVAILABLE, text)

    async def read(
        self, context: Context, read: Callable[P, T], *given: P.args, **named: P.kwargs
    ) -> T:
        """Returns what a part of a request says, by the function that reads it; a call that means nothing ends."""
        try:
            return read(*given, **named)
        except WireError as error:
            await self.invalid(context, error)

    async def invalid(self, context: Context, error: WireError) -> NoReturn:
        """Ends a call whose request means nothing."""
        self.count("invalid", context, str(error))
        await refuse(context, grpc.StatusCode.INVALID_ARGUMENT, str(error), field=error.field)
