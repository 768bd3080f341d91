"""The states of jobs, and their transitions.

A *home job* is one of the site's local users; a *guest job* is one that a partner has offered; a *reservation* is
a promise of a resource in a window. The tables are authoritative: every change of a state is checked against them,
the documentation draws its diagrams from here, and a move that is not listed is a bug in this program.

Not every state is in the journal. RESOLVING and WITHDRAWING (is the offer accepted? withdraw it!), QUEUED and
SUSPECT are known to a running daemon; after a restart such a job is found in the state before, OFFERING, SUBMITTING
or DELEGATED, and asking again leads to the same end. That is why the tables let a job skip them. (That a job waits
again after it had started is in the journal, and so is every step of one that leaves the queue for a partner.)
"""

from collections.abc import Mapping, Sequence

from grms.util.outcomes import Outcome as Outcome  # noqa: PLC0414  # a word of the site's as well
from grms.util.values import QuickEnum


class JobState(QuickEnum):
    """State of a job; a guest job is SUBMITTING, QUEUED, RUNNING or ENDED."""

    HELD = "held"
    RECEIVED = "received"
    OFFERING = "offering"
    RESOLVING = "resolving"
    WITHDRAWING = "withdrawing"
    SUBMITTING = "submitting"
    QUEUED = "queued"
    REOFFERING = "reoffering"
    LEAVING = "leaving"
    RUNNING = "running"
    DELEGATED = "delegated"
    SUSPECT = "suspect"
    ENDED = "ended"


WAITING = frozenset({JobState.QUEUED, JobState.REOFFERING, JobState.LEAVING})
"""The states of a job that waits in the own batch system; whoever watches sees QUEUED."""

PROVISIONAL = frozenset({JobState.REOFFERING, JobState.LEAVING})
"""Those in which it also has an offer, which binds nobody before the job has left the queue."""

SHOWN_AS: Mapping[JobState, JobState] = {
    state: JobState.QUEUED if state in PROVISIONAL else state for state in JobState
}
"""Where a job stands for those who watch: one that may leave the queue waits in it."""

SHOWN = tuple(state for state in JobState if state not in PROVISIONAL)
"""The states that those who watch are told of; the wire has the same names."""


class GuestState(QuickEnum):
    """The answer to a partner's offer, and the state of the resulting job."""

    ACCEPTED = "accepted"
    SUBMITTED = "submitted"
    RUNNING = "running"
    ENDED = "ended"
    REPORTED = "reported"
    ACKNOWLEDGED = "acknowledged"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"


GUEST_SHOWN_AS: Mapping[JobState, GuestState] = {
    JobState.SUBMITTING: GuestState.ACCEPTED,
    JobState.QUEUED: GuestState.SUBMITTED,
    JobState.RUNNING: GuestState.RUNNING,
    JobState.ENDED: GuestState.ENDED,
}
"""Where a guest job stands for those who watch."""


class ReservationState(QuickEnum):
    """State of a reservation, with the names on the wire."""

    BOOKED = "booked"
    LAUNCHED = "launched"
    RUNNING = "running"
    ENDED = "ended"
    RELEASED = "released"
    EXPIRED = "expired"


JOB_MOVES: Mapping[JobState, Mapping[JobState, str]] = {
    JobState.HELD: {
        JobState.RECEIVED: "what it waits for has happened",
        JobState.ENDED: "cancelled, or what it waits for cannot happen",
    },
    JobState.RECEIVED: {
        JobState.OFFERING: "home would rather not, a partner is asked",
        JobState.SUBMITTING: "home wants it, or nobody else",
        JobState.ENDED: "cancelled, or written off",
    },
    JobState.OFFERING: {
        JobState.RECEIVED: "declined, or given up on",
        JobState.DELEGATED: "accepted",
        JobState.RESOLVING: "no answer, outcome unknown",
        JobState.WITHDRAWING: "cancelled before the answer",
        JobState.ENDED: "reported as ended",
    },
    JobState.RESOLVING: {
        JobState.RECEIVED: "it was declined, or is given up on",
        JobState.DELEGATED: "it was accepted",
        JobState.WITHDRAWING: "the partner has not heard of it, or it is cancelled",
        JobState.ENDED: "reported as ended",
    },
    JobState.WITHDRAWING: {
        JobState.RECEIVED: "taken back, declined, or given up on",
        JobState.DELEGATED: "it was accepted after all",
        JobState.ENDED: "reported as ended",
    },
    JobState.SUBMITTING: {
        JobState.QUEUED: "the batch system has it",
        JobState.REOFFERING: "a partner is asked to hold a place",
        JobState.RUNNING: "started",
        JobState.RECEIVED: "taken out of the queue too late for the partner",
        JobState.ENDED: "ended, refused or cancelled",
    },
    JobState.QUEUED: {
        JobState.REOFFERING: "a partner is asked to hold a place",
        JobState.RUNNING: "started",
        JobState.RECEIVED: "taken out of the queue too late for the partner",
        JobState.SUBMITTING: "the batch system has lost it",
        JobState.ENDED: "cancelled, or gone",
    },
    JobState.REOFFERING: {
        JobState.QUEUED: "declined, no answer, or not to leave any more",
        JobState.LEAVING: "the partner holds a place, the batch system is to let it go",
    },
    JobState.LEAVING: {
        JobState.QUEUED: "it has started, or is to end",
        JobState.RESOLVING: "it is out of the queue, the partner is told to start it",
    },
    JobState.RUNNING: {
        JobState.QUEUED: "the batch system starts it anew",
        JobState.ENDED: "ended or cancelled",
    },
    JobState.DELEGATED: {
        JobState.SUSPECT: "the partner is lost or has forgotten it",
        JobState.RECEIVED: "given up on, taken back, never started there, or sent home",
        JobState.ENDED: "reported as ended",
    },
    JobState.SUSPECT: {
        JobState.DELEGATED: "the partner is back and has it",
        JobState.RECEIVED: "given up on, taken back, never started there, or sent home",
        JobState.ENDED: "reported as ended, or cancelled",
    },
    JobState.ENDED: {},
}
"""What a home job's state may become, and by what."""

_HERE = (JobState.SUBMITTING, JobState.QUEUED, JobState.RUNNING, JobState.ENDED)

GUEST_MOVES: Mapping[JobState, Mapping[JobState, str]] = {
    state: {target: why for target, why in JOB_MOVES[state].items() if target in _HERE}
    for state in _HERE
}
"""The same for a guest job, which is here from its acceptance to its end."""

RESERVATION_MOVES: Mapping[ReservationState, Mapping[ReservationState, str]] = {
    ReservationState.BOOKED: {
        ReservationState.LAUNCHED: "a job was handed in for it",
        ReservationState.RELEASED: "its owner gives it back, or its pilot is gone",
        ReservationState.EXPIRED: "its end has passed without a job",
    },
    ReservationState.LAUNCHED: {
        ReservationState.RUNNING: "it has begun, and its job starts",
        ReservationState.ENDED: "its program cannot be started",
        ReservationState.RELEASED: "its owner gives it back, or its pilot is gone",
    },
    ReservationState.RUNNING: {
        ReservationState.ENDED: "its job has ended, or was cut off",
        ReservationState.RELEASED: "its owner gives it back",
    },
    ReservationState.ENDED: {},
    ReservationState.RELEASED: {},
    ReservationState.EXPIRED: {},
}
"""What a reservation's state may become, and by what."""

JOB_BEGINNING = (JobState.RECEIVED, JobState.HELD)
GUEST_BEGINNING = (JobState.SUBMITTING,)
RESERVATION_BEGINNING = (ReservationState.BOOKED,)
"""The states in which a life begins."""


State = JobState | ReservationState


class IllegalMove(Exception):  # noqa: N818  # named for what it says, as the states are
    """A move that the table does not have: a bug in this program.

    `what` has the states: "job a-1", "reservation 3". `story` are its states so far, oldest first, as far as they are
    remembered.
    """

    def __init__(self, what: str, story: Sequence[State], target: State) -> None:
        told = " → ".join(state.name for state in story)
        super().__init__(f"{what} cannot become {target.name}; so far: {told}")
