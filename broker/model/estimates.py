"""How long programs are thought to take, learned from runs of the same program.

Of each program the last runs are known: the bytes that it was given, the resource it ran on, the estimate that its
task had from its user, and the work that it took, which is seconds on a resource of performance 1. From these the
next run is predicted in one of three forms, all in logarithms, as what users are wrong by is a factor:

- *ratio*: the user's estimate times the median of what runs took to what was estimated;
- *constant*: the median of what runs took, where that scatters less, as users who always write "10 minutes" have it;
- *size*: a power of the input size (the slope of Theil and Sen), where that scatters less than both.

The ratio is what counts from the first run on; the user's estimate counts as one run that has taken as long as it
says, which is the cold start and keeps a single odd run from deciding. The other forms need some runs, and have to be
better than the ratio by a margin. A resource has a factor of its own for a program where runs on it take clearly longer or
shorter than its performance says.

Medians and absolute deviations are used, so that some runs that hang or are cut short move little. The same runs in the same
order give the same estimates; nothing else is looked at.
"""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final, Generic, Literal, TypeVar

from broker.model.workflow import WORK_MAX

RUNS_KEPT: Final = 64
"""So many runs of a program are known; older ones are forgotten, as programs and inputs change."""

PROGRAMS_MAX: Final = 1000
"""So many programs are known; the one that has not run for longest is forgotten."""

FORM_RUNS: Final = 6
"""From so many runs on another form than the ratio may be chosen."""

BETTER: Final = 0.9
"""The scatter of another form is at most this share of that of the ratio."""

SIZES_LEAST: Final = 3
"""So many different input sizes are needed to learn from sizes."""

EXPONENT_MAX: Final = 3.0
"""A run time grows at most with this power of the input size, and never falls."""

RESOURCE_RUNS: Final = 3
"""So many runs on a resource, and as many elsewhere, let it have a factor."""

RESOURCE_LEAST: Final = math.log(1.1)
"""Smaller differences between resources, in logarithms, are taken for chance."""

FACTOR_MAX: Final = 1000.0
"""No estimate is so many times that of the user, or less than this part of it."""

SAME: Final = 0.01
"""Where runs differ so little from the estimates, in logarithms, these stand as they are."""

WORK_LEAST: Final = 1e-3
"""Seconds; shorter runs count as so long."""

QUANTILES: Final = (0.1, 0.9)
"""Between which most runs are thought to be, for a person."""

R = TypeVar("R")
Form = Literal["file", "ratio", "constant", "size"]


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run of a program.

    Attributes:
        size: bytes that it was given; `None` if unknown.
        resource: on which it ran.
        estimate: work that its task had from its user, seconds.
        work: that it took, seconds at performance 1.
    """

    size: float | None
    resource: str
    estimate: float
    work: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is thought of a run.

    Attributes:
        work: seconds at performance 1.
        runs: from how many it comes; 0 for the user's word.
        low, high: work between which four of five runs are thought to be.
        form: how it comes of the runs.
    """

    work: float
    runs: int
    low: float
    high: float
    form: Form


@dataclass(frozen=True, slots=True)
class ProgramEstimate:
    """What is known of a program.

    Attributes:
        runs: that count.
        ratio: median of what they took to what was estimated.
        work: median of what they took, seconds at performance 1.
        low, high: shares of the estimate between which four of five runs were.
        factors: of resources on which it takes longer or shorter than their performance says.
    """

    program: str
    runs: int
    form: Form
    ratio: float
    work: float
    low: float
    high: float
    factors: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class _Fit:
    # What comes of the runs of a program: the logarithm of the work is that of what the form goes by, and the middle.
    form: Form
    exponent: float
    middle: float
    low: float
    high: float
    factors: dict[str, float]


class LastRuns(Generic[R]):
    """The last runs of the programs that ran last, in whatever form."""

    def __init__(self) -> None:
        self.by_program: dict[str, deque[R]] = {}

    def add(self, program: str, run: R) -> str | None:
        """Takes up a run, and returns the program that is forgotten for it; `None` for none."""
        known = self.by_program.pop(program, None)
        forgotten = None
        if known is None:
            known = deque(maxlen=RUNS_KEPT)
            if len(self.by_program) >= PROGRAMS_MAX:
                forgotten = next(iter(self.by_program))
                del self.by_program[forgotten]
        self.by_program[program] = known  # the last in order
        known.append(run)
        return forgotten


class Estimates:
    """Learns from runs; the same runs in the same order make the same of it."""

    def __init__(self) -> None:
        self._last = LastRuns[MeasuredRun]()
        self._runs = self._last.by_program
        self._fits: dict[str, _Fit] = {}
        # The same for inputs of unknown size, as many tasks have before their predecessors have ended.
        self._sizeless: dict[str, _Fit] = {}

    def learn(self, program: str, run: MeasuredRun) -> None:
        """Takes up a run; what is too old is forgotten."""
        for changed in (program, self._last.add(program, run)):
            if changed is not None:
                self._fits.pop(changed, None)
                self._sizeless.pop(changed, None)

    def runs(self, program: str) -> int:
        """Returns how many runs of a program are known."""
        return len(self._runs.get(program, ()))

    def estimate(self, program: str, size: float | None, estimate: float) -> Estimate:
        """Returns what is thought of a run on any resource.

        Args:
            program: its name.
            size: bytes that it is given; `None` if unknown.
            estimate: work that its user says, seconds.
        """
        fit = self._fit(program)
        if fit is None:
            return Estimate(estimate, 0, estimate, estimate, "file")
        if fit.form == "size" and size is None:
            fit = self._without_sizes(program)
        base = _base(fit.form, fit.exponent, size, estimate) - math.log(estimate)
        most = math.log(FACTOR_MAX)

        def bounded(residual: float) -> float:
            times = math.exp(min(max(base + residual, -most), most))
            return min(max(estimate * times, WORK_LEAST), WORK_MAX)

        return Estimate(
            bounded(fit.middle),
            self.runs(program),
            bounded(fit.low),
            bounded(fit.high),
            fit.form,
        )

    def factor(self, program: str, resource: str) -> float:
        """Returns how many times as long a program takes on a resource as its performance says."""
        fit = self._fit(program)
        return 1.0 if fit is None else fit.factors.get(resource, 1.0)

    def has_factors(self, program: str) -> bool:
        """Returns whether a resource has a factor other than 1 for a program."""
        fit = self._fit(program)
        return fit is not None and bool(fit.factors)

    def programs(self) -> list[ProgramEstimate]:
        """Returns what is known, by the names of programs."""
        import numpy as np  # noqa: PLC0415  # clients name estimates, and need no numpy

        found = []
        for program in sorted(self._runs):
            runs = self._runs[program]
            fit = self._fit(program)
            assert fit is not None  # it has run
            ratios = [run.work / run.estimate for run in runs]
            low, high = np.quantile(ratios, QUANTILES).tolist()
            found.append(
                ProgramEstimate(
                    program,
                    len(runs),
                    fit.form,
                    median(ratios),
                    median(run.work for run in runs),
                    low,
                    high,
                    tuple(sorted(fit.factors.items())),
                )
            )
        return found

    def _fit(self, program: str) -> _Fit | None:
        known = self._fits.get(program)
        if known is None and program in self._runs:
            known = self._fits[program] = _fitted(self._runs[program], sizes=True)
        return known

    def _without_sizes(self, program: str) -> _Fit:
        known = self._sizeless.get(program)
        if known is None:
            known = self._sizeless[program] = _fitted(self._runs[program], sizes=False)
        return known


def _base(form: Form, exponent: float, size: float | None, estimate: float) -> float:
    if form == "constant":
        return 0.0
    if form == "size":
        assert size is not None  # the form is chosen by what is known
        return exponent * math.log(max(size, 1.0))
    return math.log(estimate)


def _fitted(runs: Iterable[MeasuredRun], *, sizes: bool) -> _Fit:
    import numpy as np  # noqa: PLC0415  # clients name estimates, and need no numpy

    known = list(runs)
    form, exponent = _form(known, sizes=sizes)
    residuals = _residuals(known, form, exponent)
    own = [*residuals, 0.0] if form == "ratio" else residuals
    middle = median(own)
    if form == "ratio" and abs(middle) < SAME:
        middle = 0.0
    factors = _factors(known, residuals, middle)
    low, high = np.quantile(own, QUANTILES).tolist()
    return _Fit(form, exponent, middle, low, high, factors)


def _form(runs: list[MeasuredRun], *, sizes: bool) -> tuple[Form, float]:
    if len(runs) < FORM_RUNS:
        return "ratio", 0.0
    best: tuple[Form, float] = ("ratio", 0.0)
    least = BETTER * _scatter(_residuals(runs, *best))
    candidates: list[tuple[Form, float]] = [("constant", 0.0)]
    given = {run.size for run in runs}
    if sizes and None not in given and len(given) >= SIZES_LEAST:
        candidates.append(("size", _exponent(runs)))
    for each in candidates:
        scatter = _scatter(_residuals(runs, *each))
        if scatter < least:
            best, least = each, BETTER * scatter
    return best


def _residuals(runs: list[MeasuredRun], form: Form, exponent: float) -> list[float]:
    return [
        math.log(max(run.work, WORK_LEAST)) - _base(form, exponent, run.size, run.estimate)
        for run in runs
    ]


def _scatter(residuals: list[float]) -> float:
    middle = median(residuals)
    return fmean(abs(each - middle) for each in residuals)


def _exponent(runs: list[MeasuredRun]) -> float:
    import numpy as np  # noqa: PLC0415  # clients name estimates, and need no numpy

    # The median of the slopes between all pairs of runs of different sizes.
    sizes = np.log([max(run.size or 0.0, 1.0) for run in runs])
    works = np.log([max(run.work, WORK_LEAST) for run in runs])
    first, second = np.triu_indices(len(runs), 1)
    apart = sizes[second] - sizes[first]
    there = np.abs(apart) > 1e-9
    if not there.any():
        return 0.0
    slopes = (works[second] - works[first])[there] / apart[there]
    return float(np.clip(np.median(slopes), 0.0, EXPONENT_MAX))


def _factors(runs: list[MeasuredRun], residuals: list[float], middle: float) -> dict[str, float]:
    by_resource: dict[str, list[float]] = {}
    for run, residual in zip(runs, residuals, strict=True):
        by_resource.setdefault(run.resource, []).append(residual)
    found = {}
    for resource, mine in by_resource.items():
        count = len(mine)
        if count < RESOURCE_RUNS or len(residuals) - count < RESOURCE_RUNS:
            continue
        # Few runs say less.
        off = (median(mine) - middle) * count / (count + RESOURCE_RUNS)
        if abs(off) > RESOURCE_LEAST:
            found[resource] = math.exp(off)
    return found
