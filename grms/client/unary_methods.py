"""Calls of a site with one answer each, which may be made once more: with gRPC's library, or without."""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, Unpack

from grms.client.answers import (
    Job,
    JobState,
    Preview,
    Results,
    read_job,
    read_preview,
    read_results,
)
from grms.client.errors import SiteError, SiteUnavailable
from grms.client.submission import JobDescription, submit_request
from grms.v1 import job_pb2, operator_pb2

if TYPE_CHECKING:
    from grms.client.calls import Calls
    from grms.client.unary import UnaryCalls


Q = TypeVar("Q")

JOBS_MAX: Final = 1000
"""Most jobs in one call; a site takes no more."""

BYTES_MAX: Final = 3 << 18
"""Size of a call of more than one job; sites take 1 MiB unless they say otherwise."""

TOO_LARGE: Final = "larger than max"
"""In gRPC's own words for a message that the other side does not take."""


async def ask_many(
    calls: "Calls | UnaryCalls",
    method: Any,
    questions: Sequence[Q],
    request: Callable[[Sequence[Q]], Any],
    size: Callable[[Q], int],
) -> list[Job | SiteError]:
    """Returns what each question is answered, in order; those that a site puts off are asked again in time.

    Args:
        calls: to the site.
        method: of its service, which answers with `answers`.
        questions: any number.
        request: makes a call's message of some of them.
        size: returns about how many bytes one takes.

    Raises:
        SiteUnavailable: the site cannot be reached; some questions may have been answered all the same.
        SiteError: it has refused a call as a whole.
    """
    found: dict[int, Job | SiteError] = {}
    left = list(range(len(questions)))
    deadline, backoff = calls.attempts()
    while left:
        again, wait_s = [], 0.0
        parts = list(_calls(left, lambda at: size(questions[at])))[::-1]
        while parts:
            some = parts.pop()
            try:
                answer = await calls.call(method, request([questions[at] for at in some]))
            except SiteError as error:
                if (
                    error.code != "RESOURCE_EXHAUSTED"
                    or TOO_LARGE not in error.reason
                    or not some[1:]
                ):
                    raise
                # This site takes less at a time.
                parts += [some[len(some) // 2 :], some[: len(some) // 2]]
                continue
            for at, each in zip(some, answer.answers, strict=True):
                found[at] = _read(each)
                retry_s = _retry_s(each)
                if retry_s is not None:
                    again.append(at)
                    wait_s = max(wait_s, retry_s)
        wait_s = max(wait_s, backoff.next_s())
        if not again or time.monotonic() + wait_s >= deadline:
            break
        await calls.pause(wait_s)
        left = again
    return [found[at] for at in range(len(questions))]


def _calls(left: Sequence[int], size: Callable[[int], int]) -> Iterator[list[int]]:
    some: list[int] = []
    total = 0
    for at in left:
        if some and (len(some) == JOBS_MAX or total + size(at) > BYTES_MAX):
            yield some
            some, total = [], 0
        some.append(at)
        total += size(at)
    if some:
        yield some


def _read(answer: job_pb2.JobAnswer) -> Job | SiteError:
    if answer.HasField("job"):
        return read_job(answer.job)
    told = answer.refusal
    kind = SiteUnavailable if told.code == "UNAVAILABLE" else SiteError
    return kind(told.code or "INTERNAL", told.reason or "the site does not say why", told.field)


def _retry_s(answer: job_pb2.JobAnswer) -> float | None:
    if answer.HasField("job"):
        return None
    told = answer.refusal
    if told.HasField("retry_s"):
        return told.retry_s
    return 0.0 if told.code == "UNAVAILABLE" else None


PAGE: Final = 1000
"""Jobs of a list in one answer."""


C = TypeVar("C", "Calls", "UnaryCalls")


class UnaryMethods(Generic[C]):
    """What `grms.client.Client` and `SyncClient` have in common."""

    def __init__(self, calls: C) -> None:
        self._calls: C = calls

    async def submit_at_once(self, **wanted: Unpack[JobDescription]) -> Job:
        """Submits a job without input files."""
        return read_job(await self._calls.call(self._calls.jobs.Submit, submit_request(**wanted)))

    async def get(self, job_id: str = "", *, key: str = "") -> Job:
        """Returns a job, by its id or by the key with which it was submitted.

        Raises:
            SiteError: there is none of that id or key, or it is another user's.
        """
        request = job_pb2.GetRequest(job_id=job_id, idempotency_key=key)
        return read_job(await self._calls.call(self._calls.jobs.Get, request))

    async def get_many(
        self, job_ids: Sequence[str] = (), *, keys: Sequence[str] = ()
    ) -> list[Job | SiteError]:
        """Returns jobs by their ids, and then jobs by their keys, in order; an error for each that there is not.

        Raises:
            SiteUnavailable: the site cannot be reached.
        """
        wanted = [job_pb2.GetRequest(job_id=each) for each in job_ids]
        wanted += [job_pb2.GetRequest(idempotency_key=each) for each in keys]
        return await ask_many(
            self._calls,
            self._calls.jobs.GetMany,
            wanted,
            lambda some: job_pb2.GetManyRequest(jobs=some),
            job_pb2.GetRequest.ByteSize,
        )

    async def jobs(
        self,
        *,
        states: Sequence[JobState] = (),
        all_users: bool = False,
        user: str = "",
        partner: str = "",
        since_s: float = 0.0,
        stuck: bool = False,
    ) -> AsyncIterator[Job]:
        """Yields the user's jobs in order of submission.

        Args:
            states: only jobs in these; all if empty.
            all_users: include other users' jobs, for operators.
            user: only jobs of this user, with `all_users`.
            partner: only jobs that are or were at this site.
            since_s: only jobs submitted at this time of the site's clock or later.
            stuck: only jobs that cannot continue by themselves.

        Raises:
            SiteError: it was refused.
        """
        request = job_pb2.ListRequest(
            states=[f"JOB_STATE_{state.name}" for state in states],
            all_users=all_users,
            page_size=PAGE,
            user=user,
            partner=partner,
            since_s=since_s,
            stuck=stuck,
            without_program=True,
        )
        while True:
            page = await self._calls.call(self._calls.jobs.List, request)
            for message in page.jobs:
                yield read_job(message)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def results(self, job_id: str, *, wait: bool = False) -> Results:
        """Returns what a job has left, as far as it is at this site.

        With `wait` it waits until everything is there, for the timeout of a call.

        Raises:
            SiteError: there is none of that id, or it is another user's.
        """
        deadline, backoff = self._calls.attempts()
        while True:
            request = job_pb2.ResultsRequest(job_id=job_id)
            found = read_results(await self._calls.call(self._calls.jobs.Results, request))
            pause = backoff.next_s()
            if found.complete or not wait or time.monotonic() + pause > deadline:
                return found
            await self._calls.pause(pause)

    async def remove_results(self, job_id: str) -> None:
        """Deletes what an ended job has left at this site, which makes room for others.

        Raises:
            SiteError: it has not ended, or its files are on the way.
        """
        request = job_pb2.RemoveResultsRequest(job_id=job_id)
        await self._calls.call(self._calls.jobs.RemoveResults, request)

    async def cancel(self, job_id: str) -> Job:
        """Requests the cancellation of a job, an array (a-12), or elements (a-12_[1-5,9]).

        `wait` returns when it has ended.

        Raises:
            SiteError: there is none of that id, or it is another user's.
        """
        return read_job(
            await self._calls.call(self._calls.jobs.Cancel, job_pb2.CancelRequest(job_id=job_id))
        )

    async def cancel_many(self, job_ids: Sequence[str]) -> list[Job | SiteError]:
        """Requests the cancellation of jobs, arrays, or elements; returns what is said of each, in order.

        Raises:
            SiteUnavailable: the site cannot be reached.
        """
        return await ask_many(
            self._calls,
            self._calls.jobs.CancelMany,
            job_ids,
            lambda some: job_pb2.CancelManyRequest(job_ids=some),
            len,
        )

    async def preview(self, **wanted: Unpack[JobDescription]) -> Preview:
        """Returns what would become of a job if it were submitted now, and submits nothing.

        The arguments are those of `submit`; input files are neither read nor sent.

        Raises:
            ValueError: no site could accept such a job.
            SiteUnavailable: the site cannot be reached, or takes no work now.
            SiteError: it would be refused.
        """
        request = submit_request(**wanted)
        return read_preview(await self._calls.call(self._calls.jobs.Preview, request))

    async def status(self) -> operator_pb2.StatusResponse:
        """Returns how the site is; for operators."""
        return await self._calls.call(self._calls.operator.Status, operator_pb2.StatusRequest())

    async def guests(self, partner: str = "") -> operator_pb2.GuestsResponse:
        """Returns partners' jobs at the site, of one partner or all; for operators."""
        return await self._calls.call(
            self._calls.operator.Guests, operator_pb2.GuestsRequest(partner=partner)
        )

    async def partners(self) -> Sequence[operator_pb2.PartnerStatus]:
        """Returns what the site knows of its partners; for operators."""
        answer = await self._calls.call(
            self._calls.operator.Partners, operator_pb2.PartnersRequest()
        )
        return list(answer.partners)

    async def pilots(self) -> operator_pb2.PilotsResponse:
        """Returns the site's pilots; for operators."""
        return await self._calls.call(self._calls.operator.Pilots, operator_pb2.PilotsRequest())

    async def drain(self) -> operator_pb2.StatusResponse:
        """Lets the site take no more work; for operators."""
        return await self._calls.call(self._calls.operator.Drain, operator_pb2.DrainRequest())

    async def resume(self) -> operator_pb2.StatusResponse:
        """Lets the site take work again; for operators."""
        return await self._calls.call(self._calls.operator.Resume, operator_pb2.ResumeRequest())

    async def open_pages(self) -> operator_pb2.OpenPagesResponse:
        """Returns a link to the site's pages, valid for one browser, once and for a minute; for operators.

        Raises:
            SiteError: no pages are served.
        """
        return await self._calls.call(
            self._calls.operator.OpenPages, operator_pb2.OpenPagesRequest()
        )
