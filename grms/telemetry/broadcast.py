"""States that somebody publishes who is no site: a replay's conductor, the workflow broker."""

from collections.abc import Sequence

import numpy as np
import structlog

from grms.telemetry import topics
from grms.telemetry.link import MqttLink, MqttSettings, Outgoing
from grms.telemetry.outbox import Outbox
from grms.telemetry.payloads import Clock, Payload, Placement, encode, plan_parts


class Broadcast:
    """Publishes the newest state of each topic, whenever there is a broker to publish it.

    Args:
        settings: where the MQTT broker is.
        rng: where the chance in pauses comes from.
        log: where events go.

    Attributes:
        link: the connection; its `run` is a task of the owner's.
    """

    def __init__(
        self,
        settings: MqttSettings,
        *,
        rng: np.random.Generator,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._outbox: Outbox[None] = Outbox(1)
        self._taken: Sequence[tuple[str, int, bytes]] = ()
        self._plan_parts = 0
        self.link = MqttLink(settings, self, rng=rng, log=log)

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
        """None: a state stays true when who told it is gone."""
        return None

    def begin(self) -> None:
        """Lets every state be published once more: the broker may have forgotten it."""
        self._outbox.revive_states()

    def take(self) -> Sequence[Outgoing]:
        """Returns the states that wait."""
        self._taken = self._outbox.states()
        return [Outgoing(topic, content, retain=True) for topic, _, content in self._taken]

    def sent(self) -> None:
        """Takes out what has arrived."""
        for topic, version, _ in self._taken:
            self._outbox.confirm_state(topic, version)

    def farewell(self) -> Sequence[Outgoing]:
        """Nothing more."""
        return ()


def _plan_topic(part: int) -> str:
    return topics.PLAN if part == 0 else f"{topics.PLAN}/{part}"
