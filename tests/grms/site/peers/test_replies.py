"""What counts as an answer."""

import asyncio
from typing import Any

import grpc
import pytest
from grpc import aio

from grms.security.certificates import PkiError
from grms.security.tls import channel_options
from grms.site.peers.peer import SenselessError, answer_to, channel_maker
from grms.v1 import partner_pb2, partner_pb2_grpc


class Bytes(grpc.GenericRpcHandler):
    """Answers every call with the same bytes, but Resolve, which it does not know."""

    def service(self, details: Any) -> Any:
        """Returns what answers a call."""
        if details.method.endswith("/Resolve"):
            return None

        async def answer(_request: bytes, _context: Any) -> bytes:
            return b"\xff\xff\xff"

        return grpc.unary_unary_rpc_method_handler(answer)


async def test_bytes_that_are_no_message_and_calls_that_are_none() -> None:
    """Each is an answer that the protocol does not have; a broken connection is none."""
    server = aio.server()
    server.add_generic_rpc_handlers((Bytes(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = channel_maker(None, lambda _: [], 1 << 20)("away", f"127.0.0.1:{port}")
    stub: Any = partner_pb2_grpc.PartnerServiceStub(channel)
    with pytest.raises(SenselessError, match="its answer cannot be read"):
        await answer_to(stub.Offer(partner_pb2.OfferRequest()))
    with pytest.raises(SenselessError, match="it does not know a call"):
        await answer_to(stub.Resolve(partner_pb2.ResolveRequest()))
    await server.stop(None)
    with pytest.raises(aio.AioRpcError):
        await answer_to(stub.Offer(partner_pb2.OfferRequest(), timeout=300))
    await channel.close()


async def test_a_channel_that_is_closed_is_no_answer() -> None:
    """Who waits for one is not cancelled with it; one who is cancelled is."""
    call: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    call.cancel()
    with pytest.raises(ConnectionError, match="given up"):
        await answer_to(call)
    waiting = asyncio.create_task(answer_to(asyncio.sleep(60)), name="waits")
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_keys_that_cannot_be_read_make_no_connection_and_end_nothing() -> None:
    """As while they are replaced, or where there are no descriptors left: links take it for a partner that is not reached."""

    def credentials() -> grpc.ChannelCredentials:
        raise PkiError("north.key: cannot be read: Too many open files")

    make = channel_maker(credentials, channel_options, 1 << 20)
    with pytest.raises(ConnectionError, match=r"own certificate .* Too many open files"):
        make("south", "127.0.0.1:1")
