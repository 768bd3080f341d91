"""Optional extensions of the port: immediate answers, and replays.

Only a batch system in the daemon's own memory can. The driver uses it if available, so that a replay with a virtual
clock is in step with its coordinator, and needs no task switch per job.
"""

from typing import Protocol, runtime_checkable

from grms.lrms.base import Lrms, LrmsJob, LrmsLoad, LrmsRecord


@runtime_checkable
class ImmediateLrms(Lrms, Protocol):
    """A batch system that answers at once, at the present moment of the site's clock.

    Events that follow from a command are emitted during the call.
    """

    def submit_now(self, job: LrmsJob) -> None:
        """Does what `submit` does; `LrmsRefusedError` if it will never be accepted."""

    def cancel_now(self, key: str, *, only_waiting: bool = False) -> bool:
        """Does what `cancel` does."""

    def look_up_now(self, key: str) -> LrmsRecord | None:
        """Does what `look_up` does."""

    def waits_now(self, key: str) -> bool:
        """Returns whether a job waits in the queue, as `look_up` would say."""

    def load_now(self) -> LrmsLoad:
        """Returns the load as it is at this moment."""

    def starts_now(self, processors: int, requested_time: float) -> bool:
        """Returns whether a job submitted now, behind all others, would start at once."""

    def tell_now(self) -> None:
        """Emits pending events up to this moment."""


@runtime_checkable
class ReplayableLrms(ImmediateLrms, Protocol):
    """A simulated batch system, which knows its future."""

    @property
    def next_event_time(self) -> float:
        """When it next does something by itself, seconds; infinity for never."""

    def finish(self, moment: float) -> None:
        """Processes everything due up to and including a moment (seconds), after which no submission at it follows."""

    def begin_steps(self) -> None:
        """Holds passes for good, but that of a new job: from now on it does something when it is to `step`."""

    def step(self) -> None:
        """Does what is due by now, with its passes, though these are held."""

    def move_clock(self) -> None:
        """Has the machine's clock show the present moment; what is due at it does not happen."""

    def hold_passes(self) -> None:
        """Leaves the pass that follows jobs taken out of the queue to `make_pass`; time stands still."""

    def make_pass(self) -> None:
        """Makes that pass, and lets all further ones be made by themselves."""

    def follow(self, key: str) -> None:
        """Includes a job in `first_end` until it has ended; an unknown one changes nothing."""

    def first_end(self) -> float:
        """Returns a moment before which no followed job ends, seconds; infinity without jobs."""
