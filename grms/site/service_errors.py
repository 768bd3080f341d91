"""What a caller and the log are told when this program itself is wrong."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import structlog
from grpc import aio

Handler = Any

TEXT = "the daemon has met an error of its own; its log says more"


class Unexpected(aio.ServerInterceptor):
    """Turns exceptions that no service expects into INTERNAL, and logs them.

    Args:
        log: where they go.
    """

    def __init__(self, log: structlog.typing.FilteringBoundLogger) -> None:
        self._log = log

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Returns a method's handler, guarded."""
        handler = await continuation(handler_call_details)
        if handler is None or handler.request_streaming:
            return handler
        method = handler_call_details.method
        if handler.response_streaming:
            return self._stream(handler, method)
        return self._single(handler, method)

    def _single(self, handler: Handler, method: str) -> Handler:
        inner: Any = handler.unary_unary

        async def guarded(request: Any, context: aio.ServicerContext[Any, Any]) -> Any:
            try:
                return await inner(request, context)
            except (aio.AbortError, grpc.RpcError):
                raise
            except Exception as error:  # noqa: BLE001  # the last line of defence
                await self._tell(error, method, context)

        made: Handler = grpc.unary_unary_rpc_method_handler(
            guarded, handler.request_deserializer, handler.response_serializer
        )
        return made

    def _stream(self, handler: Handler, method: str) -> Handler:
        inner: Any = handler.unary_stream

        async def guarded(request: Any, context: aio.ServicerContext[Any, Any]) -> Any:
            try:
                async for message in inner(request, context):
                    yield message
            except (aio.AbortError, grpc.RpcError):
                raise
            except Exception as error:  # noqa: BLE001  # the last line of defence
                await self._tell(error, method, context)

        made: Handler = grpc.unary_stream_rpc_method_handler(
            guarded, handler.request_deserializer, handler.response_serializer
        )
        return made

    async def _tell(
        self, error: Exception, method: str, context: aio.ServicerContext[Any, Any]
    ) -> None:
        if context.done():
            return  # the caller has gone; nobody waits for the rest
        self._log.error("unexpected_error", method=method, exc_info=error)
        await context.abort(grpc.StatusCode.INTERNAL, TEXT)
