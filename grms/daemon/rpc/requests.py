"""Requests to the services of both daemons: what services have in common, and how a call ends without an answer.

Every refusal has a gRPC status, a reason for people, and `google.rpc` details for programs.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Final, Generic, NoReturn, ParamSpec, TypeVar
from urllib.parse import quote

import grpc
import structlog
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2
from grpc import aio

from grms.daemon.loop import Event, Loop, NotWrittenError, State
from grms.daemon.messages import WireError
from grms.daemon.pacing import Seldom
from grms.daemon.status_details import DETAILS_KEY

Context = aio.ServicerContext[Any, Any]

CARRIED_BYTES: Final = 7_000
"""Size of a refusal that gRPC surely carries: a client may read only 8 KiB of metadata."""

ERRORS_LOGGED_PER_S: Final = 0.1
"""Log rate of unexpected errors per kind and method."""

METHODS_MAX: Final = 1000
"""Most methods whose guarded handlers are kept."""

Handler = Any

GARBLED = "the bytes are no message of this method"

TEXT = "the daemon has met an error of its own; its log says more"


async def refuse(
    context: Context,
    code: grpc.StatusCode,
    reason: str,
    *,
    field: str = "",
    retry_s: float | None = None,
) -> NoReturn:
    """Ends a call with an error.

    `reason` is for people, and cut if very long; `field` is the invalid field of the request; after `retry_s`
    seconds, if given, it is worth trying again.
    """
    reason = carried(reason)
    details: list[Message] = []
    if field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=field, description=reason)
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    if retry_s is not None:
        delay = Duration()
        delay.FromNanoseconds(int(retry_s * 1e9))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    metadata: Sequence[tuple[str, bytes]] = ()
    if details:
        status = status_pb2.Status(code=code.value[0], message=reason)
        for detail in details:
            packed = AnyMessage()
            packed.Pack(detail)
            status.details.append(packed)
        metadata = ((DETAILS_KEY, status.SerializeToString()),)
    await context.abort(code, reason, trailing_metadata=metadata)
    raise AssertionError("abort does not return")


def carried(reason: str) -> str:
    """Returns a reason as long as gRPC carries it: callers' own words are in it, which may be of any length."""
    text = reason[:CARRIED_BYTES]
    # Once as text with escapes, and twice in the details, as base64.
    while len(quote(text)) + len(text.encode()) * 8 // 3 > CARRIED_BYTES:
        text = text[: len(text) * 9 // 10]
    return text if text == reason else text + "…"


_KINDS: Final[dict[tuple[bool, bool], tuple[Any, str]]] = {
    (False, False): (grpc.unary_unary_rpc_method_handler, "unary_unary"),
    (False, True): (grpc.unary_stream_rpc_method_handler, "unary_stream"),
    (True, False): (grpc.stream_unary_rpc_method_handler, "stream_unary"),
    (True, True): (grpc.stream_stream_rpc_method_handler, "stream_stream"),
}
"""By whether requests and answers stream: the factory of handlers, and the attribute of their function."""


class _Garbled:
    # What stands for a request whose bytes are no message.
    pass


def _reading(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    if deserialize is None:
        return None

    def read(content: bytes) -> Any:
        try:
            return deserialize(content)
        except DecodeError:
            return _Garbled()

    return read


class Unexpected(aio.ServerInterceptor):
    """Turns exceptions that no service expects into INTERNAL, and logs them.

    At most six of one kind and method are logged per minute, as any caller may be able to cause them at will; the
    next entry says how many were dropped. Bytes that are no message are the caller's fault: INVALID_ARGUMENT.

    `on_garbled` is called for bytes that are no message, `took` for each call with one answer, with its method and
    duration in seconds.
    """

    def __init__(
        self,
        log: structlog.typing.FilteringBoundLogger,
        on_garbled: Callable[[], None] = lambda: None,
        took: Callable[[str, float], None] = lambda _method, _latency_s: None,
    ) -> None:
        self._log = log
        self._on_garbled = on_garbled
        self._took = took
        self._logged = Seldom(ERRORS_LOGGED_PER_S)
        self._guarded: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Returns a method's handler, guarded."""
        method = handler_call_details.method
        known = self._guarded.get(method)
        if known is not None:
            return known
        handler = await continuation(handler_call_details)
        if handler is None:
            return handler
        made = self._handler(handler, method)
        # Callers may name any method if one handler answers all.
        if len(self._guarded) < METHODS_MAX:
            self._guarded[method] = made
        return made

    def _handler(self, handler: Handler, method: str) -> Handler:
        kind = (handler.request_streaming, handler.response_streaming)
        make, name = _KINDS[kind]
        inner: Any = getattr(handler, name)
        if inspect.isasyncgenfunction(inner):
            guarded: Any = self._yielding(inner, method)
        elif kind == (False, False):
            guarded = self._answering(inner, method)
        else:
            guarded = self._writing(inner, method)
        made: Handler = make(
            guarded, _reading(handler.request_deserializer), handler.response_serializer
        )
        return made

    def _answering(self, inner: Any, method: str) -> Any:
        # One request, one answer: how long it took is told.
        async def guarded(request: Any, context: Context) -> Any:
            if isinstance(request, _Garbled):
                await self._garbled(context)
            begin = time.perf_counter()
            try:
                return await inner(request, context)
            except (aio.AbortError, grpc.RpcError):
                raise
            except Exception as error:  # noqa: BLE001  # the last line of defence
                await self._tell(error, method, context)
            finally:
                self._took(method, time.perf_counter() - begin)

        return guarded

    def _writing(self, inner: Any, method: str) -> Any:
        # One that returns its one answer, or writes by itself.
        async def guarded(requests: Any, context: Context) -> Any:
            try:
                return await inner(await self._readable(requests, context), context)
            except (aio.AbortError, grpc.RpcError):
                raise
            except Exception as error:  # noqa: BLE001  # the last line of defence
                await self._tell(error, method, context)

        return guarded

    def _yielding(self, inner: Any, method: str) -> Any:
        async def guarded(requests: Any, context: Context) -> Any:
            try:
                async for message in inner(await self._readable(requests, context), context):
                    yield message
            except (aio.AbortError, grpc.RpcError):
                raise
            except Exception as error:  # noqa: BLE001  # the last line of defence
                await self._tell(error, method, context)

        return guarded

    async def _readable(self, requests: Any, context: Context) -> Any:
        # The one request, or an iterator of all that there will be: no service meets `_Garbled` in it.
        if hasattr(requests, "__aiter__"):
            return self._each(requests, context)
        if isinstance(requests, _Garbled):
            await self._garbled(context)
        return requests

    async def _each(self, requests: Any, context: Context) -> Any:
        async for request in requests:
            if isinstance(request, _Garbled):
                await self._garbled(context)
            yield request

    async def _garbled(self, context: Context) -> NoReturn:
        self._on_garbled()
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, GARBLED)
        raise AssertionError("abort does not return")

    async def _tell(self, error: Exception, method: str, context: Context) -> None:
        if context.done():
            return  # the caller has gone; nobody waits for the rest
        more = self._logged.to_tell(f"{method} {type(error).__name__}")
        if more is not None and _is_cut_off(error):
            self._log.info("caller_gone", method=method, **more)
        elif more is not None:
            self._log.error("unexpected_error", method=method, exc_info=error, **more)
        await context.abort(grpc.StatusCode.INTERNAL, TEXT)


def _is_cut_off(error: BaseException) -> bool:
    # Writing to a caller whose connection has ended fails before the call itself is known to be over.
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_cut_off, error.exceptions))
    return isinstance(error, aio.InternalError)


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
