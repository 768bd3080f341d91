"""The effect that other transfer policies would have had: the last months, replayed with each.

The site's machine, local jobs and accepted guests are as in its journal; partners' answers are modelled
(`answers`). As a journal lacks declined guests, a policy that would take more is judged on the accepted ones.
The model also ignores that partners may answer a changed site differently. Exchange constraints and the way partners are held
to their promises are those of the daemon.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np

from grms.policy.transfer import TransferPolicy
from grms.site.accounting.accounts import Accounts, GuestRun, OwnRun
from grms.site.accounting.counterfactual import as_it_was, comparable, replay
from grms.site.accounting.peer_model import PartnerAnswers
from grms.site.accounting.policy_site import policy_site
from lrms_sim.scheduling.disciplines import Discipline
from lrms_sim.workload.jobs import BoolArray, FloatArray, Int64Array

ALONE: Final = "alone"
AS_IT_WAS: Final = "as it was"
"""Names of the reference rows."""

DAY_S: Final = 86400.0
WEEKS_FROM_DAYS: Final = 56
"""Windows of at least this many days are resampled by weeks, shorter ones by days."""

RESAMPLED: Final = 1000
"""Resamplings per interval."""

PROGRESS_JOBS: Final = 5000
"""Jobs between two progress calls."""


@dataclass(frozen=True, slots=True)
class Advised:
    """Effect of a policy on local users.

    Attributes:
        mean_wait, awrt: of local jobs in the window, seconds.
        improvement: 1 - AWRT / AWRT alone.
        low, high: 95 % confidence interval of it; nan with fewer than two days.
        given: these jobs run by partners.
        taken: partners' jobs run here, in the whole journal.
        jobs: local jobs in the window.
    """

    policy: str
    mean_wait: float
    awrt: float
    improvement: float
    low: float
    high: float
    given: int
    taken: int
    jobs: int


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """Result of a replay.

    Attributes:
        end_time: of local jobs, seconds, in their order.
        given: shape (n,), which of them partners have run.
        taken: number of partners' jobs run here.
    """

    end_time: FloatArray
    given: BoolArray
    taken: int


class PolicyReplay:
    """One site, its local users and a model of its partners on one clock.

    `own` jobs are ordered by submission and number; each has run and fits the machine. `guests` are accepted
    jobs of partners.
    """

    def __init__(
        self,
        own: Sequence[OwnRun],
        guests: Sequence[GuestRun],
        answers: PartnerAnswers,
        processors: int,
        discipline: Discipline,
    ) -> None:
        self._own = own
        self._answers = answers
        self._processors = processors
        self._discipline = discipline
        arrivals: list[tuple[float, int, int | GuestRun]] = [
            (run.submit_time, run.received_after, row) for row, run in enumerate(own)
        ]
        arrivals += [
            (run.accept_time, run.accepted_after, run)
            for run in guests
            if run.run_time > 0 and run.processors <= processors
        ]
        self._arrivals = sorted(arrivals, key=lambda one: one[:2])

    def run(
        self,
        policies: Mapping[str, TransferPolicy],
        progress: Callable[[int], None] = lambda _: None,
        partners_asked: int | None = None,
    ) -> PolicyOutcome:
        """Returns the result of transfer policies, by partner; partners without one exchange nothing.

        `progress` gets the number of arrived jobs now and then; `partners_asked` limits the partners asked
        about a job.
        """
        site = policy_site(self._processors, self._discipline, policies, partners_asked)
        end_time = np.full(len(self._own), math.nan)
        given = np.zeros(len(self._own), bool)
        rows: dict[int, int] = {}
        taken = 0
        for count, (now, _, what) in enumerate(self._arrivals):
            site.come_to(now)
            if isinstance(what, GuestRun):
                taken += site.take(what)
            else:
                run = self._own[what]
                partner = site.give(run, self._answers)
                if partner is None:
                    rows[site.keep(run)] = what
                else:
                    wait = self._answers.wait(run.job, partner, run.processors, run.requested_time)
                    end_time[what], given[what] = now + wait + run.run_time, True
                    site.entrust(run, partner, end_time[what])
            if count % PROGRESS_JOBS == 0:
                progress(count)
        for number, end in enumerate(site.ends().tolist()):
            if number in rows:
                end_time[rows[number]] = end
        site.check()
        return PolicyOutcome(end_time, given, taken)


def advise(  # all that a study rests on, each by its name
    accounts: Accounts,
    processors: int,
    discipline: Discipline,
    policies: Mapping[str, Mapping[str, TransferPolicy]],
    *,
    rng: np.random.Generator,
    since: float = math.inf,
    partners_asked: Mapping[str, int | None] = MappingProxyType({}),
    progress: Callable[[str, int], None] = lambda _, __: None,
) -> tuple[Advised, ...]:
    """Returns the effect of policies on local users, after the rows `ALONE` and `AS_IT_WAS`.

    `ALONE` has all local jobs at home and no guests. `policies` are by name, those for each partner; all have the
    same partners, in asking order, of whom at most `partners_asked` (by name, default all) are asked about a job.
    Jobs count that ended at most `since` seconds before the last record. `rng` is for modelled answers and for
    the intervals; `progress` gets the name of a policy and the number of jobs now and then.

    Raises:
        ValueError: the discipline cannot replay such jobs, or a policy in Python has failed.
    """
    begin = accounts.last_time - since if since < math.inf else -math.inf
    own, _ = comparable(accounts, processors, begin)
    was = as_it_was(own, processors)
    window = was.end_time > begin
    names = list(dict.fromkeys(name for each in policies.values() for name in each))
    answers = PartnerAnswers(accounts, processors, names, [run.job for run in own], rng)
    site = PolicyReplay(own, accounts.guests, answers, processors, discipline)
    given = np.array([bool(run.partner) for run in own], bool)
    outcomes = {
        ALONE: PolicyOutcome(replay(was.jobs, processors, discipline).end_time, given & False, 0),
        AS_IT_WAS: PolicyOutcome(was.end_time, given, len(accounts.guests)),
    }
    for word, each in policies.items():
        told = partial(progress, word)
        outcomes[word] = site.run(each, told, partners_asked.get(word))
    submit, run_time = was.jobs.submit_time, was.jobs.run_time
    weight = was.jobs.resource_consumption
    sums = {word: weight * (found.end_time - submit) for word, found in outcomes.items()}
    blocks = _blocks(submit[window], rng)
    return tuple(
        Advised(
            word,
            _ratio(
                (found.end_time - run_time - submit)[window].sum(), float(np.count_nonzero(window))
            ),
            _ratio(sums[word][window].sum(), weight[window].sum()),
            1.0 - _ratio(sums[word][window].sum(), sums[ALONE][window].sum()),
            *blocks.interval(sums[word][window], sums[ALONE][window]),
            int(np.count_nonzero(found.given & window)),
            found.taken,
            int(np.count_nonzero(window)),
        )
        for word, found in outcomes.items()
    )


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else math.nan


@dataclass(frozen=True, slots=True)
class _Blocks:
    # Days or weeks: the block of each job, and how often each counts in each resampling.
    of_job: Int64Array
    times: FloatArray

    def interval(self, sums: FloatArray, alone: FloatArray) -> tuple[float, float]:
        """Returns the 95 % interval of 1 - Σ sums / Σ alone over resampled blocks; nan for one block."""
        if self.times.shape[1] < 2:
            return math.nan, math.nan
        count = self.times.shape[1]
        parts = self.times @ np.bincount(self.of_job, weights=sums, minlength=count)
        wholes = self.times @ np.bincount(self.of_job, weights=alone, minlength=count)
        low, high = np.quantile(1.0 - parts / wholes, (0.025, 0.975))
        return float(low), float(high)


def _blocks(submit: FloatArray, rng: np.random.Generator) -> _Blocks:
    """Returns days by submission, or weeks in a long window; those without jobs are omitted."""
    length = DAY_S
    if len(submit) and submit[-1] - submit[0] >= WEEKS_FROM_DAYS * DAY_S:
        length = 7 * DAY_S
    known, of_job = np.unique(np.floor(submit / length), return_inverse=True)
    count = len(known)
    times = np.zeros((RESAMPLED, count))
    for row in times if count else ():
        np.add.at(row, rng.integers(0, count, count), 1.0)
    return _Blocks(of_job, times)
