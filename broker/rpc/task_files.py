"""Files of tasks over gRPC: those that programs are given, and those that they leave at their sites."""

from collections.abc import AsyncIterator, Callable
from typing import Final

import grpc

from broker.executor.base import ReservationRefused, Site, SiteUnavailable
from broker.executor.contents import Contents
from broker.model.program import Program
from broker.rpc.frontend import Frontend
from broker.scheduler.state import BrokerState
from broker.scheduler.state_tables import Run
from broker.v1 import workflow_pb2
from grms.client import Results
from grms.daemon.job_files import JobFile
from grms.daemon.messages import WireError
from grms.daemon.rpc.requests import Context, refuse
from grms.daemon.uploads import NoRoomError
from grms.v1 import job_pb2, results_pb2
from lrms_sim.util.messages import system_words

_PROBLEMS: Final = {
    "": results_pb2.FILE_PROBLEM_UNSPECIFIED,
    "missing": results_pb2.FILE_PROBLEM_MISSING,
    "no_file": results_pb2.FILE_PROBLEM_NO_FILE,
    "too_large": results_pb2.FILE_PROBLEM_TOO_LARGE,
}


class TaskFiles:
    """Takes files for programs, and hands out those that they leave; `site` returns a site by its name."""

    def __init__(
        self, frontend: Frontend, contents: Contents, site: Callable[[str], Site | None]
    ) -> None:
        self._frontend = frontend
        self._contents = contents
        self._site = site

    async def put(
        self, request: job_pb2.PutInputRequest, context: Context
    ) -> job_pb2.PutInputResponse:
        """Takes the next bytes of a file."""
        await self._frontend.check_journal(context)
        file = JobFile(request.file.name, request.file.size_bytes, request.file.sha256)
        try:
            held = await self._contents.put(file, request.offset_bytes, request.content)
        except NoRoomError as error:
            await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        except ValueError as error:
            await self._frontend.invalid(context, WireError("file", str(error)))
        except OSError as error:
            text = f"the file cannot be kept where the configuration says (files.folder): {system_words(error)}"
            await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, text)
        return job_pb2.PutInputResponse(held_bytes=held)

    async def check(self, programs: tuple[Program, ...], context: Context) -> None:
        """Ends a call that submits programs whose files are not here."""
        for program in programs:
            try:
                given = program.inputs
                lacking = await self._contents.lacking(given) if given else ""
            except OSError as error:
                text = (
                    f"the files that programs are given cannot be looked at: {system_words(error)}"
                )
                await refuse(context, grpc.StatusCode.UNAVAILABLE, text)
            if lacking:
                text = f"task {program.task!r}: {lacking} is not here; it is handed over before the workflow"
                await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, text, field="workflow")

    async def results(
        self, request: workflow_pb2.TaskResultsRequest, context: Context
    ) -> results_pb2.ResultList:
        """Says what a task's program has left."""
        run, site = await self._run(context, request.workflow_id, request.task)
        try:
            found = await site.files(run.reservation, run.job)
        except ReservationRefused as error:
            await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except SiteUnavailable as error:
            await refuse(context, grpc.StatusCode.UNAVAILABLE, _silent(run, error))
        return write_results(found)

    async def read(
        self, request: workflow_pb2.FetchTaskResultRequest, context: Context
    ) -> AsyncIterator[results_pb2.ResultChunk]:
        """Sends a file of a task's program."""
        run, site = await self._run(context, request.workflow_id, request.task)
        pieces = site.read(run.reservation, run.job, request.name, request.offset_bytes)
        try:
            async for some in pieces:
                yield results_pb2.ResultChunk(content=some)
        except ReservationRefused as error:
            await refuse(context, grpc.StatusCode.NOT_FOUND, str(error), field="name")
        except SiteUnavailable as error:
            await refuse(context, grpc.StatusCode.UNAVAILABLE, _silent(run, error))

    async def _run(self, context: Context, workflow: str, task: str) -> tuple[Run, Site]:
        def at(state: BrokerState) -> Run | str:
            live = state.find(workflow)
            if live is None:
                return f"there is no workflow {workflow!r}"
            found = live.tasks.get(task)
            if found is None:
                names = ", ".join(list(live.tasks)[:10]) + (" …" if len(live.tasks) > 10 else "")
                return f"workflow {live.workflow.name!r} has no task {task!r}; it has: {names}"
            if found.program is None:
                return f"task {found.name} runs no program"
            return found.run or f"no program of {found.name} has begun"

        run = await self._frontend.look(context, at)
        if isinstance(run, str):
            absent = run.startswith("there") or "has no task" in run
            code = grpc.StatusCode.NOT_FOUND if absent else grpc.StatusCode.FAILED_PRECONDITION
            await refuse(context, code, run)
        site = self._site(run.site)
        if site is None:
            text = f"its site {run.site!r} is not in the configuration any more"
            await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, text)
        return run, site


def _silent(run: Run, error: Exception) -> str:
    return f"site {run.site!r}, where it runs or has run, does not answer: {error}"


def write_results(results: Results) -> results_pb2.ResultList:
    """Returns what a program has left as a message."""
    return results_pb2.ResultList(
        files=[
            results_pb2.ResultFile(
                name=file.name,
                size_bytes=file.size_bytes,
                sha256=file.sha256,
                problem=_PROBLEMS.get(file.problem, results_pb2.FILE_PROBLEM_NO_FILE),
            )
            for file in results.files
        ],
        complete=results.complete,
        problem=results.problem,
        folder=results.folder,
        kept_until_s=results.kept_until_s,
        other_files=results.other_files,
        other_bytes=results.other_bytes,
    )
