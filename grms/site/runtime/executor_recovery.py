"""What a site knows of the batch system: running and waiting jobs."""

import math
from collections.abc import Callable
from pathlib import Path

from google.protobuf.message import DecodeError

from grms.daemon.job_files import JobFile
from grms.lrms.base import HomeRun, JobInput, LrmsJob, LrmsRefusedError, Program, SimulatedRun
from grms.site.model.jobs import GuestJob, HomeJob, Request
from grms.site.model.lifecycle import JobState
from grms.site.model.state_tables import StateTables
from grms.site.wire.convert import given_inputs, shared_files
from grms.v1 import request_pb2
from lrms_sim.workload.groups import GROUPS

_GROUPS_SAID = frozenset({0, *GROUPS})
"""The numbers of groups that a request may have; 0 is none."""


def lrms_job(
    key: str,
    request: Request,
    payload: bytes,
    *,
    user: str = "",
    partner: str = "",
    contents: Callable[[int, JobFile], Path] | None = None,
) -> LrmsJob:
    """Returns a job as the port defines it.

    The payload is a serialized `JobRequest` with only the program. `user` is empty for a partner's job, `partner` for
    a local user's; `contents` returns where an input file is, by its number and description.

    Raises:
        LrmsRefusedError: the payload is invalid.
    """
    message = request_pb2.JobRequest()
    try:
        message.ParseFromString(payload)
    except DecodeError as error:
        raise LrmsRefusedError(f"job {key}: what it runs cannot be read") from error
    program, simulated = None, None
    runs = message.WhichOneof("payload")
    if runs == "simulated":
        simulated = _simulated(key, message.simulated)
    elif runs == "program":
        said = message.program
        files = enumerate(given_inputs(payload))
        program = Program(
            said.script,
            tuple(said.arguments),
            dict(said.environment),
            tuple(said.outputs),
            tuple(
                JobInput(file, "" if contents is None else str(contents(number, file)))
                for number, file in files
            ),
            shared_files(payload),
            said.merged,
            said.truncated,
        )
    elif runs == "to_fetch":
        program = Program("")  # a simulated machine does not run it, and no other is given it so
    home = None
    if message.HasField("home") and not partner:
        given = message.home
        home = HomeRun(given.folder, tuple(given.environment), tuple(given.options))
    return LrmsJob(
        key,
        request.processors,
        request.requested_time,
        user,
        partner,
        program,
        simulated,
        name=message.program.name,
        home=home,
        request=request.needs,
    )


def _simulated(key: str, said: request_pb2.SimulatedProgram) -> SimulatedRun:
    run_time, group = said.run_time_s, said.user_group
    if not (math.isfinite(run_time) and run_time > 0):
        text = f"job {key}: run_time_s is {run_time}; it must be finite and more than 0"
        raise LrmsRefusedError(text)
    if group and group not in GROUPS:
        text = f"job {key}: user_group is {group}; it must be from 1 to {GROUPS[-1]}"
        raise LrmsRefusedError(text)
    return SimulatedRun(run_time, group or None)


def running(memory: StateTables) -> list[tuple[LrmsJob, float]]:
    """Returns the running jobs with their start times, seconds, in order of start."""
    here = [(job, job.start_time) for job in memory.at_lrms.values() if _runs(job)]
    return [(job, start) for each, start in here if (job := _job_of(each)) is not None]


def waiting(memory: StateTables) -> list[LrmsJob]:
    """Returns the submitted jobs that have not started, oldest first."""
    here = [
        job for key, job in memory.at_lrms.items() if not _runs(job) and key not in memory.reserved
    ]
    return [job for each in here if (job := _job_of(each)) is not None]


def _runs(job: HomeJob | GuestJob) -> bool:
    return job.state is JobState.RUNNING


def _job_of(job: HomeJob | GuestJob) -> LrmsJob | None:
    user, partner = job.owner
    try:
        return lrms_job(job.lrms_key, job.asked_here, job.program, user=user, partner=partner)
    except LrmsRefusedError:
        return None  # it was refused then, and will be again
