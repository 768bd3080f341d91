"""A way between two daemons that writes down every message, as bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import grpc
from grpc import aio


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question between two sites, and its answer.

    Attributes:
        caller: who asked.
        callee: who was asked.
        method: which method.
        metadata: what came with the question beside the message.
        request: the message, as bytes.
        response: the answer, as bytes; empty where there was none.
        code: status.
        details: of the status.
        trailing: what came with the answer beside the message.
    """

    caller: str
    callee: str
    method: str
    metadata: tuple[tuple[str, Any], ...]
    request: bytes
    response: bytes
    code: grpc.StatusCode = grpc.StatusCode.OK
    details: str = ""
    trailing: tuple[tuple[str, Any], ...] = ()


NOT_REACHED: Final = "failed to connect to all addresses"
"""The library's own words where the callee is not there yet or no more: nothing has passed."""


class Recorder(grpc.GenericRpcHandler):
    """Hands every call on, and writes down what passes.

    Attributes:
        port: where the way begins.

    Args:
        caller: who asks here.
        callee: who is asked.
        address: where the callee is.
        write: is given each exchange.
    """

    def __init__(
        self,
        caller: str,
        callee: str,
        address: str,
        write: Callable[[Exchange], None],
    ) -> None:
        self.port = 0
        self._caller = caller
        self._callee = callee
        self._address = address
        self._write = write
        self._server = aio.server(handlers=[self])
        self._channel = aio.insecure_channel(address)

    async def __aenter__(self) -> Self:
        """Begins to listen."""
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends."""
        await self._server.stop(None)
        await self._channel.close()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Returns what hands a call on, whichever method it is of."""
        method = handler_call_details.method
        metadata = tuple((str(key), value) for key, value in _pairs(handler_call_details))
        ask: Any = self._channel.unary_unary(method)

        async def hand_on(request: bytes, context: Any) -> bytes:
            call = ask(request, timeout=context.time_remaining())
            try:
                response: bytes = await call
            except aio.AioRpcError as error:
                trailing = tuple(error.trailing_metadata() or ())
                details = error.details() or ""
                if not details.startswith(NOT_REACHED):
                    self._note(method, metadata, request, b"", error.code(), details, trailing)
                await context.abort(error.code(), details, trailing)
            self._note(method, metadata, request, response)
            return response

        return grpc.unary_unary_rpc_method_handler(hand_on)

    def _note(self, method: str, *rest: Any) -> None:
        self._write(Exchange(self._caller, self._callee, method, *rest))


def _pairs(details: grpc.HandlerCallDetails) -> Any:
    return details.invocation_metadata or ()
