from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StepKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_KIND_UNSPECIFIED: _ClassVar[StepKind]
    STEP_KIND_CLOCK: _ClassVar[StepKind]
    STEP_KIND_DUE: _ClassVar[StepKind]
    STEP_KIND_ACCOUNT: _ClassVar[StepKind]
STEP_KIND_UNSPECIFIED: StepKind
STEP_KIND_CLOCK: StepKind
STEP_KIND_DUE: StepKind
STEP_KIND_ACCOUNT: StepKind

class LoadRequest(_message.Message):
    __slots__ = ("replay_id", "jobs_total", "submit_time_s", "processors", "requested_time_s", "run_time_s", "user_group", "place")
    REPLAY_ID_FIELD_NUMBER: _ClassVar[int]
    JOBS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_TIME_S_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_TIME_S_FIELD_NUMBER: _ClassVar[int]
    RUN_TIME_S_FIELD_NUMBER: _ClassVar[int]
    USER_GROUP_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    replay_id: str
    jobs_total: int
    submit_time_s: _containers.RepeatedScalarFieldContainer[float]
    processors: _containers.RepeatedScalarFieldContainer[int]
    requested_time_s: _containers.RepeatedScalarFieldContainer[float]
    run_time_s: _containers.RepeatedScalarFieldContainer[float]
    user_group: _containers.RepeatedScalarFieldContainer[int]
    place: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, replay_id: _Optional[str] = ..., jobs_total: _Optional[int] = ..., submit_time_s: _Optional[_Iterable[float]] = ..., processors: _Optional[_Iterable[int]] = ..., requested_time_s: _Optional[_Iterable[float]] = ..., run_time_s: _Optional[_Iterable[float]] = ..., user_group: _Optional[_Iterable[int]] = ..., place: _Optional[_Iterable[int]] = ...) -> None: ...

class LoadResponse(_message.Message):
    __slots__ = ("rows_arrived", "now_s")
    ROWS_ARRIVED_FIELD_NUMBER: _ClassVar[int]
    NOW_S_FIELD_NUMBER: _ClassVar[int]
    rows_arrived: int
    now_s: float
    def __init__(self, rows_arrived: _Optional[int] = ..., now_s: _Optional[float] = ...) -> None: ...

class AdvanceRequest(_message.Message):
    __slots__ = ("to_s",)
    TO_S_FIELD_NUMBER: _ClassVar[int]
    to_s: float
    def __init__(self, to_s: _Optional[float] = ...) -> None: ...

class AdvanceResponse(_message.Message):
    __slots__ = ("next_event_time_s", "next_report_time_s", "waits")
    NEXT_EVENT_TIME_S_FIELD_NUMBER: _ClassVar[int]
    NEXT_REPORT_TIME_S_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    next_event_time_s: float
    next_report_time_s: float
    waits: bool
    def __init__(self, next_event_time_s: _Optional[float] = ..., next_report_time_s: _Optional[float] = ..., waits: bool = ...) -> None: ...

class ArriveRequest(_message.Message):
    __slots__ = ("first_row", "rows")
    FIRST_ROW_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    first_row: int
    rows: int
    def __init__(self, first_row: _Optional[int] = ..., rows: _Optional[int] = ...) -> None: ...

class ArriveResponse(_message.Message):
    __slots__ = ("executed_on", "next_event_time_s", "next_report_time_s", "waits")
    EXECUTED_ON_FIELD_NUMBER: _ClassVar[int]
    NEXT_EVENT_TIME_S_FIELD_NUMBER: _ClassVar[int]
    NEXT_REPORT_TIME_S_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    executed_on: _containers.RepeatedScalarFieldContainer[str]
    next_event_time_s: float
    next_report_time_s: float
    waits: bool
    def __init__(self, executed_on: _Optional[_Iterable[str]] = ..., next_event_time_s: _Optional[float] = ..., next_report_time_s: _Optional[float] = ..., waits: bool = ...) -> None: ...

class HoldRoundRequest(_message.Message):
    __slots__ = ("at_s",)
    AT_S_FIELD_NUMBER: _ClassVar[int]
    at_s: float
    def __init__(self, at_s: _Optional[float] = ...) -> None: ...

class HoldRoundResponse(_message.Message):
    __slots__ = ("moved", "next_event_time_s", "next_report_time_s", "waits")
    MOVED_FIELD_NUMBER: _ClassVar[int]
    NEXT_EVENT_TIME_S_FIELD_NUMBER: _ClassVar[int]
    NEXT_REPORT_TIME_S_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    moved: _containers.RepeatedCompositeFieldContainer[MovedRow]
    next_event_time_s: float
    next_report_time_s: float
    waits: bool
    def __init__(self, moved: _Optional[_Iterable[_Union[MovedRow, _Mapping]]] = ..., next_event_time_s: _Optional[float] = ..., next_report_time_s: _Optional[float] = ..., waits: bool = ...) -> None: ...

class StepRequest(_message.Message):
    __slots__ = ("at_s", "kind")
    AT_S_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    at_s: float
    kind: StepKind
    def __init__(self, at_s: _Optional[float] = ..., kind: _Optional[_Union[StepKind, str]] = ...) -> None: ...

class StepResponse(_message.Message):
    __slots__ = ("next_event_time_s", "waits", "sent_home")
    NEXT_EVENT_TIME_S_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    SENT_HOME_FIELD_NUMBER: _ClassVar[int]
    next_event_time_s: float
    waits: bool
    sent_home: bool
    def __init__(self, next_event_time_s: _Optional[float] = ..., waits: bool = ..., sent_home: bool = ...) -> None: ...

class MovedRow(_message.Message):
    __slots__ = ("row", "executed_on")
    ROW_FIELD_NUMBER: _ClassVar[int]
    EXECUTED_ON_FIELD_NUMBER: _ClassVar[int]
    row: int
    executed_on: str
    def __init__(self, row: _Optional[int] = ..., executed_on: _Optional[str] = ...) -> None: ...

class FinishRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FinishResponse(_message.Message):
    __slots__ = ("own", "guests")
    OWN_FIELD_NUMBER: _ClassVar[int]
    GUESTS_FIELD_NUMBER: _ClassVar[int]
    own: _containers.RepeatedCompositeFieldContainer[OwnRow]
    guests: _containers.RepeatedCompositeFieldContainer[GuestRow]
    def __init__(self, own: _Optional[_Iterable[_Union[OwnRow, _Mapping]]] = ..., guests: _Optional[_Iterable[_Union[GuestRow, _Mapping]]] = ...) -> None: ...

class OwnRow(_message.Message):
    __slots__ = ("row", "executed_on", "offer_number", "start_time_s", "end_time_s")
    ROW_FIELD_NUMBER: _ClassVar[int]
    EXECUTED_ON_FIELD_NUMBER: _ClassVar[int]
    OFFER_NUMBER_FIELD_NUMBER: _ClassVar[int]
    START_TIME_S_FIELD_NUMBER: _ClassVar[int]
    END_TIME_S_FIELD_NUMBER: _ClassVar[int]
    row: int
    executed_on: str
    offer_number: int
    start_time_s: float
    end_time_s: float
    def __init__(self, row: _Optional[int] = ..., executed_on: _Optional[str] = ..., offer_number: _Optional[int] = ..., start_time_s: _Optional[float] = ..., end_time_s: _Optional[float] = ...) -> None: ...

class GuestRow(_message.Message):
    __slots__ = ("home", "offer_number", "start_time_s", "end_time_s")
    HOME_FIELD_NUMBER: _ClassVar[int]
    OFFER_NUMBER_FIELD_NUMBER: _ClassVar[int]
    START_TIME_S_FIELD_NUMBER: _ClassVar[int]
    END_TIME_S_FIELD_NUMBER: _ClassVar[int]
    home: str
    offer_number: int
    start_time_s: float
    end_time_s: float
    def __init__(self, home: _Optional[str] = ..., offer_number: _Optional[int] = ..., start_time_s: _Optional[float] = ..., end_time_s: _Optional[float] = ...) -> None: ...
