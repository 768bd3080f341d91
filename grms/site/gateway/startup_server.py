"""The startup server: answers users while the daemon reads its journal.

Health is NOT_SERVING, so that a slow start differs from a daemon that is gone; every other call is
UNAVAILABLE and reports the progress of the start. Clients of `grms.client` wait and repeat.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import grpc
import structlog
from grpc import aio
from grpc_health.v1 import health_pb2_grpc

from grms.daemon.rpc.health import HEALTH, HealthService, Serving
from grms.daemon.rpc.requests import Unexpected
from grms.site.gateway.user_listener import UserSocket

SERVICES: Final = (
    "grms.v1.JobService",
    "grms.v1.OperatorService",
    "grms.v1.ReservationService",
    "grms.v1.DeputyService",
)
"""Services of the users' socket whose health is reported."""


class Notice:
    """The text for users during the start."""

    def __init__(self) -> None:
        self.text = "reading the journal"


class _Closed(grpc.GenericRpcHandler):
    # Answers every call but those about health.

    def __init__(self, notice: Notice) -> None:
        self._notice = notice

    def service(self, handler_call_details: Any) -> Any:
        if handler_call_details.method.startswith(f"/{HEALTH}/"):
            return None

        async def answer(_requests: object, context: aio.ServicerContext[Any, Any]) -> None:
            text = f"the daemon is starting: {self._notice.text}; try again in a moment"
            await context.abort(grpc.StatusCode.UNAVAILABLE, text)

        return grpc.stream_stream_rpc_method_handler(answer)


@asynccontextmanager
async def waiting_room(users: UserSocket) -> AsyncIterator[Notice]:
    """Answers users until the context ends; then they are sent to the next server."""
    notice = Notice()
    server = aio.server(
        interceptors=[Unexpected(structlog.get_logger())], options=[("grpc.so_reuseport", 0)]
    )
    server.add_generic_rpc_handlers((_Closed(notice),))
    health_pb2_grpc.add_HealthServicer_to_server(HealthService(Serving(SERVICES)), server)
    server.add_insecure_port(users.inner_address)
    await server.start()
    try:
        yield notice
    finally:
        users.turn()
        await server.stop(None)
