"""One replay of the study: who takes part in it, and what came of it."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any, Final

import numpy as np

from grms.federation.federation import Federation, Site
from grms.federation.sites import BYZANTINE_PARTNERS, BYZANTINE_PREEMPTING
from grms.policy.constraints import FAIR_EXCHANGE
from grms.policy.rebalancing import Rebalancing
from grms.policy.registry import TRANSFER_POLICIES
from grms.policy.transfer import Constrained, TransferPolicy, TransferQuestion, UserDefinedTransfer
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import SECONDS_PER_DAY, FloatArray, JobTable, window_by_days
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.schedule import Schedule
from lrms_sim.workload.swf import read_swf
from scenarios.run.workloads import doubled
from scenarios.spec.spec import OVERLOADED
from scenarios.spec.traces import TRACES, require_trace
from scenarios.studies.nobody_loses.drawn import drawn_jobs, is_drawn, log_of, processors_of
from scenarios.studies.nobody_loses.strict import CENTRAL_PREEMPTING, CENTRES, rule_of

SPLIT_DAY: Final = 150
LAST_DAY: Final = {"sdsc05": 339}
FIRST_JOBS: Final = {"kth": 16_699, "sdsc00": 16_316}
"""Jobs of the logs' second window, as in the paper on learned exchange."""

STRESS_DAYS: Final = 75
STRESS: Final = 4
"""All times of a site under stress are divided by this."""

MONTH: Final = 30 * SECONDS_PER_DAY
JOBS_OF_A_MONTH: Final = 100
"""Own jobs that a full month has at least."""

WEEK: Final = 7 * SECONDS_PER_DAY
WHOLE_REQUEST: Final = 6 * 3600.0
WHOLE_RUN: Final = 5 * 3600.0
"""Run time of the weekly whole-machine job at sites that have one, seconds."""

PERIOD: Final = 900.0
JITTER: Final = 600
"""Largest delay of arrivals, seconds."""


_BYZANTINE: Final = {**BYZANTINE_PARTNERS, **BYZANTINE_PREEMPTING}


@dataclass(frozen=True, slots=True)
class Case:
    """A replay.

    Attributes:
        sites: names of sites, a log's key and a window: `kth-5`, `kth-6`; `kth-f` and `kth-q` under
            stress, the first with four times as much to do; `kth-w` is `kth-6` with a job over the
            whole machine every week.
        discipline: `fcfs`, `easy`, or `mixed`; or one for each site, with commas between.
        policy: of all sites, a key of `reference.POLICIES`, with constraints perhaps ` headroom` and a
            share; a word of `strict.CENTRES`; or a word of `strict.rule_of`; several with `|` between are those of the sites in turn.
        who: number of the site that differs from the others; -1 for none.
        others: the policy of the others; the same where empty.
        draw: number of the random shifts of arrivals; 0 for none.
    """

    part: str
    sites: tuple[str, ...]
    discipline: str
    policy: str
    who: int = -1
    rogue: str = ""
    others: str = ""
    draw: int = 0

    @property
    def key(self) -> str:
        """What it is kept under: everything that its result depends on."""
        return json.dumps({name: value for name, value in asdict(self).items() if name != "part"})


class Workloads:
    """The jobs of all sites, each read or made when first asked for."""

    def __init__(self) -> None:
        self._logs: dict[str, JobTable] = {}
        self._alone: dict[object, Any] = {}
        self._reading = Lock()

    def whole(self, log: str) -> JobTable:
        """Returns all usable jobs of a log; `TraceMissingError` if it is not on this machine."""
        with self._reading:
            if log not in self._logs:
                path = require_trace(log)
                self._logs[log] = prepare(read_swf(path), TRACES[log].processors).jobs
            return self._logs[log]

    def jobs(self, name: str, draw: int = 0) -> JobTable:
        """Returns the jobs of a site of a case."""
        if is_drawn(name):
            log = log_of(name)
            return drawn_jobs(name, self.whole(log) if log else None)
        log, _, window = name.partition("-")
        jobs = self.whole(log)
        if window == "5":
            cut = window_by_days(jobs, last_day=SPLIT_DAY)
        elif window == "q":
            cut = window_by_days(jobs, last_day=STRESS_DAYS)
        elif window == "f":
            cut = window_by_days(_faster(jobs), last_day=STRESS_DAYS)
        else:
            cut = window_by_days(jobs, SPLIT_DAY, LAST_DAY.get(log), first_jobs=FIRST_JOBS.get(log))
        if window == "w":
            cut = with_whole_machine_jobs(cut, TRACES[log].processors)
        return cut if draw == 0 else _later(cut, name, draw)

    def own_width(self, log: str) -> float:
        """Returns the mean width of a log's jobs of the first window, weighted by their work."""
        jobs = self.jobs(f"{log}-5")
        work = jobs.run_time * jobs.processors
        return float(np.sum(work * jobs.processors) / np.sum(work))

    def alone(self, case: Case, federation: Federation) -> Schedule:
        """Returns the schedule of the sites of a case without exchange; kept, as many cases share it."""
        over = case.who if case.rogue == OVERLOADED else -1
        key = (case.sites, case.discipline, case.draw, over)
        with self._reading:
            known = self._alone.get(key)
        if known is None:
            known = federation.replay_alone()
            with self._reading:
                self._alone[key] = known
        found: Schedule = known
        return found


def _faster(jobs: JobTable) -> JobTable:
    # In whole seconds, as the independent program has them.
    columns = jobs.columns()
    for name in ("submit_time", "run_time", "requested_time"):
        columns[name] = np.floor(columns[name] / STRESS)
    columns["run_time"] = np.maximum(columns["run_time"], 1.0)
    columns["requested_time"] = np.maximum(columns["requested_time"], columns["run_time"])
    return JobTable.from_columns(**columns)


def _later(jobs: JobTable, name: str, draw: int) -> JobTable:
    rng = np.random.default_rng((draw, zlib.crc32(name.encode())))
    columns = jobs.columns()
    columns["submit_time"] = columns["submit_time"] + rng.integers(0, JITTER + 1, len(jobs))
    return JobTable.from_columns(**columns)


def with_whole_machine_jobs(jobs: JobTable, processors: int) -> JobTable:
    """Returns a workload with one further job a week that needs the whole machine."""
    moments = np.arange(float(jobs.submit_time[0]) + WEEK, float(jobs.submit_time[-1]), WEEK)
    count = len(moments)
    columns = jobs.columns()
    more = {
        "job_id": np.arange(count) + int(jobs.job_id.max()) + 1,
        "submit_time": moments,
        "processors": np.full(count, processors),
        "requested_time": np.full(count, WHOLE_REQUEST),
        "run_time": np.full(count, WHOLE_RUN),
    }
    every = {name: np.concatenate([columns[name], values]) for name, values in more.items()}
    return JobTable.from_columns(**every)


def disciplines(case: Case) -> list[str]:
    """Returns the discipline of each site of a case."""
    if "," in case.discipline:
        return case.discipline.split(",")
    if case.discipline != "mixed":
        return [case.discipline] * len(case.sites)
    sizes = [TRACES[name.partition("-")[0]].processors for name in case.sites]
    small = sorted(sizes)[: len(sizes) // 2]
    return ["fcfs" if size in small else "easy" for size in sizes]


def with_headroom(share: float, own_width: float) -> TransferPolicy:
    """Returns fair exchange that keeps processors free beside each guest.

    Args:
        share: of the next.
        own_width: mean width of own users' jobs by work, processors.
    """

    def agrees(question: TransferQuestion) -> bool:
        left = question.processors_free - question.job_processors
        return not question.own and left >= share * own_width

    return Constrained(FAIR_EXCHANGE, UserDefinedTransfer(agrees), f"headroom {share:g}")


def _site_policy(
    word: str, log: str, workloads: Workloads
) -> tuple[TransferPolicy, Rebalancing | float | None]:
    strict = rule_of(word)
    if strict is not None:
        return strict.policy, PERIOD
    if word in CENTRES:
        return TRANSFER_POLICIES["awf"], None  # nobody asks it
    name, _, share = word.partition(" headroom ")
    rounds = Rebalancing(PERIOD, "queue") if name.endswith("+rounds") else None
    if share:
        return with_headroom(float(share), workloads.own_width(log)), rounds
    return TRANSFER_POLICIES[name.removesuffix("+rounds")], rounds


def federation_of(case: Case, workloads: Workloads) -> Federation:
    """Returns the sites of a case, ready to be replayed."""
    queues = disciplines(case)
    sites = []
    for number, name in enumerate(case.sites):
        log = log_of(name)
        differs = number == case.who
        jobs = workloads.jobs(name, case.draw)
        words = (case.policy if differs or not case.others else case.others).split("|")
        word = words[number % len(words)]
        strict = rule_of(word)
        policy, rounds = _site_policy(word, log, workloads)
        sites.append(
            Site(
                name=name,
                processors=processors_of(name),
                jobs=doubled(jobs) if differs and case.rogue == OVERLOADED else jobs,
                discipline=discipline_by_name(queues[number]),
                transfer_policies={other: policy for other in case.sites if other != name},
                reoffer=rounds,
                rogue=_BYZANTINE.get(case.rogue) if differs else None,
                checkpoint=None if strict is None else strict.checkpoint,
                restart=0.0 if strict is None else strict.restart,
            )
        )
    return Federation(sites)


def run_case(case: Case, workloads: Workloads) -> dict[str, Any]:
    """Replays a case; returns plain values.

    `gain` and, for the jobs of each 30 days, `months` are the change of each site's AWRT in percent
    of alone, positive if shorter; `full_months` are those of 30 full days with 100 own jobs at least; also
    `moved`, `offers`, `preempted`, and `lost` and `work` in processor hours.
    """
    federation = federation_of(case, workloads)
    alone = workloads.alone(case, federation)
    found = (
        federation.replay_centrally(preempt=case.policy == CENTRAL_PREEMPTING)
        if case.policy in CENTRES
        else federation.exchange()
    )
    schedule = found.schedule
    numbers = range(len(case.sites))
    masks = [schedule.submitted_to == number for number in numbers]
    return {
        "gain": [gain(schedule, alone, mask) for mask in masks],
        "months": [_monthly(schedule, alone, mask) for mask in masks],
        "moved": int(np.count_nonzero(schedule.submitted_to != schedule.executed_on)),
        "offers": sum(found.offers),
        "full_months": [_monthly(schedule, alone, mask, full=True) for mask in masks],
        "preempted": sum(found.preempted),
        "lost": sum(found.lost) / 3600,
        "work": float(np.sum(schedule.jobs.run_time * schedule.jobs.processors)) / 3600,
        "jobs": len(schedule.jobs),
    }


def _responses(schedule: Schedule) -> FloatArray:
    waited: FloatArray = schedule.end_time - schedule.jobs.submit_time
    return waited


def gain(schedule: Schedule, alone: Schedule, mask: Any) -> float:
    """Returns the change of the AWRT of the jobs in a mask, percent of alone; positive if shorter.

    Both schedules have the same jobs in the same rows; the mask has at least one.
    """
    jobs = schedule.jobs
    work = (jobs.run_time * jobs.processors)[mask]
    together = float(np.sum(work * _responses(schedule)[mask]))
    return 100.0 * (1.0 - together / float(np.sum(work * _responses(alone)[mask])))


def _monthly(schedule: Schedule, alone: Schedule, mask: Any, *, full: bool = False) -> list[float]:
    submitted = schedule.jobs.submit_time
    first, last = float(submitted[mask][0]), float(submitted[mask][-1])
    month = np.floor((submitted - first) / MONTH).astype(int)
    chosen = [
        mask & (month == one)
        for one in np.unique(month[mask])
        if not full or first + (one + 1) * MONTH <= last
    ]
    return [
        gain(schedule, alone, each)
        for each in chosen
        if not full or np.count_nonzero(each) >= JOBS_OF_A_MONTH
    ]


def pairs_and_more(logs: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns all sets of at least two sites, small ones first, in site order."""
    found: list[tuple[str, ...]] = []
    for bits in range(1, 2 ** len(logs)):
        chosen = tuple(log for place, log in enumerate(logs) if bits >> place & 1)
        if len(chosen) > 1:
            found.append(chosen)
    return sorted(found, key=lambda grid: (len(grid), [logs.index(log) for log in grid]))
