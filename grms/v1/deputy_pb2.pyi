from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ServeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeputyOrder(_message.Message):
    __slots__ = ("order_id", "program", "arguments", "environment", "folder", "umask", "until_s")
    class EnvironmentEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ORDER_ID_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    UMASK_FIELD_NUMBER: _ClassVar[int]
    UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    order_id: str
    program: str
    arguments: _containers.RepeatedScalarFieldContainer[str]
    environment: _containers.ScalarMap[str, str]
    folder: str
    umask: int
    until_s: float
    def __init__(self, order_id: _Optional[str] = ..., program: _Optional[str] = ..., arguments: _Optional[_Iterable[str]] = ..., environment: _Optional[_Mapping[str, str]] = ..., folder: _Optional[str] = ..., umask: _Optional[int] = ..., until_s: _Optional[float] = ...) -> None: ...

class DeputyAnswer(_message.Message):
    __slots__ = ("order_id", "end", "refused", "unknown")
    ORDER_ID_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    order_id: str
    end: DeputyEnd
    refused: str
    unknown: str
    def __init__(self, order_id: _Optional[str] = ..., end: _Optional[_Union[DeputyEnd, _Mapping]] = ..., refused: _Optional[str] = ..., unknown: _Optional[str] = ...) -> None: ...

class DeputyEnd(_message.Message):
    __slots__ = ("code", "output", "error")
    CODE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    code: int
    output: bytes
    error: str
    def __init__(self, code: _Optional[int] = ..., output: _Optional[bytes] = ..., error: _Optional[str] = ...) -> None: ...

class DeputyAnswerTaken(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeputyLookRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeputyLook(_message.Message):
    __slots__ = ("wanted", "present", "jobs_open", "deputies")
    WANTED_FIELD_NUMBER: _ClassVar[int]
    PRESENT_FIELD_NUMBER: _ClassVar[int]
    JOBS_OPEN_FIELD_NUMBER: _ClassVar[int]
    DEPUTIES_FIELD_NUMBER: _ClassVar[int]
    wanted: bool
    present: bool
    jobs_open: int
    deputies: _containers.RepeatedCompositeFieldContainer[DeputyPresence]
    def __init__(self, wanted: bool = ..., present: bool = ..., jobs_open: _Optional[int] = ..., deputies: _Optional[_Iterable[_Union[DeputyPresence, _Mapping]]] = ...) -> None: ...

class DeputyPresence(_message.Message):
    __slots__ = ("user", "problem")
    USER_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    user: str
    problem: str
    def __init__(self, user: _Optional[str] = ..., problem: _Optional[str] = ...) -> None: ...
