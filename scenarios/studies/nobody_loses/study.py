"""The study: which replays are made, what is kept of them, and all of it together."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, Final

from rich.console import Console

from grms.federation.sites import BYZANTINE_PARTNERS as KERNEL_BYZANTINE
from grms.federation.sites import BYZANTINE_PREEMPTING
from scenarios.spec.spec import OVERLOADED
from scenarios.spec.traces import TRACES, require_trace
from scenarios.studies.common.frame import (
    CaseStudy,
    Evaluate,
    having,
    plain_options,
    run_cases,
    threads,
)
from scenarios.studies.nobody_loses.drawn import HALF_YEAR, MONTH, drawn_federation
from scenarios.studies.nobody_loses.federations import (
    STRESS_DAYS,
    Case,
    Workloads,
    pairs_and_more,
    run_case,
)
from scenarios.studies.nobody_loses.options import StudyOptions
from scenarios.studies.nobody_loses.reference import DISCIPLINES, LOGS, POLICIES, ROUNDS
from scenarios.studies.nobody_loses.strict import (
    ALL,
    CENTRES,
    COMPARED,
    HALF,
    MIXTURES,
    NO_CHECKPOINTS,
    RESTARTS,
    RUN,
    STRICT,
)

LARGE_GRIDS: Final = (("kth", "ctc", "sdsc05"), LOGS)
"""Where Byzantine partners and adoption are looked at."""

BOTH: Final = ("fcfs", "easy")
SHARES: Final = (0.1, 0.25, 0.5, 1.0)
"""Headroom that is tried, as shares of the mean width of own jobs."""


Found = tuple[tuple[Case, dict[str, Any]], ...]


class Study(CaseStudy[Case]):
    """What was measured."""

    def of(self, part: str, **values: object) -> Found:
        """Returns the replays of a part whose case has these values."""
        return tuple(having(self._by_part.get(part, ()), **values))

    @cached_property
    def _by_part(self) -> dict[str, list[tuple[Case, dict[str, Any]]]]:
        # A page asks hundreds of times, of thousands of replays.
        found: dict[str, list[tuple[Case, dict[str, Any]]]] = {}
        for case, run in self.runs:
            found.setdefault(case.part, []).append((case, run))
        return found


def window_of(case: Case) -> str:
    """Returns the window of a case, a key of `reference.SETS`."""
    window = case.sites[0].partition("-")[2]
    return "stress" if window in {"f", "q"} else window


def cases(options: StudyOptions) -> Iterator[Case]:
    """Yields every replay of the study, each once for every part that it belongs to."""
    makers: dict[str, Callable[[StudyOptions], Iterable[Case]]] = {
        "grids": _grids,
        "rogues": _byzantine,
        "jitter": _jitter,
        "adoption": _adoption,
        "headroom": _headroom,
        "strict": _strict,
        "random": _random,
        "short": _short,
        "restarts": _restarts,
        "strict-rogues": _strict_byzantine,
        "strict-adoption": _strict_adoption,
        "strict-jitter": _strict_jitter,
    }
    for part in options.parts:
        yield from makers[part](options)


def _named(grid: Iterable[str], window: str) -> tuple[str, ...]:
    return tuple(f"{log}-{window}" for log in grid)


def _stressed() -> Iterator[tuple[str, str]]:
    for fast in LOGS:
        for other in LOGS:
            if other != fast:
                yield f"{fast}-f", f"{other}-q"


def _grids(_: StudyOptions) -> Iterator[Case]:
    grids: list[tuple[str, ...]] = [
        _named(grid, window) for window in "56" for grid in pairs_and_more(LOGS)
    ]
    for sites in [*grids, *_stressed()]:
        for discipline in DISCIPLINES:
            for policy in POLICIES:
                yield Case("grids", sites, discipline, policy)


def _byzantine(options: StudyOptions) -> Iterator[Case]:
    policies = tuple(POLICIES) if options.complete else ("fair-exchange", ROUNDS)
    for policy in policies:
        for rogue in ("", *KERNEL_BYZANTINE, OVERLOADED):
            if (rogue, policy) == (OVERLOADED, ROUNDS) and not options.complete:
                continue  # its queue grows without end, and each round goes through it
            for sites, discipline in _large():
                for who in range(len(sites)):
                    yield Case("rogues", sites, discipline, policy, who if rogue else -1, rogue)
                    if not rogue:
                        break


def _large() -> Iterator[tuple[tuple[str, ...], str]]:
    for grid in LARGE_GRIDS:
        for window in "56":
            for discipline in BOTH:
                yield _named(grid, window), discipline


def _jitter(options: StudyOptions) -> Iterator[Case]:
    for draw in range(1, options.draws + 1):
        for window in "56" if options.complete else "6":
            for grid in pairs_and_more(LOGS):
                for discipline in DISCIPLINES:
                    yield Case("jitter", _named(grid, window), discipline, ROUNDS, draw=draw)


def _adoption(_: StudyOptions) -> Iterator[Case]:
    for sites, discipline in _large():
        yield Case("adoption", sites, discipline, "awf")
        yield Case("adoption", sites, discipline, ROUNDS)
        for who in range(len(sites)):
            yield Case("adoption", sites, discipline, ROUNDS, who, others="awf")


def _headroom(_: StudyOptions) -> Iterator[Case]:
    words = [ROUNDS, *(f"{ROUNDS} headroom {share:g}" for share in SHARES)]
    grids = [_named(grid, window) for window in "56" for grid in pairs_and_more(LOGS)]
    wide = [
        tuple(f"{log}-w" if log == one else f"{log}-6" for log in grid)
        for grid in pairs_and_more(LOGS)
        if len(grid) == 2
        for one in grid
    ]
    for sites in [*grids, *wide]:
        for discipline in ("easy",) if sites in wide else BOTH:
            for word in words:
                yield Case("headroom", sites, discipline, word)


def _strict(_: StudyOptions) -> Iterator[Case]:
    grids = [_named(grid, window) for window in "56" for grid in pairs_and_more(LOGS)]
    for sites in [*grids, *_stressed()]:
        for discipline in DISCIPLINES:
            for policy in (ROUNDS, *STRICT, *CENTRES):
                yield Case("strict", sites, discipline, policy)


def _strict_byzantine(_: StudyOptions) -> Iterator[Case]:
    # Each site in turn is one whose jobs keep no state; the honest ones have one of three rules.
    for rule in (NO_CHECKPOINTS, HALF, ALL):
        for sites, discipline in _large():
            for who in range(len(sites)):
                for rogue in (*KERNEL_BYZANTINE, *BYZANTINE_PREEMPTING):
                    hides = rogue == "hides-checkpoints"
                    if hides and rule != ALL:
                        continue
                    own = rule if hides else NO_CHECKPOINTS
                    yield Case("strict-rogues", sites, discipline, own, who, rogue, rule)
            yield Case("strict-rogues", sites, discipline, rule)


ADOPTERS: Final = (
    (NO_CHECKPOINTS, ROUNDS),
    (ROUNDS, HALF),
    (RUN, HALF),
    (NO_CHECKPOINTS, "awf"),
    (NO_CHECKPOINTS, ALL),
)
"""One site, and all others."""


def _strict_adoption(_: StudyOptions) -> Iterator[Case]:
    for sites, discipline in _large():
        yield Case("strict-adoption", sites, discipline, HALF)
        for who in range(len(sites)):
            for own, others in ADOPTERS:
                yield Case("strict-adoption", sites, discipline, own, who, others=others)


def _strict_jitter(options: StudyOptions) -> Iterator[Case]:
    for draw in range(1, options.draws + 1):
        for window in "56":
            for grid in pairs_and_more(LOGS):
                for discipline in DISCIPLINES:
                    sites = _named(grid, window)
                    yield Case("strict-jitter", sites, discipline, NO_CHECKPOINTS, draw=draw)


COMPARISON: Final = ("awf", ROUNDS, *STRICT, *COMPARED, *MIXTURES, *CENTRES)
"""What is replayed on every federation by chance."""


def _drawn(part: str, options: StudyOptions, days: int, rules: Iterable[str]) -> Iterator[Case]:
    rules = tuple(rules)
    for number in range(options.federations):
        sites, queues = drawn_federation(options.seed, number, days)
        for policy in rules:
            yield Case(part, sites, queues, policy)


def _random(options: StudyOptions) -> Iterator[Case]:
    return _drawn("random", options, HALF_YEAR, COMPARISON)


def _short(options: StudyOptions) -> Iterator[Case]:
    return _drawn("short", options, MONTH, COMPARISON)


def _restarts(options: StudyOptions) -> Iterator[Case]:
    rules = [
        f"{rule} restart {minutes}" if minutes else rule
        for rule in (NO_CHECKPOINTS, HALF, ALL)
        for minutes in (0, *RESTARTS)
    ]
    yield from _drawn("restarts", options, HALF_YEAR, rules)
    yield from _drawn("restarts", options, MONTH, rules)


def run_study(options: StudyOptions, console: Console) -> Study:
    """Runs what is still to be done and returns all of it.

    Raises:
        TraceMissingError: a log is not on this machine.
        OutputError: the file of replays cannot be read or written.
        KeyboardInterrupt: the user has enough; what is done is kept.
    """
    for key in LOGS:
        require_trace(key)
    workloads = Workloads()
    every = list(cases(options))

    wanted = {case.key: case for case in every}
    evaluate: Evaluate[Case] = threads(lambda case: run_case(case, workloads), options.workers)
    known = run_cases(options.folder, wanted, evaluate, console, what="replays")
    plain = plain_options(options)
    plain["processors"] = {key: TRACES[key].processors for key in LOGS}
    plain["stress_days"] = STRESS_DAYS
    return Study(plain, tuple((case, known[case.key]) for case in every))
