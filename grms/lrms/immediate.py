"""What a batch system may offer beyond the port: answers at once, and what a replay needs.

Only one in the daemon's own memory can. The driver uses it where it is there, so that a replay
with a virtual clock is in step with its conductor, and costs no switch of tasks for each job.
"""

from typing import Protocol, runtime_checkable

from grms.lrms.port import Lrms, LrmsJob, LrmsLoad, LrmsRecord


@runtime_checkable
class ImmediateLrms(Lrms, Protocol):
    """A batch system that answers at once, at the present moment of the site's clock.

    What a command leads to is told during the call where it is told at all.
    """

    def submit_now(self, job: LrmsJob) -> None:
        """Does what `submit` does.

        Raises:
            LrmsRefusedError: it will never be taken.
        """

    def cancel_now(self, key: str, *, only_waiting: bool = False) -> bool:
        """Does what `cancel` does."""

    def look_up_now(self, key: str) -> LrmsRecord | None:
        """Does what `look_up` does."""

    def waits_now(self, key: str) -> bool:
        """Returns whether a job waits in the queue, as `look_up` would say."""

    def load_now(self) -> LrmsLoad:
        """Returns the load as it is at this moment."""

    def starts_now(self, processors: int, requested_time: float) -> bool:
        """Returns whether a job would start at this moment, if it were submitted behind all others.

        Args:
            processors: at most the machine's.
            requested_time: seconds, more than 0.
        """

    def tell_now(self) -> None:
        """Tells what has happened up to this moment and was not told."""


@runtime_checkable
class ReplayableLrms(ImmediateLrms, Protocol):
    """A simulated batch system, which knows its future."""

    @property
    def next_event_time(self) -> float:
        """When it next does something by itself, seconds; infinity for never."""

    def finish(self, moment: float) -> None:
        """Does everything due up to and including a moment after which no submission of it comes.

        Args:
            moment: seconds.
        """

    def hold_passes(self) -> None:
        """Leaves the pass that follows jobs taken out of the queue to `make_pass`; time stands still."""

    def make_pass(self) -> None:
        """Makes that pass, and lets all further ones be made by themselves."""

    def follow(self, key: str) -> None:
        """Counts a job in `first_end`, until it has ended; one that is not known changes nothing.

        Args:
            key: which.
        """

    def first_end(self) -> float:
        """Returns a moment before which no job that is followed ends, seconds.

        Infinity for no job.
        """
