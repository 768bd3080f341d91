from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FileProblem(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FILE_PROBLEM_UNSPECIFIED: _ClassVar[FileProblem]
    FILE_PROBLEM_MISSING: _ClassVar[FileProblem]
    FILE_PROBLEM_NO_FILE: _ClassVar[FileProblem]
    FILE_PROBLEM_TOO_LARGE: _ClassVar[FileProblem]
FILE_PROBLEM_UNSPECIFIED: FileProblem
FILE_PROBLEM_MISSING: FileProblem
FILE_PROBLEM_NO_FILE: FileProblem
FILE_PROBLEM_TOO_LARGE: FileProblem

class ResultFile(_message.Message):
    __slots__ = ("name", "size_bytes", "sha256", "problem", "mode", "written_as")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_AS_FIELD_NUMBER: _ClassVar[int]
    name: str
    size_bytes: int
    sha256: bytes
    problem: FileProblem
    mode: int
    written_as: str
    def __init__(self, name: _Optional[str] = ..., size_bytes: _Optional[int] = ..., sha256: _Optional[bytes] = ..., problem: _Optional[_Union[FileProblem, str]] = ..., mode: _Optional[int] = ..., written_as: _Optional[str] = ...) -> None: ...

class ResultList(_message.Message):
    __slots__ = ("files", "complete", "problem", "folder", "kept_until_s", "other_files", "other_bytes", "left_out", "append")
    FILES_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    KEPT_UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    OTHER_FILES_FIELD_NUMBER: _ClassVar[int]
    OTHER_BYTES_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[ResultFile]
    complete: bool
    problem: str
    folder: str
    kept_until_s: float
    other_files: int
    other_bytes: int
    left_out: int
    append: bool
    def __init__(self, files: _Optional[_Iterable[_Union[ResultFile, _Mapping]]] = ..., complete: bool = ..., problem: _Optional[str] = ..., folder: _Optional[str] = ..., kept_until_s: _Optional[float] = ..., other_files: _Optional[int] = ..., other_bytes: _Optional[int] = ..., left_out: _Optional[int] = ..., append: bool = ...) -> None: ...

class ResultChunk(_message.Message):
    __slots__ = ("content",)
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    def __init__(self, content: _Optional[bytes] = ...) -> None: ...
