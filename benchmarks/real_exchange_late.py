"""Why an own job starts later than without exchange, by Slurm's logs of both runs.

What a late job did meanwhile at both sites; which jobs had processors of its site, or stood before it there, while it waited,
and did not without exchange; which jobs that came later started first; and which guests ran there.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.real_exchange_verdict import Ran
from benchmarks.real_exchange_waits import SeenJob

MOST: Final = 20
"""So many jobs of a kind are named."""


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues of a run: jobs by site, as its Slurm has seen them.

    `name_of` returns the name of a job here for the name that it has there; `away` has when a site's controller did not answer.
    """

    jobs: Mapping[str, Sequence[SeenJob]]
    name_of: Callable[[str], str]
    away: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)

    def of(self, name: str) -> Iterator[tuple[str, SeenJob]]:
        """Yields what sites have had of a job, with the site, in order."""
        found = [
            (site, job)
            for site, jobs in self.jobs.items()
            for job in jobs
            if self.name_of(job.name) == name
        ]
        yield from sorted(found, key=lambda pair: pair[1].submitted)

    def own(self, site: str, name: str) -> SeenJob | None:
        """Returns a job that has started as its site's own; of several the last."""
        started = [job for at, job in self.of(name) if at == site and not job.guest]
        return started[-1] if started and started[-1].start < math.inf else None


def explain(ran: Ran, with_it: Queues, without: Queues) -> dict[str, Any]:
    """Returns why a job starts late; moments are seconds since its submission."""
    name, begin, start = ran.wanted.name, ran.submitted, ran.runs[-1].start
    site = ran.runs[-1].place or ran.wanted.site
    alone, own = without.own(ran.wanted.site, name), with_it.own(site, name)
    before = {}
    if alone is not None:
        before = _in_its_way(alone, alone.submitted, alone.start, ran.wanted.site, without)
    way = {} if own is None else _in_its_way(own, begin, start, site, with_it)
    new = {one: text for one, text in way.items() if one not in before}
    first = [] if own is None else list(_started_first(own, begin, site, with_it))
    guests = list(_guests(begin, start, site, with_it))
    killed = [left - begin for left, _ in with_it.away.get(site, ()) if begin < left < start]
    used = sum(
        one.processors * _overlap([(one.start, one.end)], begin, start)
        for one in with_it.jobs[site]
    )
    return {
        "controller_killed_at": [round(moment, 1) for moment in killed],
        "mean_processors_in_use": round(used / (start - begin), 1),
        "what_became_of_it": list(_story(name, begin, with_it)),
        "in_its_way_and_not_without_exchange": _most(list(new.values())),
        "came_later_and_started_first": _most(first),
        "guests_that_ran_meanwhile": _most(guests),
        "explained": bool(new or first or guests or killed),
    }


def _most(texts: list[str]) -> list[str]:
    more = len(texts) - MOST
    return [*texts[:MOST], f"{more} more"] if more > 0 else texts


def _in_its_way(
    job: SeenJob, begin: float, start: float, site: str, queues: Queues
) -> dict[str, str]:
    # Own jobs that ran while it waited, or stood before it.
    found = {}
    for one in queues.jobs[site]:
        if one is job or one.guest:
            continue
        runs = _overlap([(one.start, one.end)], begin, start)
        stands = _overlap(one.waits(), begin, start) if one.placed < job.placed else 0.0
        if runs or stands:
            parts = [
                f"ran {runs:.1f} s" if runs else "",
                f"stood before it {stands:.1f} s" if stands else "",
            ]
            back = ", came back" if one.came_back else ""
            name = queues.name_of(one.name)
            found[name] = f"{name} ({one.processors}{back}) {', '.join(filter(None, parts))}"
    return found


def _started_first(job: SeenJob, begin: float, site: str, queues: Queues) -> Iterator[str]:
    for one in queues.jobs[site]:
        if not one.guest and begin < one.submitted and one.start < job.start:
            name = queues.name_of(one.name)
            yield f"{name} ({one.processors}) at {one.start - begin:.1f}"


def _guests(begin: float, start: float, site: str, queues: Queues) -> Iterator[str]:
    for one in queues.jobs[site]:
        runs = _overlap([(one.start, one.end)], begin, start)
        if one.guest and runs:
            yield f"{queues.name_of(one.name)} ({one.partition}, {one.processors}) {runs:.1f} s"


def _overlap(spans: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    return sum(max(0.0, min(last, end) - max(first, begin)) for first, last in spans if first < end)


def _story(name: str, begin: float, queues: Queues) -> Iterator[str]:
    numbers = {
        (site, job.number): queues.name_of(job.name)
        for site, jobs in queues.jobs.items()
        for job in jobs
    }
    for site, job in queues.of(name):
        spans = ", ".join(
            f"{first - begin:.1f} to {last - begin:.1f}" for first, last in job.waits()
        )
        parts = [
            f"submitted {job.submitted - begin:.1f}",
            f"in the queue {spans}" if spans else "never in the queue",
        ]
        if job.start < math.inf:
            parts.append(f"ran {job.start - begin:.1f} to {job.end - begin:.1f}")
        if job.preempted_for:
            parts.append(f"ended for {numbers.get((site, job.preempted_for), job.preempted_for)}")
        where = f"{site}, {job.partition}" + (
            ", back at its place" if job.came_back and not job.guest else ""
        )
        yield f"{where}: {'; '.join(parts)}"
