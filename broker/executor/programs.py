"""Programs as sites are handed them, and what the port says where none is run."""

from collections.abc import AsyncIterator

from broker.executor.base import (
    GroupWish,
    Order,
    ProgramRefused,
    Reservation,
    ReservationRefused,
)
from grms.client import Results
from grms.daemon.job_needs import write_needs
from grms.v1 import request_pb2
from lrms_sim.workload.requests import Request


def write_job(request: request_pb2.JobRequest, order: Order) -> None:
    """Writes a program with what it asks for into a job's request; the files have been handed over before."""
    program = order.program
    assert program is not None, order.name
    request.processors = program.request.processors
    request.requested_time_s = program.limit
    if program.request != Request.of_processors(program.request.processors, program.limit):
        request.needs.CopyFrom(write_needs(program.request))
    request.program.CopyFrom(
        request_pb2.Program(
            script=program.script,
            arguments=program.arguments,
            environment=dict(program.environment),
            outputs=program.outputs,
            inputs=[
                request_pb2.InputFile(name=each.name, size_bytes=each.size, sha256=each.sha256)
                for each in order.inputs
            ],
        )
    )


class NoGroups:
    """What a site says of groups that takes none."""

    async def launch_group(self, wish: GroupWish) -> tuple[Reservation | ProgramRefused, ...]:
        """Raises `ReservationRefused`: only pilots take groups."""
        raise ReservationRefused(f"{wish.resource} takes no programs in groups")

    async def withdraw(self, reservation_id: str) -> Reservation | None:  # noqa: ARG002  # the port's
        """Returns `None`: it has launched none."""
        return None


class NoPrograms:
    """What a site says of files that runs no programs."""

    async def files(self, reservation_id: str, job: str) -> Results:
        """Raises `ReservationRefused`: no program was run."""
        raise ReservationRefused(f"{job or reservation_id}: no program was run there")

    async def read(
        self, reservation_id: str, job: str, name: str, begin: int = 0
    ) -> AsyncIterator[bytes]:
        """Raises `ReservationRefused`: no program was run."""
        raise ReservationRefused(
            f"{job or reservation_id}: no program has left {name} from {begin}"
        )
        yield b""  # what makes it an iterator
