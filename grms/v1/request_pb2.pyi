from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MemoryScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_SCOPE_UNSPECIFIED: _ClassVar[MemoryScope]
    MEMORY_SCOPE_NODE: _ClassVar[MemoryScope]
    MEMORY_SCOPE_CORE: _ClassVar[MemoryScope]
    MEMORY_SCOPE_GPU: _ClassVar[MemoryScope]

class GpuScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GPU_SCOPE_UNSPECIFIED: _ClassVar[GpuScope]
    GPU_SCOPE_NODE: _ClassVar[GpuScope]
    GPU_SCOPE_TASK: _ClassVar[GpuScope]
    GPU_SCOPE_JOB: _ClassVar[GpuScope]

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_COMPLETED: _ClassVar[Outcome]
    OUTCOME_FAILED: _ClassVar[Outcome]
    OUTCOME_CANCELLED: _ClassVar[Outcome]
    OUTCOME_TIMEOUT: _ClassVar[Outcome]
    OUTCOME_NOT_RUN: _ClassVar[Outcome]
    OUTCOME_NODE_FAIL: _ClassVar[Outcome]
    OUTCOME_OUT_OF_MEMORY: _ClassVar[Outcome]
    OUTCOME_LOST: _ClassVar[Outcome]
    OUTCOME_UNKNOWN: _ClassVar[Outcome]
    OUTCOME_PREEMPTED: _ClassVar[Outcome]

class JobPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_PHASE_UNSPECIFIED: _ClassVar[JobPhase]
    JOB_PHASE_WAITING: _ClassVar[JobPhase]
    JOB_PHASE_RUNNING: _ClassVar[JobPhase]
    JOB_PHASE_SUSPENDED: _ClassVar[JobPhase]
    JOB_PHASE_COMPLETING: _ClassVar[JobPhase]
MEMORY_SCOPE_UNSPECIFIED: MemoryScope
MEMORY_SCOPE_NODE: MemoryScope
MEMORY_SCOPE_CORE: MemoryScope
MEMORY_SCOPE_GPU: MemoryScope
GPU_SCOPE_UNSPECIFIED: GpuScope
GPU_SCOPE_NODE: GpuScope
GPU_SCOPE_TASK: GpuScope
GPU_SCOPE_JOB: GpuScope
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_COMPLETED: Outcome
OUTCOME_FAILED: Outcome
OUTCOME_CANCELLED: Outcome
OUTCOME_TIMEOUT: Outcome
OUTCOME_NOT_RUN: Outcome
OUTCOME_NODE_FAIL: Outcome
OUTCOME_OUT_OF_MEMORY: Outcome
OUTCOME_LOST: Outcome
OUTCOME_UNKNOWN: Outcome
OUTCOME_PREEMPTED: Outcome
JOB_PHASE_UNSPECIFIED: JobPhase
JOB_PHASE_WAITING: JobPhase
JOB_PHASE_RUNNING: JobPhase
JOB_PHASE_SUSPENDED: JobPhase
JOB_PHASE_COMPLETING: JobPhase

class JobRequest(_message.Message):
    __slots__ = ("processors", "requested_time_s", "program", "simulated", "to_fetch", "home", "needs", "streams")
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_TIME_S_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    TO_FETCH_FIELD_NUMBER: _ClassVar[int]
    HOME_FIELD_NUMBER: _ClassVar[int]
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    processors: int
    requested_time_s: float
    program: Program
    simulated: SimulatedProgram
    to_fetch: ProgramToFetch
    home: HomeRun
    needs: Needs
    streams: WrittenStreams
    def __init__(self, processors: _Optional[int] = ..., requested_time_s: _Optional[float] = ..., program: _Optional[_Union[Program, _Mapping]] = ..., simulated: _Optional[_Union[SimulatedProgram, _Mapping]] = ..., to_fetch: _Optional[_Union[ProgramToFetch, _Mapping]] = ..., home: _Optional[_Union[HomeRun, _Mapping]] = ..., needs: _Optional[_Union[Needs, _Mapping]] = ..., streams: _Optional[_Union[WrittenStreams, _Mapping]] = ...) -> None: ...

class WrittenStreams(_message.Message):
    __slots__ = ("output", "error", "append")
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    output: str
    error: str
    append: bool
    def __init__(self, output: _Optional[str] = ..., error: _Optional[str] = ..., append: bool = ...) -> None: ...

class Needs(_message.Message):
    __slots__ = ("tasks", "cores_per_task", "nodes_min", "nodes_max", "tasks_per_node", "memory", "gpus", "features", "exclusive", "licences", "image", "signal", "signal_before_s", "requeue", "partition", "account", "qos", "modules")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    CORES_PER_TASK_FIELD_NUMBER: _ClassVar[int]
    NODES_MIN_FIELD_NUMBER: _ClassVar[int]
    NODES_MAX_FIELD_NUMBER: _ClassVar[int]
    TASKS_PER_NODE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    LICENCES_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_BEFORE_S_FIELD_NUMBER: _ClassVar[int]
    REQUEUE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    QOS_FIELD_NUMBER: _ClassVar[int]
    MODULES_FIELD_NUMBER: _ClassVar[int]
    tasks: int
    cores_per_task: int
    nodes_min: int
    nodes_max: int
    tasks_per_node: int
    memory: Memory
    gpus: Gpus
    features: _containers.RepeatedScalarFieldContainer[str]
    exclusive: bool
    licences: _containers.RepeatedCompositeFieldContainer[Licence]
    image: str
    signal: str
    signal_before_s: float
    requeue: bool
    partition: str
    account: str
    qos: str
    modules: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tasks: _Optional[int] = ..., cores_per_task: _Optional[int] = ..., nodes_min: _Optional[int] = ..., nodes_max: _Optional[int] = ..., tasks_per_node: _Optional[int] = ..., memory: _Optional[_Union[Memory, _Mapping]] = ..., gpus: _Optional[_Union[Gpus, _Mapping]] = ..., features: _Optional[_Iterable[str]] = ..., exclusive: bool = ..., licences: _Optional[_Iterable[_Union[Licence, _Mapping]]] = ..., image: _Optional[str] = ..., signal: _Optional[str] = ..., signal_before_s: _Optional[float] = ..., requeue: bool = ..., partition: _Optional[str] = ..., account: _Optional[str] = ..., qos: _Optional[str] = ..., modules: _Optional[_Iterable[str]] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("mib", "per")
    MIB_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    mib: int
    per: MemoryScope
    def __init__(self, mib: _Optional[int] = ..., per: _Optional[_Union[MemoryScope, str]] = ...) -> None: ...

class Gpus(_message.Message):
    __slots__ = ("count", "per", "type")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    count: int
    per: GpuScope
    type: str
    def __init__(self, count: _Optional[int] = ..., per: _Optional[_Union[GpuScope, str]] = ..., type: _Optional[str] = ...) -> None: ...

class Licence(_message.Message):
    __slots__ = ("name", "count")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class NodeKind(_message.Message):
    __slots__ = ("nodes", "cores", "memory_mib", "gpus")
    NODES_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    nodes: int
    cores: int
    memory_mib: int
    gpus: int
    def __init__(self, nodes: _Optional[int] = ..., cores: _Optional[int] = ..., memory_mib: _Optional[int] = ..., gpus: _Optional[int] = ...) -> None: ...

class HomeRun(_message.Message):
    __slots__ = ("folder", "environment", "options")
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    folder: str
    environment: _containers.RepeatedScalarFieldContainer[bytes]
    options: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, folder: _Optional[str] = ..., environment: _Optional[_Iterable[bytes]] = ..., options: _Optional[_Iterable[str]] = ...) -> None: ...

class ProgramToFetch(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Program(_message.Message):
    __slots__ = ("script", "arguments", "environment", "outputs", "inputs", "name", "merged", "truncated", "checkpoint")
    class EnvironmentEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SCRIPT_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MERGED_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    script: str
    arguments: _containers.RepeatedScalarFieldContainer[str]
    environment: _containers.ScalarMap[str, str]
    outputs: _containers.RepeatedScalarFieldContainer[str]
    inputs: _containers.RepeatedCompositeFieldContainer[InputFile]
    name: str
    merged: bool
    truncated: bool
    checkpoint: Checkpoint
    def __init__(self, script: _Optional[str] = ..., arguments: _Optional[_Iterable[str]] = ..., environment: _Optional[_Mapping[str, str]] = ..., outputs: _Optional[_Iterable[str]] = ..., inputs: _Optional[_Iterable[_Union[InputFile, _Mapping]]] = ..., name: _Optional[str] = ..., merged: bool = ..., truncated: bool = ..., checkpoint: _Optional[_Union[Checkpoint, _Mapping]] = ...) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ("every_s", "files")
    EVERY_S_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    every_s: float
    files: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, every_s: _Optional[float] = ..., files: _Optional[_Iterable[str]] = ...) -> None: ...

class InputFile(_message.Message):
    __slots__ = ("name", "size_bytes", "sha256", "shared_path", "written", "mode")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SHARED_PATH_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    name: str
    size_bytes: int
    sha256: bytes
    shared_path: str
    written: bool
    mode: int
    def __init__(self, name: _Optional[str] = ..., size_bytes: _Optional[int] = ..., sha256: _Optional[bytes] = ..., shared_path: _Optional[str] = ..., written: bool = ..., mode: _Optional[int] = ...) -> None: ...

class SimulatedProgram(_message.Message):
    __slots__ = ("run_time_s", "user_group", "place")
    RUN_TIME_S_FIELD_NUMBER: _ClassVar[int]
    USER_GROUP_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    run_time_s: float
    user_group: int
    place: int
    def __init__(self, run_time_s: _Optional[float] = ..., user_group: _Optional[int] = ..., place: _Optional[int] = ...) -> None: ...
