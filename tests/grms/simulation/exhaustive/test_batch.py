"""A batch system as a value."""

import pytest

from grms.lrms.base import Accepted, Ended, Lost, Requeued, Started
from grms.simulation.exhaustive.batch import (
    CANCELLED,
    COMPLETED,
    GONE,
    RUNS,
    WAITS,
    Batch,
    BatchJob,
    TwiceError,
    forgotten,
    forgotten_by_site,
    moved,
)
from grms.site.model.commands import LrmsCancel, LrmsSubmit
from grms.site.model.events import LrmsLetGo
from grms.site.model.jobs import Request
from grms.util.outcomes import Outcome

KEY = "a/1/1"


def submit(*, lookup: bool = False, started: bool = False) -> LrmsSubmit:
    return LrmsSubmit(1, KEY, Request(1, 10.0), b"x", lookup=lookup, started=started)


def batch(*phases: str) -> Batch:
    one = Batch(())
    one.submit(submit(), 0.0)
    jobs = one.jobs
    for phase in phases:
        jobs = moved(jobs[0], jobs, phase)
    return Batch(jobs)


def test_a_site_hears_all_that_has_happened_when_it_looks() -> None:
    """Once: the next look shows nothing."""
    one = batch(RUNS, COMPLETED)
    assert [type(news) for news in one.look(KEY, 0.0)] == [Accepted, Started, Ended]
    assert one.jobs[0].heard == COMPLETED


def test_a_job_that_waits_again_has_started() -> None:
    """Also where the site has not seen it run."""
    kinds = [type(news) for news in batch(RUNS, WAITS).look(KEY, 0.0)]
    assert kinds == [Accepted, Started, Requeued]


@pytest.mark.parametrize("heard", [True, False])
def test_what_is_cancelled_as_it_waits_again_has_started(heard: bool) -> None:
    """The end alone would say that it has never run."""
    one = batch(RUNS, WAITS)
    if heard:
        one.look(KEY, 0.0)
    one = Batch(moved(one.jobs[0], one.jobs, CANCELLED))
    news = one.look(KEY, 0.0)
    assert [type(each) for each in news] == [Accepted] * (not heard) + [Requeued, Ended]
    assert isinstance(news[-1], Ended)
    assert (news[-1].end.outcome, news[-1].end.run_time) == (Outcome.CANCELLED, 0.0)


def test_a_key_is_taken_once() -> None:
    """A second submission without a look is an error of the site."""
    one = batch()
    with pytest.raises(TwiceError):
        one.submit(submit(), 0.0)
    assert one.submit(submit(lookup=True), 0.0) == []
    assert len(one.jobs) == 1


def test_what_was_lost_is_submitted_again() -> None:
    """It has never run, and the batch system knows nothing of it."""
    one = batch(GONE)
    assert [type(news) for news in one.look(KEY, 0.0)] == [Lost]
    one.submit(submit(lookup=True), 0.0)
    assert one.jobs[0].phase == WAITS


def test_a_job_known_to_have_started_is_not_submitted_again() -> None:
    """It has ended, nobody knows how."""
    (news,) = Batch(()).submit(submit(lookup=True, started=True), 0.0)
    assert isinstance(news, Ended)
    assert news.end.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("phases", "only_waiting", "phase", "done"),
    [
        ((), True, CANCELLED, True),
        ((RUNS,), True, RUNS, False),
        ((RUNS, WAITS), True, WAITS, False),
        ((RUNS, COMPLETED), True, COMPLETED, False),
    ],
)
def test_what_has_started_is_not_let_go(
    phases: tuple[str, ...], only_waiting: bool, phase: str, done: bool
) -> None:
    """Not even where it waits again."""
    one = batch(*phases)
    assert one.cancel(LrmsCancel(1, KEY, only_waiting=only_waiting)) == [LrmsLetGo(KEY, done)]
    assert one.jobs[0].phase == phase


def test_a_running_job_is_ended_where_that_is_wanted() -> None:
    """The site hears of it when it looks."""
    one = batch(RUNS)
    assert one.cancel(LrmsCancel(1, KEY)) == []
    (end,) = [news for news in one.look(KEY, 0.0) if isinstance(news, Ended)]
    assert (end.end.outcome, end.end.run_time) == (Outcome.CANCELLED, 1.0)


def test_what_is_forgotten_is_still_true() -> None:
    """Submitted again it would run twice, which has to be seen."""
    jobs = batch(RUNS, COMPLETED).jobs
    one = Batch(forgotten(jobs[0], jobs))
    one.submit(submit(lookup=True), 0.0)
    assert sum(job.runs for job in one.jobs) == 1
    assert len(one.jobs) == 2


def test_a_new_life_looks_at_nothing_yet() -> None:
    """Before it has looked a job up it hears nothing of it."""
    (job,) = forgotten_by_site((BatchJob(KEY, b"x", RUNS, 1, WAITS),))
    assert job.heard == ""
