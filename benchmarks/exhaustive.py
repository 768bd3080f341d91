"""Visits all states within bounds: every order of messages, losses, crashes and the rest.

Of a few sites that exchange jobs, of a site above a batch system in trouble, of a site's reservations,
and of a broker.

    python -m benchmarks.exhaustive                    all bounds that are not in figures-exhaustive.json yet
    python -m benchmarks.exhaustive --anew             all of them
    python -m benchmarks.exhaustive --bound NAME --dry one of them, and nothing is kept
    python -m benchmarks.exhaustive --list             their names

What is found that must not be is told as a shortest story, and the status is 1. The figures go to
figures-exhaustive.json beside this file, each with the machine and the commit; seconds are those of a processor.
docs/exhaustive.md explains them.
"""

import gc
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import structlog

from benchmarks.frame import machine, options_of
from grms.simulation.exhaustive.bounds import LARGE, SMALL
from grms.simulation.exhaustive.choices import explore_model
from grms.simulation.exhaustive.exploration import Found
from grms.simulation.exhaustive.model import Bound
from grms.simulation.exhaustive.queue_bounds import LARGE_QUEUES, SMALL_QUEUES
from grms.simulation.exhaustive.queue_model import QueueBound, QueueModel
from grms.simulation.exhaustive.reservation_model import (
    LARGE_RESERVATIONS,
    SMALL_RESERVATIONS,
    ReservationBound,
    ReservationModel,
)
from grms.simulation.exhaustive.search import explore
from tests.broker.broker_model import LARGE_BROKERS, SMALL_BROKERS, BrokerBound, BrokerModel

FIGURES: Final = Path(__file__).with_name("figures-exhaustive.json")
LEFT_OUT: Final = ("story", "labels", "stuck", "violation")

AnyBound = Bound | QueueBound | ReservationBound | BrokerBound
ALL: Final[tuple[AnyBound, ...]] = (
    *SMALL,
    *LARGE,
    *SMALL_QUEUES,
    *LARGE_QUEUES,
    *SMALL_RESERVATIONS,
    *LARGE_RESERVATIONS,
    *SMALL_BROKERS,
    *LARGE_BROKERS,
)


def explored(bound: AnyBound, most: int) -> Found:
    """Explores a bound."""
    if isinstance(bound, Bound):
        return explore(bound, most=most)
    if isinstance(bound, BrokerBound):
        return explore_model(BrokerModel(bound), most=most)
    if isinstance(bound, ReservationBound):
        return explore_model(ReservationModel(bound), most=most)
    return explore_model(QueueModel(bound), most=most)


def _size(bound: AnyBound) -> tuple[int, int]:
    # Sites and jobs.
    if isinstance(bound, Bound):
        return len(bound.settings), len(bound.homes)
    if isinstance(bound, BrokerBound):
        return bound.resources, len(bound.tasks)
    if isinstance(bound, ReservationBound):
        return 1, bound.owners
    return 1, bound.jobs


def figures(
    bound: AnyBound, found: Found, seconds: float, measured_on: dict[str, object]
) -> dict[str, Any]:
    """Returns what is kept of an exploration that has taken `seconds` of a processor."""
    told = {key: value for key, value in asdict(found).items() if key not in LEFT_OUT}
    faults = {kind: most for kind, most in bound.faults.items() if most}
    sites, jobs = _size(bound)
    return {
        **told,
        "faults": faults,
        "all_budgets": False,
        "sites": sites,
        "jobs": jobs,
        "violations": int(bool(found.violation)),
        "seconds": round(seconds, 1),
        "machine": measured_on,
    }


def _dropped(*_: object) -> dict[str, object]:
    # What a batch system has not kept is written to the log, again and again.
    raise structlog.DropEvent


def main() -> int:
    """Runs it."""
    parser = options_of(__doc__)
    parser.add_argument("--bound", help="the name of one bound; by default all")
    parser.add_argument("--most", type=int, default=20_000_000, help="states at most of each")
    parser.add_argument("--anew", action="store_true", help="also what has figures already")
    parser.add_argument("--dry", action="store_true", help="keep no figures")
    parser.add_argument("--list", action="store_true", help="name the bounds, and do nothing")
    options = parser.parse_args()
    bounds = [one for one in ALL if options.bound in {None, one.name}]
    if options.list or not bounds:
        print("\n".join(one.name for one in ALL))
        return int(not bounds)
    measured_on = machine()  # before any figures are kept, which would make the commit dirty
    kept = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    bad = 0
    for bound in bounds:
        if bound.name in kept and not (options.anew or options.bound):
            continue
        begin = time.process_time()
        found = explored(bound, options.most)
        seconds = time.process_time() - begin
        print(
            f"{bound.name}: {found.states} states, {found.transitions} transitions, {seconds:.1f} s"
            f"{'' if found.complete or found.violation else ', NOT ALL OF THEM'}",
            flush=True,
        )
        if found.violation:
            bad += 1
            print("\n".join([f"  {found.violation}", *(f"  {line}" for line in found.story)]))
        if not options.dry:
            kept[bound.name] = figures(bound, found, seconds, measured_on)
            FIGURES.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return int(bad > 0)


if __name__ == "__main__":
    # There are very many objects, and what is garbage is so at once: only new ones are looked at.
    gc.set_threshold(100_000, 10, 1_000_000)
    structlog.configure(processors=[_dropped])
    sys.exit(main())
