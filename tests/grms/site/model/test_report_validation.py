"""What a partner reports is held against what the home site knows."""

import math
from dataclasses import replace
from typing import Any

import pytest

from grms.site.model.events import OfferAnswered, ReportReceived
from grms.site.model.jobs import Completion
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.partners import DISTRUST, asking_order, believable, violation
from grms.site.model.records import JobEnded, ReportDisbelieved
from grms.site.model.settings import SiteSettings
from tests.grms.site.conversation import FULL, Conversation, offer, settings

STRICT: dict[str, Any] = {"run_time_grace": 10.0, "clock_grace": 5.0, "elapsed_grace": 1.0}
B1 = {"partner": "b", "offer": offer(1)}


def delegated(given: SiteSettings | None = None) -> Conversation:
    """Returns a site that has delegated a job of 100 s to b at 1000 s; it is 2000 s now."""
    site = Conversation(given or settings(**STRICT))
    site.now = 1000.0
    site.submit()
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    site.now = 2000.0
    return site


def end(end_time: float, run_time: float, outcome: Outcome = Outcome.COMPLETED) -> Completion:
    """Returns the end of the job."""
    return Completion(offer(1), outcome, end_time, run_time)


def test_a_clock_that_goes_slower_is_allowed_for() -> None:
    """While a site waits for its own clock, a partner's job may run longer than the site's time passes."""
    for drift, run_time, believed in ((1e-3, 21.1, False), (1.0, 41.0, True), (1.0, 41.1, False)):
        site = delegated(settings(**{**STRICT, "clock_grace": 30.0}, clock_drift=drift))
        now = site.job().offer_time + 20.0
        found = violation(site.job(), end(now, run_time), now, site.settings)
        assert found == ("" if believed else f"a run time of {run_time:g} s, 20 s after the offer")


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        (end(2000.0, 100.0), ""),
        (end(2000.0, 110.0), ""),
        (end(2000.0, 110.1), "a run time of 110.1 s, 100 s requested"),
        (end(2000.0, 1e300), "a run time of 1e+300 s, 100 s requested"),
        (end(2005.0, 100.0), ""),
        (end(2005.1, 100.0), "an end 5.1 s in the future"),
        (end(-1e18, 0.0), "a start 1e+18 s before the offer"),
        (end(1095.0, 100.0), ""),
        (end(1094.9, 100.0), "a start 5.1 s before the offer"),
        (end(1500.0, 90.0, Outcome.TIMEOUT), ""),
        (
            end(1500.0, 89.9, Outcome.TIMEOUT),
            "cut at its limit after 89.9 s, 100 s requested",
        ),
        (end(1500.0, 0.0, Outcome.CANCELLED), ""),
    ],
)
def test_what_cannot_be_is_said(completion: Completion, text: str) -> None:
    """Run time, end and start, each at its bound and just beyond it."""
    site = delegated()
    assert violation(site.job(), completion, site.now, site.settings) == text


def test_a_run_time_is_not_longer_than_the_time_since_the_offer() -> None:
    """A job cannot have run for longer than its home has waited, but for what clocks run apart."""
    site = delegated()
    for now, fine in ((1059.0, True), (1058.9, False)):
        said = violation(site.job(), end(now, 60.05), now, site.settings)
        assert (said == "") is fine, now


def test_the_grace_for_the_time_since_the_offer_is_included() -> None:
    """At the moment of the offer a run time is believed up to the grace itself."""
    site = delegated()
    assert violation(site.job(), end(1000.0, 1.0), 1000.0, site.settings) == ""
    assert violation(site.job(), end(1000.0, 1.1), 1000.0, site.settings) != ""


def test_a_clock_that_was_set_back_takes_nothing_from_the_grace() -> None:
    """Before the offer no time has gone by, not less than none."""
    site = delegated()
    assert violation(site.job(), end(997.0, 0.5), 997.0, site.settings) == ""


def test_an_ended_job_has_no_question_open() -> None:
    """A report overtakes the answer to a question, which nobody waits for any more."""
    site = delegated()
    site.job().question = 7
    site(ReportReceived, partner="b", completions=(end(2000.0, 100.0),))
    assert (site.job().state, site.job().question) == (JobState.ENDED, 0)


def test_with_one_clock_for_all_moments_are_not_compared() -> None:
    """In a replay the coordinator moves the clocks one after the other; run times still count."""
    site = delegated(settings(**{**STRICT, "clock_grace": math.inf}))
    assert violation(site.job(), end(9000.0, 100.0), 1000.0, site.settings) == ""
    assert violation(site.job(), end(2000.0, 111.0), 2000.0, site.settings) != ""


def test_what_cannot_be_is_brought_to_what_can() -> None:
    """The end is now, the run time no longer than requested, and than the time since the offer."""
    site = delegated()
    job = site.job()
    assert believable(job, end(-1e18, 1e300), 2000.0) == end(2000.0, 100.0)
    assert believable(job, end(1.0, 1e300), 1040.0) == end(1040.0, 40.0)
    assert believable(job, end(1.0, 3.0), 990.0) == end(990.0, 0.0)
    assert believable(job, end(1e9, 3.0), 2000.0) == end(2000.0, 3.0), "what can be stays"


def test_a_liar_is_counted_shown_and_asked_last() -> None:
    """And believed again only after as many believable ends as it takes."""
    site = delegated()
    site(ReportReceived, partner="b", completions=(end(1001.0, 1e300),))
    job, book = site.job(), site.state.partners["b"]
    assert (job.state, job.outcome, job.end_time) == (JobState.ENDED, Outcome.COMPLETED, 2000.0)
    assert job.start_time == 1900.0
    said = "a run time of 1e+300 s, 100 s requested"
    assert job.reason == f"ran at b, whose report cannot be true: {said}"
    assert (book.disbelieved, book.doubt, book.distrust) == (1, said, DISTRUST)
    assert [type(record) for record in site.journal[-2:]] == [JobEnded, ReportDisbelieved]
    # c is slower than anything, and still comes first.
    books, location = site.state.partners, site.settings.location
    books["c"].count_response(1.0, 1e9)
    assert asking_order(location, books, site.now) == ["c", "b"]
    site.restart()
    book = site.state.partners["b"]
    assert (book.disbelieved, book.doubt, book.distrust) == (1, said, DISTRUST)
    for left in reversed(range(DISTRUST)):
        book.believe_report()
        assert book.distrust == left
    assert asking_order(location, {"c": books["c"], "b": book}, site.now) == ["b", "c"]


def test_distrust_has_a_bound() -> None:
    """Whoever lies ten thousand times can still make good for it."""
    book = delegated().state.partners["b"]
    for _ in range(10_000):
        book.doubt_report("a lie")
    assert (book.disbelieved, book.distrust) == (10_000, 1000)


def test_an_instant_completion_of_a_whole_request_is_no_way_to_the_top() -> None:
    """`run_time` = request at once: the favourite of a home that believes everything."""
    site = Conversation(settings(**STRICT))
    site.now = 1000.0
    site.submit()
    site(OfferAnswered, load=FULL, accepted=True, **B1)
    site(ReportReceived, partner="b", completions=(end(1000.0, 100.0),))
    assert site.state.partners["b"].distrust == DISTRUST
    assert site.job().reason.endswith("a run time of 100 s, 0 s after the offer")


def test_settings_have_bounds() -> None:
    """A grace is not negative, and pauses are finite."""
    for wrong in ({"clock_grace": -1.0}, {"run_time_grace": math.nan}, {"elapsed_grace": -0.1}):
        with pytest.raises(ValueError, match="it must be at least 0"):
            replace(settings(), **wrong)  # type: ignore[arg-type]  # floats all
    with pytest.raises(
        ValueError,
        match=r"^probe_first_s is 9\.0 and probe_most_s 8\.0; both must be finite, and the first not more than the second$",
    ):
        settings(probe_first_s=9.0, probe_most_s=8.0)
