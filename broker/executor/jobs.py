"""Ordinary jobs of a site's batch system: nothing is reserved, and each program is submitted when its time has come.

To the site the broker is a user like others: the site's daemon keeps jobs at home or lets partners run them, and runs
each exactly once. A job is submitted under the name of its reservation, which is here the broker's word alone, so
that a repeated launch is the same job.
"""

from collections.abc import AsyncIterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from broker.executor.base import (
    Order,
    ProgramRefused,
    Reservation,
    ReservationRefused,
    ReservationState,
    SiteUnavailable,
    Window,
    Wish,
)
from broker.executor.programs import NoGroups
from broker.model.resources import Resource
from broker.scheduler.offers import ResourceOffer
from grms.client import Client, Job, JobState, Results, SiteError
from grms.util.outcomes import Outcome
from lrms_sim.util.messages import system_words

if TYPE_CHECKING:
    from collections.abc import Iterator

CALL_S: Final = 10.0
"""Timeout of a call with its retries, real seconds."""

RESOURCE: Final = "jobs"
"""What a site's ordinary jobs are called among its resources."""

NAME_MAX: Final = 128
"""Most characters of a job's name."""

_REFUSALS: Final = frozenset(
    ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "PERMISSION_DENIED", "NOT_FOUND", "UNIMPLEMENTED")
)
"""Final answers of a site, which repetition would not change."""


@dataclass(frozen=True, slots=True)
class _Run:
    # A job that has been launched and has not ended, as far as is known; `is_program` where anything runs.
    reservation_id: str
    job: str
    is_program: bool


class JobSite(NoGroups):
    """A site's daemon at its users' socket; a context.

    `resource` is what is planned with, its capacity the processors that jobs of the broker have at a time. `call_s`
    is the timeout of a call in real seconds.
    """

    def __init__(self, socket: str | Path, resource: Resource, *, call_s: float = CALL_S) -> None:
        self._resource = resource
        self._client = Client(socket, timeout_s=call_s)
        self._runs: dict[str, _Run] = {}
        self._by_job: dict[str, _Run] = {}

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._client.__aexit__(*error)

    async def book(self, wish: Wish) -> Reservation:
        """Reserves nothing, and says so to nobody."""
        return Reservation(wish.key, ReservationState.BOOKED)

    async def restore(self, reservation_id: str, wish: Wish) -> None:
        """Does nothing: nothing is reserved."""

    async def launch(self, reservation_id: str, order: Order) -> Reservation:
        """Submits a job, or finds the one that was submitted before."""
        is_program = order.program is not None
        job = await self._submitted_before(reservation_id, order)
        if job is None:
            if order.job or order.started is not None:
                gone = self._gone(_Run(reservation_id, order.job or "of before", is_program))
                return replace(gone, start_time=order.started, job=order.job)
            job = await self._submit(_key(reservation_id, is_program=is_program), order)
        run = _Run(reservation_id, job.job_id, is_program)
        self._runs[reservation_id] = self._by_job[job.job_id] = run
        # What has changed before this was noted was told to nobody.
        with _asking():
            return self._told(run, await self._client.get(job.job_id))

    async def _submitted_before(self, reservation_id: str, order: Order) -> Job | None:
        with _asking():
            try:
                if order.job:
                    return await self._client.get(order.job)
                key = _key(reservation_id, is_program=order.program is not None)
                return await self._client.get(key=key)
            except SiteError as error:
                if error.code == "NOT_FOUND":
                    return None
                raise
        return None

    async def _run(self, reservation_id: str) -> _Run | None:
        # The run of a reservation, also of one that was launched before the broker began.
        if reservation_id in self._runs:
            return self._runs[reservation_id]
        for is_program in (True, False):
            try:
                job = await self._client.get(key=_key(reservation_id, is_program=is_program))
            except SiteError as error:
                if error.code != "NOT_FOUND":
                    raise
            else:
                return _Run(reservation_id, job.job_id, is_program)
        return None

    async def _submit(self, key: str, order: Order) -> Job:
        name, program = order.name[:NAME_MAX], order.program
        writes = None if program is None else program.checkpoint
        try:
            if program is None:
                return await self._client.submit(
                    processors=order.units,
                    requested_time_s=order.run_time,
                    run_time_s=order.run_time,
                    name=name,
                    key=key,
                )
            return await self._client.submit(
                needs=replace(program.request, wall_time=program.limit),
                script=program.script,
                arguments=program.arguments,
                environment=dict(program.environment),
                outputs=program.outputs,
                inputs={each.name: each.path for each in order.inputs},
                name=name,
                key=key,
                checkpoint_s=None if writes is None else writes.every,
                checkpoint_files=() if writes is None else writes.files,
            )
        except SiteError as error:
            if error.code in _REFUSALS and error.field != "inputs":
                raise ProgramRefused(f"its site refuses it: {error.reason}") from error
            raise SiteUnavailable(str(error)) from error
        except OSError as error:
            raise ProgramRefused(
                f"a file that it is given cannot be read: {system_words(error)}"
            ) from error
        except ValueError as error:
            raise ProgramRefused(str(error)) from error

    async def move(self, reservation_id: str, old: Window, new: Window) -> Reservation:  # noqa: ARG002  # the port's
        """Moves nothing: a batch system starts jobs when it can."""
        return Reservation(reservation_id, ReservationState.BOOKED)

    async def release(self, reservation_id: str) -> Reservation | None:
        """Cancels a job if there is one, and waits for its end."""
        with _asking():
            run = await self._run(reservation_id)
            if run is None:
                return None
            try:
                job = await self._client.get(run.job)
                if not job.has_ended:
                    await self._client.cancel(run.job)
                    job = await self._client.wait(run.job)
            except SiteError as error:
                if error.code == "NOT_FOUND":
                    return self._gone(run)
                raise
            return self._told(run, job)

    async def offer(self, begin: float, end: float) -> tuple[ResourceOffer, ...]:
        """Returns the processors that jobs of the broker have at a time; nobody else holds them."""
        free = (begin, end, self._resource.capacity)
        return (ResourceOffer(self._resource, labels_kind=True, free=(free,)),)

    async def watch(self) -> AsyncIterator[Reservation | None]:
        """Yields jobs as they change."""
        with _asking():
            known = False
            async for told in self._client.changes():
                if not known:
                    known = True
                    yield None
                    for run in list(self._runs.values()):
                        yield await self._now(run)
                for job in told.jobs:
                    if job.job_id in self._by_job:
                        yield self._told(self._by_job[job.job_id], job)
        raise SiteUnavailable("the site has ended the conversation")

    async def _now(self, run: _Run) -> Reservation:
        try:
            return self._told(run, await self._client.get(run.job))
        except SiteError as error:
            if error.code != "NOT_FOUND":
                raise
            return self._gone(run)

    def _gone(self, run: _Run) -> Reservation:
        self._forget(run)
        return Reservation(
            run.reservation_id,
            ReservationState.ENDED,
            outcome=Outcome.UNKNOWN,
            job=run.job,
            reason=f"its site does not know the job {run.job} any more",
        )

    def _told(self, run: _Run, job: Job) -> Reservation:
        outcome = job.outcome
        if job.has_ended:
            self._forget(run)
            if not run.is_program and outcome is Outcome.COMPLETED:
                outcome = Outcome.NOT_RUN
        return Reservation(
            run.reservation_id,
            _STATES.get(job.state, ReservationState.LAUNCHED),
            job.start_time_s,
            job.end_time_s,
            outcome,
            job.job_id,
            job.exit_code,
            job.signal,
            job.reason if job.has_ended else "",
            kept=sum(each.kept_s for each in job.sent_home),
            hindered="" if job.has_ended or job.state is JobState.RUNNING else job.stuck,
        )

    def _forget(self, run: _Run) -> None:
        self._runs.pop(run.reservation_id, None)
        self._by_job.pop(run.job, None)

    async def files(self, reservation_id: str, job: str) -> Results:
        """Returns what a job has left."""
        with _reading():
            return await self._client.results(await self._id(reservation_id, job))

    async def read(
        self, reservation_id: str, job: str, name: str, begin: int = 0
    ) -> AsyncIterator[bytes]:
        """Yields a file of a job."""
        with _reading():
            async for some in self._client.fetch(await self._id(reservation_id, job), name, begin):
                yield some

    async def _id(self, reservation_id: str, job: str) -> str:
        key = _key(reservation_id, is_program=True)
        return job or (await self._client.get(key=key)).job_id


def _key(reservation_id: str, *, is_program: bool) -> str:
    # By which the site knows a job; what runs nothing has one of its own, so that it is never taken for a program.
    return reservation_id if is_program else f"{reservation_id}.simulated"


_STATES: Final = {
    JobState.RUNNING: ReservationState.RUNNING,
    JobState.ENDED: ReservationState.ENDED,
}
"""Whatever else a job is, it has been launched."""


@contextmanager
def _asking() -> "Iterator[None]":
    try:
        yield
    except SiteError as error:
        raise SiteUnavailable(str(error)) from error


@contextmanager
def _reading() -> "Iterator[None]":
    try:
        yield
    except SiteError as error:
        if error.code in _REFUSALS:
            raise ReservationRefused(error.reason) from error
        raise SiteUnavailable(str(error)) from error
