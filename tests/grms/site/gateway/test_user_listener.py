"""Users are known by what the kernel says of them."""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from structlog.testing import capture_logs

from grms.daemon.socket_folder import SocketInUseError
from grms.site.gateway.user_listener import Shares, UserSocket, user_of
from tests.grms.site.daemons import document, metrics, running
from tests.grms.site.greetings import PREFACE, greeted
from tests.waiting import until

CLIENT = """
import grpc, os, sys
grpc.insecure_channel("unix:" + sys.argv[1]).close()
if len(sys.argv) > 2:  # now that all is imported: others may not read the interpreter's files
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
with grpc.insecure_channel("unix:" + sys.argv[1]) as channel:
    print(channel.unary_unary("/t.T/Who")(b"x" * 100_000, timeout=300).decode())
"""


CROWD = """
import os, socket, sys
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
held = []
for _ in range(5):
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].connect(sys.argv[1])
sys.stdin.read()
"""


@asynccontextmanager
async def greeter(
    path: Path, connections: Shares | int = 10, **limits: Any
) -> AsyncIterator[UserSocket]:
    """Yields a socket behind which a service says who calls."""
    users = UserSocket(path, connections, **limits)

    async def who(request: bytes, context: aio.ServicerContext[bytes, bytes]) -> bytes:
        user = users.user(context.peer())
        assert len(request) == 100_000
        return f"{user.uid} {user.name}".encode() if user else b"nobody"

    server = aio.server()
    handler: Any = grpc.unary_unary_rpc_method_handler(who)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("t.T", {"Who": handler}),)
    )
    server.add_insecure_port(users.inner_address)
    await server.start()
    try:
        async with users:
            yield users
    finally:
        await server.stop(None)


async def call_as(path: Path, *uid: int) -> str:
    """Returns what the service says to a process of that user."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLIENT, str(path), *map(str, uid), stdout=subprocess.PIPE
    )
    output, _ = await process.communicate()
    return output.decode().strip()


async def test_a_user_is_who_the_kernel_says(tmp_path: Path) -> None:
    """A process of one's own user is named so, with a message larger than a buffer."""
    path = tmp_path / "users.sock"
    async with greeter(path):
        me = user_of(os.getuid())
        assert await call_as(path) == f"{me.uid} {me.name}"
    assert not path.exists()


async def test_another_user_is_another() -> None:
    """A process that has become another user is named by that user's number."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder, "users.sock")
        async with greeter(path):
            assert await call_as(path, 54321) == "54321 #54321"
            assert await call_as(path, 65534) == f"65534 {user_of(65534).name}"


async def test_a_way_around_the_socket_makes_nobody(tmp_path: Path) -> None:
    """Who connects to gRPC's own socket directly is not in the list, and others cannot reach it."""
    async with greeter(tmp_path / "users.sock") as users:
        inner = Path(users.inner_address.removeprefix("unix:"))
        assert await call_as(inner) == "nobody"
        assert inner.parent.stat().st_mode & 0o777 == 0o700


async def test_a_name_is_forgotten_with_its_connection(tmp_path: Path) -> None:
    """When a user has hung up, nothing of the connection stays."""
    path = tmp_path / "users.sock"
    async with greeter(path) as users:
        await call_as(path)
        await until(lambda: not users.connections)
        assert users._relay._callers == {}
        await until(lambda: not users._by_user)


async def test_too_many_connections_are_refused(tmp_path: Path) -> None:
    """One beyond the limit is closed at once and counted; those before it live on."""
    path = tmp_path / "users.sock"
    async with greeter(path, 1) as users:
        _, writer = await asyncio.open_unix_connection(path)
        await until(lambda: users.connections == 1)
        reader, second = await asyncio.open_unix_connection(path)
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        assert users.refused == 1
        assert users.connections == 1
        for end in (writer, second):
            end.close()


async def test_no_user_takes_the_connections_of_all() -> None:
    """Each has a share, and the last ones are kept for operators, whatever others hold."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder, "users.sock")
        async with AsyncExitStack() as stack:
            users = await stack.enter_async_context(greeter(path, Shares(10, 3, 2)))
            told: list[str] = []
            users.on_refused = lambda reason, limit: told.append(f"{limit}: {reason}")
            for uid, there in ((54321, 3), (54322, 3), (54323, 2)):
                before = len(told)
                crowd = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-c", CROWD, str(path), str(uid)), stdin=subprocess.PIPE
                )
                stack.push_async_callback(crowd.wait)
                stack.callback(crowd.kill)

                def settled(uid: int = uid, before: int = before) -> bool:
                    return users._by_user[uid] + len(told) - before == 5

                await until(settled)
                assert users._by_user[uid] == there
            many = "has 3 connections, as many as one user may have"
            assert told.count(f"connections_per_user: #54321 {many}") == 2
            assert told[-1].endswith("the last 2 are kept for operators; #54323 is refused")
            async with aio.insecure_channel(f"unix:{path}") as channel:
                who: Any = channel.unary_unary("/t.T/Who")
                answer = await who(b"x" * 100_000, timeout=300)
                assert answer == b"0 root"


def headers(stream: int) -> bytes:
    """Returns the beginning of a request that goes on: headers in one frame, and no end."""
    return bytes([0, 0, 1, 1, 0x4, 0, 0, 0, stream, 0x82])


async def test_nothing_is_lost_that_is_said_at_once(tmp_path: Path) -> None:
    """Each of 200 connections is answered whose first bytes are there before it is taken.

    Before Python 3.11.4 the loop reads them whatever `connection_made` asks of it.
    """
    path = tmp_path / "users.sock"
    async with greeter(path, 300) as users:
        answers = await asyncio.gather(*(greeted(socket.AF_UNIX, str(path)) for _ in range(200)))
        assert answers == [True] * 200
        assert users.refused == 0


async def test_requests_that_are_never_finished_are_hung_up(tmp_path: Path) -> None:
    """After their time, or at once where they are many; who is silent after whole ones stays."""
    path, moment = tmp_path / "users.sock", [100.0]
    async with greeter(path, request_s=20.0, requests=3, clock=lambda: moment[0]) as users:
        told: list[str] = []
        users.on_refused = lambda reason, limit: told.append(f"{limit}: {reason}")
        me = user_of(os.getuid()).name
        async with aio.insecure_channel(f"unix:{path}") as channel:
            call: Any = channel.unary_unary("/t.T/Who")
            assert await call(b"x" * 100_000, timeout=300)
            slow, writer = await asyncio.open_unix_connection(path)
            writer.write(PREFACE + headers(1))
            await until(lambda: any(end._watch.calls.half_sent for end in users._ends))
            moment[0] += 20.0
            greedy, another = await asyncio.open_unix_connection(path)
            another.write(PREFACE + b"".join(headers(stream) for stream in (1, 3, 5, 7)))
            with suppress(ConnectionResetError):
                await greedy.read()
            assert told == [f"calls: {me} has begun 4 requests and finished none"]
            moment[0] += 0.1
            with suppress(ConnectionResetError):
                await slow.read()
            text = "has begun a request and not finished it within 20 s"
            assert told[1:] == [f"request_timeout_s: {me} {text}"]
            moment[0] += 1000.0
            assert await call(b"x" * 100_000, timeout=300)
            assert users.connections == 1
        for each in (writer, another):
            each.close()


async def test_a_socket_in_use_is_left_alone(tmp_path: Path) -> None:
    """A second daemon does not take the socket of the first; a dead one's is taken over."""
    path = tmp_path / "users.sock"
    async with greeter(path):
        with pytest.raises(SocketInUseError, match="another process listens"):
            async with greeter(path):
                pass
        assert await call_as(path)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    async with greeter(path):
        assert await call_as(path)
    path.write_text("precious")
    with pytest.raises(SocketInUseError, match="is no socket"):
        async with greeter(path):
            pass
    assert path.read_text() == "precious"


async def test_all_that_are_allowed_may_come_at_once(tmp_path: Path) -> None:
    """A burst below the limit is taken whole, though the daemon is busy meanwhile."""
    path = tmp_path / "users.sock"
    async with greeter(path, 300) as users:
        with ExitStack() as stack:
            for _ in range(200):
                caller = stack.enter_context(socket.socket(socket.AF_UNIX))
                caller.setblocking(False)
                caller.connect(str(path))  # raises where nobody keeps it
            await until(lambda: users.connections == 200)
        assert users.refused == 0


async def test_who_is_refused_is_counted_and_logged(tmp_path: Path) -> None:
    """An operator sees that users are turned away, in the figures and once in the log."""
    configuration = document(tmp_path, limits={"connections": 1}, **metrics())
    with capture_logs() as logs, ExitStack() as stack:
        async with running(configuration, tmp_path) as site:
            await site.submit("k")
            for _ in range(30):
                caller = stack.enter_context(socket.socket(socket.AF_UNIX))
                caller.connect(configuration["listen"]["users"])
            assert site.core.monitor is not None
            figures = site.core.monitor.metrics.values
            await until(lambda: figures()['hanse_refusals_total{reason="connections"}'] == 30)
    refused = [entry for entry in logs if entry["event"] == "connection_refused"]
    assert len(refused) == 1
    assert "1 connections of users are open" in refused[0]["reason"]


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With the key of the configuration, and what to do."""
    with pytest.raises(OSError, match=r"listen\.users is .*none/u\.sock: No such file .* must"):
        async with UserSocket(tmp_path / "none" / "u.sock", 10):
            pass
