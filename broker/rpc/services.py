"""The broker's services over gRPC; see `proto/broker/v1`."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, TypeVar

import grpc

from broker.rpc.frontend import Frontend, write_progress
from broker.rpc.task_files import TaskFiles
from broker.runtime.replanner import Searching
from broker.scheduler.commands import (
    ReplyAdded,
    ReplyPlan,
    ReplyResource,
    ReplyWorkflow,
)
from broker.scheduler.events import (
    Add,
    Cancel,
    Close,
    Open,
    Register,
    Remove,
    Replan,
    Submit,
    Update,
)
from broker.scheduler.lifecycle import WorkflowState
from broker.scheduler.state import BrokerState
from broker.scheduler.state_tables import LiveWorkflow
from broker.v1 import (
    plan_pb2,
    plan_pb2_grpc,
    resource_pb2,
    resource_pb2_grpc,
    workflow_pb2,
    workflow_pb2_grpc,
)
from broker.wire.convert import (
    read_additions,
    read_open_workflow,
    read_supply,
    read_workflow,
    read_workflow_state,
    write_description,
    write_estimates,
    write_live,
    write_plan,
    write_supply,
)
from grms.daemon.messages import WireError
from grms.daemon.rpc.requests import Context, refuse
from grms.daemon.web.access import LINK_S
from grms.v1 import job_pb2, results_pb2

T = TypeVar("T")

REST_SHARE: Final = 10.0
"""So many times as long as it takes to write a workflow for one who watches, its next changes are gathered: a workflow
of thousands of tasks changes hundreds of times a second."""

REST_MOST_S: Final = 2.0
"""And no longer than this, real seconds."""

NO_PAGE: Final = (
    "this broker serves no page: its configuration has no [dashboard], or the log says why not"
)


class WorkflowService(workflow_pb2_grpc.WorkflowServiceServicer):
    """Implements `proto/broker/v1/workflow.proto`."""

    def __init__(self, frontend: Frontend, files: TaskFiles) -> None:
        self._frontend = frontend
        self._files = files

    async def PutInput(  # noqa: N802  # gRPC's name
        self, request: job_pb2.PutInputRequest, context: Context
    ) -> job_pb2.PutInputResponse:
        """Takes the next bytes of a file."""
        return await self._files.put(request, context)

    async def Results(  # noqa: N802  # gRPC's name
        self, request: workflow_pb2.TaskResultsRequest, context: Context
    ) -> results_pb2.ResultList:
        """Says which files a task's program has left."""
        return await self._files.results(request, context)

    async def FetchResult(  # noqa: N802  # gRPC's name
        self, request: workflow_pb2.FetchTaskResultRequest, context: Context
    ) -> AsyncIterator[results_pb2.ResultChunk]:
        """Sends one of them."""
        async for chunk in self._files.read(request, context):
            yield chunk

    async def Submit(  # noqa: N802  # gRPC's name
        self, request: workflow_pb2.SubmitRequest, context: Context
    ) -> workflow_pb2.Workflow:
        """Takes a workflow."""
        workflow, programs = await self._frontend.read(context, read_workflow, request.workflow)
        await self._files.check(programs, context)
        number = self._frontend.engine.new_id()
        event = Submit(number, request.idempotency_key, workflow, programs)
        return await self._find(context, await self._frontend.ask(context, event, _name))

    async def Open(  # noqa: N802  # gRPC's name
        self, request: workflow_pb2.OpenRequest, context: Context
    ) -> workflow_pb2.Workflow:
        """Takes a workflow that tasks are added to."""
        workflow = await self._frontend.read(context, read_open_workflow, request.workflow)
        event = Open(self._frontend.engine.new_id(), request.idempotency_key, workflow)
        return await self._find(context, await self._frontend.ask(context, event, _name))

    async def Add(  # noqa: N802  # gRPC's name
        self, request: workflow_pb2.AddRequest, context: Context
    ) -> workflow_pb2.AddResponse:
        """Adds tasks to an open workflow."""
        additions = await self._frontend.read(context, read_additions, request)
        programs = (each.program for each in additions if each.program is not None)
        await self._files.check(tuple(programs), context)
        event = Add(self._frontend.engine.new_id(), request.workflow_id, additions)
        return await self._frontend.ask(context, event, self._added)

    def _added(self, answer: ReplyAdded) -> workflow_pb2.AddResponse:
        workflow = self._frontend.engine.state.memory.workflows[answer.workflow_id]
        return workflow_pb2.AddResponse(
            workflow_id=answer.workflow_id,
            tasks_new=answer.new,
            tasks_total=len(workflow.tasks),
        )

    async def Close(  # noqa: N802  # gRPC's name
        self, request: workflow_pb2.CloseRequest, context: Context
    ) -> workflow_pb2.Workflow:
        """Ends the adding of tasks."""
        event = Close(self._frontend.engine.new_id(), request.workflow_id)
        return await self._find(context, await self._frontend.ask(context, event, _name))

    async def Describe(  # noqa: N802  # gRPC's name
        self, request: workflow_pb2.DescribeRequest, context: Context
    ) -> workflow_pb2.WorkflowSpec:
        """Returns what was handed in of a workflow."""
        return await self._seen(context, request.workflow_id, write_description)

    async def Get(  # noqa: N802  # gRPC's name
        self, request: workflow_pb2.GetRequest, context: Context
    ) -> workflow_pb2.Workflow:
        """Returns one workflow."""
        return await self._find(context, request.workflow_id)

    async def List(  # noqa: N802  # gRPC's name
        self, request: workflow_pb2.ListRequest, context: Context
    ) -> workflow_pb2.ListResponse:
        """Returns workflows in the order in which they were received."""
        try:
            states = {read_workflow_state(number) for number in request.states}
        except WireError as error:
            await self._frontend.invalid(context, error)
        wanted = states or set(WorkflowState)

        def at(state: BrokerState) -> list[workflow_pb2.Workflow]:
            live = state.memory.workflows.values()
            return [write_live(each, tasks=False) for each in live if each.state in wanted]

        return workflow_pb2.ListResponse(workflows=await self._frontend.look(context, at))

    async def Cancel(  # noqa: N802  # gRPC's name
        self, request: workflow_pb2.CancelRequest, context: Context
    ) -> workflow_pb2.Workflow:
        """Asks for the end of a workflow."""
        event = Cancel(self._frontend.engine.new_id(), request.workflow_id)
        return await self._find(context, await self._frontend.ask(context, event, _name))

    async def Watch(  # noqa: N802  # gRPC's name
        self, request: workflow_pb2.WatchRequest, context: Context
    ) -> AsyncIterator[workflow_pb2.Workflow]:
        """Sends the current workflow and every change, until its end."""
        await self._frontend.room(context)
        message = await self._find(context, request.workflow_id)
        changed = self._frontend.watch_workflow(message.workflow_id)
        try:
            # It may have changed before it was watched.
            revision = 0
            while True:
                took_s = -time.perf_counter()
                message = await self._find(context, message.workflow_id)
                if message.revision != revision:
                    revision = message.revision
                    yield message
                took_s += time.perf_counter()
                if message.HasField("end_time_s"):
                    return
                if self._frontend.stopping:
                    await self._frontend.check_stopping(context)
                rest_s = min(REST_SHARE * took_s, REST_MOST_S)
                await self._until_changed(message.workflow_id, changed, rest_s)
        finally:
            self._frontend.unwatch(changed)

    async def _until_changed(self, workflow_id: str, changed: asyncio.Event, rest_s: float) -> None:
        # Returns when it has changed, and not before some time is over, real seconds, unless it has ended then.
        rested = asyncio.get_running_loop().time() + rest_s
        memory = self._frontend.engine.state.memory
        await changed.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(rested):
                while not self._frontend.stopping:
                    live = memory.workflows.get(workflow_id)
                    if live is None or live.has_ended:
                        break
                    changed.clear()
                    await changed.wait()
        changed.clear()

    async def _find(self, context: Context, name: str) -> workflow_pb2.Workflow:
        return await self._seen(context, name, write_live)

    async def _seen(self, context: Context, name: str, write: Callable[[LiveWorkflow], T]) -> T:
        def at(state: BrokerState) -> T | None:
            found: LiveWorkflow | None = state.find(name)
            return None if found is None else write(found)

        message = await self._frontend.look(context, at)
        if message is None:
            reason = f"there is no workflow {name!r}"
            await refuse(context, grpc.StatusCode.NOT_FOUND, reason, field="workflow_id")
        return message


def _name(answer: ReplyWorkflow) -> str:
    return answer.workflow_id


class PlanService(plan_pb2_grpc.PlanServiceServicer):
    """Implements `proto/broker/v1/plan.proto`.

    `page` makes a link to the broker's page for one browser; it is empty if none is served.
    """

    def __init__(
        self,
        frontend: Frontend,
        searching: Callable[[], Searching | None],
        page: Callable[[], str],
    ) -> None:
        self._frontend = frontend
        self._searching = searching
        self._page = page

    async def Estimates(  # noqa: N802  # gRPC's name
        self,
        request: plan_pb2.EstimatesRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> plan_pb2.EstimatesResponse:
        """Returns what has been learned of the run times of programs."""
        return await self._frontend.look(
            context,
            lambda state: write_estimates(state.memory, used=state.settings.estimates == "learned"),
        )

    async def OpenPage(  # noqa: N802  # gRPC's name
        self,
        request: plan_pb2.OpenPageRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> plan_pb2.OpenPageResponse:
        """Returns an address that shows the broker's page to one browser."""
        address = self._page()
        if not address:
            await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, NO_PAGE)
        return plan_pb2.OpenPageResponse(address=address, seconds=LINK_S)

    async def Get(  # noqa: N802  # gRPC's name
        self,
        request: plan_pb2.GetPlanRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> plan_pb2.Plan:
        """Returns the current plan."""
        engine = self._frontend.engine
        return await self._frontend.look(
            context,
            lambda state: write_plan(
                state.memory, engine.now(), state.cycle.next_time, state.sites_down
            ),
        )

    async def Watch(  # noqa: N802  # gRPC's name
        self,
        request: plan_pb2.WatchPlanRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> AsyncIterator[plan_pb2.PlanNews]:
        """Sends the progress of the search that runs, and each new plan's figures."""
        await self._frontend.room(context)
        queue = self._frontend.watch_plan()
        try:
            await context.send_initial_metadata(())
            searching = self._searching()
            if searching is not None:
                yield plan_pb2.PlanNews(progress=write_progress(searching))
            while (news := await queue.get()) is not None:
                yield news
            await self._frontend.check_stopping(context)
        finally:
            self._frontend.unwatch(queue)

    async def Replan(  # noqa: N802  # gRPC's name
        self,
        request: plan_pb2.ReplanRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> plan_pb2.ReplanResponse:
        """Asks for planning now."""
        event = Replan(self._frontend.engine.new_id())
        return await self._frontend.ask(context, event, _number)


def _number(answer: ReplyPlan) -> plan_pb2.ReplanResponse:
    return plan_pb2.ReplanResponse(number=answer.number)


class ResourceService(resource_pb2_grpc.ResourceServiceServicer):
    """Implements `proto/broker/v1/resource.proto`; `sites` are the sites that resources may be at."""

    def __init__(self, frontend: Frontend, sites: Sequence[str]) -> None:
        self._frontend = frontend
        self._sites = sites

    async def Register(  # noqa: N802  # gRPC's name
        self, request: resource_pb2.RegisterRequest, context: Context
    ) -> resource_pb2.Resource:
        """Adds a resource."""
        supply = await self._read(context, request.resource)
        event = Register(self._frontend.engine.new_id(), supply)
        return await self._frontend.ask(context, event, self._shown)

    async def Update(  # noqa: N802  # gRPC's name
        self, request: resource_pb2.UpdateRequest, context: Context
    ) -> resource_pb2.Resource:
        """Replaces a resource."""
        supply = await self._read(context, request.resource)
        event = Update(self._frontend.engine.new_id(), supply)
        return await self._frontend.ask(context, event, self._shown)

    async def Remove(  # noqa: N802  # gRPC's name
        self, request: resource_pb2.RemoveRequest, context: Context
    ) -> resource_pb2.RemoveResponse:
        """Takes a resource out."""
        event = Remove(self._frontend.engine.new_id(), request.name)
        return await self._frontend.ask(context, event, lambda _: resource_pb2.RemoveResponse())

    async def List(  # noqa: N802  # gRPC's name
        self,
        request: resource_pb2.ListResourcesRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> resource_pb2.ListResourcesResponse:
        """Returns the resources in the order in which they were registered."""
        found = await self._frontend.look(
            context, lambda state: [write_supply(each) for each in state.memory.supplies.values()]
        )
        return resource_pb2.ListResourcesResponse(resources=found)

    async def _read(self, context: Context, message: resource_pb2.Resource) -> Any:
        supply = await self._frontend.read(context, read_supply, message)
        if supply.site and supply.site not in self._sites:
            known = ", ".join(self._sites) or "none"
            reason = f"there is no site {supply.site!r} in the configuration; there are: {known}"
            await refuse(context, grpc.StatusCode.INVALID_ARGUMENT, reason, field="resource.site")
        return supply

    def _shown(self, answer: ReplyResource) -> resource_pb2.Resource:
        return write_supply(self._frontend.engine.state.memory.supplies[answer.name])
