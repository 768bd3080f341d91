"""Real daemons are broken while they replay: nothing is lost, and nothing runs twice."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.exactly_once import Federation
from benchmarks.real_faults import Plan, run
from grms.site.model.jobs import GuestRef, OfferId, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import (
    GuestAccepted,
    JobDelegated,
    JobEnded,
    JobKept,
    JobOffered,
    JobReceived,
    JobStarted,
    Record,
)
from tests.services import need

pytestmark = pytest.mark.usefixtures("forks")

PROCESSORS = {"a": 8, "b": 8}
EPOCHS = {"a": 10, "b": 20}
OFFER = OfferId(10, 1)
REQUEST = Request(4, 30.0)


def journals() -> dict[str, list[Record]]:
    """Returns what is as it has to be: one job ran at home, one was delegated, both on time."""
    return {
        "a": [
            JobReceived(0.0, 1, "u", "0", "", REQUEST, b""),
            JobKept(0.0, 1),
            JobStarted(0.0, 1, 0.0),
            JobReceived(1.0, 2, "u", "1", "", REQUEST, b""),
            JobOffered(1.0, 2, "b", 1),
            JobDelegated(1.0, 2),
            JobEnded(20.0, 1, Outcome.COMPLETED, 20.0, 20.0, ""),
            JobEnded(31.0, 2, Outcome.COMPLETED, 31.0, 30.0, ""),
        ],
        "b": [
            GuestAccepted(1.0, GuestRef("a", OFFER), 1, REQUEST, b""),
            JobStarted(1.0, GuestRef("a", OFFER), 1.0),
            JobEnded(31.0, GuestRef("a", OFFER), Outcome.COMPLETED, 31.0, 30.0, ""),
        ],
    }


def test_a_job_that_a_partner_never_began_runs_elsewhere() -> None:
    """It went home undone: that partner has not had it; one that had begun it, or says something else, has."""
    lost = JobEnded(2.0, GuestRef("a", OFFER), Outcome.LOST, 2.0, 0.0, "")
    for begun, end, problems in (
        ([], lost, []),
        ([JobStarted(1.0, GuestRef("a", OFFER), 1.0)], lost, ["a-2 was given to b, a"]),
        ([], replace(lost, outcome=Outcome.CANCELLED), ["a-2 was given to b, a"]),
    ):
        federation = journals()
        federation["a"].insert(6, JobKept(3.0, 2))
        federation["b"] = [federation["b"][0], *begun, end]
        verdict = Federation(federation, EPOCHS, PROCESSORS).hands()
        assert verdict.problems == problems
        assert verdict.counts["went_home_undone"] == (not problems)


def test_a_federation_in_order_has_no_problem() -> None:
    """Each job has one run, and its place is that of its run."""
    verdict = Federation(journals(), EPOCHS, PROCESSORS).verdict()
    assert verdict.problems == []
    assert verdict.places == {("a", "0"): "a", ("a", "1"): "b"}
    assert verdict.counts["delegated"] == 1


@pytest.mark.parametrize(
    ("site", "position", "record", "text"),
    [
        ("a", 6, None, "a-1 ended 0 times at a"),
        ("a", 7, None, "the end of a-2 is 0 times"),
        ("b", 1, None, "a-2 started 0 times at b"),
        ("b", 2, None, "a-2 ended 0 times at b"),
        ("a", 8, JobStarted(3.0, 1, 3.0), "a-1 started 2 times at a"),
        ("b", 3, JobStarted(3.0, GuestRef("a", OFFER), 3.0), "a-2 started 2 times at b"),
        ("a", 8, JobKept(2.0, 2), "a-2 was given to b, a"),
        ("a", 8, JobReceived(2.0, 3, "u", "1", "", REQUEST, b""), "a took '1' 2 times"),
        (
            "b",
            3,
            GuestAccepted(9.0, GuestRef("a", OfferId(10, 2)), 1, REQUEST, b""),
            "without an offer",
        ),
        ("b", 3, GuestAccepted(9.0, GuestRef("a", OFFER), 1, REQUEST, b""), "was accepted 2 times"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_found(site: str, position: int, record: Record | None, text: str) -> None:
    """A record that is missing, or one too many, is a problem."""
    found = journals()
    found[site][position : position + 1] = [] if record is None else [record]
    verdict = Federation(found, EPOCHS, PROCESSORS).verdict()
    assert any(text in problem for problem in verdict.problems), verdict.problems


def test_too_many_processors_at_one_moment_are_found() -> None:
    """A machine cannot run more than it has."""
    verdict = Federation(journals(), EPOCHS, {"a": 8, "b": 3}).verdict()
    assert verdict.problems == ["b used 4 of its 3 processors"]


def test_another_end_than_the_partners_is_found() -> None:
    """Home has to have the end that was."""
    found = journals()
    end = found["a"][-1]
    assert isinstance(end, JobEnded)
    found["a"][-1] = replace(end, end_time=30.0)
    (problem,) = Federation(found, EPOCHS, PROCESSORS).verdict().problems
    assert problem == "the end of a-2 is not what b has"


@pytest.mark.services
def test_broken_daemons_lose_nothing_and_run_nothing_twice(tmp_path: Path) -> None:
    """Three kills, a cut link, one held up, no MQTT broker for a while, and a full disk."""
    need("mosquitto", "mosquitto")
    plan = Plan(seed=3, arrivals=600, kills=3, cuts=1, hold_ups=1, broker_stops=1, disk_fills=1)
    outcome = run(plan, tmp_path)
    assert outcome.problems == []
    assert outcome.counts["kills"] >= 3
    assert outcome.counts["restarts"] >= 3
    assert outcome.counts["arrivals"] == outcome.counts["jobs"] == 600
    assert outcome.counts["delegated"] > 50
    assert outcome.counts["cuts"] == outcome.counts["hold_ups"] == 1
    assert outcome.counts["broker_stops"] == 1
    if not any("full disk" in text for text in outcome.left_out):
        assert outcome.counts["disk_fills_noticed"] == 1
