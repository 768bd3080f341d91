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

class ReservationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESERVATION_STATE_UNSPECIFIED: _ClassVar[ReservationState]
    RESERVATION_STATE_BOOKED: _ClassVar[ReservationState]
    RESERVATION_STATE_LAUNCHED: _ClassVar[ReservationState]
    RESERVATION_STATE_RUNNING: _ClassVar[ReservationState]
    RESERVATION_STATE_ENDED: _ClassVar[ReservationState]
    RESERVATION_STATE_RELEASED: _ClassVar[ReservationState]
    RESERVATION_STATE_EXPIRED: _ClassVar[ReservationState]
RESERVATION_STATE_UNSPECIFIED: ReservationState
RESERVATION_STATE_BOOKED: ReservationState
RESERVATION_STATE_LAUNCHED: ReservationState
RESERVATION_STATE_RUNNING: ReservationState
RESERVATION_STATE_ENDED: ReservationState
RESERVATION_STATE_RELEASED: ReservationState
RESERVATION_STATE_EXPIRED: ReservationState

class Window(_message.Message):
    __slots__ = ("begin_s", "end_s")
    BEGIN_S_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    begin_s: float
    end_s: float
    def __init__(self, begin_s: _Optional[float] = ..., end_s: _Optional[float] = ...) -> None: ...

class Resource(_message.Message):
    __slots__ = ("resource_id", "labels", "processors", "speed", "cost_per_hour")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    SPEED_FIELD_NUMBER: _ClassVar[int]
    COST_PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    resource_id: str
    labels: _containers.ScalarMap[str, str]
    processors: int
    speed: float
    cost_per_hour: float
    def __init__(self, resource_id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., processors: _Optional[int] = ..., speed: _Optional[float] = ..., cost_per_hour: _Optional[float] = ...) -> None: ...

class ResourceOfferRequest(_message.Message):
    __slots__ = ("window", "labels", "wanted")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    window: Window
    labels: _containers.ScalarMap[str, str]
    wanted: bool
    def __init__(self, window: _Optional[_Union[Window, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., wanted: bool = ...) -> None: ...

class FreeTime(_message.Message):
    __slots__ = ("window", "processors")
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    window: Window
    processors: int
    def __init__(self, window: _Optional[_Union[Window, _Mapping]] = ..., processors: _Optional[int] = ...) -> None: ...

class ResourceOffer(_message.Message):
    __slots__ = ("resource", "free", "groups")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    resource: Resource
    free: _containers.RepeatedCompositeFieldContainer[FreeTime]
    groups: bool
    def __init__(self, resource: _Optional[_Union[Resource, _Mapping]] = ..., free: _Optional[_Iterable[_Union[FreeTime, _Mapping]]] = ..., groups: bool = ...) -> None: ...

class ResourceOfferResponse(_message.Message):
    __slots__ = ("offers",)
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    offers: _containers.RepeatedCompositeFieldContainer[ResourceOffer]
    def __init__(self, offers: _Optional[_Iterable[_Union[ResourceOffer, _Mapping]]] = ...) -> None: ...

class Reservation(_message.Message):
    __slots__ = ("reservation_id", "resource_id", "window", "processors", "state", "start_time_s", "end_time_s", "outcome", "cost", "revision", "exit_code", "signal", "reason")
    RESERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_S_FIELD_NUMBER: _ClassVar[int]
    END_TIME_S_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    reservation_id: str
    resource_id: str
    window: Window
    processors: int
    state: ReservationState
    start_time_s: float
    end_time_s: float
    outcome: _request_pb2.Outcome
    cost: float
    revision: int
    exit_code: int
    signal: int
    reason: str
    def __init__(self, reservation_id: _Optional[str] = ..., resource_id: _Optional[str] = ..., window: _Optional[_Union[Window, _Mapping]] = ..., processors: _Optional[int] = ..., state: _Optional[_Union[ReservationState, str]] = ..., start_time_s: _Optional[float] = ..., end_time_s: _Optional[float] = ..., outcome: _Optional[_Union[_request_pb2.Outcome, str]] = ..., cost: _Optional[float] = ..., revision: _Optional[int] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class BookRequest(_message.Message):
    __slots__ = ("idempotency_key", "resource_id", "window", "processors")
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    idempotency_key: str
    resource_id: str
    window: Window
    processors: int
    def __init__(self, idempotency_key: _Optional[str] = ..., resource_id: _Optional[str] = ..., window: _Optional[_Union[Window, _Mapping]] = ..., processors: _Optional[int] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("reservation_id", "unless_begun")
    RESERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    UNLESS_BEGUN_FIELD_NUMBER: _ClassVar[int]
    reservation_id: str
    unless_begun: bool
    def __init__(self, reservation_id: _Optional[str] = ..., unless_begun: bool = ...) -> None: ...

class LaunchRequest(_message.Message):
    __slots__ = ("idempotency_key", "reservation_id", "job", "to_the_end", "estimate_s")
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    TO_THE_END_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_S_FIELD_NUMBER: _ClassVar[int]
    idempotency_key: str
    reservation_id: str
    job: _request_pb2.JobRequest
    to_the_end: bool
    estimate_s: float
    def __init__(self, idempotency_key: _Optional[str] = ..., reservation_id: _Optional[str] = ..., job: _Optional[_Union[_request_pb2.JobRequest, _Mapping]] = ..., to_the_end: bool = ..., estimate_s: _Optional[float] = ...) -> None: ...

class LaunchGroupRequest(_message.Message):
    __slots__ = ("resource_id", "window", "processors", "programs")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    resource_id: str
    window: Window
    processors: int
    programs: _containers.RepeatedCompositeFieldContainer[GroupedProgram]
    def __init__(self, resource_id: _Optional[str] = ..., window: _Optional[_Union[Window, _Mapping]] = ..., processors: _Optional[int] = ..., programs: _Optional[_Iterable[_Union[GroupedProgram, _Mapping]]] = ...) -> None: ...

class GroupedProgram(_message.Message):
    __slots__ = ("idempotency_key", "job", "estimate_s")
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_S_FIELD_NUMBER: _ClassVar[int]
    idempotency_key: str
    job: _request_pb2.JobRequest
    estimate_s: float
    def __init__(self, idempotency_key: _Optional[str] = ..., job: _Optional[_Union[_request_pb2.JobRequest, _Mapping]] = ..., estimate_s: _Optional[float] = ...) -> None: ...

class LaunchGroupResponse(_message.Message):
    __slots__ = ("programs",)
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    programs: _containers.RepeatedCompositeFieldContainer[GroupedAnswer]
    def __init__(self, programs: _Optional[_Iterable[_Union[GroupedAnswer, _Mapping]]] = ...) -> None: ...

class GroupedAnswer(_message.Message):
    __slots__ = ("reservation", "refused")
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    reservation: Reservation
    refused: str
    def __init__(self, reservation: _Optional[_Union[Reservation, _Mapping]] = ..., refused: _Optional[str] = ...) -> None: ...

class MoveRequest(_message.Message):
    __slots__ = ("reservation_id", "old_window", "new_window")
    RESERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    OLD_WINDOW_FIELD_NUMBER: _ClassVar[int]
    NEW_WINDOW_FIELD_NUMBER: _ClassVar[int]
    reservation_id: str
    old_window: Window
    new_window: Window
    def __init__(self, reservation_id: _Optional[str] = ..., old_window: _Optional[_Union[Window, _Mapping]] = ..., new_window: _Optional[_Union[Window, _Mapping]] = ...) -> None: ...

class WatchReservationsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReservationResultsRequest(_message.Message):
    __slots__ = ("reservation_id",)
    RESERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    reservation_id: str
    def __init__(self, reservation_id: _Optional[str] = ...) -> None: ...

class FetchReservationResultRequest(_message.Message):
    __slots__ = ("reservation_id", "name", "offset_bytes")
    RESERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_BYTES_FIELD_NUMBER: _ClassVar[int]
    reservation_id: str
    name: str
    offset_bytes: int
    def __init__(self, reservation_id: _Optional[str] = ..., name: _Optional[str] = ..., offset_bytes: _Optional[int] = ...) -> None: ...
