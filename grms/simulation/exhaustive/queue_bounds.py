"""Bounds of explorations of a batch system in trouble."""

from typing import Any, Final

from grms.simulation.exhaustive.queue_model import QueueBound, queue_bound

_LEAVES: Final[dict[str, Any]] = {"decline": 1, "round": 1}
"""It stays at home at first, and leaves the queue in a round."""


def _places(name: str, **faults: Any) -> QueueBound:
    return queue_bound(f"batch system: places; {name}", places=True, **faults)


def _array(name: str, **faults: Any) -> QueueBound:
    return queue_bound(f"batch system: an array; {name}", jobs=2, arrays=True, **faults)


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
    queue_bound("batch system: guests; the controller forgets", guests=True, undo=1),
    _places("sent home", send_home=1),
    _places("leaves", **_LEAVES),
    _places("an answer is lost", answer=1),
    _places("sent home, a marker is refused", send_home=1, deny=1),
    _places("sent home, cancelled", send_home=1, cancel=1),
    _places("sent home, held", send_home=1, hold=1),
    _places("sent home, a marker is started by hand", send_home=1, start_by_hand=1),
    _places("sent home, ended by hand", send_home=1, end_by_hand=1),
    _places("the daemon dies", crash=1),
    _places("the controller forgets", undo=1),
    _places("a submission comes late", late=1),
    _places("leaves as it starts", **_LEAVES, race=1),
    _places("leaves; a table without a job", **_LEAVES, partial=1),
    _array("no fault"),
    _array("changed by hand", part=1),
    _array("refused for good", deny=1),
    _array("held", hold=1),
    _array("cancelled", cancel=1),
    _array("a table without a job", partial=1),
    _array("ended by hand", end_by_hand=1),
)
"""Those of the tests; some hundred states each, of places some thousand."""

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
    queue_bound(
        "batch system: guests; the daemon dies, the controller forgets",
        guests=True,
        crash=1,
        undo=1,
    ),
    queue_bound(
        "batch system: guests; the controller forgets, cancelled", guests=True, undo=1, cancel=1
    ),
    _places("sent home, an answer is lost", send_home=1, answer=1),
    _places("sent home, the daemon dies", send_home=1, crash=1),
    _places("sent home, the daemon dies twice", send_home=1, crash=2),
    _places("sent home, the controller forgets", send_home=1, undo=1),
    _places(
        "sent home, the controller forgets, a node ends what it ran", send_home=1, undo=1, orphan=1
    ),
    _places("sent home, a submission comes late", send_home=1, late=1),
    _places("sent home, a marker is refused, an answer is lost", send_home=1, deny=1, answer=1),
    _places("leaves, sent home", **_LEAVES, send_home=1),
    _places("leaves, sent home; a table without a job", **_LEAVES, send_home=1, partial=1),
    _places("leaves, sent home; an answer is lost", **_LEAVES, send_home=1, answer=1),
    _places("leaves as it starts, the daemon dies", **_LEAVES, race=1, crash=1),
    _places("leaves as it starts, an answer is lost", **_LEAVES, race=1, answer=1),
    _places("leaves as it starts, the controller forgets", **_LEAVES, race=1, undo=1),
    _places("leaves, sent home, cancelled", **_LEAVES, send_home=1, cancel=1),
    _places("leaves, sent home, held", **_LEAVES, send_home=1, hold=1),
    _places("leaves, sent home, ended by hand", **_LEAVES, send_home=1, end_by_hand=1),
    _places(
        "leaves, sent home, a marker is started by hand", **_LEAVES, send_home=1, start_by_hand=1
    ),
    _places("leaves, sent home, started anew by hand", **_LEAVES, send_home=1, requeue=1),
    _places("leaves, sent home; a submission comes late", **_LEAVES, send_home=1, late=1),
    _places("leaves, sent home; the controller forgets", **_LEAVES, send_home=1, undo=1),
    _places("leaves, sent home; the daemon dies", **_LEAVES, send_home=1, crash=1),
    _array("both cancelled", cancel=2),
    _array("changed by hand, ended by hand", part=1, end_by_hand=1),
    _array("changed by hand, cancelled", part=1, cancel=1),
    _array("started anew by hand", requeue=1),
    _array("an answer is lost", answer=1),
    _array("the daemon dies", crash=1),
)
"""Those that are run by hand: `python -m benchmarks.exhaustive`."""
