"""What the adapter needs of one kind of batch system: how it is told things and looked at."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from grms.lrms.batch.table import Ending, JobRow, Question, Table
from grms.lrms.port import LrmsJob


class BatchSystem(Protocol):
    """One kind of batch system.

    Whatever reaches outside raises `LrmsUnavailableError` where nobody answers, and
    `LrmsRefusedError` where the answer is no.

    Attributes:
        forgets: whether it may forget what it has acknowledged. What one that forgets nothing does not
            know, and never ran, somebody has deleted.
    """

    @property
    def forgets(self) -> bool:
        """See the class."""

    def encode(self, key: str) -> str:
        """Returns the name of a job at the batch system; keys are as `check_key` has them."""

    def decode(self, name: str) -> str | None:
        """Returns the key of a name; None of a name that is not of this site."""

    async def open(self) -> None:
        """Makes ready, and waits for nobody."""

    async def look(self) -> Table:
        """Reads the whole table and the machine's size."""

    async def submit(self, name: str, job: LrmsJob, folder: Path) -> str:
        """Submits a job, held, and returns the batch system's id.

        Args:
            name: of the job at the batch system.
            job: with its program, which is in the folder already.
            folder: of the job, with `launch`.
        """

    async def release(self, row: JobRow) -> None:
        """Lifts the hold of a job."""

    async def hold(self, row: JobRow) -> None:
        """Keeps a waiting job from starting; of one that has started this means nothing."""

    async def cancel(self, row: JobRow) -> None:
        """Ends a job; one that has ended is left as it is."""

    async def cancel_all(self, rows: Sequence[JobRow]) -> None:
        """Ends jobs in one call, where the batch system has one; those that have ended are left as they are.

        Args:
            rows: jobs that a look has just shown, and whose submission no crash can undo any more: their numbers are
                no other jobs' by now.

        Raises:
            LrmsRefusedError: some were not ended, or nobody says which; the others were.
        """

    async def held_since_submission(self, row: JobRow, *, released: bool) -> bool:
        """Returns whether a job is held by the hold it was submitted with.

        Args:
            row: a job that is held.
            released: that hold was lifted once, as far as the batch system has acknowledged it.
        """

    async def ending(self, question: Question) -> Ending | None:
        """Returns how a job has ended, as far as records say."""

    async def knows(self, question: Question) -> Ending | bool | None:
        """Returns whether the batch system has a job that its table does not show.

        A table may be cut, filtered or hidden from this user, so that it proves nothing of what it does not
        show. This asks for the one job.

        Returns:
            Whether it has it, or how it has ended; None where it does not say.
        """
