"""The second opinion on the order in which partners are asked."""

from grms.simulation.order import OrderChecker
from grms.site.model.jobs import Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import (
    JobAbandoned,
    JobDeclined,
    JobDelegated,
    JobEnded,
    JobOffered,
    JobReceived,
    PartnerStanding,
    Record,
    ReportDisbelieved,
)


def followed(*records: Record) -> OrderChecker:
    """Returns a judge that has seen a job of 2 × 10 s, submitted at 100 s, and what follows."""
    judge = OrderChecker()
    for record in (JobReceived(100.0, 1, "ann", "k", "", Request(2, 10.0), b""), *records):
        judge.follow(record)
    return judge


OFFERED = JobOffered(100.0, 1, "b", 1)
DELEGATED = JobDelegated(101.0, 1)


def test_open_and_undecided_jobs_count_with_the_time_they_have_waited() -> None:
    """But only where open jobs count at all, and not once they were declined."""
    for records in ((OFFERED,), (OFFERED, DELEGATED)):
        judge = followed(*records)
        assert judge.rank("b", 130.0, count_open=True) == (False, 30.0)
        assert judge.rank("b", 130.0, count_open=False) == (False, 0.0)
    assert followed(OFFERED, JobDeclined(101.0, 1)).rank("b", 130.0, count_open=True)[1] == 0.0


def test_ended_and_lost_jobs_count_for_good() -> None:
    """With their response; a lost one with the time that was lost."""
    ended = JobEnded(150.0, 1, Outcome.COMPLETED, 140.0, 5.0, "")
    assert followed(OFFERED, DELEGATED, ended).rank("b", 900.0, count_open=True)[1] == 40.0
    lost = followed(OFFERED, DELEGATED, JobAbandoned(170.0, 1))
    assert lost.rank("b", 900.0, count_open=True)[1] == 70.0


def test_who_is_not_believed_comes_last_until_it_has_made_good() -> None:
    """Ten believable ends make good for one that is not."""
    ended = JobEnded(150.0, 1, Outcome.COMPLETED, 140.0, 5.0, "")
    judge = followed(OFFERED, DELEGATED, ended, ReportDisbelieved(150.0, "b", 1, "a lie"))
    for number in range(2, 12):
        assert judge.rank("b", 900.0, count_open=True)[0]
        for record in (
            JobReceived(100.0, number, "ann", "k", "", Request(2, 10.0), b""),
            JobOffered(100.0, number, "b", number),
            JobEnded(150.0, number, Outcome.COMPLETED, 140.0, 5.0, ""),
        ):
            judge.follow(record)
    assert not judge.rank("b", 900.0, count_open=True)[0]


def test_what_a_compacted_journal_says_of_trust_counts() -> None:
    """The records that it stands for are gone."""
    judge = OrderChecker()
    judge.follow(PartnerStanding(1.0, "b", faults=0, disbelieved=1, distrust=3, doubt="a lie"))
    assert judge.rank("b", 1.0, count_open=True) == (True, 0.0)
