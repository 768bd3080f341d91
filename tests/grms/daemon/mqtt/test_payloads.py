import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from grms.daemon.mqtt import payloads
from grms.daemon.mqtt.payloads import (
    EVENTS_MAX,
    PAYLOAD_BYTES_MAX,
    PAYLOADS,
    JobEvent,
    Jobs,
    Payload,
    PayloadError,
    Placement,
    Presence,
    decode_presence,
    encode,
    plan_parts,
)
from grms.util.outcomes import Outcome

ROOT = Path(__file__).resolve().parents[4]
SCHEMAS = ROOT / "docs" / "schemas"
LONGEST = "x" * 256

FIELDS = {
    "presence": {"site", "state", "instance", "endpoint", "protocol"},
    "jobs": {"site", "instance", "dropped", "events"},
    "metrics": {"site", "instance", "time", "values"},
    "plan": {"revision", "time", "part", "parts", "placements"},
    "broker-presence": {"state", "instance"},
}
EVENT_FIELDS = {"sequence", "time", "job", "state", "partner", "outcome"}
"""What may be published. A field more is a change of the information policy, and is meant so."""


def schema_text(model: type[Payload]) -> str:
    """Returns the JSON schema of a payload as the documentation has it."""
    return (
        json.dumps(model.model_json_schema(mode="serialization"), indent=2, ensure_ascii=False)
        + "\n"
    )


def test_a_payload_has_these_fields_and_no_others() -> None:
    """Presence and jobs say nothing of load, queues, sizes, times of others or users."""
    assert {name: set(model.model_fields) for name, model in PAYLOADS.items()} == FIELDS
    assert set(JobEvent.model_fields) == EVENT_FIELDS


@pytest.mark.parametrize("name", PAYLOADS)
def test_the_schemas_in_the_documentation_are_these(name: str) -> None:
    """Each file in docs/schemas is what the model says; the message has what to write there."""
    text = schema_text(PAYLOADS[name])
    assert (SCHEMAS / f"{name}.json").read_text(encoding="utf-8") == text, text


def test_every_field_is_explained() -> None:
    """docs/telemetry.md names every field of every payload."""
    text = (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")
    fields = set().union(*FIELDS.values(), EVENT_FIELDS, Placement.model_fields)
    assert {field for field in fields if f"`{field}`" not in text} == set()


def test_what_is_encoded_can_be_read() -> None:
    """Presence comes back as it was, and what is not set is not written."""
    presence = Presence(site="KTH", state="online", instance="1", endpoint="localhost:7001")
    assert decode_presence(encode(presence)) == presence
    event = JobEvent(sequence=1, time=2.5, job="KTH-1", state="running")
    content = encode(Jobs(site="KTH", instance="1", dropped=0, events=(event,)))
    assert json.loads(content)["events"] == [
        {"sequence": 1, "time": 2.5, "job": "KTH-1", "state": "running"}
    ]


def test_a_reader_ignores_fields_of_later_versions() -> None:
    """A field that is not known yet is no error."""
    content = b'{"site":"KTH","state":"offline","instance":"1","mood":"good"}'
    assert decode_presence(content).state == "offline"


def test_the_fullest_payload_is_short_enough() -> None:
    """As many events as may be in a payload, with the longest names, fit; so does a plan."""
    event = JobEvent(
        sequence=2**63 - 1,
        time=-1.2345678901234567e300,
        job=LONGEST,
        state="withdrawing",
        partner="x" * 64,
        outcome=Outcome.COMPLETED,
    )
    jobs = Jobs(site="x" * 64, instance=LONGEST, dropped=2**63 - 1, events=(event,) * EVENTS_MAX)
    assert len(encode(jobs)) <= PAYLOAD_BYTES_MAX
    placement = Placement(
        workflow=LONGEST, task=LONGEST, resource=LONGEST, begin=1e300, end=1e300, cost=1e300
    )
    for part in plan_parts([placement] * 1000, revision=2**63 - 1, time=1e300):
        assert len(encode(part)) <= PAYLOAD_BYTES_MAX


def test_a_payload_that_is_too_long_is_refused() -> None:
    """Length is checked before anything is published or read."""
    values = {f"{number}" + "x" * 200: 1.0 for number in range(400)}
    with pytest.raises(PayloadError, match="is too long; at most 65536"):
        encode(payloads.Metrics(site="KTH", instance="1", time=0, values=values))
    with pytest.raises(PayloadError, match="is too long"):
        decode_presence(b" " * (PAYLOAD_BYTES_MAX + 1))


@given(st.binary(max_size=300) | st.text(max_size=100).map(str.encode))
def test_any_bytes_are_presence_or_an_error(content: bytes) -> None:
    """Whatever somebody publishes is a presence or a PayloadError."""
    try:
        decode_presence(content)
    except PayloadError:
        return


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(sorted(FIELDS["presence"]), _JSON)))
def test_any_json_is_presence_or_an_error(content: dict[str, object]) -> None:
    """Wrong types, names and states are errors of one kind."""
    try:
        presence = decode_presence(json.dumps(content).encode())
    except PayloadError:
        return
    assert presence.state in {"online", "offline"}


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"{", "payload: json_invalid"),
        (b"[]", "payload: model_type"),
        (b'{"site":"a/b","state":"online","instance":"1"}', "site: string_pattern_mismatch"),
        (b'{"site":"KTH\\n","state":"online","instance":"1"}', "site: string_pattern_mismatch"),
        (b'{"site":"KTH","state":"busy","instance":"1"}', "state: literal_error"),
        (b'{"site":"KTH","state":"online"}', "instance: missing"),
        (b'{"site":"KTH","state":"online","instance":1}', "instance: string_type"),
    ],
)
def test_an_error_says_where(content: bytes, place: str) -> None:
    """An error names the field and the kind of mistake, and does not repeat what was sent."""
    with pytest.raises(PayloadError) as error:
        decode_presence(content)
    assert str(error.value) == place


@given(st.integers(0, 300))
def test_a_plan_in_parts_is_whole(count: int) -> None:
    """The parts of a plan hold each placement once, in order, and say how many parts there are."""
    placements = [
        Placement(workflow="w", task=str(number), resource="r", begin=0, end=1, cost=2)
        for number in range(count)
    ]
    parts = plan_parts(placements, revision=7, time=3)
    assert [placement for part in parts for placement in part.placements] == placements
    assert [part.part for part in parts] == list(range(len(parts)))
    assert {(part.parts, part.revision) for part in parts} == {(len(parts), 7)}


def test_numbers_that_are_none_are_refused() -> None:
    """Infinity and NaN, which JSON does not have, never get into a payload."""
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValidationError):
            payloads.Metrics(site="KTH", instance="1", time=bad, values={})
