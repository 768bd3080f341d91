"""Calls about many jobs, in as few messages as they fit in; each job has an answer of its own."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from grms.client.answers import Job, read_job
from grms.client.errors import SiteError, SiteUnavailable
from grms.v1 import job_pb2

if TYPE_CHECKING:
    from grms.client.calls import Calls
    from grms.client.unary_calls import UnaryCalls

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
