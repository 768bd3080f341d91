from broker.v1 import workflow_pb2 as _workflow_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OpenPageRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OpenPageResponse(_message.Message):
    __slots__ = ("address", "seconds")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    address: str
    seconds: float
    def __init__(self, address: _Optional[str] = ..., seconds: _Optional[float] = ...) -> None: ...

class Placement(_message.Message):
    __slots__ = ("workflow", "task", "demands", "start_time_s", "end_time_s", "cost", "state", "predecessors")
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    DEMANDS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_S_FIELD_NUMBER: _ClassVar[int]
    END_TIME_S_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PREDECESSORS_FIELD_NUMBER: _ClassVar[int]
    workflow: str
    task: str
    demands: _containers.RepeatedCompositeFieldContainer[_workflow_pb2.Demand]
    start_time_s: float
    end_time_s: float
    cost: float
    state: _workflow_pb2.TaskState
    predecessors: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, workflow: _Optional[str] = ..., task: _Optional[str] = ..., demands: _Optional[_Iterable[_Union[_workflow_pb2.Demand, _Mapping]]] = ..., start_time_s: _Optional[float] = ..., end_time_s: _Optional[float] = ..., cost: _Optional[float] = ..., state: _Optional[_Union[_workflow_pb2.TaskState, str]] = ..., predecessors: _Optional[_Iterable[str]] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("number", "now_s", "adopted_s", "fitness", "placements", "unplanned", "next_planning_s", "silent_sites")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    NOW_S_FIELD_NUMBER: _ClassVar[int]
    ADOPTED_S_FIELD_NUMBER: _ClassVar[int]
    FITNESS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    UNPLANNED_FIELD_NUMBER: _ClassVar[int]
    NEXT_PLANNING_S_FIELD_NUMBER: _ClassVar[int]
    SILENT_SITES_FIELD_NUMBER: _ClassVar[int]
    number: int
    now_s: float
    adopted_s: float
    fitness: float
    placements: _containers.RepeatedCompositeFieldContainer[Placement]
    unplanned: _containers.RepeatedCompositeFieldContainer[Unplanned]
    next_planning_s: float
    silent_sites: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, number: _Optional[int] = ..., now_s: _Optional[float] = ..., adopted_s: _Optional[float] = ..., fitness: _Optional[float] = ..., placements: _Optional[_Iterable[_Union[Placement, _Mapping]]] = ..., unplanned: _Optional[_Iterable[_Union[Unplanned, _Mapping]]] = ..., next_planning_s: _Optional[float] = ..., silent_sites: _Optional[_Iterable[str]] = ...) -> None: ...

class Unplanned(_message.Message):
    __slots__ = ("workflow", "task", "reason")
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    workflow: str
    task: str
    reason: str
    def __init__(self, workflow: _Optional[str] = ..., task: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("number", "reason", "seconds", "generation", "evaluations", "fitness", "islands")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    FITNESS_FIELD_NUMBER: _ClassVar[int]
    ISLANDS_FIELD_NUMBER: _ClassVar[int]
    number: int
    reason: str
    seconds: float
    generation: int
    evaluations: int
    fitness: float
    islands: int
    def __init__(self, number: _Optional[int] = ..., reason: _Optional[str] = ..., seconds: _Optional[float] = ..., generation: _Optional[int] = ..., evaluations: _Optional[int] = ..., fitness: _Optional[float] = ..., islands: _Optional[int] = ...) -> None: ...

class PlanEnd(_message.Message):
    __slots__ = ("number", "fitness", "planned", "unplanned", "problem")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FITNESS_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    UNPLANNED_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    number: int
    fitness: float
    planned: int
    unplanned: int
    problem: str
    def __init__(self, number: _Optional[int] = ..., fitness: _Optional[float] = ..., planned: _Optional[int] = ..., unplanned: _Optional[int] = ..., problem: _Optional[str] = ...) -> None: ...

class PlanNews(_message.Message):
    __slots__ = ("progress", "end")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    progress: Progress
    end: PlanEnd
    def __init__(self, progress: _Optional[_Union[Progress, _Mapping]] = ..., end: _Optional[_Union[PlanEnd, _Mapping]] = ...) -> None: ...

class GetPlanRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchPlanRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReplanRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReplanResponse(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class EstimatesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EstimatesResponse(_message.Message):
    __slots__ = ("used", "programs")
    USED_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    used: bool
    programs: _containers.RepeatedCompositeFieldContainer[ProgramEstimate]
    def __init__(self, used: bool = ..., programs: _Optional[_Iterable[_Union[ProgramEstimate, _Mapping]]] = ...) -> None: ...

class ProgramEstimate(_message.Message):
    __slots__ = ("program", "runs", "form", "ratio", "low", "high", "work_s", "factors")
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    RATIO_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    WORK_S_FIELD_NUMBER: _ClassVar[int]
    FACTORS_FIELD_NUMBER: _ClassVar[int]
    program: str
    runs: int
    form: str
    ratio: float
    low: float
    high: float
    work_s: float
    factors: _containers.RepeatedCompositeFieldContainer[ResourceFactor]
    def __init__(self, program: _Optional[str] = ..., runs: _Optional[int] = ..., form: _Optional[str] = ..., ratio: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., work_s: _Optional[float] = ..., factors: _Optional[_Iterable[_Union[ResourceFactor, _Mapping]]] = ...) -> None: ...

class ResourceFactor(_message.Message):
    __slots__ = ("resource", "factor")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    resource: str
    factor: float
    def __init__(self, resource: _Optional[str] = ..., factor: _Optional[float] = ...) -> None: ...
