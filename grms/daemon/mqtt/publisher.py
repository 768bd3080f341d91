"""What a daemon publishes, whoever it is: its presence, and states of which only the newest counts."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from grms.daemon.mqtt.link import Outgoing
from grms.daemon.mqtt.outbox import Outbox
from grms.daemon.mqtt.payloads import Payload, encode

E = TypeVar("E")


class Publisher(Generic[E]):
    """A source for an `MqttLink`.

    Args:
        offline: the presence of an ended daemon; also the last will.
        events_max: most events waiting while there is no MQTT broker; beyond it the oldest are
            dropped and counted.

    Attributes:
        wake: called when there is something to publish; the link's `wake`.

    Raises:
        ValueError: the limit is below 1.
    """

    def __init__(
        self, topic: str, online: Payload, offline: Payload, *, events_max: int = 1
    ) -> None:
        self._topic = topic
        self._online, self._offline = encode(online), encode(offline)
        self._outbox: Outbox[E] = Outbox(events_max)
        self._taken_states: Sequence[tuple[str, int, bytes]] = ()
        self.wake: Callable[[], None] = lambda: None

    def put_state(self, topic: str, content: bytes) -> None:
        """Publishes a state in place of the one before; never waits."""
        self._outbox.put_state(topic, content)
        self.wake()

    def say_online(self) -> None:
        """Publishes its presence again: another has published its absence."""
        self.put_state(self._topic, self._online)

    # --- what the link asks for --------------------------------------------------------------

    @property
    def will(self) -> Outgoing:
        """What the broker says in its name when the connection breaks."""
        return Outgoing(self._topic, self._offline, retain=True)

    def begin(self) -> None:
        """Publishes its presence and its last states on a new connection."""
        self._outbox.revive_states()
        self._outbox.put_state(self._topic, self._online)

    def take(self) -> Sequence[Outgoing]:
        """Returns what waits."""
        self._taken_states = self._outbox.states()
        return [Outgoing(topic, content, retain=True) for topic, _, content in self._taken_states]

    def sent(self) -> None:
        """Takes out what has arrived."""
        for topic, version, _ in self._taken_states:
            self._outbox.confirm_state(topic, version)

    def farewell(self) -> Sequence[Outgoing]:
        """Returns the message that it is gone."""
        return [Outgoing(self._topic, self._offline, retain=True)]
