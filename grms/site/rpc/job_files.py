"""Files of jobs over gRPC: what programs are given, and what jobs have left, for users, partners and those who reserve."""

from collections.abc import AsyncIterator
from typing import Final, NoReturn

import grpc

from grms.daemon.job_files import FileProblem, FileProblemError
from grms.daemon.messages import WireError
from grms.daemon.rpc.requests import Context, refuse
from grms.daemon.uploads import NoRoomError
from grms.site.gateway.admission import Admission
from grms.site.staging.download import LeftFiles, NoResultsError
from grms.site.staging.stage_in import InputServer
from grms.site.wire.convert import given_inputs, read_input, shared_files
from grms.v1 import job_pb2, results_pb2


async def taken(
    context: Context,
    admission: Admission,
    inputs: InputServer,
    owner: str,
    request: job_pb2.PutInputRequest,
) -> job_pb2.PutInputResponse:
    """Takes the next bytes of a file of its owner's; what cannot be taken ends the call."""
    await admission.check_stopping(context)
    file = read_input(request.file)
    try:
        held = await inputs.put(owner, file, request.offset_bytes, request.content)
    except NoRoomError as error:
        await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, str(error), retry_s=10.0)
    except ValueError as error:
        await admission.invalid(context, WireError("file", str(error)))
    except OSError as error:
        text = f"the file cannot be kept: {error.strerror or error}"
        await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, text)
    return job_pb2.PutInputResponse(held_bytes=held)


async def look_at_inputs(
    context: Context,
    admission: Admission,
    inputs: InputServer,
    owner: str,
    payload: bytes,
    *,
    field: str,
) -> None:
    """Ends a call whose program is given a file that is not here; `field` is the program's in the request."""
    files, shared = given_inputs(payload), shared_files(payload)
    try:
        lacking = await inputs.lacking(owner, files) if files else ""
    except OSError as error:
        text = f"the files that jobs are given cannot be looked at: {error.strerror or error}"
        await refuse(context, grpc.StatusCode.UNAVAILABLE, text)
    if lacking:
        text = f"{lacking} is not here; it is handed over before the job that is given it"
        await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, text, field="inputs")
    if shared and (problem := await inputs.misplaced(shared)):
        await admission.invalid(context, WireError(f"{field}.program.inputs", problem))


_PROBLEMS: Final = {
    None: results_pb2.FILE_PROBLEM_UNSPECIFIED,
    FileProblem.MISSING: results_pb2.FILE_PROBLEM_MISSING,
    FileProblem.NO_FILE: results_pb2.FILE_PROBLEM_NO_FILE,
    FileProblem.TOO_LARGE: results_pb2.FILE_PROBLEM_TOO_LARGE,
}


def write_results(results: LeftFiles) -> results_pb2.ResultList:
    """Returns what a job has left as a message."""
    written = results_pb2.ResultList(
        files=[
            results_pb2.ResultFile(
                name=file.name,
                size_bytes=file.size,
                sha256=file.sha256,
                problem=_PROBLEMS[file.problem],
                mode=file.mode,
            )
            for file in results.files
        ],
        complete=results.complete,
        problem=results.problem,
        left_out=results.left_out,
    )
    if (place := results.place) is not None:
        written.folder, written.kept_until_s = place.folder, place.until
        written.other_files, written.other_bytes = place.others.files, place.others.size
    return written


async def sent(
    context: Context, pieces: AsyncIterator[bytes]
) -> AsyncIterator[results_pb2.ResultChunk]:
    """Yields a file as messages; what cannot be handed out ends the call."""
    try:
        async for some in pieces:
            yield results_pb2.ResultChunk(content=some)
    except (ValueError, FileProblemError, NoResultsError) as error:
        await refused(context, error)


async def refused(
    context: Context, error: ValueError | FileProblemError | NoResultsError
) -> NoReturn:
    """Ends a call about files that are not there."""
    if isinstance(error, ValueError):
        await refuse(context, grpc.StatusCode.NOT_FOUND, str(error), field="name")
    if isinstance(error, NoResultsError) and not error.later:
        await refuse(context, grpc.StatusCode.NOT_FOUND, str(error))
    await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, str(error))
