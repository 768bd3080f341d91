"""What is published: one model for each topic, as JSON.

A payload has what its model has and nothing else; docs/telemetry.md lists every field and
`docs/schemas/` holds the JSON schemas made from here. Who reads ignores fields it does not know,
so that later versions can add some. The models have no field for a job's size, requested time or
user, and presence has none for anything that changes with a site's work.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from grms.util.names import SITE_NAME, check_site_name
from grms.util.outcomes import Outcome

ROOT = "hanse/v1"

PLAN = f"{ROOT}/broker/plan"
"""Retained."""

BROKER_PRESENCE = f"{ROOT}/broker/presence"
"""Retained."""

PRESENCE_OF_ALL = f"{ROOT}/sites/+/presence"
"""Filter for the presence of every site."""


def presence(site: str) -> str:
    """Returns the retained topic of a site's presence; `ValueError` if it is no name for a site."""
    return f"{ROOT}/sites/{check_site_name(site)}/presence"


def jobs(site: str) -> str:
    """Returns the topic of a site's job events; `ValueError` if it is no name for a site."""
    return f"{ROOT}/sites/{check_site_name(site)}/jobs"


def metrics(site: str) -> str:
    """Returns the retained topic of a site's figures, for its operators alone.

    Raises:
        ValueError: it is no name for a site.
    """
    return f"{ROOT}/sites/{check_site_name(site)}/metrics"


def site_of_presence(topic: str) -> str | None:
    """Returns the site whose presence a topic is, `None` for another topic."""
    parts = topic.split("/")
    matches = len(parts) == 5 and [*parts[:3], parts[4]] == ["hanse", "v1", "sites", "presence"]
    return parts[3] if matches and SITE_NAME.fullmatch(parts[3]) else None


PAYLOAD_BYTES_MAX = 65_536
"""Longest payload that is published or read; a longer one is dropped and counted."""

EVENTS_MAX = 100
"""Most events in one payload; with the longest names they fit into `PAYLOAD_BYTES_MAX`."""

METRICS_MAX = 500
PLACEMENTS_MAX = 60

PROTOCOL = "grms.v1"
"""The wire contract of the daemons, as presence names it."""

JobStateName = Literal[
    "held",
    "received",
    "offering",
    "resolving",
    "withdrawing",
    "submitting",
    "queued",
    "running",
    "delegated",
    "suspect",
    "ended",
]
SiteName = Annotated[str, Field(pattern=f"^{SITE_NAME.pattern}$")]
Word = Annotated[str, Field(min_length=1, max_length=256)]
Count = Annotated[int, Field(ge=0, lt=2**63)]


class PayloadError(ValueError):
    """What came is no payload of its topic, or too long."""


class Payload(BaseModel):
    """What all payloads have in common: nothing changes after it was made."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Presence(Payload):
    """Says that a site is there, or that it is not.

    Attributes:
        site: who.
        state: `offline` is the last will, and said when a daemon ends in order.
        instance: another one after each start of the daemon; tells a late last will of an earlier
            start from the present.
        endpoint: where partners reach it, `host:port`; empty when offline, or where they do not.
        protocol: the wire contract it speaks.
    """

    site: SiteName
    state: Literal["online", "offline"]
    instance: Word
    endpoint: Annotated[str, Field(max_length=300)] = ""
    protocol: Word = PROTOCOL


class BrokerPresence(Payload):
    """Says that the workflow broker is there, or that it is not.

    Attributes:
        state: `offline` is the last will, and said when the daemon ends in order.
        instance: another one after each start of the daemon.
    """

    state: Literal["online", "offline"]
    instance: Word


class JobEvent(Payload):
    """One change of a job of the site's own users.

    Attributes:
        sequence: 1, 2, 3, … since the daemon's start; a gap is events that were dropped.
        time: when, in seconds of the site's clock.
        job: the job's name.
        state: what it is now.
        partner: the site it is offered or delegated to, if any.
        outcome: how it ended, if it has.
    """

    sequence: Count
    time: FiniteFloat
    job: Word
    state: JobStateName
    partner: SiteName | None = None
    outcome: Outcome | None = None


class Jobs(Payload):
    """What has happened to a site's own jobs, in order.

    Attributes:
        site: whose.
        instance: the daemon's start from which `sequence` counts.
        dropped: how many events since then were never published, because the broker was gone
            for too long.
        events: at least one. After a broken connection the last ones may come twice.
    """

    site: SiteName
    instance: Word
    dropped: Count
    events: Annotated[tuple[JobEvent, ...], Field(min_length=1, max_length=EVENTS_MAX)]


class Metrics(Payload):
    """A site's figures, for its operators.

    Attributes:
        site: whose.
        instance: the daemon's start.
        time: when, in seconds of the site's clock.
        values: by the names that the Prometheus endpoint has, labels in braces.
    """

    site: SiteName
    instance: Word
    time: FiniteFloat
    values: Annotated[dict[str, FiniteFloat], Field(max_length=METRICS_MAX)]


class Placement(Payload):
    """One task of a plan.

    Attributes:
        workflow: the workflow's name.
        task: the task's, within it.
        resource: what it runs on.
        begin: planned beginning, seconds.
        end: planned end, seconds.
        cost: in the broker's unit of cost.
    """

    workflow: Word
    task: Word
    resource: Word
    begin: FiniteFloat
    end: FiniteFloat
    cost: FiniteFloat


class Plan(Payload):
    """The broker's plan.

    Attributes:
        revision: counts the plans.
        time: when it was made, seconds of the broker's clock.
        part: which part of the plan this is, 0 and more; a long plan comes in several.
        parts: how many there are.
        placements: the tasks in this part.
    """

    revision: Count
    time: FiniteFloat
    part: Count = 0
    parts: Annotated[int, Field(ge=1)] = 1
    placements: Annotated[tuple[Placement, ...], Field(max_length=PLACEMENTS_MAX)]


PAYLOADS: dict[str, type[Payload]] = {
    "presence": Presence,
    "jobs": Jobs,
    "metrics": Metrics,
    "plan": Plan,
    "broker-presence": BrokerPresence,
}
"""Every model, by the last word of its topic, and the broker's presence."""


def encode(payload: Payload) -> bytes:
    """Returns a payload as JSON; `PayloadError` if it is longer than `PAYLOAD_BYTES_MAX`."""
    content = payload.model_dump_json(exclude_none=True).encode()
    if len(content) > PAYLOAD_BYTES_MAX:
        raise PayloadError(
            f"a payload of {len(content)} bytes is too long; at most {PAYLOAD_BYTES_MAX} may be"
        )
    return content


def decode_presence(content: bytes) -> Presence:
    """Returns the presence that somebody has published; `PayloadError` if it is none."""
    if len(content) > PAYLOAD_BYTES_MAX:
        raise PayloadError(f"a payload of {len(content)} bytes is too long")
    try:
        return Presence.model_validate_json(content)
    except ValidationError as error:
        raise PayloadError(_problems(error)) from error


def plan_parts(placements: Sequence[Placement], *, revision: int, time: float) -> list[Plan]:
    """Returns a plan as payloads, each with as many placements as may be in one; at least one."""
    starts = range(0, max(len(placements), 1), PLACEMENTS_MAX)
    return [
        Plan(
            revision=revision,
            time=time,
            part=part,
            parts=len(starts),
            placements=tuple(placements[start : start + PLACEMENTS_MAX]),
        )
        for part, start in enumerate(starts)
    ]


def _problems(error: ValidationError) -> str:
    """Returns what is wrong without repeating what a stranger has sent."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    places = (".".join(str(part) for part in each["loc"]) or "payload" for each in found)
    return "; ".join(
        sorted({f"{place}: {each['type']}" for place, each in zip(places, found, strict=True)})
    )
