"""What a caller is told: why it is refused, or that this program itself is wrong.

Every refusal has a gRPC status, a reason for a person, and details for programs as `google.rpc`
defines them.
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

Context = aio.ServicerContext[Any, Any]

DETAILS_KEY: Final = "grpc-status-details-bin"
"""Where gRPC carries `google.rpc.Status`."""

CARRIED_BYTES: Final = 7_000
"""So much of a refusal gRPC carries for certain: beyond 8 KiB of metadata a client may read of those alone."""

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

    Args:
        context: of the call.
        code: the status.
        reason: for a person; a very long one is cut.
        field: the field of the request that is wrong.
        retry_s: after how long it is worth trying again, seconds; None: it is not said.
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


class Garbled:
    """What stands for a request whose bytes are no message."""


def _reading(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    if deserialize is None:
        return None

    def read(content: bytes) -> Any:
        try:
            return deserialize(content)
        except DecodeError:
            return Garbled()

    return read


class Unexpected(aio.ServerInterceptor):
    """Turns exceptions that no service expects into INTERNAL, and logs them.

    Bytes that are no message are the caller's fault: INVALID_ARGUMENT.

    Args:
        log: where they go.
        on_garbled: is called for bytes that are no message.
        took: is told of each call with one answer its method and how long it took, seconds.
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
        if handler.request_streaming:
            if not inspect.iscoroutinefunction(handler.stream_stream):
                return handler
            guard = self._both
        else:
            guard = self._stream if handler.response_streaming else self._single
        made = self._guarded[method] = guard(handler, method)
        return made

    def guarded(
        self, inner: Callable[[Any, Context], Awaitable[Any]], method: str
    ) -> Callable[[Any, Context], Awaitable[Any]]:
        """Returns what answers one request of a method as `inner` does, and tells what comes of it.

        Args:
            inner: answers.
            method: its name, as gRPC writes it.
        """

        async def answered(request: Any, context: Context) -> Any:
            if isinstance(request, Garbled):
                self._on_garbled()
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, GARBLED)
            begin = time.perf_counter()
            try:
                return await inner(request, context)
            except (aio.AbortError, grpc.RpcError):
                raise
            except Exception as error:  # noqa: BLE001  # the last line of defence
                await self._tell(error, method, context)
            finally:
                self._took(method, time.perf_counter() - begin)

        return answered

    def _single(self, handler: Handler, method: str) -> Handler:
        made: Handler = grpc.unary_unary_rpc_method_handler(
            self.guarded(handler.unary_unary, method),
            _reading(handler.request_deserializer),
            handler.response_serializer,
        )
        return made

    def _both(self, handler: Handler, method: str) -> Handler:
        # One that reads and writes by itself; what it reads may be `Garbled`.
        inner: Any = handler.stream_stream

        async def guarded(requests: Any, context: aio.ServicerContext[Any, Any]) -> None:
            try:
                await inner(requests, context)
            except (aio.AbortError, grpc.RpcError):
                raise
            except Exception as error:  # noqa: BLE001  # the last line of defence
                await self._tell(error, method, context)

        made: Handler = grpc.stream_stream_rpc_method_handler(
            guarded, _reading(handler.request_deserializer), handler.response_serializer
        )
        return made

    def _stream(self, handler: Handler, method: str) -> Handler:
        inner: Any = handler.unary_stream

        async def guarded(request: Any, context: aio.ServicerContext[Any, Any]) -> Any:
            if isinstance(request, Garbled):
                self._on_garbled()
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, GARBLED)
            try:
                async for message in inner(request, context):
                    yield message
            except (aio.AbortError, grpc.RpcError):
                raise
            except Exception as error:  # noqa: BLE001  # the last line of defence
                await self._tell(error, method, context)

        made: Handler = grpc.unary_stream_rpc_method_handler(
            guarded, _reading(handler.request_deserializer), handler.response_serializer
        )
        return made

    async def _tell(
        self, error: Exception, method: str, context: aio.ServicerContext[Any, Any]
    ) -> None:
        if context.done():
            return  # the caller has gone; nobody waits for the rest
        self._log.error("unexpected_error", method=method, exc_info=error)
        await context.abort(grpc.StatusCode.INTERNAL, TEXT)
