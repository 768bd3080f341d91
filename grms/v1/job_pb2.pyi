from grms.v1 import request_pb2 as _request_pb2
from grms.v1 import results_pb2 as _results_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    JOB_STATE_RECEIVED: _ClassVar[JobState]
    JOB_STATE_OFFERING: _ClassVar[JobState]
    JOB_STATE_RESOLVING: _ClassVar[JobState]
    JOB_STATE_WITHDRAWING: _ClassVar[JobState]
    JOB_STATE_SUBMITTING: _ClassVar[JobState]
    JOB_STATE_QUEUED: _ClassVar[JobState]
    JOB_STATE_RUNNING: _ClassVar[JobState]
    JOB_STATE_DELEGATED: _ClassVar[JobState]
    JOB_STATE_SUSPECT: _ClassVar[JobState]
    JOB_STATE_ENDED: _ClassVar[JobState]
    JOB_STATE_HELD: _ClassVar[JobState]

class DependencyKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEPENDENCY_KIND_UNSPECIFIED: _ClassVar[DependencyKind]
    DEPENDENCY_KIND_AFTEROK: _ClassVar[DependencyKind]
    DEPENDENCY_KIND_AFTERANY: _ClassVar[DependencyKind]
    DEPENDENCY_KIND_AFTERNOTOK: _ClassVar[DependencyKind]
    DEPENDENCY_KIND_AFTERCORR: _ClassVar[DependencyKind]
    DEPENDENCY_KIND_SINGLETON: _ClassVar[DependencyKind]
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_RECEIVED: JobState
JOB_STATE_OFFERING: JobState
JOB_STATE_RESOLVING: JobState
JOB_STATE_WITHDRAWING: JobState
JOB_STATE_SUBMITTING: JobState
JOB_STATE_QUEUED: JobState
JOB_STATE_RUNNING: JobState
JOB_STATE_DELEGATED: JobState
JOB_STATE_SUSPECT: JobState
JOB_STATE_ENDED: JobState
JOB_STATE_HELD: JobState
DEPENDENCY_KIND_UNSPECIFIED: DependencyKind
DEPENDENCY_KIND_AFTEROK: DependencyKind
DEPENDENCY_KIND_AFTERANY: DependencyKind
DEPENDENCY_KIND_AFTERNOTOK: DependencyKind
DEPENDENCY_KIND_AFTERCORR: DependencyKind
DEPENDENCY_KIND_SINGLETON: DependencyKind

class Job(_message.Message):
    __slots__ = ("job_id", "user", "name", "request", "state", "executed_on", "submit_time_s", "start_time_s", "end_time_s", "outcome", "cancel_requested", "revision", "reason", "stuck", "exit_code", "signal", "offered_to", "leaving", "array_id", "array_index", "dependencies", "array", "phase", "since_s", "told_time_s", "cost", "sites", "sent_home", "place")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    EXECUTED_ON_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_TIME_S_FIELD_NUMBER: _ClassVar[int]
    START_TIME_S_FIELD_NUMBER: _ClassVar[int]
    END_TIME_S_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STUCK_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    OFFERED_TO_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    ARRAY_ID_FIELD_NUMBER: _ClassVar[int]
    ARRAY_INDEX_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    SINCE_S_FIELD_NUMBER: _ClassVar[int]
    TOLD_TIME_S_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    SITES_FIELD_NUMBER: _ClassVar[int]
    SENT_HOME_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    user: str
    name: str
    request: _request_pb2.JobRequest
    state: JobState
    executed_on: str
    submit_time_s: float
    start_time_s: float
    end_time_s: float
    outcome: _request_pb2.Outcome
    cancel_requested: bool
    revision: int
    reason: str
    stuck: str
    exit_code: int
    signal: int
    offered_to: str
    leaving: bool
    array_id: str
    array_index: int
    dependencies: _containers.RepeatedCompositeFieldContainer[Dependency]
    array: ArraySummary
    phase: _request_pb2.JobPhase
    since_s: float
    told_time_s: float
    cost: float
    sites: _containers.RepeatedScalarFieldContainer[str]
    sent_home: _containers.RepeatedCompositeFieldContainer[SentHome]
    place: str
    def __init__(self, job_id: _Optional[str] = ..., user: _Optional[str] = ..., name: _Optional[str] = ..., request: _Optional[_Union[_request_pb2.JobRequest, _Mapping]] = ..., state: _Optional[_Union[JobState, str]] = ..., executed_on: _Optional[str] = ..., submit_time_s: _Optional[float] = ..., start_time_s: _Optional[float] = ..., end_time_s: _Optional[float] = ..., outcome: _Optional[_Union[_request_pb2.Outcome, str]] = ..., cancel_requested: bool = ..., revision: _Optional[int] = ..., reason: _Optional[str] = ..., stuck: _Optional[str] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., offered_to: _Optional[str] = ..., leaving: bool = ..., array_id: _Optional[str] = ..., array_index: _Optional[int] = ..., dependencies: _Optional[_Iterable[_Union[Dependency, _Mapping]]] = ..., array: _Optional[_Union[ArraySummary, _Mapping]] = ..., phase: _Optional[_Union[_request_pb2.JobPhase, str]] = ..., since_s: _Optional[float] = ..., told_time_s: _Optional[float] = ..., cost: _Optional[float] = ..., sites: _Optional[_Iterable[str]] = ..., sent_home: _Optional[_Iterable[_Union[SentHome, _Mapping]]] = ..., place: _Optional[str] = ...) -> None: ...

class SentHome(_message.Message):
    __slots__ = ("site", "times", "lost_s", "kept_s", "problem")
    SITE_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    LOST_S_FIELD_NUMBER: _ClassVar[int]
    KEPT_S_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    site: str
    times: int
    lost_s: float
    kept_s: float
    problem: str
    def __init__(self, site: _Optional[str] = ..., times: _Optional[int] = ..., lost_s: _Optional[float] = ..., kept_s: _Optional[float] = ..., problem: _Optional[str] = ...) -> None: ...

class ArraySummary(_message.Message):
    __slots__ = ("elements", "count", "held", "under_way", "completed", "not_completed")
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    UNDER_WAY_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    NOT_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    elements: str
    count: int
    held: int
    under_way: int
    completed: int
    not_completed: int
    def __init__(self, elements: _Optional[str] = ..., count: _Optional[int] = ..., held: _Optional[int] = ..., under_way: _Optional[int] = ..., completed: _Optional[int] = ..., not_completed: _Optional[int] = ...) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("request", "idempotency_key", "name", "unfit", "dependencies", "array", "sites", "home_only")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNFIT_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    SITES_FIELD_NUMBER: _ClassVar[int]
    HOME_ONLY_FIELD_NUMBER: _ClassVar[int]
    request: _request_pb2.JobRequest
    idempotency_key: str
    name: str
    unfit: str
    dependencies: _containers.RepeatedCompositeFieldContainer[Dependency]
    array: str
    sites: _containers.RepeatedScalarFieldContainer[str]
    home_only: bool
    def __init__(self, request: _Optional[_Union[_request_pb2.JobRequest, _Mapping]] = ..., idempotency_key: _Optional[str] = ..., name: _Optional[str] = ..., unfit: _Optional[str] = ..., dependencies: _Optional[_Iterable[_Union[Dependency, _Mapping]]] = ..., array: _Optional[str] = ..., sites: _Optional[_Iterable[str]] = ..., home_only: bool = ...) -> None: ...

class PreviewResponse(_message.Message):
    __slots__ = ("site", "asked", "kept", "reason", "passed_over", "held", "known")
    SITE_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PASSED_OVER_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    site: str
    asked: _containers.RepeatedScalarFieldContainer[str]
    kept: bool
    reason: str
    passed_over: _containers.RepeatedCompositeFieldContainer[PartnerPassedOver]
    held: str
    known: str
    def __init__(self, site: _Optional[str] = ..., asked: _Optional[_Iterable[str]] = ..., kept: bool = ..., reason: _Optional[str] = ..., passed_over: _Optional[_Iterable[_Union[PartnerPassedOver, _Mapping]]] = ..., held: _Optional[str] = ..., known: _Optional[str] = ...) -> None: ...

class PartnerPassedOver(_message.Message):
    __slots__ = ("partner", "reason")
    PARTNER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    partner: str
    reason: str
    def __init__(self, partner: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Dependency(_message.Message):
    __slots__ = ("kind", "job_id")
    KIND_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    kind: DependencyKind
    job_id: str
    def __init__(self, kind: _Optional[_Union[DependencyKind, str]] = ..., job_id: _Optional[str] = ...) -> None: ...

class SubmitManyRequest(_message.Message):
    __slots__ = ("submissions",)
    SUBMISSIONS_FIELD_NUMBER: _ClassVar[int]
    submissions: _containers.RepeatedCompositeFieldContainer[SubmitRequest]
    def __init__(self, submissions: _Optional[_Iterable[_Union[SubmitRequest, _Mapping]]] = ...) -> None: ...

class SubmitManyResponse(_message.Message):
    __slots__ = ("answers",)
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[JobAnswer]
    def __init__(self, answers: _Optional[_Iterable[_Union[JobAnswer, _Mapping]]] = ...) -> None: ...

class GetManyRequest(_message.Message):
    __slots__ = ("jobs", "without_program")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_PROGRAM_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[GetRequest]
    without_program: bool
    def __init__(self, jobs: _Optional[_Iterable[_Union[GetRequest, _Mapping]]] = ..., without_program: bool = ...) -> None: ...

class GetManyResponse(_message.Message):
    __slots__ = ("answers",)
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[JobAnswer]
    def __init__(self, answers: _Optional[_Iterable[_Union[JobAnswer, _Mapping]]] = ...) -> None: ...

class CancelManyRequest(_message.Message):
    __slots__ = ("job_ids",)
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    job_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class CancelManyResponse(_message.Message):
    __slots__ = ("answers",)
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[JobAnswer]
    def __init__(self, answers: _Optional[_Iterable[_Union[JobAnswer, _Mapping]]] = ...) -> None: ...

class JobAnswer(_message.Message):
    __slots__ = ("job", "refusal")
    JOB_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    job: Job
    refusal: JobRefusal
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ..., refusal: _Optional[_Union[JobRefusal, _Mapping]] = ...) -> None: ...

class JobRefusal(_message.Message):
    __slots__ = ("code", "reason", "field", "retry_s")
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    RETRY_S_FIELD_NUMBER: _ClassVar[int]
    code: str
    reason: str
    field: str
    retry_s: float
    def __init__(self, code: _Optional[str] = ..., reason: _Optional[str] = ..., field: _Optional[str] = ..., retry_s: _Optional[float] = ...) -> None: ...

class ChangesRequest(_message.Message):
    __slots__ = ("after",)
    AFTER_FIELD_NUMBER: _ClassVar[int]
    after: str
    def __init__(self, after: _Optional[str] = ...) -> None: ...

class ChangesResponse(_message.Message):
    __slots__ = ("jobs", "token", "user")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    token: str
    user: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., token: _Optional[str] = ..., user: _Optional[str] = ...) -> None: ...

class PutInputRequest(_message.Message):
    __slots__ = ("file", "offset_bytes", "content")
    FILE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    file: _request_pb2.InputFile
    offset_bytes: int
    content: bytes
    def __init__(self, file: _Optional[_Union[_request_pb2.InputFile, _Mapping]] = ..., offset_bytes: _Optional[int] = ..., content: _Optional[bytes] = ...) -> None: ...

class PutInputResponse(_message.Message):
    __slots__ = ("held_bytes",)
    HELD_BYTES_FIELD_NUMBER: _ClassVar[int]
    held_bytes: int
    def __init__(self, held_bytes: _Optional[int] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("job_id", "idempotency_key")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    idempotency_key: str
    def __init__(self, job_id: _Optional[str] = ..., idempotency_key: _Optional[str] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("states", "all_users", "page_size", "page_token", "user", "partner", "since_s", "stuck", "without_program")
    STATES_FIELD_NUMBER: _ClassVar[int]
    ALL_USERS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PARTNER_FIELD_NUMBER: _ClassVar[int]
    SINCE_S_FIELD_NUMBER: _ClassVar[int]
    STUCK_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_PROGRAM_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedScalarFieldContainer[JobState]
    all_users: bool
    page_size: int
    page_token: str
    user: str
    partner: str
    since_s: float
    stuck: bool
    without_program: bool
    def __init__(self, states: _Optional[_Iterable[_Union[JobState, str]]] = ..., all_users: bool = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., user: _Optional[str] = ..., partner: _Optional[str] = ..., since_s: _Optional[float] = ..., stuck: bool = ..., without_program: bool = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("jobs", "next_page_token")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    next_page_token: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class ResultsRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class RemoveResultsRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class RemoveResultsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FollowOutputRequest(_message.Message):
    __slots__ = ("job_id", "error", "offset_bytes", "once")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OFFSET_BYTES_FIELD_NUMBER: _ClassVar[int]
    ONCE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    error: bool
    offset_bytes: int
    once: bool
    def __init__(self, job_id: _Optional[str] = ..., error: bool = ..., offset_bytes: _Optional[int] = ..., once: bool = ...) -> None: ...

class OutputChunk(_message.Message):
    __slots__ = ("content", "anew", "notice")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    ANEW_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    anew: bool
    notice: str
    def __init__(self, content: _Optional[bytes] = ..., anew: bool = ..., notice: _Optional[str] = ...) -> None: ...

class FetchResultRequest(_message.Message):
    __slots__ = ("job_id", "name", "offset_bytes")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_BYTES_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    name: str
    offset_bytes: int
    def __init__(self, job_id: _Optional[str] = ..., name: _Optional[str] = ..., offset_bytes: _Optional[int] = ...) -> None: ...
