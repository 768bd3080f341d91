"""Servers of a test's own, and a channel to them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from grpc import aio


@asynccontextmanager
async def reached(server: aio.Server) -> AsyncIterator[aio.Channel]:
    """Has a server on a free port of loopback meanwhile; returns a channel to it."""
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        await server.stop(None)
