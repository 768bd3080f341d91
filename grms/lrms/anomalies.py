"""Counts of what a batch system has not kept, for operators."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(slots=True)
class Anomalies:
    """Counts since the daemon's start, by kind.

    Attributes:
        submission_forgotten: acknowledged submissions that were forgotten; wanted ones are resubmitted.
        release_undone: releases that were undone, and repeated.
        cancel_undone: cancels that were undone, and repeated.
        end_undone: jobs that reappeared after their end.
        end_forgotten: jobs ended at their limit, or with their node, although their script had ended.
        run_forgotten: jobs that reappeared held although they had begun to run, and were not repeated.
        copied: second copies of a job; held ones are cancelled.
        run_again: jobs that ran again, or concurrently with a copy, without an order.
        run_fenced: second runs that skipped the script, as the first had begun.
    """

    submission_forgotten: int = 0
    release_undone: int = 0
    cancel_undone: int = 0
    end_undone: int = 0
    end_forgotten: int = 0
    run_forgotten: int = 0
    copied: int = 0
    run_again: int = 0
    run_fenced: int = 0


@runtime_checkable
class WithAnomalies(Protocol):
    """An LRMS that may not keep what it says."""

    @property
    def anomalies(self) -> Anomalies:
        """What it has not kept so far."""
