"""Bounds of explorations of a batch system in trouble."""

from typing import Final

from grms.simulation.exhaustive.queue_model import queue_bound

SMALL_QUEUES: Final = (
    queue_bound("batch system: no fault"),
    queue_bound("batch system: the daemon dies", crash=1),
    queue_bound("batch system: an answer is lost", answer=1),
    queue_bound("batch system: a submission comes late", late=1),
    queue_bound("batch system: tables without jobs", partial=2),
    queue_bound("batch system: the controller forgets", undo=1),
    queue_bound("batch system: the controller forgets, and jobs may run again", undo=1, once=False),
    queue_bound("batch system: refused for now, cancelled", refuse=1, cancel=1),
    queue_bound("batch system: refused for good, a submission comes late", deny=1, late=1),
    queue_bound("batch system: a poll meanwhile, cancelled", meanwhile=1, cancel=1),
    queue_bound("batch system: ended by hand", end_by_hand=1),
    queue_bound("batch system: started anew by hand, held", requeue=1, hold=1),
)
"""Those of the tests; some hundred states each."""

LARGE_QUEUES: Final = (
    queue_bound("batch system: the daemon dies twice", crash=2),
    queue_bound("batch system: the daemon dies, an answer is lost", crash=1, answer=1),
    queue_bound("batch system: the daemon dies, a submission comes late", crash=1, late=1),
    queue_bound("batch system: the daemon dies, the controller forgets", crash=1, undo=1),
    queue_bound("batch system: two submissions come late", late=2),
    queue_bound("batch system: a submission comes late; a table without a job", late=1, partial=1),
    queue_bound(
        "batch system: the daemon dies, a submission comes late; a table without a job",
        crash=1,
        late=1,
        partial=1,
    ),
    queue_bound("batch system: a submission comes late, cancelled", late=1, cancel=1),
    queue_bound("batch system: the daemon dies, cancelled", crash=1, cancel=1),
    queue_bound(
        "batch system: the daemon dies, a submission comes late, cancelled",
        crash=1,
        late=1,
        cancel=1,
    ),
    queue_bound("batch system: a submission comes late, ended by hand", late=1, end_by_hand=1),
    queue_bound(
        "batch system: the daemon dies, a submission comes late, ended by hand",
        crash=1,
        late=1,
        end_by_hand=1,
    ),
    queue_bound(
        "batch system: the daemon dies, refused for good, a submission comes late",
        crash=1,
        deny=1,
        late=1,
    ),
    queue_bound("batch system: a submission comes late, held", late=1, hold=1),
    queue_bound("batch system: a submission comes late, started anew by hand", late=1, requeue=1),
    queue_bound("batch system: the controller forgets, a submission comes late", undo=1, late=1),
    queue_bound("batch system: the controller forgets, cancelled", undo=1, cancel=1),
    queue_bound("batch system: the controller forgets; a table without a job", undo=1, partial=1),
    queue_bound("batch system: the controller forgets, a node ends what it ran", undo=1, orphan=1),
    queue_bound("batch system: two jobs", jobs=2),
    queue_bound("batch system: two jobs, an answer is lost", jobs=2, answer=1),
    queue_bound("batch system: two jobs, the controller forgets", jobs=2, undo=1),
)
"""Those that are run by hand: `python -m benchmarks.exhaustive`."""
