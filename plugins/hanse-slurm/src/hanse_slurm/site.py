"""What the commands ask a site."""

import time
from collections.abc import Iterator, Sequence
from typing import Final, Self

from grms.client.errors import SiteError
from grms.client.unary import UnaryCalls
from grms.v1 import job_pb2
from hanse_slurm.options import UsageError
from hanse_slurm.variables import socket, timeout_s

JOBS_MAX: Final = 1000
"""Jobs in one call; a site takes no more."""


class Site:
    """A site's users' service, as far as the commands need it; a context. All methods raise `SiteError`."""

    def __init__(self) -> None:
        self._calls = UnaryCalls(socket(), timeout_s())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._calls.close()

    def named(self, words: Sequence[str]) -> list[job_pb2.Job | None]:
        """Returns jobs by their names, in order, `None` for what is not there; those of an array in its place.

        Raises:
            SiteError: the site cannot be reached, or refuses the call as a whole.
        """
        found: list[job_pb2.Job | None] = []
        for job, word in zip(self._got([_array(word) for word in words]), words, strict=True):
            if job is None or not job.HasField("array"):
                found.append(job)
                continue
            from grms.util.job_arrays import ArraySpec  # noqa: PLC0415  # few ask for arrays

            some = word.partition("_[")[2].rstrip("]") or job.array.elements
            try:
                spec = ArraySpec.parse(some)
            except ValueError as error:
                raise UsageError(f"Invalid job id {word}: {error}") from error
            elements = self._got([f"{job.job_id}_{index}" for index in spec])
            found += [each for each in elements if each is not None]
        return found

    def _got(self, words: Sequence[str]) -> Iterator[job_pb2.Job | None]:
        for at in range(0, len(words), JOBS_MAX):
            wanted = [job_pb2.GetRequest(job_id=word) for word in words[at : at + JOBS_MAX]]
            request = job_pb2.GetManyRequest(jobs=wanted, without_program=True)
            for each in self._calls.ask(self._calls.jobs.GetMany, request).answers:
                if each.HasField("job"):
                    yield each.job
                elif each.refusal.code == "NOT_FOUND":
                    yield None
                else:
                    raise SiteError(each.refusal.code, each.refusal.reason)

    def listed(
        self, *, user: str = "", all_users: bool = False, only_open: bool = False
    ) -> Iterator[job_pb2.Job]:
        """Yields the caller's jobs in the order of their submission, or those of others, for operators."""
        states = [
            name
            for name, number in job_pb2.JobState.items()
            if number not in {job_pb2.JOB_STATE_UNSPECIFIED, job_pb2.JOB_STATE_ENDED}
        ]
        request = job_pb2.ListRequest(
            states=states if only_open else [],
            user=user,
            all_users=all_users or bool(user),
            page_size=JOBS_MAX,
            without_program=True,
        )
        while True:
            page = self._calls.ask(self._calls.jobs.List, request)
            yield from page.jobs
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def cancel(self, words: Sequence[str]) -> list[job_pb2.JobAnswer]:
        """Requests the end of jobs, arrays or elements; returns what is said of each, in order."""
        found: list[job_pb2.JobAnswer] = []
        for at in range(0, len(words), JOBS_MAX):
            request = job_pb2.CancelManyRequest(job_ids=words[at : at + JOBS_MAX])
            found += self._calls.ask(self._calls.jobs.CancelMany, request).answers
        return found


def _array(word: str) -> str:
    return word.partition("_[")[0]


def now_s() -> float:
    """Returns the present moment, seconds since 1970, which is that of a site on a wall clock."""
    return time.time()
