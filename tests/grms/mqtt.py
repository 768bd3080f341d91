"""MQTT brokers, a cable that can be cut, and watchers, for tests on loopback."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, Self

import aiomqtt
import pytest

from grms.daemon.mqtt.link import MqttSettings
from grms.daemon.pacing import BackoffSettings
from grms.daemon.ports import free_port
from grms.security.tls import TlsFiles
from grms.site.monitoring.embedded_mqtt import EmbeddedBroker, site_account, watcher_account
from tests.grms.keys import Federation
from tests.services import need

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples" / "mosquitto"
DEADLINE_S = 300.0
"""How long a condition is awaited before a test fails."""

_PORTS_TRIED = 5
"""Between choosing a port and listening on it somebody else may take it."""

QUICK = BackoffSettings(first_s=0.02, most_s=0.2)
SITES = ("KTH", "CTC", "gorba")
WATCHERS = {"kth-operators": "a password", "dashboard": "another"}


class Broker(Protocol):
    """A broker that a test starts, stops and connects to."""

    async def start(self) -> None:
        """Starts it; on the port it had before."""

    async def kill(self) -> None:
        """Ends it without a word."""

    def settings(self, user: str) -> MqttSettings:
        """Returns how a user connects."""


class Embedded:
    """The broker inside the daemon."""

    def __init__(self) -> None:
        accounts = {name: site_account(name, f"of {name}") for name in SITES}
        accounts |= {name: watcher_account(password) for name, password in WATCHERS.items()}
        self._accounts = accounts
        self._broker = EmbeddedBroker(accounts)

    async def start(self) -> None:
        """Starts it; on the port it had before."""
        self._broker = EmbeddedBroker(self._accounts, port=self._broker.port)
        await self._broker.__aenter__()

    async def kill(self) -> None:
        """Closes every connection."""
        await self._broker.__aexit__(None, None, None)

    def settings(self, user: str) -> MqttSettings:
        """Returns how a user connects."""
        return self._broker.settings(user)


class Mosquitto:
    """A Mosquitto with the configuration in docs/examples, moved to free ports.

    Args:
        folder: an empty folder of its own.
        federation: issues the keys.

    Attributes:
        ports: where sites and where watchers connect.
        more: further lines of its configuration.
        output: what it has said.
    """

    def __init__(self, folder: Path, federation: Federation) -> None:
        self.more = ""
        self._program = mosquitto_program()
        self._folder = folder
        self._federation = federation
        self._process: asyncio.subprocess.Process | None = None
        self._keys: dict[str, TlsFiles] = {}
        self._started = False
        self.ports = (0, 0)
        self.output: list[str] = []
        self._drain: asyncio.Task[None] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        files = federation.server(f"mqtt-{folder.name}")
        shutil.copy(files.authority, folder / "ca.crt")
        shutil.copy(files.certificate, folder / "mqtt.crt")
        shutil.copy(files.key, folder / "mqtt.key")
        for name in ("sites.acl", "watchers.acl"):
            shutil.copy(EXAMPLES / name, folder / name)
            (folder / name).chmod(0o600)
        for name, password in WATCHERS.items():
            create = [] if (folder / "watchers.passwd").exists() else ["-c"]
            subprocess.run(  # noqa: S603  # the test's own arguments
                ["mosquitto_passwd", "-b", *create, folder / "watchers.passwd", name, password],  # noqa: S607  # of the package
                check=True,
                capture_output=True,
            )

    def example(self, name: str) -> str:
        """Returns an example file with its paths in this broker's folder."""
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        return text.replace("/etc/mosquitto/hanse", str(self._folder))

    def _configure(self) -> None:
        """Writes its configuration, with ports that nobody uses now."""
        self.ports = (free_port(), free_port())
        configuration = self.example("hanse.conf")
        configuration = configuration.replace(
            "listener 8883", f"listener {self.ports[0]} 127.0.0.1"
        )
        configuration = configuration.replace("listener 1883", f"listener {self.ports[1]}")
        if os.geteuid() == 0:
            configuration += "user root\n"  # or it could not read the test's folder
        (self._folder / "mosquitto.conf").write_text(configuration + self.more, encoding="utf-8")

    async def start(self) -> None:
        """Starts it, on the ports it had before if any, and waits until it says that it runs."""
        for _ in range(1 if self._started else _PORTS_TRIED):
            if not self._started:
                self._configure()
            if await self._try_to_start():
                self._started = True
                return
        pytest.fail("mosquitto did not start:\n" + "\n".join(self.output))

    async def _try_to_start(self) -> bool:
        self._process = await asyncio.create_subprocess_exec(
            self._program,
            "-c",
            self._folder / "mosquitto.conf",
            "-v",
            stderr=asyncio.subprocess.STDOUT,
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(DEADLINE_S):
            while line := await self._line():
                if " running" in line:
                    self._drain = asyncio.create_task(self._read_on(), name="mosquitto-output")
                    return True
            await self._process.wait()
        return False

    async def kill(self) -> None:
        """Ends it with SIGKILL."""
        if self._process is None or self._drain is None:
            return
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._drain
        self._process = None

    def settings(self, user: str) -> MqttSettings:
        """Returns how a user connects."""
        if user in WATCHERS:
            return MqttSettings("127.0.0.1", self.ports[1], user, WATCHERS[user], backoff=QUICK)
        if user not in self._keys:
            exists = (self._federation.folder / f"{user}.crt").exists()
            self._keys[user] = (
                TlsFiles(
                    self._federation.ca,
                    self._federation.folder / f"{user}.crt",
                    self._federation.folder / f"{user}.key",
                )
                if exists
                else self._federation.site(user)
            )
        return MqttSettings("127.0.0.1", self.ports[0], tls=self._keys[user], backoff=QUICK)

    async def _line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode(errors="replace")
        self.output.append(line.rstrip())
        return line

    async def _read_on(self) -> None:
        while await self._line():
            pass


def mosquitto_program() -> str:
    """Returns the program, or skips the test and says what is missing."""
    return need("mosquitto", "mosquitto", "mosquitto_passwd")


class Cable:
    """A way to a broker, or whoever listens, that can be cut and plugged in again.

    Args:
        target: where new connections lead.

    Attributes:
        port: where the cable begins.
        target: as given.
        plugged: whether bytes pass; cut, connections are closed at once.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self.plugged = True
        self.target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        """Lays the cable."""
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Removes it."""
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        """Breaks every connection and lets no new one through."""
        self.plugged = False
        for writer in self._writers:
            writer.transport.abort()

    def plug(self) -> None:
        """Lets new connections through."""
        self.plugged = True

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if not self.plugged:
                return
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers.add(far_writer)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_copy(reader, far_writer))
                    group.create_task(_copy(far_reader, writer))
            finally:
                self._writers.discard(far_writer)
                far_writer.transport.abort()
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while content := await reader.read(65_536):
            writer.write(content)
            await writer.drain()
    writer.transport.abort()


class Watcher:
    """Reads what a user may read.

    Attributes:
        seen: topic and content of each message, in order.
    """

    def __init__(self, client: aiomqtt.Client) -> None:
        self.seen: list[tuple[str, Any]] = []
        self._client = client

    async def until(self, condition: Callable[[], bool]) -> None:
        """Reads on until a condition holds; fails the test if it does not in time."""
        async with asyncio.timeout(DEADLINE_S):
            messages = aiter(self._client.messages)
            while not condition():
                message = await anext(messages)
                payload = message.payload
                assert isinstance(payload, bytes)
                self.seen.append((message.topic.value, json.loads(payload) if payload else None))

    async def until_told(self, topic: str, **values: object) -> dict[str, Any]:
        """Reads on until a topic has had a payload with those values, and returns it."""

        def told() -> dict[str, Any] | None:
            for each, content in reversed(self.seen):
                if each == topic and content and values.items() <= content.items():
                    return dict(content)
            return None

        await self.until(lambda: told() is not None)
        found = told()
        assert found is not None
        return found

    def events(self, site: str = "KTH") -> list[dict[str, Any]]:
        """Returns the job events of a site so far."""
        topic = f"hanse/v1/sites/{site}/jobs"
        return [
            event for each, content in self.seen if each == topic for event in content["events"]
        ]


@asynccontextmanager
async def watching(settings: MqttSettings, *filters: str) -> AsyncIterator[Watcher]:
    """Connects a watcher and subscribes to filters."""
    async with client(settings) as connected:
        for each in filters or ("hanse/v1/#",):
            await connected.subscribe(each, 1)
        yield Watcher(connected)


def client(settings: MqttSettings, **more: Any) -> aiomqtt.Client:
    """Returns an ordinary MQTT client, as anybody may write one."""
    import ssl  # noqa: PLC0415  # beside its one use

    context = None
    if settings.tls is not None:
        context = ssl.create_default_context(cafile=settings.tls.authority)
        context.load_cert_chain(settings.tls.certificate, settings.tls.key)
    return aiomqtt.Client(
        settings.host,
        settings.port,
        username=settings.user,
        password=settings.password,
        tls_context=context,
        protocol=aiomqtt.ProtocolVersion.V311,
        **more,
    )


async def until(condition: Callable[[], bool]) -> None:
    """Lets other tasks run until a condition holds; fails the test if it does not in time."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110  # any condition, which has no event to wait for
            await asyncio.sleep(0.005)
