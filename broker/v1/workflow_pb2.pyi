from grms.v1 import job_pb2 as _job_pb2
from grms.v1 import request_pb2 as _request_pb2
from grms.v1 import results_pb2 as _results_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OnFailure(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ON_FAILURE_UNSPECIFIED: _ClassVar[OnFailure]
    ON_FAILURE_FINISH: _ClassVar[OnFailure]
    ON_FAILURE_TERMINATE: _ClassVar[OnFailure]
    ON_FAILURE_CONTINUE: _ClassVar[OnFailure]

class WorkflowState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKFLOW_STATE_UNSPECIFIED: _ClassVar[WorkflowState]
    WORKFLOW_STATE_ACCEPTED: _ClassVar[WorkflowState]
    WORKFLOW_STATE_RUNNING: _ClassVar[WorkflowState]
    WORKFLOW_STATE_FAILING: _ClassVar[WorkflowState]
    WORKFLOW_STATE_CANCELLING: _ClassVar[WorkflowState]
    WORKFLOW_STATE_COMPLETED: _ClassVar[WorkflowState]
    WORKFLOW_STATE_FAILED: _ClassVar[WorkflowState]
    WORKFLOW_STATE_CANCELLED: _ClassVar[WorkflowState]
    WORKFLOW_STATE_SIMULATED: _ClassVar[WorkflowState]

class TaskState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_STATE_UNSPECIFIED: _ClassVar[TaskState]
    TASK_STATE_WAITING: _ClassVar[TaskState]
    TASK_STATE_BOOKING: _ClassVar[TaskState]
    TASK_STATE_BOOKED: _ClassVar[TaskState]
    TASK_STATE_LAUNCHED: _ClassVar[TaskState]
    TASK_STATE_RUNNING: _ClassVar[TaskState]
    TASK_STATE_ENDING: _ClassVar[TaskState]
    TASK_STATE_COMPLETED: _ClassVar[TaskState]
    TASK_STATE_FAILED: _ClassVar[TaskState]
    TASK_STATE_CANCELLED: _ClassVar[TaskState]
    TASK_STATE_SIMULATED: _ClassVar[TaskState]
ON_FAILURE_UNSPECIFIED: OnFailure
ON_FAILURE_FINISH: OnFailure
ON_FAILURE_TERMINATE: OnFailure
ON_FAILURE_CONTINUE: OnFailure
WORKFLOW_STATE_UNSPECIFIED: WorkflowState
WORKFLOW_STATE_ACCEPTED: WorkflowState
WORKFLOW_STATE_RUNNING: WorkflowState
WORKFLOW_STATE_FAILING: WorkflowState
WORKFLOW_STATE_CANCELLING: WorkflowState
WORKFLOW_STATE_COMPLETED: WorkflowState
WORKFLOW_STATE_FAILED: WorkflowState
WORKFLOW_STATE_CANCELLED: WorkflowState
WORKFLOW_STATE_SIMULATED: WorkflowState
TASK_STATE_UNSPECIFIED: TaskState
TASK_STATE_WAITING: TaskState
TASK_STATE_BOOKING: TaskState
TASK_STATE_BOOKED: TaskState
TASK_STATE_LAUNCHED: TaskState
TASK_STATE_RUNNING: TaskState
TASK_STATE_ENDING: TaskState
TASK_STATE_COMPLETED: TaskState
TASK_STATE_FAILED: TaskState
TASK_STATE_CANCELLED: TaskState
TASK_STATE_SIMULATED: TaskState

class Demand(_message.Message):
    __slots__ = ("resource", "units")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    resource: str
    units: int
    def __init__(self, resource: _Optional[str] = ..., units: _Optional[int] = ...) -> None: ...

class Alternative(_message.Message):
    __slots__ = ("demands",)
    DEMANDS_FIELD_NUMBER: _ClassVar[int]
    demands: _containers.RepeatedCompositeFieldContainer[Demand]
    def __init__(self, demands: _Optional[_Iterable[_Union[Demand, _Mapping]]] = ...) -> None: ...

class TaskSpec(_message.Message):
    __slots__ = ("name", "work_s", "alternatives", "predecessors", "program", "needs", "limit_s", "task_outputs", "rerun", "on_failure", "elements", "alternative_list")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WORK_S_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    PREDECESSORS_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    TASK_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    RERUN_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVE_LIST_FIELD_NUMBER: _ClassVar[int]
    name: str
    work_s: float
    alternatives: _containers.RepeatedCompositeFieldContainer[Alternative]
    predecessors: _containers.RepeatedScalarFieldContainer[str]
    program: _request_pb2.Program
    needs: _request_pb2.Needs
    limit_s: float
    task_outputs: _containers.RepeatedCompositeFieldContainer[TaskOutput]
    rerun: Rerun
    on_failure: OnFailure
    elements: _containers.RepeatedCompositeFieldContainer[Arguments]
    alternative_list: int
    def __init__(self, name: _Optional[str] = ..., work_s: _Optional[float] = ..., alternatives: _Optional[_Iterable[_Union[Alternative, _Mapping]]] = ..., predecessors: _Optional[_Iterable[str]] = ..., program: _Optional[_Union[_request_pb2.Program, _Mapping]] = ..., needs: _Optional[_Union[_request_pb2.Needs, _Mapping]] = ..., limit_s: _Optional[float] = ..., task_outputs: _Optional[_Iterable[_Union[TaskOutput, _Mapping]]] = ..., rerun: _Optional[_Union[Rerun, _Mapping]] = ..., on_failure: _Optional[_Union[OnFailure, str]] = ..., elements: _Optional[_Iterable[_Union[Arguments, _Mapping]]] = ..., alternative_list: _Optional[int] = ...) -> None: ...

class AlternativeList(_message.Message):
    __slots__ = ("alternatives",)
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    alternatives: _containers.RepeatedCompositeFieldContainer[Alternative]
    def __init__(self, alternatives: _Optional[_Iterable[_Union[Alternative, _Mapping]]] = ...) -> None: ...

class Arguments(_message.Message):
    __slots__ = ("arguments",)
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    arguments: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, arguments: _Optional[_Iterable[str]] = ...) -> None: ...

class TaskOutput(_message.Message):
    __slots__ = ("name", "task", "output")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    name: str
    task: str
    output: str
    def __init__(self, name: _Optional[str] = ..., task: _Optional[str] = ..., output: _Optional[str] = ...) -> None: ...

class Rerun(_message.Message):
    __slots__ = ("runs", "exit_codes", "outcomes")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODES_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    runs: int
    exit_codes: _containers.RepeatedScalarFieldContainer[int]
    outcomes: _containers.RepeatedScalarFieldContainer[_request_pb2.Outcome]
    def __init__(self, runs: _Optional[int] = ..., exit_codes: _Optional[_Iterable[int]] = ..., outcomes: _Optional[_Iterable[_Union[_request_pb2.Outcome, str]]] = ...) -> None: ...

class WorkflowSpec(_message.Message):
    __slots__ = ("name", "tasks", "earliest_start_s", "due_date_s", "budget", "preference", "on_failure", "alternative_lists", "files")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    EARLIEST_START_S_FIELD_NUMBER: _ClassVar[int]
    DUE_DATE_S_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    PREFERENCE_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVE_LISTS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    name: str
    tasks: _containers.RepeatedCompositeFieldContainer[TaskSpec]
    earliest_start_s: float
    due_date_s: float
    budget: float
    preference: float
    on_failure: OnFailure
    alternative_lists: _containers.RepeatedCompositeFieldContainer[AlternativeList]
    files: _containers.RepeatedCompositeFieldContainer[DataFile]
    def __init__(self, name: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[TaskSpec, _Mapping]]] = ..., earliest_start_s: _Optional[float] = ..., due_date_s: _Optional[float] = ..., budget: _Optional[float] = ..., preference: _Optional[float] = ..., on_failure: _Optional[_Union[OnFailure, str]] = ..., alternative_lists: _Optional[_Iterable[_Union[AlternativeList, _Mapping]]] = ..., files: _Optional[_Iterable[_Union[DataFile, _Mapping]]] = ...) -> None: ...

class DataFile(_message.Message):
    __slots__ = ("name", "size_bytes", "readers", "task", "site")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    READERS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    SITE_FIELD_NUMBER: _ClassVar[int]
    name: str
    size_bytes: int
    readers: _containers.RepeatedScalarFieldContainer[str]
    task: str
    site: str
    def __init__(self, name: _Optional[str] = ..., size_bytes: _Optional[int] = ..., readers: _Optional[_Iterable[str]] = ..., task: _Optional[str] = ..., site: _Optional[str] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("name", "state", "demands", "start_time_s", "end_time_s", "cost", "runs", "reason", "outcome", "exit_code", "signal", "job", "outputs", "has_program", "estimate_s", "estimate_runs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DEMANDS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_S_FIELD_NUMBER: _ClassVar[int]
    END_TIME_S_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    HAS_PROGRAM_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_S_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_RUNS_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: TaskState
    demands: _containers.RepeatedCompositeFieldContainer[Demand]
    start_time_s: float
    end_time_s: float
    cost: float
    runs: int
    reason: str
    outcome: _request_pb2.Outcome
    exit_code: int
    signal: int
    job: str
    outputs: _containers.RepeatedCompositeFieldContainer[TaskFile]
    has_program: bool
    estimate_s: float
    estimate_runs: int
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[TaskState, str]] = ..., demands: _Optional[_Iterable[_Union[Demand, _Mapping]]] = ..., start_time_s: _Optional[float] = ..., end_time_s: _Optional[float] = ..., cost: _Optional[float] = ..., runs: _Optional[int] = ..., reason: _Optional[str] = ..., outcome: _Optional[_Union[_request_pb2.Outcome, str]] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., job: _Optional[str] = ..., outputs: _Optional[_Iterable[_Union[TaskFile, _Mapping]]] = ..., has_program: bool = ..., estimate_s: _Optional[float] = ..., estimate_runs: _Optional[int] = ...) -> None: ...

class TaskFile(_message.Message):
    __slots__ = ("name", "size_bytes", "sha256")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    name: str
    size_bytes: int
    sha256: bytes
    def __init__(self, name: _Optional[str] = ..., size_bytes: _Optional[int] = ..., sha256: _Optional[bytes] = ...) -> None: ...

class Workflow(_message.Message):
    __slots__ = ("workflow_id", "name", "state", "submit_time_s", "end_time_s", "due_date_s", "budget", "completion_s", "cost", "tasks_total", "tasks_completed", "tasks", "reason", "revision", "tasks_simulated", "open")
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_TIME_S_FIELD_NUMBER: _ClassVar[int]
    END_TIME_S_FIELD_NUMBER: _ClassVar[int]
    DUE_DATE_S_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_S_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    TASKS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    TASKS_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    TASKS_SIMULATED_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    workflow_id: str
    name: str
    state: WorkflowState
    submit_time_s: float
    end_time_s: float
    due_date_s: float
    budget: float
    completion_s: float
    cost: float
    tasks_total: int
    tasks_completed: int
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    reason: str
    revision: int
    tasks_simulated: int
    open: bool
    def __init__(self, workflow_id: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[_Union[WorkflowState, str]] = ..., submit_time_s: _Optional[float] = ..., end_time_s: _Optional[float] = ..., due_date_s: _Optional[float] = ..., budget: _Optional[float] = ..., completion_s: _Optional[float] = ..., cost: _Optional[float] = ..., tasks_total: _Optional[int] = ..., tasks_completed: _Optional[int] = ..., tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., reason: _Optional[str] = ..., revision: _Optional[int] = ..., tasks_simulated: _Optional[int] = ..., open: bool = ...) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("idempotency_key", "workflow")
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    idempotency_key: str
    workflow: WorkflowSpec
    def __init__(self, idempotency_key: _Optional[str] = ..., workflow: _Optional[_Union[WorkflowSpec, _Mapping]] = ...) -> None: ...

class OpenRequest(_message.Message):
    __slots__ = ("idempotency_key", "workflow")
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    idempotency_key: str
    workflow: WorkflowSpec
    def __init__(self, idempotency_key: _Optional[str] = ..., workflow: _Optional[_Union[WorkflowSpec, _Mapping]] = ...) -> None: ...

class AddRequest(_message.Message):
    __slots__ = ("workflow_id", "tasks", "alternative_lists")
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVE_LISTS_FIELD_NUMBER: _ClassVar[int]
    workflow_id: str
    tasks: _containers.RepeatedCompositeFieldContainer[TaskSpec]
    alternative_lists: _containers.RepeatedCompositeFieldContainer[AlternativeList]
    def __init__(self, workflow_id: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[TaskSpec, _Mapping]]] = ..., alternative_lists: _Optional[_Iterable[_Union[AlternativeList, _Mapping]]] = ...) -> None: ...

class AddResponse(_message.Message):
    __slots__ = ("workflow_id", "tasks_new", "tasks_total")
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    TASKS_NEW_FIELD_NUMBER: _ClassVar[int]
    TASKS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    workflow_id: str
    tasks_new: int
    tasks_total: int
    def __init__(self, workflow_id: _Optional[str] = ..., tasks_new: _Optional[int] = ..., tasks_total: _Optional[int] = ...) -> None: ...

class CloseRequest(_message.Message):
    __slots__ = ("workflow_id",)
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    workflow_id: str
    def __init__(self, workflow_id: _Optional[str] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ("workflow_id",)
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    workflow_id: str
    def __init__(self, workflow_id: _Optional[str] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("workflow_id",)
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    workflow_id: str
    def __init__(self, workflow_id: _Optional[str] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedScalarFieldContainer[WorkflowState]
    def __init__(self, states: _Optional[_Iterable[_Union[WorkflowState, str]]] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("workflows",)
    WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    workflows: _containers.RepeatedCompositeFieldContainer[Workflow]
    def __init__(self, workflows: _Optional[_Iterable[_Union[Workflow, _Mapping]]] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("workflow_id",)
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    workflow_id: str
    def __init__(self, workflow_id: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("workflow_id",)
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    workflow_id: str
    def __init__(self, workflow_id: _Optional[str] = ...) -> None: ...

class TaskResultsRequest(_message.Message):
    __slots__ = ("workflow_id", "task")
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    workflow_id: str
    task: str
    def __init__(self, workflow_id: _Optional[str] = ..., task: _Optional[str] = ...) -> None: ...

class FetchTaskResultRequest(_message.Message):
    __slots__ = ("workflow_id", "task", "name", "offset_bytes")
    WORKFLOW_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_BYTES_FIELD_NUMBER: _ClassVar[int]
    workflow_id: str
    task: str
    name: str
    offset_bytes: int
    def __init__(self, workflow_id: _Optional[str] = ..., task: _Optional[str] = ..., name: _Optional[str] = ..., offset_bytes: _Optional[int] = ...) -> None: ...
