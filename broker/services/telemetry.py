"""Publishes the broker's plan over MQTT for those who watch; nothing here ever waits for that.

Of a plan only the newest counts, so one waits at the most while the MQTT broker is gone. Whoever
watches learns from the broker's presence, which has a last will, whether the plan is still kept.
"""

import asyncio
import math
from typing import Final

import numpy as np
import structlog

from broker.core.memory import Memory
from grms.telemetry.broadcast import Broadcast
from grms.telemetry.link import MqttSettings
from grms.telemetry.payloads import Placement

WORD_MAX: Final = 256
"""Longer names are cut in what is published."""

STOP_S: Final = 5.0
"""So long a daemon that ends tries to say so."""


class PlanTelemetry:
    """See the module.

    Args:
        settings: where the MQTT broker is.
        instance: names this start of the daemon; another one after each.
        log: where events go.
    """

    def __init__(
        self, settings: MqttSettings, instance: str, log: structlog.typing.FilteringBoundLogger
    ) -> None:
        self._log = log
        self._broadcast = Broadcast(
            settings, rng=np.random.default_rng(), log=log, instance=instance
        )

    def publish(self, memory: Memory) -> None:
        """Publishes what is planned, booked and running now; never waits and never raises."""
        if memory.plan is None:
            return
        try:
            self._broadcast.plan(
                placements_of(memory), revision=memory.plan.number, time=memory.plan.time
            )
        except ValueError as error:
            self._log.error("plan_not_encodable", error=str(error)[:WORD_MAX])  # no bug of the plan

    async def run(self) -> None:
        """Publishes until it is cancelled; then it says that the broker is gone."""
        link = self._broadcast.link
        work = asyncio.ensure_future(link.run())
        try:
            await asyncio.shield(work)
        finally:
            link.stop()
            await asyncio.wait([work], timeout=STOP_S)
            work.cancel()
            await asyncio.wait([work])


def placements_of(memory: Memory) -> list[Placement]:
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
