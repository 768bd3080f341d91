"""Own jobs whose places in the queue are kept while they are at a partner that may send them home."""

from typing import Any

import pytest

from grms.lrms import base
from grms.site.model.commands import Command, LrmsCancel, LrmsSubmit, SendOffer
from grms.site.model.events import (
    Cancel,
    LrmsAppeared,
    LrmsLetGo,
    OfferAnswered,
    ReportReceived,
    Restarted,
    RoundDue,
    StatusAnswered,
)
from grms.site.model.jobs import Completion
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.rpc.job_service import place_of
from tests.grms.site.conversation import FULL, Conversation, offer, one, settings

KEY = "a/7/1"
B1: dict[str, Any] = {"partner": "b", "offer": offer(1)}
BEFORE = settings(requeue="allow", keeps_places=True)


def home(**changes: Any) -> Conversation:
    """Returns a site whose jobs may run again, and whose batch system keeps places."""
    return Conversation(settings(**{"requeue": "allow", "keeps_places": True, **changes}))


def submissions(said: list[Command]) -> list[LrmsSubmit]:
    """Returns what the batch system gets."""
    return [command for command in said if isinstance(command, LrmsSubmit)]


def away(**changes: Any) -> tuple[Conversation, list[Command]]:
    """Returns a site whose job partner b has taken on its arrival, and what was then to be done."""
    site = home(**changes)
    site.submit(load=FULL)
    return site, site(OfferAnswered, load=FULL, accepted=True, **B1)


class Places:
    """A batch system that keeps places, as far as it is asked for what it knows of one: `known`."""

    queue_place = base.QueuePlace.KEPT
    known = ""

    async def keep_place(self, job: base.LrmsJob) -> None:
        """Is not asked."""
        raise AssertionError(job)

    async def leave(self, key: str) -> bool:
        """Is not asked."""
        raise AssertionError(key)

    def place_words(self, key: str) -> str:
        """Returns what is known."""
        assert key == KEY
        return self.known


def test_what_place_a_job_keeps_is_shown_where_it_matters() -> None:
    """While it is at a partner that may send it home, and when it waits after that; else nothing is said."""
    system = Places()
    lrms: Any = system
    site, _ = away()
    assert place_of(lrms, site.job()).startswith("it comes back to a place behind")
    alone, _ = away(requeue="never")
    assert place_of(lrms, alone.job()) == ""
    ended(site, Outcome.PREEMPTED)
    site(OfferAnswered, load=FULL, accepted=False, partner="c", offer=offer(1))
    assert site.job().state is JobState.SUBMITTING
    assert place_of(lrms, site.job()) == ""
    system.known = "it came back to its place"
    assert place_of(lrms, site.job()) == system.known


def ended(site: Conversation, outcome: Outcome) -> list[Command]:
    """Lets partner b say that the job has ended."""
    completion = Completion(offer(1), outcome, site.now, 3.0)
    return site(ReportReceived, load=FULL, partner="b", completions=(completion,))


def test_a_job_that_may_come_back_has_its_place_kept() -> None:
    """It is noted nowhere: after a restart it is asked for once more."""
    site, said = away()
    assert site.job().state is JobState.DELEGATED
    (kept,) = submissions(said)
    assert (kept.lrms_key, kept.aside, kept.lookup, kept.started) == (KEY, True, False, False)
    site.restart(BEFORE)
    assert submissions(site(Restarted, load=FULL)) == [
        LrmsSubmit(**{**_values(kept), "cause": site.last_id})
    ]


def _values(command: LrmsSubmit) -> dict[str, Any]:
    return {name: getattr(command, name) for name in command.__dataclass_fields__}


@pytest.mark.parametrize("changes", [{"requeue": "never"}, {"keeps_places": False}])
def test_a_job_that_does_not_come_back_has_none(changes: dict[str, Any]) -> None:
    """Nor where the batch system keeps none."""
    site, said = away(**changes)
    assert site.job().state is JobState.DELEGATED
    assert submissions(said) == []
    site.restart(settings(**{"requeue": "allow", "keeps_places": True, **changes}))
    assert submissions(site(Restarted, load=FULL)) == []


def test_a_job_that_is_sent_home_has_its_place_again() -> None:
    """It is submitted under its key without the word that it is elsewhere; meanwhile its place stays with another partner."""
    site, _ = away()
    said = ended(site, Outcome.PREEMPTED)
    assert one(said, SendOffer).partner == "c"
    assert submissions(said) == []
    said = site(OfferAnswered, load=FULL, accepted=False, partner="c", offer=offer(1))
    (back,) = submissions(said)
    assert (back.lrms_key, back.aside, back.place is not None) == (KEY, False, True)
    assert not [command for command in said if isinstance(command, LrmsCancel)]


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.FAILED, Outcome.UNKNOWN])
def test_a_job_that_has_ended_gives_up_its_place(outcome: Outcome) -> None:
    """How ever it has ended; what came later at home is nobody's place."""
    site, _ = away()
    cancel = one(ended(site, outcome), LrmsCancel)
    assert (cancel.lrms_key, cancel.only_waiting) == (KEY, False)
    assert one(site(LrmsAppeared, key=KEY), LrmsCancel).lrms_key == KEY


def test_a_job_that_is_cancelled_at_home_ends_once() -> None:
    """Where it runs at home, nothing is given up but itself."""
    site, _ = away()
    ended(site, Outcome.PREEMPTED)
    site(OfferAnswered, load=FULL, accepted=False, partner="c", offer=offer(1))
    site(base.Accepted, key=KEY)
    assert one(site(Cancel, user="ann", job_id=site.job().job_id), LrmsCancel).lrms_key == KEY
    values = {"outcome": Outcome.CANCELLED, "end_time": 5.0, "run_time": 0.0}
    assert site(base.Ended, key=KEY, **values) == []


def test_a_place_is_known_by_its_key() -> None:
    """That of a job of this site that may come back, whatever else the batch system has."""
    site, _ = away()
    memory = site.state.memory
    keys = ("a/7/1", "a/7/1/2", "b/7/1", "a/8/1", "a/7/2", "a/7/x", "a/7", "a", "", "pilot 1")
    assert [key for key in keys if memory.keeps_place(key)] == ["a/7/1", "a/7/1/2"]
    ended = Completion(offer(1), Outcome.COMPLETED, 5.0, 1.0)
    site(ReportReceived, load=FULL, partner="b", completions=(ended,))
    assert not any(memory.keeps_place(key) for key in keys)
    other, _ = away(keeps_places=False)
    assert not any(other.state.memory.keeps_place(key) for key in keys)


def test_what_appears_may_be_a_place() -> None:
    """As long as the job is not here; under whichever of its keys the batch system has it."""
    site, _ = away()
    for key in (KEY, f"{KEY}/2"):
        assert site(LrmsAppeared, key=key) == []
    for key in ("a/7/2", "a/8/1", "b/7/1", "nobody's"):
        assert one(site(LrmsAppeared, key=key), LrmsCancel).only_waiting


@pytest.mark.parametrize("restarted", [False, True])
def test_a_waiting_job_leaves_and_keeps_its_place(*, restarted: bool) -> None:
    """Its next key has it."""
    site = Conversation(settings(requeue="allow", keeps_places=True, reoffer=900.0), up=())
    site.submit(load=None)
    site(base.Accepted, key=KEY)
    site.up = ("b", "c")
    site.come_up()
    site(RoundDue, load=FULL)
    said = site(OfferAnswered, load=FULL, accepted=True, **B1)
    if restarted:
        site.restart(settings(requeue="allow", keeps_places=True, reoffer=900.0))
        said = site(Restarted, load=FULL)
    cancel = one(said, LrmsCancel)
    assert (cancel.only_waiting, cancel.keep_place) == (True, True)
    site(LrmsLetGo, key=KEY, done=True)
    site(base.Ended, key=KEY, outcome=Outcome.CANCELLED, end_time=5.0, run_time=0.0)
    assert site(LrmsAppeared, key=KEY) == []
    question = site.job().question
    said = site(
        StatusAnswered,
        load=FULL,
        question=question,
        status=GuestState.ACCEPTED,
        completion=None,
        **B1,
    )
    (kept,) = submissions(said)
    assert (kept.lrms_key, kept.aside) == (f"{KEY}/2", True)
    said = ended(site, Outcome.PREEMPTED)
    if submissions(said) == []:
        said = site(OfferAnswered, load=FULL, accepted=False, partner="c", offer=offer(1))
    (back,) = submissions(said)
    assert (back.lrms_key, back.aside) == (f"{KEY}/2", False)
