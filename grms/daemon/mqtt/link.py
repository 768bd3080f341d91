"""A connection to an MQTT broker that is restored whenever it breaks.

Publishers put messages into an outbox without waiting; this module carries the outbox to the broker
when there is one. A message leaves the outbox when the broker has acknowledged it (quality of
service 1), so it arrives at least once, in order.

The client's identifier is random for each connection: brokers close an older connection of the same
identifier, so others could end ours by guessing it.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import aiomqtt
import numpy as np
import structlog

from grms.daemon.pacing import Backoff, BackoffSettings
from grms.security.tls import TlsFiles
from grms.util.names import PORT_MAX, check_host, is_loopback

QOS = 1
"""Messages are acknowledged: they arrive at least once."""

INCOMING_MAX = 10_000
"""Most messages waiting to be read; the client drops and logs those beyond."""

GATHER_S = 0.02
"""Pause after each round of messages, seconds, in which the next one gathers."""

_REFUSED = 0x80
"""Granted by the broker if it refuses a subscription (MQTT 3.1.1, section 3.9.3)."""

_STEADY_S = 10.0
"""After a connection that lasted so long, in seconds, pauses begin anew."""


@dataclass(frozen=True, slots=True)
class MqttSettings:
    """The address of the MQTT broker, and the account there.

    Attributes:
        port: 1 to 65535.
        user: a name at the broker; `None` if the certificate says it, or none is needed.
        password: goes with it; never logged.
        tls: the site's keys; `None` for a plain connection, which only loopback may have.
        keep_alive_s: how often the connection shows that it lives, seconds; after one and a half
            times as long of silence the broker publishes the last will.
        answer_s: how long an answer of the broker is waited for, seconds.
        backoff: the pauses between attempts.

    Raises:
        ValueError: a bound is violated, or a plain connection would leave this machine.
    """

    host: str = "localhost"
    port: int = 1883
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: TlsFiles | None = None
    keep_alive_s: int = 20
    answer_s: float = 10.0
    backoff: BackoffSettings = field(default_factory=BackoffSettings)

    def __post_init__(self) -> None:
        check_host(self.host)
        if not 1 <= self.port <= PORT_MAX:
            raise ValueError(f"port is {self.port}; it must be 1 to {PORT_MAX}")
        if not 1 <= self.keep_alive_s <= 3600:
            raise ValueError(f"keep_alive_s is {self.keep_alive_s}; it must be 1 to 3600")
        if not 0 < self.answer_s <= 3600:
            raise ValueError(f"answer_s is {self.answer_s}; it must be more than 0, at most 3600")
        if self.password is not None and self.user is None:
            raise ValueError("there is a password for the MQTT broker, but no user")
        if self.tls is None and not is_loopback(self.host):
            raise ValueError(
                f"the MQTT broker at {self.host} is on another machine; connect to it with TLS"
            )


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to publish; the broker keeps it for later subscribers if `retain`."""

    topic: str
    content: bytes
    retain: bool = False


class Source(Protocol):
    """Where a link gets its messages from; all of it is called on the event loop."""

    @property
    def will(self) -> Outgoing | None:
        """What the broker publishes if the connection ends without a word."""

    def begin(self) -> None:
        """Is called when there is a new connection, before anything is taken."""

    def take(self) -> Sequence[Outgoing]:
        """Returns the next messages to publish, in order; none if there are none."""

    def sent(self) -> None:
        """Is called when all that was last taken has arrived."""

    def farewell(self) -> Sequence[Outgoing]:
        """Returns the last messages before the connection ends in order."""


Receive = Callable[[str, bytes], None]
"""Gets topic and content of each message subscribed to."""


class MqttLink:
    """Keeps up one connection, publishes from a source and delivers messages.

    What `receive` raises is logged and changes nothing.
    """

    def __init__(
        self,
        settings: MqttSettings,
        source: Source,
        *,
        rng: np.random.Generator,
        log: structlog.typing.FilteringBoundLogger,
        subscriptions: Sequence[str] = (),
        receive: Receive | None = None,
    ) -> None:
        self.connected = False
        self.connections = 0
        self._settings = settings
        self._source = source
        self._subscriptions = tuple(subscriptions)
        self._receive = receive
        self._backoff = Backoff(settings.backoff, rng)
        self._log = log.bind(broker=f"{settings.host}:{settings.port}")
        self._work = asyncio.Event()
        self._stopping = asyncio.Event()
        self._again = False

    def wake(self) -> None:
        """Tells the link that its source has something."""
        self._work.set()

    def stop(self) -> None:
        """Lets `run` end: the source's messages and its farewell go out if there is a broker."""
        self._stopping.set()
        self._work.set()

    def subscribe_again(self) -> None:
        """Lets the broker send once more what it has retained on the subscriptions."""
        self._again = True
        self._work.set()

    async def run(self) -> None:
        """Keeps the connection up until `stop` is called or this task is cancelled.

        Never raises because of the broker. A cancellation waits for a connection attempt in
        progress, at most five seconds, or `keep_alive_s` if TLS gets no answer.
        """
        while not self._stopping.is_set():
            reason = await self._connection()
            if self._stopping.is_set():
                return
            pause_s = self._backoff.next_s()
            self._log.warning("mqtt_gone", reason=reason, retry_s=round(pause_s, 3))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)

    async def _connection(self) -> str:
        """Makes one connection and uses it as long as it lasts; returns why it ended."""
        reason = "stopped"
        try:
            client = await self._connect()
        except (aiomqtt.MqttError, OSError) as error:  # OSError: of a file of keys
            return str(error) or type(error).__name__
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            self.connected = True
            self.connections += 1
            await self._use(client)
        except* aiomqtt.MqttError as errors:
            reason = str(errors.exceptions[0])
        finally:
            self.connected = False
            if loop.time() - began > _STEADY_S:
                self._backoff.reset()
            # The connection may be broken already, and then there is no way to end it well.
            with suppress(aiomqtt.MqttError):
                await client.__aexit__(None, None, None)
        return reason

    async def _connect(self) -> aiomqtt.Client:
        client = self._client()
        # The client connects in a thread that cannot be stopped; were it left alone, its socket
        # would stay open and its callbacks would come when nobody expects them any more.
        attempt = asyncio.ensure_future(client.__aenter__())
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            with suppress(aiomqtt.MqttError):
                await attempt
            _close(client)
            raise
        except aiomqtt.MqttError:
            _close(client)
            raise

    def _client(self) -> aiomqtt.Client:
        settings, will = self._settings, self._source.will
        return aiomqtt.Client(
            settings.host,
            settings.port,
            username=settings.user,
            password=settings.password,
            protocol=aiomqtt.ProtocolVersion.V311,  # all that amqtt speaks
            clean_session=True,
            will=aiomqtt.Will(will.topic, will.content, QOS, will.retain) if will else None,
            keepalive=settings.keep_alive_s,
            timeout=settings.answer_s,
            max_queued_incoming_messages=INCOMING_MAX,
            tls_context=_tls_context(settings.tls) if settings.tls else None,
        )

    async def _use(self, client: aiomqtt.Client) -> None:
        async with asyncio.TaskGroup() as group:
            reader = group.create_task(self._read(client), name="mqtt-read")
            await self._subscribe(client)
            self._log.info("mqtt_connected")
            self._source.begin()
            await self._write(client)
            reader.cancel()

    async def _subscribe(self, client: aiomqtt.Client) -> None:
        self._again = False
        for topic in self._subscriptions:
            granted = await client.subscribe(topic, QOS)
            if any(getattr(code, "is_failure", code == _REFUSED) for code in granted):
                self._log.warning("mqtt_subscription_refused", topic=topic)

    async def _write(self, client: aiomqtt.Client) -> None:
        while True:
            self._work.clear()
            if self._again:
                await self._subscribe(client)
            messages = self._source.take()
            if messages:
                await self._publish(client, messages)
                self._source.sent()
                # What happens meanwhile goes out together: a message for each event would cost
                # more than the event.
                if not self._stopping.is_set():
                    await asyncio.sleep(GATHER_S)
            elif self._stopping.is_set():
                await self._publish(client, self._source.farewell())
                return
            else:
                await self._work.wait()

    @staticmethod
    async def _publish(client: aiomqtt.Client, messages: Sequence[Outgoing]) -> None:
        for message in messages:
            await client.publish(message.topic, message.content, QOS, message.retain)

    async def _read(self, client: aiomqtt.Client) -> None:
        async for message in client.messages:
            if self._receive is None or not isinstance(message.payload, bytes):
                continue
            try:
                self._receive(message.topic.value, message.payload)
            except Exception:  # noqa: BLE001  # no message that comes may end the connection
                self._log.exception("mqtt_receive_failed", topic=message.topic.value)


def _close(client: aiomqtt.Client) -> None:
    """Closes the socket of a client that was not, or not yet, entered."""
    # A server that says nothing, or no, would keep the connection for ever; the wrapper has no
    # way to end one that did not begin.
    client._client.disconnect()  # noqa: SLF001  # as above


def _tls_context(files: TlsFiles) -> ssl.SSLContext:
    """Returns a context with the files as they are now; a renewed certificate is taken up."""
    context = ssl.create_default_context(cafile=files.authority)
    context.load_cert_chain(files.certificate, files.key)
    return context
