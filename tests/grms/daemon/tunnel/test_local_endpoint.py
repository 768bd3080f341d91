"""Unix sockets that lead to a partner."""

import asyncio
from pathlib import Path

import pytest

from grms.daemon.tunnel.local_endpoint import LocalEndpoint
from grms.daemon.tunnel.stream import Stream, TunnelError, join
from tests.grms.daemon.tunnel.ends import pair
from tests.waiting import until


async def connected(endpoint: LocalEndpoint) -> Stream:
    """Returns a connection to it."""
    assert endpoint.address == f"unix:{endpoint.path}"
    return Stream(*await asyncio.open_unix_connection(endpoint.path))


async def test_who_connects_is_connected_with_the_partner(tmp_path: Path) -> None:
    """Also who came before it was open; why it does not come about is kept until it does."""
    far: list[Stream] = []
    problem = "nobody is there"

    async def connect(stream: Stream) -> None:
        if problem:
            raise TunnelError(problem)
        near, other = await pair()
        far.append(other)
        await join(stream, near)

    endpoint = LocalEndpoint(tmp_path / "it", connect)
    early = await connected(endpoint)
    await endpoint.open()
    assert await early.reader.read() == b""
    assert endpoint.problem == "nobody is there"
    problem = ""
    stream, second = await connected(endpoint), await connected(endpoint)
    stream.say("hello")
    await until(lambda: len(far) == 2)
    assert await far[0].line(60.0) == ("hello", "")
    assert endpoint.problem == ""
    endpoint.hang_up()
    assert await stream.reader.read() == await far[0].reader.read() == b""
    again = await connected(endpoint)
    await until(lambda: len(far) == 3)
    await endpoint.close()
    await endpoint.close()
    assert await again.reader.read() == b""
    for end in (early, stream, second, again, *far):
        end.close()
    # From Python 3.13 on a server removes its socket.
    with pytest.raises(OSError, match=r"refused|No such file"):
        await connected(endpoint)


def test_one_that_cannot_be_is_an_error(tmp_path: Path) -> None:
    """And leaves nothing open."""

    async def connect(_: Stream) -> None:
        raise AssertionError

    with pytest.raises(OSError, match="No such file"):
        LocalEndpoint(tmp_path / "absent" / "it", connect)
