"""The fault test: what the protocol promises holds in thousands of bad worlds.

And the test of the test: a protocol with one of its precautions left out is found out.
"""

import math
from collections import Counter
from collections.abc import (
    Callable,
    Iterable,
)
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from grms.lrms import base
from grms.lrms.base import Lost, LrmsEvent
from grms.simulation.__main__ import main
from grms.simulation.byzantine_peers import BYZANTINE_PARTNERS
from grms.simulation.fault_run import Trial, run_trial
from grms.simulation.simulated_site import SimulatedSite
from grms.site.model.commands import AnswerStatus, Append, Command, LrmsSubmit
from grms.site.model.events import (
    BookReservation,
    Event,
    LaunchReservation,
    LrmsNews,
    LrmsRefused,
    LrmsTold,
    MoveReservation,
    OfferFailed,
    OfferReceived,
    PartnerFaulty,
    PartnerUp,
    ReportFailed,
    Restarted,
    Submit,
    TimePassed,
    WithdrawReceived,
)
from grms.site.model.jobs import GuestJob, GuestRef
from grms.site.model.lifecycle import GuestState, Outcome
from grms.site.model.records import GuestDeclined, JobLeaving, JobReturned, Record
from grms.site.runtime.executor_queue import LrmsQueue
from grms.site.scheduler.state import SiteState
from tests.examples import runs

CHUNKS = runs(1, 10)
CHUNK = 250
"""Seeds in one test, enough for every kind of harm; `benchmarks/faults.py` runs 100,000."""

SUMMED = (
    *("jobs", "delegated", "cancelled", "crashes"),
    *("faults", "disbelieved", "resubmitted", "epochs", "judged", "reserved"),
)
"""Figures of a verdict that tell whether enough happens."""

MUTANT_RUNS = 800
"""In so many runs a missing precaution has to be found out."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_acknowledged_job_runs_exactly_once(chunk: int) -> None:
    """Whatever goes wrong: after healing all is as `grms.simulation.fault_run` says."""
    seen: Counter[str] = Counter()
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        verdict = run_trial(seed)
        assert not verdict.problems, (
            f"{verdict.problems}\nto replay: python -m grms.simulation --seed {seed}"
        )
        assert verdict.twice == 0
        for name in SUMMED:
            seen[name] += getattr(verdict, name)
        seen[verdict.rogue] += 1
    # The worlds are bad enough, and work moves in them.
    assert seen["jobs"] > 5 * CHUNK
    assert (
        seen["delegated"] > CHUNK // 5
    )  # some 110 on average, and 20 more or less from chunk to chunk
    assert seen["cancelled"] > CHUNK // 2
    assert seen["crashes"] > CHUNK
    # So are the Byzantine partners, and they are found out.
    assert min(seen[manner] for manner in BYZANTINE_PARTNERS) > CHUNK // 10
    for name in ("faults", "disbelieved", "resubmitted", "epochs"):
        assert seen[name] > 0, name
    assert seen["judged"] > CHUNK
    assert seen["reserved"] > 3 * CHUNK


def test_with_resubmission_every_job_runs_at_least_once() -> None:
    """Jobs of lost partners run elsewhere; some then run twice, as the documentation warns."""
    verdicts = [run_trial(seed, on_lost="resubmit") for seed in range(runs(120, 400))]
    assert [verdict for verdict in verdicts if verdict.problems] == []
    assert sum(verdict.twice for verdict in verdicts) > 0


def test_links_that_break_in_one_direction_do_no_harm() -> None:
    """Nor do sites whose calls are answered and that nobody can call: nothing is lost, nothing runs twice."""
    seen: Counter[str] = Counter()
    for seed in range(runs(60, 4000)):
        verdict = run_trial(seed, reoffers=True, one_way=True)
        more = "--reoffers --one-way"
        assert not verdict.problems, (
            f"{verdict.problems}\nto replay: python -m grms.simulation --seed {seed} {more}"
        )
        assert verdict.twice == 0
        seen["delegated"] += verdict.delegated
        seen["moved"] += verdict.moved
    # Work moves all the same.
    assert seen["delegated"] > 10
    assert seen["moved"] > 3


def test_what_was_lost_counts_the_same_whatever_the_partners_are_when_the_journal_is_read() -> None:
    """A journal that is compacted while the only partner is off the list, so that no account is kept."""
    assert not run_trial(
        1262,
        rails=True,
        reoffers=True,
        rogues=True,
        returns=True,
        one_way=True,
        account=True,
    ).problems


def test_what_was_refused_and_comes_late_is_held_and_counts_as_no_run() -> None:
    """Also where the batch system does not let it be cancelled."""
    assert not run_trial(3_008_450, reoffers=True, returns=True).problems


@pytest.mark.parametrize(("seed", "rounds"), [(7_007_708, False), (7_015_150, True)])
def test_what_a_lost_partner_has_run_is_not_the_homes_to_know(seed: int, rounds: bool) -> None:
    """Its job is decided anew, and lost twice by the home's own batch system: so it has ended."""
    assert not run_trial(seed, on_lost="resubmit", rails=True, reoffers=rounds).problems


@pytest.mark.parametrize("rails", [False, True])
def test_jobs_that_leave_a_queue_run_exactly_once(rails: bool) -> None:
    """Waiting jobs are offered again; whoever dies when, none is lost and none runs twice."""
    seen: Counter[str] = Counter()
    for seed in range(runs(40, 2000)):
        verdict = run_trial(seed, rails=rails, reoffers=True)
        more = " --rails" if rails else ""
        assert not verdict.problems, (
            f"{verdict.problems}\nto replay: python -m grms.simulation --seed {seed} --reoffers{more}"
        )
        assert verdict.twice == 0
        for name in ("jobs", "reoffered", "moved", "crashes"):
            seen[name] += getattr(verdict, name)
    assert seen["jobs"] > 400
    assert seen["reoffered"] > 150
    assert seen["moved"] > 5
    assert seen["crashes"] > 100


class WithoutTombstone(SiteState):
    """Says that an offer is withdrawn and does not remember it."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Answers without a record."""
        if isinstance(event, WithdrawReceived):
            book = self.partners[event.partner]
            if book.answer_to(event.offer) is None:
                return [AnswerStatus(event.id, GuestState.WITHDRAWN)]
        return super().handle(event, now)


class JournalLast(SiteState):
    """Acts first and journals after that."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Puts the records at the end."""
        return sorted(super().handle(event, now), key=lambda command: isinstance(command, Append))


class WithoutLookup(SiteState):
    """Submits after a restart without looking whether the batch system has the job."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Leaves the lookup out."""
        return [
            replace(command, lookup=False) if isinstance(command, LrmsSubmit) else command
            for command in super().handle(event, now)
        ]


class NoAnswerIsNo(SiteState):
    """Takes an unknown outcome for a decline."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Does not find out."""
        if isinstance(event, OfferFailed):
            event = replace(event, sent=False)
        return super().handle(event, now)


class DecidesAnew(SiteState):
    """Decides about an offer again when it comes again."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Forgets that it declined."""
        if isinstance(event, OfferReceived):
            book = self.partners[event.partner]
            if isinstance(book.answered.get(event.offer.number), GuestState):
                del book.answered[event.offer.number]
        return super().handle(event, now)


class ForgetsDeclines(SiteState):
    """Does not journal that it declined."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Drops the record."""
        return [
            replace(
                command,
                records=tuple(r for r in command.records if not isinstance(r, GuestDeclined)),
            )
            if isinstance(command, Append)
            else command
            for command in super().handle(event, now)
        ]


class ReportsOnce(SiteState):
    """Tells the end of a job once, heard or not."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Does not repeat."""
        return [] if isinstance(event, ReportFailed) else super().handle(event, now)


class TakesNothingUp(SiteState):
    """Leaves open work where it was after a restart."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Ignores the restart."""
        return [] if isinstance(event, Restarted) else super().handle(event, now)


class IgnoresRubbish(SiteState):
    """Takes rubbish for silence."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Does not hear it."""
        return [] if isinstance(event, PartnerFaulty) else super().handle(event, now)


class BelievesEverything(SiteState):
    """Holds no report against what it knows."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Has patience with any number."""
        self.memory.settings = replace(
            self.memory.settings, run_time_grace=math.inf, clock_grace=math.inf
        )
        return super().handle(event, now)


class GivesNumbersTwice(SiteState):
    """Does not hear which of its offers a partner has seen."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Goes on in its old epoch."""
        if isinstance(event, PartnerUp):
            event = replace(event, offer_seen=None)
        return super().handle(event, now)


class SubmitsEndedAgain(SiteState):
    """Gives the batch system after a restart what has ended."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Looks it up, which is no help where the batch system has forgotten it."""
        commands = super().handle(event, now)
        if isinstance(event, Restarted):
            for book in self.partners.values():
                commands += [
                    LrmsSubmit(event.id, guest.lrms_key, guest.request, guest.payload, lookup=True)
                    for guest in book.guests.values()
                    if guest.completion is not None
                ]
        return commands


class ForgetsOpenJobs(SiteState):
    """Orders partners as if nothing were open at them."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Counts what has ended alone."""
        kept = {}
        if isinstance(event, Submit):
            for name, book in self.partners.items():
                kept[name] = (book.open_consumption, book.open_submitted)
                book.open_consumption = book.open_submitted = 0.0
        commands = super().handle(event, now)
        for name, (consumption, submitted) in kept.items():
            self.partners[name].open_consumption = consumption
            self.partners[name].open_submitted = submitted
        return commands


class NeverOverdue(SiteState):
    """Shows no operator what waits for ever."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Lets no time pass."""
        return [] if isinstance(event, TimePassed) else super().handle(event, now)


class PromisesTwice(SiteState):
    """Takes every processor that is asked for as free."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Looks at a book in which nothing is held."""
        book = self.memory.reservations
        if isinstance(event, BookReservation | MoveReservation):
            held, book.open = book.open, {}
            try:
                return super().handle(event, now)
            finally:
                book.open = {**held, **book.open}
        return super().handle(event, now)


class ForgetsReservations(SiteState):
    """Does not journal that it was asked to launch a job in a reservation."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Drops the record."""
        commands = super().handle(event, now)
        if isinstance(event, LaunchReservation):
            return [command for command in commands if not isinstance(command, Append)]
        return commands


def found_out(factory: Callable[..., SiteState], text: str, first: int, **more: Any) -> bool:
    """Returns whether some run ends in the problem, or stumbles over the error, that is named.

    Args:
        factory: of sites with that protocol.
        text: of the problem.
        first: the seed to begin with.
        more: of the runs.
    """
    for seed in range(first, first + MUTANT_RUNS):
        try:
            told = " ".join(run_trial(seed, factory=factory, **more).problems)
        except Exception as error:  # noqa: BLE001  # a wrong protocol may fail in any way
            told = str(error)
        if text in told:
            return True
    return False


@pytest.mark.parametrize(
    ("factory", "text", "first"),
    [
        (WithoutTombstone, "was run by honest sites 2 times", 171),
        (JournalLast, "the journal says", 4),
        (WithoutLookup, "was submitted before", 1),
        (NoAnswerIsNo, "was run by honest sites 2 times", 187),
        (DecidesAnew, "was run by honest sites 2 times", 80),
        (ForgetsDeclines, "the journal says", 0),
        (ReportsOnce, "guests with", 6),
        (TakesNothingUp, "has not ended", 1),
        (IgnoresRubbish, "talks rubbish and is not faulty", 15),
        (BelievesEverything, "lies were not believed", 96),
        (GivesNumbersTwice, "a second time", 322),
        (SubmitsEndedAgain, "was given to batch systems 2 times", 54),
        (ForgetsOpenJobs, "asked before", 118),
        (PromisesTwice, "processors promised at", 0),
        (ForgetsReservations, "cannot become RUNNING", 0),
        (NeverOverdue, "nobody was told", 24),
    ],
)
def test_a_missing_precaution_is_found_out(factory: type[SiteState], text: str, first: int) -> None:
    """Each precaution is there for a reason, and the fault test knows which.

    The first seed is one that shows it today; where another trial is drawn from it, later ones do.
    """
    assert found_out(factory, text, first)


def test_a_run_can_be_replayed() -> None:
    """The same seed tells the same story, to the last word."""
    stories: list[list[str]] = [[], []]
    for story in stories:
        run_trial(3, tell=story.append)
    assert stories[0] == stories[1]
    assert len(stories[0]) > 100


def test_the_command_replays_a_run() -> None:
    """`python -m grms.simulation` tells the story of one run, and the verdict of several."""
    one = CliRunner().invoke(main, ["--seed", "3"])
    assert one.exit_code == 0
    assert "event Restarted" in one.output
    assert "command SendOffer" in one.output
    assert "1 of 1 runs as they have to be" in one.output
    some = CliRunner().invoke(main, ["--seed", "3", "--count", "3", "--on-lost", "resubmit"])
    assert some.exit_code == 0
    assert some.output == "3 of 3 runs as they have to be\n"


# --- batch systems with moods --------------------------------------------------------------------


class NeverForgets(LrmsQueue):
    """Takes what is not found for what was never taken, however long ago that was."""

    def __init__(self, at_once: int, _remembers: float) -> None:
        super().__init__(at_once, math.inf)


class Deaf(LrmsQueue):
    """Does not hear that a job was forgotten."""

    def told(self, happened: Iterable[LrmsEvent]) -> list[LrmsNews]:
        """Leaves that out."""
        return super().told([one for one in happened if not isinstance(one, Lost)])


@pytest.mark.parametrize("seed", [*range(3000, 3012), 1262])
def test_batch_systems_with_moods_do_no_harm(seed: int) -> None:
    """They are late, away, forget jobs and start them anew; others hold and cancel them."""
    assert Trial(seed, scripted=True).run().problems == ()


@pytest.mark.parametrize(("queue", "seed"), [(NeverForgets, 6), (Deaf, 45)])
def test_a_careless_queue_of_commands_is_found_out(queue: type[LrmsQueue], seed: int) -> None:
    """Without either precaution a job runs twice, or waits for ever."""
    verdict = Trial(seed, scripted=True, queue=queue).run()
    assert any("2 times" in text or "has not ended" in text for text in verdict.problems)


class Withheld(SimulatedSite):
    """A site to which what partners' jobs run does not always come in time."""

    def _lrms_submit(self, command: LrmsSubmit) -> None:
        new = not command.started and self.lrms.find(command.lrms_key) is None
        if command.partner and new and self.draws.chance(0.4):
            self._given_up(command)
        else:
            super()._lrms_submit(command)

    def _given_up(self, command: LrmsSubmit) -> None:
        key = command.lrms_key
        self.lrms_told(LrmsRefused(key, "it has not come", undelivered=True))


class Careless(Withheld):
    """One that runs what comes after it has given the job back."""

    def _given_up(self, command: LrmsSubmit) -> None:
        self.lrms.submit(command.lrms_key, command.request, command.payload)
        super()._given_up(command)


@pytest.mark.parametrize("seed", range(5000, 5024))
def test_jobs_whose_programs_do_not_come_run_elsewhere(seed: int) -> None:
    """Exactly once, whatever is lost, late or down meanwhile."""
    assert Trial(seed, site=Withheld).run().problems == ()


def test_a_job_that_was_given_back_and_runs_is_found_out() -> None:
    """Its home site has decided it anew by then."""
    runs = (Trial(seed, site=Careless).run() for seed in range(5000, 5024))
    assert any("times" in problem or "twice" in problem for run in runs for problem in run.problems)


class GivesBackWhatWaits(SiteState):
    """Sends a partner's job home that nothing starts, and leaves it in the queue."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Takes it for refused."""
        news = event.news if isinstance(event, LrmsTold) else None
        if isinstance(news, base.Hindered) and news.reason:
            job = self.memory.at_lrms.get(news.key)
            if isinstance(job, GuestJob) and not job.begun:
                event = LrmsTold(event.id, LrmsRefused(news.key, news.reason))
        return super().handle(event, now)


def leaves_as_guest(record: Record) -> bool:
    """Returns whether a partner's job is to leave the queue."""
    return isinstance(record, JobLeaving) and isinstance(record.job, GuestRef)


class ForgetsWhoseWish(SiteState):
    """Does not note that it has told the batch system to let a partner's job go."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Leaves that out of the journal."""
        commands = super().handle(event, now)
        for place, command in enumerate(commands):
            if isinstance(command, Append):
                kept = tuple(one for one in command.records if not leaves_as_guest(one))
                commands[place] = replace(command, records=kept)
        return commands


class FailsWhatIsRefused(SiteState):
    """Tells a partner that its job has failed which the batch system has not taken."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Takes a refusal for an end."""
        news = event.news if isinstance(event, LrmsTold) else None
        if isinstance(news, LrmsRefused) and not news.passing:
            end = base.LrmsEnd(Outcome.FAILED, now, 0.0, reason=news.reason)
            event = LrmsTold(event.id, base.Ended(news.key, end))
        return super().handle(event, now)


def test_what_batch_systems_do_not_begin_runs_elsewhere() -> None:
    """They are shut again and again: what they refuse, and what waits there, goes home and runs exactly once."""
    seen: Counter[str] = Counter()
    for seed in range(runs(60, 2000)):
        trial = Trial(seed, scripted=True, reoffers=True)
        assert trial.run().problems == (), f"Trial({seed}, scripted=True, reoffers=True)"
        for site in trial.sites.values():
            seen["leaving"] += sum(map(leaves_as_guest, site.journal))
            seen["returned"] += sum(isinstance(record, JobReturned) for record in site.journal)
    assert seen["leaving"] > 3
    assert seen["returned"] > 5


@pytest.mark.parametrize(
    ("factory", "problem", "first"),
    [
        (GivesBackWhatWaits, "2 times", 4),
        (ForgetsWhoseWish, "has not run to its end", 130),
        (FailsWhatIsRefused, "has not run to its end", 15),
    ],
)
def test_who_is_careless_with_what_never_began_is_found_out(
    factory: type[SiteState], problem: str, first: int
) -> None:
    """It leaves the queue first, that is noted before, and it is told as undone; seeds are as above."""
    for seed in range(first, first + MUTANT_RUNS):
        verdict = Trial(seed, factory, scripted=True, reoffers=True).run()
        if any(problem in text for text in verdict.problems):
            return
    pytest.fail(f"in {MUTANT_RUNS} runs nothing of it is seen")
