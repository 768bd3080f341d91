"""Jobs that are sent home, in the fault test: who preempts what, and what has to hold then.

Batch systems end partners' jobs by chance, those alone that they may end. Of every job:

- only the last of its runs ends in another way, and no run is handed to a batch system before the one before it has ended;
- what its home has noted is what has happened: how often which partner has sent it home, and what was lost;
- a job whose user has said that it must not run again, or whose home or partner has not agreed to such handings, was
  never handed to a batch system as one that it may end;
- it was not sent home with nothing kept more often than `SiteSettings.empty_returns` in all;
- what its home says is kept was written by a run, and a run goes on from what an earlier one has written, or begins anew;
- a site's batch system was last asked to protect guests where its account of itself says so.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from grms.simulation.actors import Wish
from grms.simulation.batch_system import FakeLrmsJob
from grms.simulation.random_source import RandomSource
from grms.simulation.simulated_site import SimulatedSite
from grms.site.model.jobs import HomeJob, Request
from grms.site.model.lifecycle import Outcome
from lrms_sim.workload.requests import Request as Needs

LOOK_S: Final = 0.5
"""Interval at which batch systems may preempt, seconds."""

ONCE: Final = 0.15
"""Probability that a job must not run again, by its user."""

_CLOSE: Final = 1e-6
_UNHEARD: Final = frozenset({Outcome.CANCELLED, Outcome.UNKNOWN})
"""Outcomes with which the end of a preempted run need not have been noted as a return: its user has cancelled the job
meanwhile, or the batch system had forgotten how it ended."""


def asked_by_user(draws: RandomSource, request: Request) -> Request:
    """Returns a request, sometimes with its user's word that the job must not run again."""
    if not draws.chance(ONCE):
        return request
    needs = Needs.of_processors(request.processors, request.requested_time)
    return replace(request, needs=replace(needs, requeue=False))


def checkpoint_of_user(draws: RandomSource, request: Request) -> float:
    """Returns how often a job writes its state, seconds; 0 for every second one, and for all that must not run again."""
    writes = draws.chance(0.5)
    once = request.needs is not None and request.needs.requeue is False
    return 1.0 if writes and not once else 0.0


def draw_returns(draws: RandomSource, sites: Iterable[SimulatedSite]) -> None:
    """Lets most sites that have not begun have jobs run again, and preempt those of partners."""
    for site in sites:
        again, preempts = draws.chance(0.85), draws.chance(0.85)
        site.settings = replace(
            site.settings, requeue="allow" if again else "never", preempt_guests=preempts
        )


@dataclass(slots=True)
class Preemptions:
    """Has batch systems end jobs for other ones; `probability` is that of one job between two looks."""

    draws: RandomSource
    probability: float
    until: float

    @classmethod
    def drawn(cls, draws: RandomSource, until: float) -> "Preemptions":
        """Returns those of a run; they end at a moment, in seconds."""
        return cls(draws, (0.02, 0.1, 0.4)[draws.integer(0, 2)], until)

    def begin(self, sites: Iterable[SimulatedSite]) -> None:
        """Looks at the batch systems of sites from now on."""
        for site in sites:
            self._look_at(site)

    def _look_at(self, site: SimulatedSite) -> None:
        machine, clock = site.lrms, site.clock
        for job in list(machine.jobs.values()):
            runs = job.preemptible and job.start_time is not None and job.outcome is None
            if runs and self.draws.chance(self.probability):
                share = self.draws.between(0.0, 1.0)
                machine.preempt(job.key, kept=share if self.draws.chance(0.8) else 0.0)
        if clock.now < self.until:
            clock.after(LOOK_S, self._look_at, site)


@dataclass(slots=True)
class RerunChecker:
    """Judges the runs of jobs that may run again; `problems` gets what is not as it has to be, in sentences.

    Attributes:
        sites: the honest ones, by name.
        everybody: all sites, also those that are not honest.
        strict: homes never have a job run twice; else they do at lost partners.
        returns: so many runs were noted as returns.
        lost: the work that was lost by that, by its homes, seconds.
        kept: what was kept of it, likewise.
    """

    sites: Mapping[str, SimulatedSite]
    strict: bool
    problems: list[str]
    everybody: Iterable[SimulatedSite] = ()
    returns: int = 0
    lost: float = 0.0
    kept: float = 0.0

    def judge_protection(self) -> None:
        """Judges what the batch systems of sites that send guests home were last asked to do."""
        for name, site in self.sites.items():
            account = site.state.memory.account
            if account is None or not site.state.settings.sends_guests_home:
                continue
            if site.protects is not account.in_credit:
                self.problems.append(
                    f"{name} is in credit: {account.in_credit}; its batch system protects guests: {site.protects}"
                )

    def last_runs(
        self, wishes: Mapping[bytes, Wish], runs: Mapping[bytes, list[FakeLrmsJob]]
    ) -> dict[bytes, list[FakeLrmsJob]]:
        """Returns the runs that were not preempted, and judges the others."""
        found = {}
        for payload, all_runs in runs.items():
            wish = wishes[payload]
            found[payload] = [run for run in all_runs if run.outcome is not Outcome.PREEMPTED]
            if wish.home in self.sites:
                job = self.sites[wish.home].state.job(wish.job_id)
                if job is not None:
                    self._judge(job, wish, all_runs)
        return found

    def _judge(self, job: HomeJob, wish: Wish, runs: list[FakeLrmsJob]) -> None:
        home, name = self.sites[wish.home], job.job_id
        ordered = sorted(runs, key=lambda run: run.submit_time)
        for before, after in pairwise(ordered):
            if self.strict and not (
                before.outcome is Outcome.PREEMPTED
                and before.end_time is not None
                and before.end_time <= after.submit_time
            ):
                self.problems.append(
                    f"{name} was handed to a batch system at {after.submit_time:.3f}, and had not been sent home by then"
                )
        needs = wish.request.needs
        once = needs is not None and needs.requeue is False
        allowed = home.settings.requeue == "allow" and not once
        if not allowed and any(run.preemptible for run in runs):
            self.problems.append(f"{name} must not run again, and a batch system could end it")
        empty = job.times_sent_home_in_all - sum(one.kept_times for one in job.sent_home)
        if empty > home.settings.empty_returns:
            self.problems.append(f"{name} was sent home {empty} times with nothing kept")
        if ordered:
            self._judge_state(job, wish, ordered)
        self._judge_notes(job, [run for run in ordered if run.outcome is Outcome.PREEMPTED])

    def _judge_state(self, job: HomeJob, wish: Wish, runs: list[FakeLrmsJob]) -> None:
        # Byzantine partners may have run it as well, and have written what it goes on from.
        written = {0.0}
        for site in self.everybody:
            for run in site.lrms.history:
                if run.payload == runs[0].payload and run.outcome is Outcome.PREEMPTED:
                    written.add(run.done + run.written)
        for run in runs:
            if not any(math.isclose(run.done, each, abs_tol=_CLOSE) for each in written):
                self.problems.append(
                    f"{job.job_id} goes on from {run.done:g} s, which no run has written"
                )
        if not wish.checkpoint and any(run.done for run in runs):
            self.problems.append(f"{job.job_id} writes no state, and goes on from some")

    def _judge_notes(self, job: HomeJob, ended: list[FakeLrmsJob]) -> None:
        # What a site that is not honest has told is left out.
        honest = [one for one in job.sent_home if one.site in self.sites]
        noted, lost = sum(one.times for one in honest), sum(one.lost for one in honest)
        kept = sum(one.kept for one in honest)
        self.returns += noted
        self.lost += lost
        self.kept += kept
        if not self.strict:
            return
        unheard = len(ended) - noted
        if unheard != 0 and not (unheard == 1 and job.outcome in _UNHEARD):
            self.problems.append(
                f"{job.job_id} was sent home {len(ended)} times, and its home says {noted} times"
            )
            return
        ran = sum(
            run.end_time - run.start_time
            for run in ended[:noted]
            if run.start_time is not None and run.end_time is not None
        )
        if not math.isclose(lost + kept, ran, abs_tol=_CLOSE):
            self.problems.append(
                f"{job.job_id} has run {ran:g} s, and its home says {lost:g} s lost and {kept:g} s kept"
            )
