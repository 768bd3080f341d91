"""Hands out what jobs have left, over gRPC, to users and to partners alike."""

from collections.abc import AsyncIterator
from typing import Final, NoReturn

import grpc

from grms.daemon.job_files import FileProblem, FileProblemError
from grms.daemon.rpc_errors import Context, refuse
from grms.site.staging.download import LeftFiles, NoResultsError
from grms.v1 import results_pb2

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
