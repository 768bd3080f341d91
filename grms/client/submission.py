"""What a program says of a job that it submits, as its site is told.

gRPC is not imported, and what few jobs have is imported for those alone: most of the time of `grms submit` is imports.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from grms.client.errors import SiteError
from grms.client.unary import ask

if TYPE_CHECKING:
    from grms.daemon.shared_folders import SharedFile
    from grms.lrms.home_run import HomeRun  # of a job for a real batch system alone
    from grms.v1 import job_pb2
    from lrms_sim.workload.requests import Request


QUICK_S: Final = 1.0
"""So long an answer is waited for without gRPC, seconds; with it a call is tried until its time is over."""


def submit_request(
    *,
    processors: int | None = None,
    requested_time_s: float | None = None,
    needs: "Request | None" = None,
    unfit: str = "",
    script: str | None = None,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    outputs: Sequence[str] = (),
    shared: "Sequence[SharedFile]" = (),
    run_time_s: float | None = None,
    user_group: int | None = None,
    name: str = "",
    key: str | None = None,
    home: "HomeRun | None" = None,
    array: str = "",
    dependency: str = "",
    output: str = "",
    error: str = "",
    open_mode: str = "",
    merged: bool | None = None,
    sites: Sequence[str] = (),
    home_only: bool = False,
    checkpoint_s: float | None = None,
    checkpoint_files: Sequence[str] = (),
) -> "job_pb2.SubmitRequest":
    """Returns the request for a job without input files, described as in `grms.client.Client.submit`.

    Raises:
        ValueError: no site could take such a job.
    """
    from grms.v1 import job_pb2  # noqa: PLC0415  # protobuf is for those that find a site

    processors, requested_time_s = _size(processors, requested_time_s, needs)
    check_values(
        processors=processors, script=script, run_time_s=run_time_s, user_group=user_group, key=key
    )
    request = job_pb2.SubmitRequest(
        idempotency_key=os.urandom(16).hex() if key is None else key, name=name
    )
    request.request.processors = processors
    request.request.requested_time_s = requested_time_s
    request.unfit = unfit
    request.sites.extend(sites)
    request.home_only = home_only
    if array:
        from grms.util.job_arrays import ArraySpec  # noqa: PLC0415  # see the module's docstring

        request.array = str(ArraySpec.parse(array))
    if dependency:
        from grms.util.dependencies import parse_dependencies  # noqa: PLC0415  # same

        for each in parse_dependencies(dependency):
            kind = job_pb2.DependencyKind.Value(f"DEPENDENCY_KIND_{each.kind.upper()}")
            request.dependencies.add(kind=kind, job_id=each.job_id)
    if needs is not None and needs != needs.of_processors(processors, needs.wall_time):
        from grms.daemon.job_needs import write_needs  # noqa: PLC0415  # same

        request.request.needs.CopyFrom(write_needs(needs))
    if run_time_s is not None:
        request.request.simulated.run_time_s = run_time_s
        request.request.simulated.user_group = user_group or 0
    elif script is not None or shared:
        program = request.request.program
        program.script = script or ""
        program.name = name
        program.arguments.extend(arguments)
        program.environment.update(environment or {})
        _declare(request, outputs, output=output, error=error, open_mode=open_mode, merged=merged)
        if shared:
            from grms.daemon.shared_folders import check_shared  # noqa: PLC0415  # same

            for file in map(check_shared, shared):
                program.inputs.add(name=file.name, shared_path=file.path, written=file.written)
        if home is not None:
            request.request.home.folder = home.folder
            request.request.home.environment.extend(home.environment)
            request.request.home.options.extend(home.options)
    _write_checkpoint(request, checkpoint_s, checkpoint_files, needs)
    return request


def _declare(
    request: "job_pb2.SubmitRequest",
    outputs: Sequence[str],
    *,
    output: str,
    error: str,
    open_mode: str,
    merged: bool | None,
) -> None:
    # What a job leaves, and what that is called.
    program = request.request.program
    if open_mode not in {"", "append", "truncate"}:
        raise ValueError(f"open_mode is {open_mode!r}; it must be append or truncate")
    if outputs:
        from grms.daemon.job_files import check_wanted  # noqa: PLC0415  # see the module's docstring

        check_wanted(outputs)
        program.outputs.extend(outputs)
    program.merged = bool(output) and not error if merged is None else merged
    program.truncated = open_mode == "truncate"
    if output or error or open_mode == "append":
        streams = request.request.streams
        streams.output, streams.error = output, error
        streams.append = open_mode == "append"


def _write_checkpoint(
    request: "job_pb2.SubmitRequest",
    every_s: float | None,
    files: Sequence[str],
    needs: "Request | None",
) -> None:
    wanted = request.request
    runs, limit_s = wanted.HasField("program"), wanted.requested_time_s
    if check_checkpoint(every_s, files, limit_s=limit_s, runs=runs, needs=needs):
        assert every_s is not None
        wanted.program.checkpoint.every_s = every_s
        wanted.program.checkpoint.files.extend(files)


def check_checkpoint(
    every_s: float | None,
    files: Sequence[str],
    *,
    limit_s: float,
    runs: bool,
    needs: "Request | None" = None,
) -> bool:
    """Returns whether a job writes its state, so often and into those files; `runs`: it has a script.

    `limit_s` is its requested time, seconds.

    Raises:
        ValueError: no site could accept such a job.
    """
    if every_s is None and not files:
        return False
    from grms.daemon.job_files import check_wanted  # noqa: PLC0415  # see the module's docstring

    if not runs:
        raise ValueError("checkpoint_s and checkpoint_files are for a job with a script")
    if every_s is None or not files:
        text = "checkpoint_s (--checkpoint) and checkpoint_files (--checkpoint-file) go together: how often the job writes its state, and into which files"
        raise ValueError(text)
    if not 1.0 <= every_s <= limit_s:
        text = (
            f"checkpoint_s (--checkpoint) is {every_s:g}; it must be from 1 s to the requested time"
        )
        raise ValueError(f"{text}, {limit_s:g} s")
    if needs is not None and needs.requeue is False:
        text = "the job must not run a second time (no-requeue), and so has no checkpoint"
        raise ValueError(text)
    check_wanted(files)
    return True


def _size(
    processors: int | None, requested_time_s: float | None, needs: "Request | None"
) -> tuple[int, float]:
    if needs is not None:
        from lrms_sim.workload.requests import check_names  # noqa: PLC0415  # as above

        check_names(needs)
        processors = needs.processors if processors is None else processors
        requested_time_s = needs.wall_time if requested_time_s is None else requested_time_s
        if needs.processors != processors:
            raise ValueError(f"processors is {processors}, and needs are {needs.processors}")
    if processors is None or requested_time_s is None:
        raise ValueError("processors and requested_time_s are missing, and no needs say them")
    return processors, requested_time_s


def submit_quickly(socket: Path, timeout_s: float, **wanted: Any) -> str | None:
    """Submits a job without input files and without gRPC, and returns its id; None where that does not do.

    The site may have taken the job all the same: whoever submits it by gRPC then uses the same key.

    Args:
        socket: the site's Unix socket.
        timeout_s: how long to wait for an answer, seconds; not longer than `QUICK_S`.
        wanted: as for `submit_request`.

    Raises:
        ValueError: no site could take such a job.
        SiteError: the site has refused, or answers with what is no job.
    """
    from google.protobuf.message import DecodeError  # noqa: PLC0415  # as above

    from grms.v1 import job_pb2  # noqa: PLC0415  # as above

    request = submit_request(**wanted).SerializeToString()
    answer = ask(socket, "/grms.v1.JobService/Submit", request, min(timeout_s, QUICK_S))
    try:
        return None if answer is None else job_pb2.Job.FromString(answer).job_id or None
    except DecodeError:
        reason = f"what answers on {socket} does not say what becomes of the job; does a site listen there?"
        raise SiteError("INTERNAL", reason) from None


PROCESSORS_MAX: Final = 2**31 - 1


def check_values(
    *,
    processors: int,
    script: str | None = None,
    run_time_s: float | None = None,
    user_group: int | None = None,
    key: str | None = None,
    array: str = "",
    dependency: str = "",
) -> None:
    """Checks arguments of `grms.client.Client.submit`; `ValueError` if no site could accept such a job."""
    if abs(processors) > PROCESSORS_MAX:
        # Limits of the message format; the site has limits of its own.
        raise ValueError(f"processors is {processors}; 1 to {PROCESSORS_MAX} are possible")
    if key == "":
        # From an unset variable: each repetition would be another job.
        raise ValueError("key is empty; leave it out, or give each job one of its own")
    if script is not None and run_time_s is not None:
        raise ValueError("run_time_s is for a job without a script, where it is simulated")
    if array:
        from grms.util.job_arrays import ArraySpec  # noqa: PLC0415  # as above

        ArraySpec.parse(array)
    if dependency:
        from grms.util.dependencies import parse_dependencies  # noqa: PLC0415  # as above

        parse_dependencies(dependency)
    if user_group is not None and (run_time_s is None or not 1 <= user_group <= 5):
        raise ValueError(
            f"user_group is {user_group}; 1 to 5 is possible, for a job with run_time_s"
        )
