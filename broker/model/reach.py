"""Which alternatives a task could use if nothing else ran.

Thousands of tasks share the alternatives "every resource of that kind". What does not depend on the
task is therefore computed once per tuple of alternatives, and the rest is one comparison of arrays.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from broker.model.resources import WEEK, Resource, join, join_weekly
from broker.model.workflow import Alternative, Demand

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Shared:
    # What is shared by all tasks with a tuple of alternatives; the tuple is kept, as its id is the key.
    alternatives: tuple[Alternative, ...]
    performance: npt.NDArray[np.float64]
    seconds: npt.NDArray[np.float64]
    setup: npt.NDArray[np.float64]
    timed: bool
    longest: npt.NDArray[np.float64]
    bounded: bool
    kept: dict[bytes, tuple[Alternative, ...]]


class Reach:
    """How long tasks may be on alternatives from `now` (seconds) on."""

    def __init__(self, resource: Mapping[str, Resource], now: float) -> None:
        self._resource = resource
        self._now = now
        self._shared: dict[int, _Shared] = {}
        self._longest: dict[tuple[Demand, ...], float] = {}
        self._weekly: dict[str, list[tuple[float, float]]] = {}

    def longest(self, alternative: Alternative) -> float:
        """Returns how long a task may be on an alternative, in seconds; infinity for any.

        Negative if no task can run there: it is too small, closed for good or missing.
        """
        found = self._longest.get(alternative.demands)
        if found is None:
            found = self._longest[alternative.demands] = self._find_longest(alternative)
        return found

    def _find_longest(self, alternative: Alternative) -> float:
        resources = []
        for demand in alternative.demands:
            resource = self._resource.get(demand.resource)
            if resource is None or demand.units > resource.capacity:
                return -1.0
            resources.append(resource)
        longest = math.inf
        if any(end == math.inf for each in resources for _, end in each.calendar.closures):
            spans = join([span for each in resources for span in each.closure_spans()])
            longest = spans[-1][0] - self._now
        weekly = [spans for each in resources if (spans := self._opening(each))]
        if weekly:
            common = join_weekly(_unrolled(reduce(_intersection, weekly)))
            if common:
                longest = min(longest, max(end - begin for begin, end in common))
        return longest

    def _opening(self, resource: Resource) -> list[tuple[float, float]]:
        # Opening hours as spans of the week in UTC, split at its turn; none means always open.
        found = self._weekly.get(resource.name)
        if found is None:
            shifted = [
                ((begin - resource.utc_offset) % WEEK, end - begin)
                for begin, end in resource.opening_spans()
            ]
            found = _unrolled([(begin, begin + length) for begin, length in shifted])
            self._weekly[resource.name] = found
        return found

    def mask(self, alternatives: tuple[Alternative, ...], work: float) -> Mask | None:
        """Returns on which alternatives work (seconds at performance 1) fits; `None` for all."""
        shared = self._of(alternatives)
        if not shared.bounded:
            return None
        taken = work / shared.performance
        if shared.timed:
            taken = np.where(np.isnan(shared.seconds), taken, shared.seconds) + shared.setup
        found: Mask = taken <= shared.longest
        return None if found.all() else found

    def kept(self, alternatives: tuple[Alternative, ...], work: float) -> tuple[Alternative, ...]:
        """Returns the alternatives on which work could be done; tasks alike get the same tuple."""
        mask = self.mask(alternatives, work)
        if mask is None:
            return alternatives
        known = self._of(alternatives).kept
        key = mask.tobytes()
        if key not in known:
            known[key] = tuple(alternatives[row] for row in np.flatnonzero(mask))
        return known[key]

    def fastest(self, alternatives: tuple[Alternative, ...]) -> float:
        """Returns the highest performance among alternatives that are there; 0 without any."""
        shared = self._of(alternatives)
        return float(shared.performance[shared.longest >= 0].max(initial=0.0))

    def _of(self, alternatives: tuple[Alternative, ...]) -> _Shared:
        found = self._shared.get(id(alternatives))
        if found is None:
            longest = np.array([self.longest(each) for each in alternatives])
            performance = np.array([self._performance(each) for each in alternatives])
            bounded = bool((longest < math.inf).any())
            seconds = np.array([math.nan if a.seconds is None else a.seconds for a in alternatives])
            setup = np.array([each.setup for each in alternatives])
            timed = any(each.timed for each in alternatives)
            found = _Shared(alternatives, performance, seconds, setup, timed, longest, bounded, {})
            self._shared[id(alternatives)] = found
        return found

    def _performance(self, alternative: Alternative) -> float:
        # 1 for a missing resource, on which nothing can run anyway.
        resource = self._resource.get(alternative.primary)
        return 1.0 if resource is None else resource.performance

    def __reduce__(self) -> tuple[type["Reach"], tuple[Mapping[str, Resource], float]]:
        # Keys are identities, which mean nothing in another process: a copy starts empty.
        return Reach, (self._resource, self._now)


def _unrolled(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    # Spans across the turn of the week are split.
    cut = [(begin, min(end, WEEK)) for begin, end in spans]
    return join(cut + [(0.0, end - WEEK) for _, end in spans if end > WEEK])


def _intersection(
    first: list[tuple[float, float]], second: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    # An empty result would mean "always"; a span without length stands for "never".
    common = [(max(a, c), min(b, d)) for a, b in first for c, d in second if max(a, c) < min(b, d)]
    return common or [(0.0, 0.0)]
