"""Errors of calls: refusals with a reason, and unexpected exceptions.

Every refusal has a gRPC status, a reason for people, and `google.rpc` details for programs.
"""

import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NoReturn
from urllib.parse import quote

import grpc
import structlog
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2
from grpc import aio

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
