from grms.v1 import request_pb2 as _request_pb2
from grms.v1 import results_pb2 as _results_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Answer(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ANSWER_UNSPECIFIED: _ClassVar[Answer]
    ANSWER_ACCEPTED: _ClassVar[Answer]
    ANSWER_DECLINED: _ClassVar[Answer]

class OfferState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OFFER_STATE_UNSPECIFIED: _ClassVar[OfferState]
    OFFER_STATE_UNKNOWN: _ClassVar[OfferState]
    OFFER_STATE_ACCEPTED: _ClassVar[OfferState]
    OFFER_STATE_DECLINED: _ClassVar[OfferState]
    OFFER_STATE_WITHDRAWN: _ClassVar[OfferState]
    OFFER_STATE_ENDED: _ClassVar[OfferState]
ANSWER_UNSPECIFIED: Answer
ANSWER_ACCEPTED: Answer
ANSWER_DECLINED: Answer
OFFER_STATE_UNSPECIFIED: OfferState
OFFER_STATE_UNKNOWN: OfferState
OFFER_STATE_ACCEPTED: OfferState
OFFER_STATE_DECLINED: OfferState
OFFER_STATE_WITHDRAWN: OfferState
OFFER_STATE_ENDED: OfferState

class DescribeRequest(_message.Message):
    __slots__ = ("site", "processors", "protocol_version", "instance")
    SITE_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    site: str
    processors: int
    protocol_version: int
    instance: int
    def __init__(self, site: _Optional[str] = ..., processors: _Optional[int] = ..., protocol_version: _Optional[int] = ..., instance: _Optional[int] = ...) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("site", "processors", "protocol_version", "offer_seen", "nodes", "instance")
    SITE_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    OFFER_SEEN_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    site: str
    processors: int
    protocol_version: int
    offer_seen: OfferId
    nodes: _containers.RepeatedCompositeFieldContainer[_request_pb2.NodeKind]
    instance: int
    def __init__(self, site: _Optional[str] = ..., processors: _Optional[int] = ..., protocol_version: _Optional[int] = ..., offer_seen: _Optional[_Union[OfferId, _Mapping]] = ..., nodes: _Optional[_Iterable[_Union[_request_pb2.NodeKind, _Mapping]]] = ..., instance: _Optional[int] = ...) -> None: ...

class OfferId(_message.Message):
    __slots__ = ("epoch", "number")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    number: int
    def __init__(self, epoch: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class OfferRequest(_message.Message):
    __slots__ = ("site", "offer", "settled_below", "job", "replay_time_s", "reserve", "rerun", "checkpoint_s", "left_s")
    SITE_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    SETTLED_BELOW_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    REPLAY_TIME_S_FIELD_NUMBER: _ClassVar[int]
    RESERVE_FIELD_NUMBER: _ClassVar[int]
    RERUN_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_S_FIELD_NUMBER: _ClassVar[int]
    LEFT_S_FIELD_NUMBER: _ClassVar[int]
    site: str
    offer: OfferId
    settled_below: int
    job: _request_pb2.JobRequest
    replay_time_s: float
    reserve: bool
    rerun: bool
    checkpoint_s: float
    left_s: float
    def __init__(self, site: _Optional[str] = ..., offer: _Optional[_Union[OfferId, _Mapping]] = ..., settled_below: _Optional[int] = ..., job: _Optional[_Union[_request_pb2.JobRequest, _Mapping]] = ..., replay_time_s: _Optional[float] = ..., reserve: bool = ..., rerun: bool = ..., checkpoint_s: _Optional[float] = ..., left_s: _Optional[float] = ...) -> None: ...

class OfferResponse(_message.Message):
    __slots__ = ("answer",)
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    answer: Answer
    def __init__(self, answer: _Optional[_Union[Answer, str]] = ...) -> None: ...

class ResolveRequest(_message.Message):
    __slots__ = ("site", "offer", "confirm")
    SITE_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    site: str
    offer: OfferId
    confirm: bool
    def __init__(self, site: _Optional[str] = ..., offer: _Optional[_Union[OfferId, _Mapping]] = ..., confirm: bool = ...) -> None: ...

class WithdrawRequest(_message.Message):
    __slots__ = ("site", "offer", "cancel")
    SITE_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    site: str
    offer: OfferId
    cancel: bool
    def __init__(self, site: _Optional[str] = ..., offer: _Optional[_Union[OfferId, _Mapping]] = ..., cancel: bool = ...) -> None: ...

class OfferStatus(_message.Message):
    __slots__ = ("state", "completion")
    STATE_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_FIELD_NUMBER: _ClassVar[int]
    state: OfferState
    completion: Completion
    def __init__(self, state: _Optional[_Union[OfferState, str]] = ..., completion: _Optional[_Union[Completion, _Mapping]] = ...) -> None: ...

class Completion(_message.Message):
    __slots__ = ("offer", "outcome", "end_time_s", "run_time_s", "exit_code", "signal", "outcome_text", "kept_s")
    OFFER_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_S_FIELD_NUMBER: _ClassVar[int]
    RUN_TIME_S_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_TEXT_FIELD_NUMBER: _ClassVar[int]
    KEPT_S_FIELD_NUMBER: _ClassVar[int]
    offer: OfferId
    outcome: _request_pb2.Outcome
    end_time_s: float
    run_time_s: float
    exit_code: int
    signal: int
    outcome_text: str
    kept_s: float
    def __init__(self, offer: _Optional[_Union[OfferId, _Mapping]] = ..., outcome: _Optional[_Union[_request_pb2.Outcome, str]] = ..., end_time_s: _Optional[float] = ..., run_time_s: _Optional[float] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., outcome_text: _Optional[str] = ..., kept_s: _Optional[float] = ...) -> None: ...

class ReportRequest(_message.Message):
    __slots__ = ("site", "completions")
    SITE_FIELD_NUMBER: _ClassVar[int]
    COMPLETIONS_FIELD_NUMBER: _ClassVar[int]
    site: str
    completions: _containers.RepeatedCompositeFieldContainer[Completion]
    def __init__(self, site: _Optional[str] = ..., completions: _Optional[_Iterable[_Union[Completion, _Mapping]]] = ...) -> None: ...

class ReportResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ProgressRequest(_message.Message):
    __slots__ = ("site", "offers")
    SITE_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    site: str
    offers: _containers.RepeatedCompositeFieldContainer[OfferId]
    def __init__(self, site: _Optional[str] = ..., offers: _Optional[_Iterable[_Union[OfferId, _Mapping]]] = ...) -> None: ...

class ProgressResponse(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[JobProgress]
    def __init__(self, jobs: _Optional[_Iterable[_Union[JobProgress, _Mapping]]] = ...) -> None: ...

class JobProgress(_message.Message):
    __slots__ = ("offer", "phase", "start_time_s", "since_s")
    OFFER_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_S_FIELD_NUMBER: _ClassVar[int]
    SINCE_S_FIELD_NUMBER: _ClassVar[int]
    offer: OfferId
    phase: _request_pb2.JobPhase
    start_time_s: float
    since_s: float
    def __init__(self, offer: _Optional[_Union[OfferId, _Mapping]] = ..., phase: _Optional[_Union[_request_pb2.JobPhase, str]] = ..., start_time_s: _Optional[float] = ..., since_s: _Optional[float] = ...) -> None: ...

class ListUsageRequest(_message.Message):
    __slots__ = ("site", "log", "after")
    SITE_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    site: str
    log: str
    after: int
    def __init__(self, site: _Optional[str] = ..., log: _Optional[str] = ..., after: _Optional[int] = ...) -> None: ...

class ListUsageResponse(_message.Message):
    __slots__ = ("log", "records", "more")
    LOG_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    log: str
    records: _containers.RepeatedCompositeFieldContainer[GuestUsage]
    more: bool
    def __init__(self, log: _Optional[str] = ..., records: _Optional[_Iterable[_Union[GuestUsage, _Mapping]]] = ..., more: bool = ...) -> None: ...

class GuestUsage(_message.Message):
    __slots__ = ("number", "offer", "owner", "processors", "memory_mib", "gpus", "requested_time_s", "accept_time_s", "start_time_s", "end_time_s", "run_time_s", "outcome", "exit_code", "signal")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_TIME_S_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_TIME_S_FIELD_NUMBER: _ClassVar[int]
    START_TIME_S_FIELD_NUMBER: _ClassVar[int]
    END_TIME_S_FIELD_NUMBER: _ClassVar[int]
    RUN_TIME_S_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    number: int
    offer: OfferId
    owner: str
    processors: int
    memory_mib: int
    gpus: int
    requested_time_s: float
    accept_time_s: float
    start_time_s: float
    end_time_s: float
    run_time_s: float
    outcome: _request_pb2.Outcome
    exit_code: int
    signal: int
    def __init__(self, number: _Optional[int] = ..., offer: _Optional[_Union[OfferId, _Mapping]] = ..., owner: _Optional[str] = ..., processors: _Optional[int] = ..., memory_mib: _Optional[int] = ..., gpus: _Optional[int] = ..., requested_time_s: _Optional[float] = ..., accept_time_s: _Optional[float] = ..., start_time_s: _Optional[float] = ..., end_time_s: _Optional[float] = ..., run_time_s: _Optional[float] = ..., outcome: _Optional[_Union[_request_pb2.Outcome, str]] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ...) -> None: ...

class ListGuestResultsRequest(_message.Message):
    __slots__ = ("site", "offer", "checkpoint")
    SITE_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    site: str
    offer: OfferId
    checkpoint: bool
    def __init__(self, site: _Optional[str] = ..., offer: _Optional[_Union[OfferId, _Mapping]] = ..., checkpoint: bool = ...) -> None: ...

class FetchGuestResultRequest(_message.Message):
    __slots__ = ("site", "offer", "name", "offset_bytes", "checkpoint")
    SITE_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    site: str
    offer: OfferId
    name: str
    offset_bytes: int
    checkpoint: bool
    def __init__(self, site: _Optional[str] = ..., offer: _Optional[_Union[OfferId, _Mapping]] = ..., name: _Optional[str] = ..., offset_bytes: _Optional[int] = ..., checkpoint: bool = ...) -> None: ...

class ReadGuestOutputRequest(_message.Message):
    __slots__ = ("site", "offer", "error", "offset_bytes")
    SITE_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OFFSET_BYTES_FIELD_NUMBER: _ClassVar[int]
    site: str
    offer: OfferId
    error: bool
    offset_bytes: int
    def __init__(self, site: _Optional[str] = ..., offer: _Optional[_Union[OfferId, _Mapping]] = ..., error: bool = ..., offset_bytes: _Optional[int] = ...) -> None: ...

class ReadGuestOutputResponse(_message.Message):
    __slots__ = ("content", "offset_bytes")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_BYTES_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    offset_bytes: int
    def __init__(self, content: _Optional[bytes] = ..., offset_bytes: _Optional[int] = ...) -> None: ...

class DropGuestResultsRequest(_message.Message):
    __slots__ = ("site", "offer", "files", "checkpoint")
    SITE_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    site: str
    offer: OfferId
    files: _containers.RepeatedCompositeFieldContainer[_results_pb2.ResultFile]
    checkpoint: bool
    def __init__(self, site: _Optional[str] = ..., offer: _Optional[_Union[OfferId, _Mapping]] = ..., files: _Optional[_Iterable[_Union[_results_pb2.ResultFile, _Mapping]]] = ..., checkpoint: bool = ...) -> None: ...

class DropGuestResultsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FetchProgramRequest(_message.Message):
    __slots__ = ("site", "offer")
    SITE_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    site: str
    offer: OfferId
    def __init__(self, site: _Optional[str] = ..., offer: _Optional[_Union[OfferId, _Mapping]] = ...) -> None: ...

class FetchProgramResponse(_message.Message):
    __slots__ = ("program", "owner", "user")
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    program: _request_pb2.Program
    owner: str
    user: str
    def __init__(self, program: _Optional[_Union[_request_pb2.Program, _Mapping]] = ..., owner: _Optional[str] = ..., user: _Optional[str] = ...) -> None: ...

class FetchInputRequest(_message.Message):
    __slots__ = ("site", "offer", "name", "offset_bytes")
    SITE_FIELD_NUMBER: _ClassVar[int]
    OFFER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_BYTES_FIELD_NUMBER: _ClassVar[int]
    site: str
    offer: OfferId
    name: str
    offset_bytes: int
    def __init__(self, site: _Optional[str] = ..., offer: _Optional[_Union[OfferId, _Mapping]] = ..., name: _Optional[str] = ..., offset_bytes: _Optional[int] = ...) -> None: ...
