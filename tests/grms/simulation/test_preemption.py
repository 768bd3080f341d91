"""Jobs that are sent home run again, one after the other; and a site that is careless about it is found out."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from grms.lrms import base
from grms.simulation.__main__ import main
from grms.simulation.actors import Wish
from grms.simulation.batch_system import GOES_ON, FakeLrms, FakeLrmsJob
from grms.simulation.clock import ManualClock
from grms.simulation.fault_run import Trial, run_trial
from grms.simulation.preemption import RerunChecker
from grms.site.model.commands import Append, Command, LrmsSubmit, ProtectGuests
from grms.site.model.events import (
    Event,
    LrmsTold,
    PartnerLost,
    ReportReceived,
    Restarted,
    StateFetched,
)
from grms.site.model.jobs import Completion, OfferId, Request
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.records import JobSentHome, Record, RerunAllowed
from grms.site.scheduler.state import SiteState
from tests.examples import runs
from tests.grms.simulation.test_fault_run import found_out

MODES: dict[str, dict[str, Any]] = {
    "alone": {},
    "reoffers": {"reoffers": True},
    "together": {"rails": True, "reoffers": True, "rogues": True},
    "arrays": {"reoffers": True, "arrays": True},
}


@pytest.mark.parametrize("mode", MODES)
def test_jobs_that_are_sent_home_run_to_their_end_once(mode: str) -> None:
    """Whoever dies when: no two runs at a time, none before the host's word, and what was lost is known."""
    seen: Counter[str] = Counter()
    # Without other ways out of a queue few jobs are at partners.
    for seed in range(runs(20 if MODES[mode] else 40, 1000)):
        verdict = run_trial(seed, returns=True, **MODES[mode])
        more = "".join(f" --{word}" for word in MODES[mode])
        assert not verdict.problems, (
            f"{verdict.problems}\nto replay: python -m grms.simulation --seed {seed} --returns{more}"
        )
        assert verdict.twice == 0
        for name in ("jobs", "delegated", "sent_home", "lost_s", "kept_s", "crashes"):
            seen[name] += getattr(verdict, name)
    assert seen["delegated"] > 20
    assert seen["sent_home"] > 3
    assert seen["lost_s"] > 3
    assert seen["kept_s"] > 0.1
    assert seen["crashes"] > 100


@pytest.mark.parametrize(
    ("seed", "arrays"),
    [
        (
            10_845,
            False,
        ),  # an earlier submission comes when the batch system has forgotten the job's end
        (10_186, True),  # the same
        (
            41_575,
            True,
        ),  # that a partner's job stays was noted, and has been left out of the journal since
    ],
)
def test_what_was_no_fault_of_a_site_is_not_held_against_it(seed: int, arrays: bool) -> None:
    """Runs in which the judge was wrong once."""
    assert not run_trial(seed, reoffers=True, arrays=arrays, returns=True).problems


def test_what_has_ended_is_not_handed_in_once_more_when_a_refusal_passes() -> None:
    """An earlier attempt without an answer has come meanwhile, and the batch system has forgotten its end."""
    assert not run_trial(60_104, reoffers=True, arrays=True, returns=True).problems


def test_what_is_sent_home_at_lost_partners_that_are_given_up_is_excused() -> None:
    """There a job may run twice, as the documentation warns."""
    verdicts = [run_trial(seed, on_lost="resubmit", returns=True) for seed in range(runs(40, 400))]
    assert [verdict for verdict in verdicts if verdict.problems] == []


def test_without_the_word_of_the_site_nothing_is_sent_home() -> None:
    """No record of such a thing, and no batch system may end a job."""
    for seed in range(20):
        trial = Trial(seed, reoffers=True)
        assert trial.run().sent_home == 0
        for site in trial.sites.values():
            kinds = {type(record).__name__ for record in site.journal}
            assert not kinds & {"RerunAllowed", "GuestPreemptible", "JobSentHome"}
            assert not any(job.preemptible for job in site.lrms.history)


def test_the_command_replays_such_runs() -> None:
    """And says how often jobs were sent home."""
    told = CliRunner().invoke(main, ["--seed", "1", "--returns", "--reoffers"])
    assert told.exit_code == 0
    assert " were sent home" in told.output
    assert "1 of 1 runs as they have to be" in told.output


# --- careless sites ------------------------------------------------------------------------------


class StartsOnSilence(SiteState):
    """As home it takes the silence of a lost partner for the word that it has sent its jobs home."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Decides them anew."""
        commands = super().handle(event, now)
        if isinstance(event, PartnerLost):
            ended = tuple(
                Completion(job.offer, Outcome.PREEMPTED, now, 0.0)
                for job in self.partners[event.partner].open.values()
                if job.rerun
            )
            report = ReportReceived(event.id, event.load, event.partner, ended)
            commands += super().handle(report, now)
        return commands


class TakesReturnsTwice(SiteState):
    """As home it runs a job again each time that its return is reported."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Remembers which job a return was of, and hands it in once more."""
        known: dict[tuple[str, OfferId], int] = self.__dict__.setdefault("known", {})
        more: list[Command] = []
        for completion in event.completions if isinstance(event, ReportReceived) else ():
            assert isinstance(event, ReportReceived)
            if completion.outcome is not Outcome.PREEMPTED:
                continue
            offer = event.partner, completion.offer
            job = self.partners[event.partner].away(completion.offer)
            if job is not None and job.rerun:
                known[offer] = job.job
            elif offer in known and (again := self.memory.jobs.get(known[offer])) is not None:
                key = f"{again.lrms_key}/99"
                more.append(LrmsSubmit(event.id, key, again.request, again.payload))
        return super().handle(event, now) + more


class SaysItEarly(SiteState):
    """As host it says that a job was ended when it is about to be."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Does not wait for the batch system's word."""
        commands = super().handle(event, now)
        if isinstance(event, LrmsTold) and isinstance(event.news, base.Started):
            guest = self.memory.at_lrms.get(event.news.key)
            if guest is not None and guest.preemptible and guest.state is JobState.RUNNING:
                end = base.LrmsEnd(Outcome.PREEMPTED, now, 0.0)
                early = LrmsTold(event.id, base.Ended(event.news.key, end))
                commands += super().handle(early, now)
        return commands


class PreemptsAnybody(SiteState):
    """As host it has the batch system end any job."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Does not look at what the offer said."""
        return [
            replace(command, preemptible=bool(command.partner))
            if isinstance(command, LrmsSubmit)
            else command
            for command in super().handle(event, now)
        ]


class AsksForEver(SiteState):
    """As home it goes on offering a job to who sends it home each time."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Has any number of returns."""
        self.memory.settings = replace(self.memory.settings, empty_returns=99)
        return super().handle(event, now)


class BelievesClaims(SiteState):
    """As home it takes what a partner says it has kept for kept, whether it hands it out or not."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Runs the job on from what has not come."""
        if isinstance(event, StateFetched) and event.reason:
            event = replace(event, reason="", restored=GOES_ON + b"0.125")
        return super().handle(event, now)


def without(kind: type[Record]) -> type[SiteState]:
    """Returns a site that does not journal a kind of records."""

    class Forgets(SiteState):
        def handle(self, event: Event, now: float) -> list[Command]:
            return [
                replace(
                    command,
                    records=tuple(one for one in command.records if not isinstance(one, kind)),
                )
                if isinstance(command, Append)
                else command
                for command in super().handle(event, now)
            ]

    return Forgets


@pytest.mark.parametrize(
    ("factory", "text", "first"),
    [
        (StartsOnSilence, "had not been sent home by then", 68),
        (TakesReturnsTwice, "had not been sent home by then", 20),
        (SaysItEarly, "had not been sent home by then", 1),
        (PreemptsAnybody, "must not run again, and a batch system could end it", 0),
        (AsksForEver, "home 3 times", 20),
        (without(RerunAllowed), "has not run to its end", 25),
        (without(JobSentHome), "cannot become", 1),
        (BelievesClaims, "goes on from 0.125 s, which no run has written", 28),
    ],
)
def test_a_careless_site_is_found_out(
    factory: Callable[..., SiteState], text: str, first: int
) -> None:
    """With one precaution less some run ends as it must not."""
    assert found_out(factory, text, first, returns=True, reoffers=True)


# --- the machine, and the judge ------------------------------------------------------------------


def machine() -> FakeLrms:
    """Returns a batch system of four processors, where jobs run ten seconds."""
    return FakeLrms(ManualClock(), 4, lambda _: 10.0)


def test_a_preempted_job_has_ended_and_makes_room() -> None:
    """Its end is as if it had run so far; the next one starts at once."""
    lrms = machine()
    lrms.submit("b/1/1", Request(4, 20.0), b"one", preemptible=True)
    lrms.submit("a/1/1", Request(4, 20.0), b"two")
    lrms.clock.advance(3.0)
    lrms.preempt("b/1/1")
    gone, next_one = lrms.jobs["b/1/1"], lrms.jobs["a/1/1"]
    assert (gone.outcome, gone.end_time, gone.start_time) == (Outcome.PREEMPTED, 3.0, 0.0)
    lrms.clock.advance(3.0)
    assert next_one.start_time == 3.0
    with pytest.raises(AssertionError):
        lrms.preempt("a/1/1")


def checked(*story: FakeLrmsJob, **changes: Any) -> list[str]:
    """Returns what is found of a job of site a with such runs, and with what its home has noted."""
    given: dict[str, Any] = {"requeue": "allow", "lost": (3.0,), "outcome": Outcome.COMPLETED}
    given |= changes
    trial = Trial(0)
    trial.run()
    name, site = next(iter(trial.sites.items()))
    site.settings = replace(site.settings, requeue=given["requeue"])
    job = next(iter(site.state.jobs()))
    job.outcome = given["outcome"]
    for lost in given["lost"]:
        job.note_sent_home(name, lost)
    wish = Wish(name, "key", story[0].request, 10.0, 0.0, None, job.job_id)
    problems: list[str] = []
    checker = RerunChecker({name: site}, strict=True, problems=problems)
    last = checker.last_runs({b"run": wish}, {b"run": list(story)})
    assert last[b"run"] == [run for run in story if run.outcome is not Outcome.PREEMPTED]
    return problems


def ran(begin: float, end: float, outcome: Outcome = Outcome.PREEMPTED) -> FakeLrmsJob:
    """Returns a run that was handed in when it began."""
    first = outcome is Outcome.PREEMPTED
    return FakeLrmsJob(
        *(f"key {begin}", Request(1, 20.0), b"run"),
        submit_time=begin,
        start_time=begin,
        end_time=end,
        outcome=outcome,
        preemptible=first,
        runs=1,
    )


def test_the_judge_sees_what_must_not_be() -> None:
    """Two runs at a time, wrong counts, wrong sums, jobs that must not run again, and too many returns."""
    once, last = ran(0.0, 3.0), ran(4.0, 14.0, Outcome.COMPLETED)
    assert checked(once, last) == []
    assert "had not been sent home" in checked(once, ran(2.0, 9.0, Outcome.COMPLETED))[0]
    running = replace(once, end_time=None, outcome=None)
    assert "had not been sent home" in checked(running, last, lost=())[0]
    assert "says 0 times" in checked(once, last, lost=())[0]
    assert "says 2 times" in checked(once, last, lost=(1.0, 2.0))[0]
    assert "says 2.5 s" in checked(once, last, lost=(2.5,))[0]
    assert "must not run again" in checked(once, last, requeue="never")[0]
    thrice = [ran(0.0, 1.0), ran(1.0, 2.0), ran(2.0, 3.0), last]
    assert "home 3 times" in checked(*thrice, lost=(1.0, 1.0, 1.0))[0]
    # The last end may be one that is not known any more, or that came too late for a cancelled job.
    for outcome in (Outcome.UNKNOWN, Outcome.CANCELLED):
        assert checked(once, lost=(), outcome=outcome) == []
    assert math.isclose(once.end_time or 0.0, 3.0)


# --- the account of strict exchange --------------------------------------------------------------


@pytest.mark.parametrize("mode", ["alone", "together"])
def test_accounts_turn_while_everything_fails(mode: str) -> None:
    """Daemons die between a turn and what they then ask of their batch systems, and places are held meanwhile."""
    seen: Counter[str] = Counter()
    for seed in range(runs(8, 1000)):
        trial = Trial(seed, returns=True, account=True, **MODES[mode])
        verdict = trial.run()
        more = "".join(f" --{word}" for word in ("account", *MODES[mode]))
        assert not verdict.problems, (
            f"{verdict.problems}\nto replay: python -m grms.simulation --seed {seed} --returns{more}"
        )
        seen["sent_home"] += verdict.sent_home
        for site in trial.sites.values():
            account = site.state.memory.account
            seen["turns"] += 0 if account is None else account.changes
    assert seen["turns"] > 15
    assert seen["sent_home"] > 0 or mode == "alone"


class Forgetful(SiteState):
    """A site that does not ask its batch system anew after a restart."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Leaves that command out."""
        commands = super().handle(event, now)
        if not isinstance(event, Restarted):
            return commands
        return [one for one in commands if not isinstance(one, ProtectGuests)]


def test_a_site_that_forgets_what_its_account_says_is_found_out() -> None:
    """Its daemon has died between the two."""
    assert found_out(Forgetful, "its batch system protects guests", 1, returns=True, account=True)
