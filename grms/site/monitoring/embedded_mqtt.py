"""An MQTT broker inside the daemon, if its configuration asks for one.

It is amqtt, only on a loopback address and only for accounts with passwords: a site's figures are
none of the business of other users of the machine. It stores nothing on disk and is meant for
trying things out and for watchers on the same machine; docs/operating.md says how to set up
Mosquitto for everything else.
"""

import asyncio
import hmac
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from amqtt.adapters import StreamReaderAdapter, StreamWriterAdapter
from amqtt.broker import Broker
from amqtt.contexts import Action, BrokerConfig, ListenerConfig, ListenerType
from amqtt.errors import AMQTTError
from amqtt.plugins.base import BaseAuthPlugin, BaseTopicPlugin
from amqtt.session import Session

from grms.daemon.mqtt import payloads
from grms.daemon.mqtt.link import MqttSettings
from grms.daemon.process import BACKLOG, MQTT_MAX, beside
from grms.site.config.schema import WATCHER
from grms.util.names import is_loopback
from lrms_sim.util.files import write_secret

CONNECT_S = 10.0
"""Time for a client to identify itself before its connection is closed, seconds."""

_LISTENER = "default"
_PASSWORD_BYTES = 24


@dataclass(frozen=True, slots=True)
class Account:
    """An account at the broker.

    Attributes:
        password: never logged.
        read: filters of the topics it may subscribe to.
        write: filters of the topics it may publish on.
    """

    password: str = field(repr=False)
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()


def site_account(site: str, password: str) -> Account:
    """Returns the account of a site's daemon: it writes its own topics and reads presence."""
    own = (payloads.presence(site), payloads.jobs(site), payloads.metrics(site))
    return Account(password, (payloads.PRESENCE_OF_ALL,), own)


def watcher_account(password: str) -> Account:
    """Returns the account of an operator who watches: it reads everything."""
    return Account(password, (f"{payloads.ROOT}/#",), ())


def new_password() -> str:
    """Returns a random password."""
    return secrets.token_urlsafe(_PASSWORD_BYTES)


def covers(allowed: str, asked: str) -> bool:
    """Returns whether every topic that a filter asks for is one that another allows."""
    allowed_levels, asked_levels = allowed.split("/"), asked.split("/")
    for position, level in enumerate(allowed_levels):
        if level == "#":
            return True
        if position >= len(asked_levels) or asked_levels[position] == "#":
            return False
        if level not in ("+", asked_levels[position]):
            return False
    return len(allowed_levels) == len(asked_levels)


class Access(BaseAuthPlugin, BaseTopicPlugin):
    """Authenticates and authorizes clients for amqtt."""

    @dataclass
    class Config:
        """What amqtt hands over."""

        accounts: dict[str, Account] = field(default_factory=dict)

    def _account(self, session: Session | None) -> Account | None:
        accounts: Mapping[str, Account] = self.config.accounts
        return accounts.get(session.username or "") if session is not None else None

    async def authenticate(self, *, session: Session) -> bool:
        """Returns whether the password is right and the last will is on an allowed topic.

        amqtt publishes a last will without asking, so it is looked at before.
        """
        account = self._account(session)
        given = (session.password or "").encode()
        # The comparison takes as long for a user who does not exist.
        right = hmac.compare_digest(given, account.password.encode() if account else b"\0")
        if account is None or not right:
            return False
        return session.will_topic is None or _may(account.write, session.will_topic)

    async def topic_filtering(
        self,
        *,
        session: Session | None = None,
        topic: str | None = None,
        action: Action | None = None,
    ) -> bool:
        """Returns whether a session may publish on a topic, or subscribe to a filter."""
        account = self._account(session)
        if account is None or topic is None:
            return False
        return _may(account.write if action is Action.PUBLISH else account.read, topic)


def _may(allowed: tuple[str, ...], asked: str) -> bool:
    return any(covers(each, asked) for each in allowed)


class _Writer(StreamWriterAdapter):
    """Notes that the broker has answered: it is known then who the client is."""

    answered = False

    def write(self, data: bytes) -> None:
        self.answered = True
        super().write(data)


class _Reader(StreamReaderAdapter):
    """Waits so long, and no longer, for a client to say who it is."""

    def __init__(self, reader: asyncio.StreamReader, writer: _Writer) -> None:
        super().__init__(reader)
        self._writer = writer
        self._until = asyncio.get_running_loop().time() + CONNECT_S

    async def read(self, n: int = -1) -> bytes:
        async with asyncio.timeout_at(None if self._writer.answered else self._until):
            return await super().read(n)


class EmbeddedBrokerError(OSError):
    """The broker cannot be started; the text says why and what to do."""


class EmbeddedBroker:
    """A broker that lives as long as it is entered.

    Args:
        accounts: who may use it, by user name.
        port: 0 for any free one.

    Attributes:
        port: where it listens, once it is entered.

    Raises:
        ValueError: the host is not loopback.
    """

    def __init__(
        self, accounts: Mapping[str, Account], *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        if not is_loopback(host):
            raise ValueError(
                f"the embedded MQTT broker cannot listen on {host}: it has no TLS; "
                "use Mosquitto, as docs/operating.md says"
            )
        self.host = host
        self.port = port
        self._accounts = dict(accounts)
        self._broker: Broker | None = None
        self._server: asyncio.Server | None = None
        self._connections = 0

    def settings(self, user: str) -> MqttSettings:
        """Returns how one of the accounts connects."""
        return MqttSettings(self.host, self.port, user, self._accounts[user].password)

    async def __aenter__(self) -> Self:
        """Starts listening; `EmbeddedBrokerError` if the address is taken."""
        config = BrokerConfig(
            # The socket is ours, so that its port is known and its connections are limited.
            listeners={_LISTENER: ListenerConfig(type=ListenerType.EXTERNAL, bind="")},
            plugins={f"{__name__}.{Access.__name__}": {"accounts": self._accounts}},
        )
        self._broker = Broker(config)
        await self._broker.start()
        try:
            self._server = await asyncio.start_server(
                self._connected, self.host, self.port, backlog=BACKLOG
            )
        except OSError as error:
            await self._broker.shutdown()
            raise EmbeddedBrokerError(
                f"the embedded MQTT broker cannot listen on {self.host}:{self.port}: "
                f"{error.strerror}; configure another port, or an MQTT broker of your own"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        assert self._broker is not None
        self._server.close()
        await self._broker.shutdown()
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._broker is not None
        if self._connections >= beside(MQTT_MAX):
            writer.close()
            return
        self._connections += 1
        writing = _Writer(writer)
        try:
            # Whatever a client does wrong is logged by amqtt and ends that client alone.
            with suppress(AMQTTError, OSError):
                await self._broker.external_connected(_Reader(reader, writing), writing, _LISTENER)
        finally:
            self._connections -= 1
            writer.close()


def write_watcher_file(broker: EmbeddedBroker, path: Path) -> None:
    """Writes how to watch, as JSON with host, port, user and password, for the owner alone.

    Raises:
        OSError: it cannot be written.
    """
    settings = broker.settings(WATCHER)
    content = {
        "host": settings.host,
        "port": settings.port,
        "user": settings.user,
        "password": settings.password,
    }
    write_secret(path, content)
