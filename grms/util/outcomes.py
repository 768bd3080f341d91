"""How a job ends: one enumeration for the batch system, the journal, the wire, clients and telemetry."""

import enum


class Outcome(enum.StrEnum):
    """How a job came to its end.

    COMPLETED: by itself, with exit code 0.
    FAILED: by itself, with another one or a signal, or it could not be started.
    CANCELLED: somebody ended it: the site, its user, an operator of the LRMS.
    TIMEOUT: it was ended at the limit of its requested time.
    NOT_RUN: a simulated machine has held its processors for it; its program was not run.
    NODE_FAIL: what it ran on failed.
    OUT_OF_MEMORY: it was ended as it needed more memory than it had.
    LOST: the LRMS has forgotten it, before it started.
    UNKNOWN: it is over, and nobody can say how.
    PREEMPTED: the LRMS has ended it for another job; it may run again elsewhere.
    """

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    NOT_RUN = "not_run"
    NODE_FAIL = "node_fail"
    OUT_OF_MEMORY = "out_of_memory"
    LOST = "lost"
    UNKNOWN = "unknown"
    PREEMPTED = "preempted"
