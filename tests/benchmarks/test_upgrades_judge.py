"""The judge of upgrades finds what it is there for."""

from pathlib import Path

import pytest

from benchmarks.upgrades_judge import Judge, Judged, epoch_of, story
from grms.site.model.jobs import GuestRef, OfferId, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import (
    GuestAccepted,
    JobEnded,
    JobOffered,
    JobReceived,
    JobStarted,
    Record,
)
from grms.site.runtime.journal import Journal

EPOCH = 5
HERE = GuestRef("north", OfferId(EPOCH, 1))


def received(job: int, key: str) -> JobReceived:
    """Returns the record of a job that a site has taken."""
    return JobReceived(0.0, job, "ann", key, "", Request(1, 10.0), b"")


def ended(job: int | GuestRef, outcome: Outcome = Outcome.COMPLETED) -> JobEnded:
    """Returns the record of its end."""
    return JobEnded(9.0, job, outcome, 9.0, 5.0, "")


def home() -> list[Record]:
    """Returns the journal of a site that has run one job, and another one at its partner."""
    return [
        received(1, "a"),
        JobStarted(1.0, 1, 1.0),
        ended(1),
        received(2, "b"),
        JobOffered(2.0, 2, "south", 1),
        ended(2),
    ]


def partner() -> list[Record]:
    """Returns the journal of that partner."""
    return [
        GuestAccepted(2.0, HERE, 0, Request(1, 10.0), b""),
        JobStarted(4.0, HERE, 4.0),
        ended(HERE),
    ]


def judged(north: list[Record], south: list[Record]) -> Judged:
    """Returns the verdict."""
    journals = {"north": north, "south": south}
    return Judge(journals, {"north": EPOCH, "south": EPOCH}, {"north": {"a", "b"}}).judged()


def test_what_is_right_is_right() -> None:
    """Each job once, one of them at the partner."""
    found = judged(home(), partner())
    assert found.problems == []
    assert found.counts["jobs"] == 2
    assert found.counts["ran_at_partners"] == 1


@pytest.mark.parametrize(
    ("north", "south", "said"),
    [
        (home()[:3], [], "b of north was acknowledged and is lost"),
        ([*home(), received(3, "a")], partner(), "north took a 2 times"),
        (home()[:-1], partner(), "b of north has ended 0 times"),
        ([*home(), ended(2)], partner(), "b of north has ended 2 times"),
        (home(), partner()[:1], "b of north has run to its end 0 times"),
        ([*home()[:5], JobStarted(5.0, 2, 5.0), ended(2)], partner(), "has run to its end 2 times"),
        ([*home()[:5], JobStarted(5.0, 2, 5.0), *home()[5:]], partner()[:2], "has also run as"),
        ([*home(), JobStarted(6.0, 1, 6.0)], partner(), "a of north has run to its end 0 times"),
        ([*home()[:5], ended(2, Outcome.LOST)], partner(), "b of north is lost"),
        (
            [*home()[:5], JobStarted(5.0, 2, 5.0), ended(2)],
            [partner()[0], ended(HERE)],
            "has run to its end 2 times",
        ),
    ],
)
def test_what_must_not_be_is_found(north: list[Record], south: list[Record], said: str) -> None:
    """Lost, taken twice, run twice, or not to its end."""
    assert any(said in problem for problem in judged(north, south).problems)


def test_what_was_sent_home_runs_again() -> None:
    """A run that was ended for another job is no second one."""
    sent = [*partner()[:2], ended(HERE, Outcome.PREEMPTED)]
    again = [*home()[:5], JobStarted(7.0, 2, 7.0), ended(2)]
    assert judged(again, sent).problems == []


def test_a_run_between_two_looks_is_one() -> None:
    """The batch system has told of its end alone."""
    assert judged(home(), [partner()[0], ended(HERE)]).problems == []


def test_copies_of_one_journal_are_one_story(tmp_path: Path) -> None:
    """Also where a later one has lost records to compaction."""
    with Journal(tmp_path / "j", "north") as journal:
        journal.append(home()[:3])
        journal.append(home()[3:])
        epoch = journal.epoch
        (tmp_path / "copy").write_bytes((tmp_path / "j").read_bytes())
        journal.replace(home()[3:])
    assert story([tmp_path / "copy", tmp_path / "j"]) == home()
    assert story([tmp_path / "j"]) == home()[3:]
    assert epoch_of(tmp_path / "j") == epoch
