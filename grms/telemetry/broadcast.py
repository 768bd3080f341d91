"""States that somebody publishes who is no site: a replay's conductor, the workflow broker."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import structlog

from grms.telemetry import topics
from grms.telemetry.link import MqttLink, MqttSettings, Outgoing
from grms.telemetry.outbox import Outbox
from grms.telemetry.payloads import (
    BrokerPresence,
    Clock,
    Payload,
    Placement,
    encode,
    plan_parts,
)


class Broadcast:
    """Publishes the newest state of each topic, whenever there is a broker to publish it.

    Args:
        settings: where the MQTT broker is.
        rng: where the chance in pauses comes from.
        log: where events go.
        instance: names this start of the workflow broker, whose presence is published then, with
            a last will; empty for a conductor, whose states stay true when it is gone.

    Attributes:
        link: the connection; its `run` is a task of the owner's.
    """

    def __init__(
        self,
        settings: MqttSettings,
        *,
        rng: np.random.Generator,
        log: structlog.typing.FilteringBoundLogger,
        instance: str = "",
    ) -> None:
        self._outbox: Outbox[None] = Outbox(1)
        self._taken: Sequence[tuple[str, int, bytes]] = ()
        self._plan_parts = 0
        self._instance = instance
        self.link = MqttLink(
            settings,
            self,
            rng=rng,
            log=log,
            subscriptions=[topics.BROKER_PRESENCE] if instance else [],
            receive=self._received if instance else None,
        )

    def clock(self, clock: Clock) -> None:
        """Publishes where a replay stands; never waits."""
        self._put(topics.CLOCK, clock)

    def plan(self, placements: Sequence[Placement], *, revision: int, time: float) -> None:
        """Publishes a plan; never waits.

        A plan of several parts is one message a part, on topics that end in the part's number
        from the second on; parts that an earlier plan had beyond it are emptied.

        Args:
            placements: all tasks of the plan.
            revision: counts the plans.
            time: when it was made, seconds of the broker's clock.
        """
        parts = plan_parts(placements, revision=revision, time=time)
        for part in parts:
            self._put(_plan_topic(part.part), part)
        for stale in range(len(parts), self._plan_parts):
            self._outbox.put_state(_plan_topic(stale), b"")
        self._plan_parts = len(parts)
        self.link.wake()

    def _put(self, topic: str, payload: Payload) -> None:
        self._outbox.put_state(topic, encode(payload))
        self.link.wake()

    # --- what the link asks for --------------------------------------------------------------

    @property
    def will(self) -> Outgoing | None:
        """That the workflow broker is gone; a state stays true when who told it is."""
        return self._presence("offline") if self._instance else None

    def begin(self) -> None:
        """Lets every state be published once more: the broker may have forgotten it."""
        self._outbox.revive_states()
        self._say_online()

    def _say_online(self) -> None:
        if self._instance:
            message = self._presence("online")
            self._outbox.put_state(message.topic, message.content)

    def _presence(self, state: Literal["online", "offline"]) -> Outgoing:
        payload = BrokerPresence(state=state, instance=self._instance)
        return Outgoing(topics.BROKER_PRESENCE, encode(payload), retain=True)

    def _received(self, _topic: str, content: bytes) -> None:
        # The last will of a connection that broke may come after the one that has followed it.
        if content == self._presence("offline").content or not content:
            self._say_online()
            self.link.wake()

    def take(self) -> Sequence[Outgoing]:
        """Returns the states that wait."""
        self._taken = self._outbox.states()
        return [Outgoing(topic, content, retain=True) for topic, _, content in self._taken]

    def sent(self) -> None:
        """Takes out what has arrived."""
        for topic, version, _ in self._taken:
            self._outbox.confirm_state(topic, version)

    def farewell(self) -> Sequence[Outgoing]:
        """Returns that the workflow broker is gone; nothing of a conductor."""
        return [self._presence("offline")] if self._instance else ()


def _plan_topic(part: int) -> str:
    return topics.PLAN if part == 0 else f"{topics.PLAN}/{part}"
