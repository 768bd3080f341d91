"""Publishes the broker's plan over MQTT for watchers; nothing here ever waits for that.

Only the newest plan counts, so at most one waits while the MQTT broker is away. The broker's
presence, which has a last will, tells watchers whether the plan is still kept.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import structlog

from broker.scheduler.state_tables import StateTables
from grms.daemon.mqtt import payloads
from grms.daemon.mqtt.link import MqttLink, MqttSettings
from grms.daemon.mqtt.payloads import BrokerPresence, Placement, encode, plan_parts
from grms.daemon.mqtt.publisher import Publisher

WORD_MAX: Final = 256
"""Longer names are cut in what is published."""

STOP_S: Final = 5.0
"""Time for an ending daemon to say so, seconds."""


class PlanTelemetry(Publisher[None]):
    """Publishes plans; `instance` is different for each start of the daemon."""

    def __init__(
        self,
        settings: MqttSettings,
        instance: str,
        log: structlog.typing.FilteringBoundLogger,
        rng: np.random.Generator | None = None,
    ) -> None:
        super().__init__(
            payloads.BROKER_PRESENCE,
            BrokerPresence(state="online", instance=instance),
            BrokerPresence(state="offline", instance=instance),
        )
        self._log = log
        self._plan_parts = 0
        self.link = MqttLink(
            settings,
            self,
            rng=rng or np.random.default_rng(),
            log=log,
            subscriptions=[payloads.BROKER_PRESENCE],
            receive=self._received,
        )
        self.wake = self.link.wake

    def publish(self, memory: StateTables) -> None:
        """Publishes current plans, bookings and runs; never waits and never raises."""
        if memory.plan is None:
            return
        try:
            self.plan(placements_of(memory), revision=memory.plan.number, time=memory.plan.time)
        except ValueError as error:
            self._log.error("plan_not_encodable", error=str(error)[:WORD_MAX])  # no bug of the plan

    def plan(self, placements: Sequence[Placement], *, revision: int, time: float) -> None:
        """Publishes a plan without waiting; `ValueError` if a number in it is NaN or infinite.

        A plan of several parts is one message a part, on topics that end in the part's number from
        the second on; surplus parts of an earlier plan are emptied. `time` is when the plan was
        made, in seconds of the broker's clock.
        """
        parts = plan_parts(placements, revision=revision, time=time)
        for part in parts:
            self.put_state(_plan_topic(part.part), encode(part))
        for stale in range(len(parts), self._plan_parts):
            self.put_state(_plan_topic(stale), b"")
        self._plan_parts = len(parts)

    async def run(self) -> None:
        """Publishes until it is cancelled; then it says that the broker is gone."""
        work = asyncio.ensure_future(self.link.run())
        try:
            await asyncio.shield(work)
        finally:
            self.link.stop()
            await asyncio.wait([work], timeout=STOP_S)
            work.cancel()
            await asyncio.wait([work])

    def _received(self, _topic: str, content: bytes) -> None:
        # The last will of a connection that broke may come after the one that has followed it.
        if content == self._offline or not content:
            self.say_online()


def _plan_topic(part: int) -> str:
    return payloads.PLAN if part == 0 else f"{payloads.PLAN}/{part}"


def placements_of(memory: StateTables) -> list[Placement]:
    """Returns what has a place and has not ended, in order of time, as it is published.

    A task that takes several resources is named with the first, which its program runs on.
    """
    found = [
        task.placement
        for task in memory.tasks()
        if task.placement is not None and not task.has_ended
    ]
    return [
        Placement(
            workflow=each.workflow[:WORD_MAX],
            task=each.task[:WORD_MAX],
            resource=each.demands[0].resource[:WORD_MAX],
            begin=each.start,
            end=each.end,
            cost=each.cost if math.isfinite(each.cost) else 0.0,
        )
        for each in sorted(found, key=lambda each: (each.start, *each.key))
    ]
