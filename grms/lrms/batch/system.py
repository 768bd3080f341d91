"""The interface of one kind of batch system for the adapter."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from grms.lrms.base import LrmsJob
from grms.lrms.batch.guests_to_end import WaitingJob
from grms.lrms.batch.queue_snapshot import Ending, JobRow, Question, QueueSnapshot
from grms.lrms.preemption import Preemption


class BatchSystem(Protocol):
    """One kind of batch system.

    Everything that accesses the batch system raises `LrmsUnavailableError` without an answer, and
    `LrmsRefusedError` if it is refused.

    Attributes:
        forgets: whether it may forget what it has acknowledged. If not, a job that it does not know and
            that never ran was deleted by somebody.
    """

    @property
    def forgets(self) -> bool:
        """Whether it may forget what it has acknowledged."""

    def encode(self, key: str) -> str:
        """Returns the name of a job at the batch system; keys are as `check_key` has them."""

    def decode(self, name: str) -> str | None:
        """Returns the key of a name; `None` for a name of another site."""

    async def open(self) -> None:
        """Prepares without waiting."""

    async def look(self) -> QueueSnapshot:
        """Reads the whole table and the machine's size."""

    async def submit(self, name: str, job: LrmsJob, folder: Path) -> str:
        """Submits a job held, and returns the batch system's id.

        `name` is the job's at the batch system; its folder already has the program and `launch`.
        """

    async def release(self, row: JobRow) -> None:
        """Lifts the hold of a job."""

    async def hold(self, row: JobRow) -> None:
        """Holds a waiting job; has no effect on a started one."""

    async def cancel(self, row: JobRow) -> bool:
        """Ends a job; one that has ended is left as it is.

        Returns whether this call may have ended it: False only if the batch system said that it had no such job.
        """

    async def cancel_all(self, rows: Sequence[JobRow]) -> None:
        """Ends jobs, in one call if possible; ended ones are left as they are.

        The jobs must just have been shown by a poll, with submissions safe from a crash: their numbers then
        belong to no other jobs.

        Raises:
            LrmsRefusedError: some, possibly unknown ones, were not ended; the others were.
        """

    async def held_since_submission(self, row: JobRow, *, released: bool) -> bool:
        """Returns whether a job is held by its submission hold.

        `released` says whether that hold was lifted once, as far as the batch system has acknowledged it.

        Raises:
            LrmsRefusedError: the batch system does not say; it may be asked again.
        """

    async def ending(self, question: Question) -> Ending | None:
        """Returns how a job has ended, as far as records say."""

    async def knows(self, question: Question) -> Ending | bool | None:
        """Returns whether the batch system has a job that its queue does not show.

        A queue listing may be truncated, filtered or hidden from this user, so absence proves nothing. This asks
        for the one job.

        Returns:
            Whether it has it, or how it has ended; `None` if it does not say.
        """


@runtime_checkable
class ReleasesMany(Protocol):
    """What a kind of batch system adds that releases many jobs in one call."""

    async def release_all(self, rows: Sequence[JobRow]) -> None:
        """Lifts the holds of jobs.

        Raises:
            LrmsRefusedError: some, possibly unknown ones, were not released; the others were.
        """


@runtime_checkable
class SubmitsMany(Protocol):
    """What a kind of batch system adds that takes many jobs in one call."""

    def alike(self, name: str, job: LrmsJob, folder: Path) -> Hashable:
        """Returns a word that is the same for jobs that it takes in one call; `None` for a job that goes alone."""

    async def submit_all(self, jobs: Sequence[tuple[str, LrmsJob, Path]]) -> list[str]:
        """Submits jobs that are alike held, each as `BatchSystem.submit` gets it, and returns their ids.

        Raises:
            LrmsRefusedError: none was submitted; each by itself may be.
        """


@runtime_checkable
class KeepsNames(Protocol):
    """What a kind of batch system adds where others can give a job another name."""

    async def give_tag(self, row: JobRow) -> None:
        """Gives a job that somebody has renamed (`JobRow.known_as`) its tag again."""


class PreemptingSystem(Protocol):
    """What a kind of batch system adds that can have guests ended for other jobs."""

    @property
    def preemption(self) -> Preemption:
        """What happens to them, by the last poll."""

    def placed(self, job: LrmsJob) -> LrmsJob:
        """Returns a preemptible guest as it is to be submitted."""

    def is_spared(self, row: JobRow) -> bool:
        """Returns whether a job is where protected guests are."""

    async def keep_protection(self, *, on: bool) -> bool:
        """Has the batch system protect the protected guests or not, if by the last poll it is otherwise.

        Returns whether something was changed. It raises `LrmsError` as everything that accesses the batch system.
        """

    async def waiting(self) -> list[WaitingJob]:
        """Returns the jobs that wait for room and for which it ends no guests, first those that are to start first."""

    def free(self) -> Mapping[str, int]:
        """Returns the processors that no job had at the last poll, by node."""


class PlaceKeepingSystem(Protocol):
    """What a kind of batch system adds that can keep the place of a waiting job which does not start (`kept_places`).

    All but the names raise `LrmsError` as everything that accesses the batch system.
    """

    @property
    def keeps_places(self) -> bool:
        """Whether a job that was set aside stands where it stood, by the last poll; else its waiting time counts anew."""

    def place_name(self, key: str) -> str:
        """Returns the name of a job's marker, which is no name of a job; `key` is one of the job's."""

    def place_of(self, name: str) -> str | None:
        """Returns the key of the job's first submission for the name of a marker; `None` for any other name."""

    def shown_as(self, name: str, key: str) -> str:
        """Returns the name of a job that has come back, with what its user calls it as in the marker's name."""

    def is_aside(self, row: JobRow) -> bool:
        """Returns whether a waiting job has a start far ahead."""

    async def set_aside(self, row: JobRow, name: str) -> None:
        """Gives a waiting job another name and a start far ahead; one that has started is refused."""

    async def rename(self, row: JobRow, name: str) -> None:
        """Gives a job that has not ended another name."""

    async def start_now(self, row: JobRow) -> None:
        """Lets a job start in its turn, where it stands."""

    async def release(self, row: JobRow) -> None:
        """Lifts the hold with which it was submitted."""

    async def cancel(self, row: JobRow) -> bool:
        """Ends a job, as `BatchSystem.cancel`."""
