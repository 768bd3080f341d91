"""What a site publishes: its presence, what happens to its jobs, its figures.

The daemon only calls `job_changed` and `metrics_changed`, which neither wait, fail nor use the
network. docs/telemetry.md has what is published and who may read it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import structlog

from grms.daemon.mqtt import payloads
from grms.daemon.mqtt.link import MqttLink, MqttSettings, Outgoing
from grms.daemon.mqtt.outbox import Numbered
from grms.daemon.mqtt.payloads import (
    EVENTS_MAX,
    JobEvent,
    Jobs,
    JobStateName,
    Metrics,
    PayloadError,
    Presence,
    decode_presence,
    encode,
)
from grms.daemon.mqtt.publisher import Publisher
from grms.site.monitoring.discovery import Discovery, PartnerAppeared
from grms.util.names import Endpoint
from grms.util.outcomes import Outcome

OUTBOX_EVENTS_MAX = 10_000
"""Default number of job events that wait for the broker."""

_ERROR_MAX = 500
_RIVALS_MAX = 100
"""Most other daemons with this site's name that are logged."""


@dataclass(frozen=True, slots=True)
class JobChange:
    """The shown state of a job of the site's own users has changed, at `time`, in seconds.

    Attributes:
        partner: the site it is offered or delegated to, if any.
        before: the previous state; `None` for a new job.
    """

    time: float
    job: str
    state: JobStateName
    partner: str | None = None
    outcome: Outcome | None = None
    before: JobStateName | None = None


class SiteTelemetry(Publisher[JobChange]):
    """What one site has to publish, as a source for an `MqttLink`.

    Args:
        instance: names this start of the daemon; another one after each.
        endpoint: where partners reach the daemon; `None` if they do not.
        events_max: how many job events wait while the broker is gone; beyond it the oldest are
            dropped and counted.

    Raises:
        ValueError: it is no name for a site, the endpoint is no address that partners could try, or
            the limit is below 1.
    """

    def __init__(
        self,
        *,
        site: str,
        instance: str,
        endpoint: Endpoint | None,
        log: structlog.typing.FilteringBoundLogger,
        events_max: int = OUTBOX_EVENTS_MAX,
    ) -> None:
        if endpoint is not None and endpoint.is_unspecified:
            raise ValueError(
                f"partners cannot reach {endpoint}; announce a name or address instead"
            )
        super().__init__(
            payloads.presence(site),
            Presence(site=site, state="online", instance=instance, endpoint=str(endpoint or "")),
            Presence(site=site, state="offline", instance=instance),
            events_max=events_max,
        )
        self._site = site
        self._instance = instance
        self._log = log
        self._taken_events = 0
        self._rivals = {instance}

    @property
    def outbox_length(self) -> int:
        """How many messages wait."""
        return len(self._outbox)

    @property
    def dropped(self) -> int:
        """How many job events were never published since the daemon's start."""
        return self._outbox.dropped

    def job_changed(self, change: JobChange) -> None:
        """Publishes what has become of a job; never waits and never raises."""
        self._outbox.put(change)
        self.wake()

    def metrics_changed(self, time: float, values: dict[str, float]) -> None:
        """Publishes the site's figures for its operators; never waits and never raises.

        `time` is in seconds of the site's clock; before a virtual clock has begun nothing is
        published. `values` have the names of the Prometheus endpoint; those that are not finite are
        left out.
        """
        if time == -math.inf:
            return
        finite = {name: value for name, value in values.items() if math.isfinite(value)}
        try:
            content = encode(
                Metrics(site=self._site, instance=self._instance, time=time, values=finite)
            )
        except ValueError as error:
            self._log.error("metrics_not_encodable", error=str(error)[:_ERROR_MAX])
            return
        self.put_state(payloads.metrics(self._site), content)

    def received(self, content: bytes) -> None:
        """Notes a presence under this site's own name.

        The last will of a broken connection may come after the presence of its successor; the site
        then publishes its presence again. If another daemon uses the name, that is logged once for
        each of its starts, and both continue: partners trust certificates.
        """
        try:
            presence = decode_presence(content)
        except PayloadError:
            presence = None
        if presence is None or presence.state == "offline":
            self.say_online()
        elif presence.instance not in self._rivals and len(self._rivals) < _RIVALS_MAX:
            self._log.error("presence_of_another_daemon", endpoint=presence.endpoint)
            self._rivals.add(presence.instance)

    # --- what the link asks for --------------------------------------------------------------

    def take(self) -> Sequence[Outgoing]:
        """Returns the states that wait, and the oldest events as one message."""
        content = self._take_events()
        events = [] if content is None else [Outgoing(payloads.jobs(self._site), content)]
        return [*super().take(), *events]

    def sent(self) -> None:
        """Takes out what has arrived."""
        self._outbox.confirm(self._taken_events)
        super().sent()

    def _take_events(self) -> bytes | None:
        """Returns the oldest events as one payload, None if there are none.

        One that cannot be published is dropped and counted; those beside it go out one by one.
        """
        count = EVENTS_MAX
        while events := self._outbox.first(count):
            self._taken_events = events[-1].sequence
            try:
                return encode(self._jobs(events))
            except ValueError as error:
                if len(events) == 1:
                    self._log.error("job_event_not_encodable", error=str(error)[:_ERROR_MAX])
                    self._outbox.discard(self._taken_events)
                count = 1
        return None

    def _jobs(self, events: Sequence[Numbered[JobChange]]) -> Jobs:
        return Jobs(
            site=self._site,
            instance=self._instance,
            dropped=self._outbox.dropped,
            events=tuple(
                JobEvent(
                    sequence=each.sequence,
                    time=each.event.time,
                    job=each.event.job,
                    state=each.event.state,
                    partner=each.event.partner or None,
                    outcome=each.event.outcome,
                )
                for each in events
            ),
        )


def connect_site(
    settings: MqttSettings,
    telemetry: SiteTelemetry,
    discovery: Discovery,
    partner_changed: Callable[[PartnerAppeared], None],
    *,
    rng: np.random.Generator,
    log: structlog.typing.FilteringBoundLogger,
) -> MqttLink:
    """Returns the one connection through which a site publishes and finds partners.

    `partner_changed` is called on the event loop when a partner appears or moves.
    """
    presence = telemetry.will.topic

    def receive(topic: str, content: bytes) -> None:
        if topic == presence:
            telemetry.received(content)
        elif (change := discovery.received(topic, content)) is not None:
            partner_changed(change)

    link = MqttLink(
        settings,
        telemetry,
        rng=rng,
        log=log,
        subscriptions=[payloads.PRESENCE_OF_ALL],
        receive=receive,
    )
    telemetry.wake = link.wake
    return link
