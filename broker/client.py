"""For programs that use a broker: hand in workflows, watch them, look at the plan.

Calls are repeated while the daemon is away, until their time is over; a submission carries a key,
so that one whose answer got lost is repeated without becoming a second workflow.

    with BrokerClient("broker.sock") as broker:
        taken = broker.submit(workflow)
        ended = broker.wait(taken.workflow_id)

A workflow of which not all is known yet is opened, tasks are added to it while others run, and it is closed:

    opened = broker.open(OpenWorkflow("sweep"))
    broker.add(opened.workflow_id, [Addition(task, program)])
    broker.close(opened.workflow_id)
"""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from google.protobuf.message import DecodeError

from broker.model.additions import Addition, in_order
from broker.model.program import URLS, Input, Program, check_programs
from broker.model.workflow import OpenWorkflow, Workflow
from broker.scheduler.records import Supply
from broker.util.errors import CallError, InputError, unreached
from broker.v1 import plan_pb2, resource_pb2, workflow_pb2
from broker.wire.convert import (
    read_supply,
    write_additions,
    write_open_workflow,
    write_supply,
    write_workflow,
)
from grms.client.errors import SiteError
from grms.client.unary import QUICK_S, Connections, Method, Stub
from grms.daemon.messages import WireError
from grms.daemon.pacing import Backoff, BackoffSettings, is_absent
from grms.v1 import job_pb2, request_pb2

if TYPE_CHECKING:
    import grpc

    from grms.client import Results

__all__ = ["BrokerClient", "CallError"]

TIMEOUT_S: Final = 30.0
"""Default time to keep trying a call, seconds."""

PUT_BYTES: Final = 256 << 10
"""Bytes of a file in one call."""

PAUSES: Final = BackoffSettings(first_s=0.1, most_s=2.0)
"""Between attempts to reach the broker."""


class BrokerClient:
    """A connection to a broker at its Unix socket; a context.

    Each call is tried for `timeout_s` seconds.
    """

    def __init__(self, socket: str | Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self._socket = Path(socket)
        self._timeout_s = timeout_s
        self._connections = Connections(self._socket)
        self._channel: grpc.Channel | None = None
        self._workflows: Any = _stub("WorkflowService", workflow_pb2)
        self._plans: Any = _stub("PlanService", plan_pb2)
        self._resources: Any = _stub("ResourceService", resource_pb2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connections.close()
        if self._channel is not None:
            self._channel.close()

    # --- workflows -----------------------------------------------------------------------------

    def submit(
        self, workflow: Workflow, programs: Iterable[Program] = (), *, key: str | None = None
    ) -> workflow_pb2.Workflow:
        """Submits a workflow; once this returns, the broker will not lose it.

        `programs` are what its tasks run at sites with a real batch system; files here that they are given are
        handed over before. Submissions with the same `key` give the same workflow; by default the key is new.

        Raises:
            CallError: the broker has refused, or cannot be reached in time.
            InputError: an alternative has times of its own, which a broker does not plan with.
            ValueError: a program belongs to none of its tasks, or is given what no predecessor leaves.
            OSError: a file cannot be read, or a URL not be fetched.
        """
        programs = tuple(programs)
        check_programs(workflow, programs)
        known: dict[str, Input] = {}
        given = [self._with_contents(program, known) for program in programs]
        try:
            spec = write_workflow(workflow, given)
        except WireError as error:
            raise InputError(str(error)) from None
        request = workflow_pb2.SubmitRequest(
            idempotency_key=key or os.urandom(16).hex(), workflow=spec
        )
        taken: workflow_pb2.Workflow = self._call(self._workflows.Submit, request)
        return taken

    def open(self, workflow: OpenWorkflow, *, key: str | None = None) -> workflow_pb2.Workflow:
        """Opens a workflow, to which tasks are added until it is closed.

        The same `key` gives the same workflow; by default the key is new.

        Raises:
            CallError: the broker has refused, or cannot be reached in time.
        """
        request = workflow_pb2.OpenRequest(
            idempotency_key=key or os.urandom(16).hex(), workflow=write_open_workflow(workflow)
        )
        opened: workflow_pb2.Workflow = self._call(self._workflows.Open, request)
        return opened

    def add(self, workflow_id: str, additions: Iterable[Addition]) -> workflow_pb2.AddResponse:
        """Adds tasks, or arrays of them, to an open workflow: all, or none.

        Each waits for tasks that are there already or are among these, in any order. What has been added before
        with the same content is nothing, so that a program that was killed simply adds once more. Files here that
        programs are given are handed over before.

        Raises:
            CallError: the broker has refused, or cannot be reached in time.
            InputError: an alternative has times of its own, or the tasks wait for each other in a circle.
            OSError: a file cannot be read, or a URL not be fetched.
        """
        known: dict[str, Input] = {}
        given = [
            each
            if each.program is None
            else replace(each, program=self._with_contents(each.program, known))
            for each in in_order(additions)
        ]
        try:
            request = workflow_pb2.AddRequest(workflow_id=workflow_id)
            write_additions(request, given)
        except WireError as error:
            raise InputError(str(error)) from None
        added: workflow_pb2.AddResponse = self._call(self._workflows.Add, request)
        return added

    def close(self, workflow_id: str) -> workflow_pb2.Workflow:
        """Ends the adding of tasks: the workflow ends with its last task. Closing once more is nothing."""
        request = workflow_pb2.CloseRequest(workflow_id=workflow_id)
        closed: workflow_pb2.Workflow = self._call(self._workflows.Close, request)
        return closed

    def describe(self, workflow_id: str) -> workflow_pb2.WorkflowSpec:
        """Returns what was handed in of a workflow, with the tasks added so far, without alternatives."""
        request = workflow_pb2.DescribeRequest(workflow_id=workflow_id)
        spec: workflow_pb2.WorkflowSpec = self._call(self._workflows.Describe, request)
        return spec

    def _with_contents(self, program: Program, known: dict[str, Input]) -> Program:
        # Each file once, however many programs are given it.
        inputs = []
        for each in program.inputs:
            if not each.path:
                inputs.append(each)
                continue
            if each.path not in known:
                known[each.path] = self._handed_over(each.path, each.name)
            inputs.append(replace(known[each.path], name=each.name))
        return replace(program, inputs=tuple(inputs))

    def _handed_over(self, path: str, name: str) -> Input:
        if not path.startswith(URLS):
            return self.put(path, name=name)
        # Of few programs, and slow to import.
        import shutil  # noqa: PLC0415  # see above
        import tempfile  # noqa: PLC0415  # see above
        import urllib.request  # noqa: PLC0415  # see above
        from http.client import HTTPException  # noqa: PLC0415  # see above

        with tempfile.TemporaryDirectory(prefix="gorba-") as folder:
            target = Path(folder) / "content"
            try:
                with (
                    urllib.request.urlopen(path, timeout=self._timeout_s) as page,  # noqa: S310  # of URLS alone
                    target.open("wb") as out,
                ):
                    shutil.copyfileobj(page, out)
            except (OSError, HTTPException, ValueError) as error:
                # Of a URL that nobody answers at, the system's words stand within Python's.
                reason = getattr(error, "reason", None)
                said = reason.strerror if isinstance(reason, OSError) else None
                raise OSError(f"{path} cannot be fetched: {said or error}") from error
            return self.put(target, name=name)

    def put(self, path: str | Path, *, name: str = "") -> Input:
        """Hands over a file, and returns it as the input of a program.

        Without `name` it has its own in the program's folder. A content that the broker has is not sent again; one
        that no workflow is given within an hour is deleted.

        Raises:
            CallError: the broker has refused, or cannot be reached in time.
            OSError: it cannot be read, or is changed meanwhile.
        """
        import hashlib  # noqa: PLC0415  # slow to import; few programs are given files

        path = Path(path)
        name = name or path.name
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").digest()
            size = content.seek(0, os.SEEK_END)
            file = request_pb2.InputFile(name=name, size_bytes=size, sha256=digest)
            request, held = job_pb2.PutInputRequest(file=file), -1
            while held < size:
                answer = self._call(self._workflows.PutInput, request)
                if held == answer.held_bytes:
                    raise OSError(f"{path} has changed while it was read")
                held = answer.held_bytes
                content.seek(held)
                some = content.read(PUT_BYTES)
                request = job_pb2.PutInputRequest(file=file, offset_bytes=held, content=some)
        return Input(name, size, digest)

    def results(self, workflow_id: str, task: str) -> "Results":
        """Returns what the present or last run of a task has left at its site; while it runs its streams.

        Raises:
            CallError: no program of it has begun, or its site does not answer.
        """
        from grms.client.answers import read_results  # noqa: PLC0415  # of this alone

        request = workflow_pb2.TaskResultsRequest(workflow_id=workflow_id, task=task)
        return read_results(self._call(self._workflows.Results, request))

    def fetch(
        self, workflow_id: str, task: str, name: str, offset_bytes: int = 0
    ) -> Iterator[bytes]:
        """Yields a file of `results` from a byte on, in pieces, as it is now.

        Raises:
            CallError: there is no such file, or its site does not answer.
        """
        request = workflow_pb2.FetchTaskResultRequest(
            workflow_id=workflow_id, task=task, name=name, offset_bytes=offset_bytes
        )
        import grpc  # noqa: PLC0415  # slow to import; most commands do without

        deadline, backoff = time.monotonic() + self._timeout_s, Backoff(PAUSES)
        while True:
            try:
                for chunk in self._stream(self._workflows.FetchResult, request):
                    deadline = time.monotonic() + self._timeout_s
                    backoff.reset()
                    request.offset_bytes += len(chunk.content)
                    yield chunk.content
            except grpc.RpcError as error:
                self._pause_or_raise(error, deadline, backoff.next_s())
            else:
                return

    def get(self, workflow_id: str) -> workflow_pb2.Workflow:
        """Returns a workflow with its tasks, by its id or its name."""
        request = workflow_pb2.GetRequest(workflow_id=workflow_id)
        found: workflow_pb2.Workflow = self._call(self._workflows.Get, request)
        return found

    def workflows(self) -> list[workflow_pb2.Workflow]:
        """Returns all workflows, without their tasks, in the order in which they were received."""
        return list(self._call(self._workflows.List, workflow_pb2.ListRequest()).workflows)

    def cancel(self, workflow_id: str) -> workflow_pb2.Workflow:
        """Asks for the end of a workflow; `wait` tells when it has come."""
        request = workflow_pb2.CancelRequest(workflow_id=workflow_id)
        found: workflow_pb2.Workflow = self._call(self._workflows.Cancel, request)
        return found

    def watch(self, workflow_id: str) -> Iterator[workflow_pb2.Workflow]:
        """Yields the current workflow and every change until its end, across restarts too."""
        request = workflow_pb2.WatchRequest(workflow_id=workflow_id)
        import grpc  # noqa: PLC0415  # slow to import; most commands do without

        shown = -1
        deadline, backoff = time.monotonic() + self._timeout_s, Backoff(PAUSES)
        while True:
            heard = False
            try:
                for message in self._stream(self._workflows.Watch, request):
                    heard = True
                    backoff.reset()
                    if message.revision != shown:
                        shown = message.revision
                        yield message
                    if message.HasField("end_time_s"):
                        return
            except grpc.RpcError as error:
                if heard:
                    # It was there until now, however long it had nothing to tell.
                    deadline = time.monotonic() + self._timeout_s
                self._pause_or_raise(error, deadline, backoff.next_s())

    def wait(self, workflow_id: str) -> workflow_pb2.Workflow:
        """Returns a workflow when it has ended."""
        *_, last = self.watch(workflow_id)
        return last

    # --- the plan ------------------------------------------------------------------------------

    def plan(self) -> plan_pb2.Plan:
        """Returns the current plan."""
        found: plan_pb2.Plan = self._call(self._plans.Get, plan_pb2.GetPlanRequest())
        return found

    def estimates(self) -> plan_pb2.EstimatesResponse:
        """Returns what the broker has learned of the run times of programs."""
        found: plan_pb2.EstimatesResponse = self._call(
            self._plans.Estimates, plan_pb2.EstimatesRequest()
        )
        return found

    def watch_plan(self) -> Iterator[plan_pb2.PlanNews]:
        """Returns the progress of searches and the figures of new plans, until the broker ends.

        What happens from the return on is in it.
        """
        call = self._stream(self._plans.Watch, plan_pb2.WatchPlanRequest())
        call.initial_metadata()  # comes when the broker has begun to watch, or has refused
        return self._news(call)

    def _news(self, call: Iterator[plan_pb2.PlanNews]) -> Iterator[plan_pb2.PlanNews]:
        import grpc  # noqa: PLC0415  # slow to import; most commands do without

        try:
            yield from call
        except grpc.RpcError as error:
            self._pause_or_raise(error, -1.0, 0.0)

    def replan(self) -> int:
        """Asks for planning now, and returns the number of the plan to come."""
        return int(self._call(self._plans.Replan, plan_pb2.ReplanRequest(), again=False).number)

    def open_page(self) -> plan_pb2.OpenPageResponse:
        """Returns a link to the broker's page, valid once and for a minute.

        Raises:
            CallError: no page is served.
        """
        answer: plan_pb2.OpenPageResponse = self._call(
            self._plans.OpenPage, plan_pb2.OpenPageRequest()
        )
        return answer

    # --- resources -----------------------------------------------------------------------------

    def resources(self) -> list[Supply]:
        """Returns the resources in the order in which they were registered."""
        answer = self._call(self._resources.List, resource_pb2.ListResourcesRequest())
        return [read_supply(each) for each in answer.resources]

    def register(self, supply: Supply) -> None:
        """Adds a resource."""
        request = resource_pb2.RegisterRequest(resource=write_supply(supply))
        self._call(self._resources.Register, request, again=False)

    def update(self, supply: Supply) -> None:
        """Replaces a resource, or marks it broken or repaired."""
        request = resource_pb2.UpdateRequest(resource=write_supply(supply))
        self._call(self._resources.Update, request, again=False)

    def remove(self, name: str) -> None:
        """Takes a resource out."""
        self._call(self._resources.Remove, resource_pb2.RemoveRequest(name=name), again=False)

    # --- calls ---------------------------------------------------------------------------------

    def _call(self, method: Method[Any], request: Any, *, again: bool = True) -> Any:
        # Not without gRPC's library where a call must not be made `again` when its answer does not come in time.
        deadline = time.monotonic() + self._timeout_s
        quick_s = min(QUICK_S, self._timeout_s)
        try:
            said = (
                self._connections.ask(method.path, request.SerializeToString(), quick_s)
                if again
                else None
            )
            if said is not None:
                return method.answer.FromString(said)
        except SiteError as refusal:
            raise CallError(refusal.code, refusal.reason) from refusal
        except DecodeError as error:
            reason = f"what answers on {self._socket} is no broker"
            raise CallError("INTERNAL", reason) from error
        return self._call_by_library(method, request, deadline)

    def _call_by_library(self, method: Method[Any], request: Any, deadline: float) -> Any:
        import grpc  # noqa: PLC0415  # slow to import; most commands do without

        call = self._library().unary_unary(
            method.path,
            request_serializer=type(request).SerializeToString,
            response_deserializer=method.answer.FromString,
        )
        backoff = Backoff(PAUSES)
        while True:
            left = max(0.001, deadline - time.monotonic())
            try:
                return call(request, timeout=left)
            except grpc.RpcError as error:
                self._pause_or_raise(error, deadline, backoff.next_s())

    def _stream(self, method: Method[Any], request: Any) -> Any:
        call = self._library().unary_stream(
            method.path,
            request_serializer=type(request).SerializeToString,
            response_deserializer=method.answer.FromString,
        )
        return call(request)

    def _library(self) -> "grpc.Channel":
        import grpc  # noqa: PLC0415  # see `_call_by_library`

        if self._channel is None:
            self._channel = grpc.insecure_channel(
                f"unix:{self._socket.absolute()}",
                options=[
                    ("grpc.max_receive_message_length", -1),
                    ("grpc.max_send_message_length", -1),
                    ("grpc.initial_reconnect_backoff_ms", 100),
                    ("grpc.max_reconnect_backoff_ms", 1000),
                ],
            )
        return self._channel

    def _pause_or_raise(self, error: Any, deadline: float, pause: float) -> None:
        code, reason = error.code(), error.details() or ""
        absent = is_absent(error)
        if absent and time.monotonic() + pause < deadline:
            time.sleep(pause)
            return
        if code.name == "CANCELLED":
            reason = (
                f"the broker on {self._socket} has ended the call, and did not come back in time"
            )
        elif absent and "connect" in reason.lower():
            raise unreached(self._socket) from error
        raise CallError(code.name, reason) from error


def _stub(service: str, module: Any) -> Stub:
    return Stub("", module.DESCRIPTOR.services_by_name[service])
