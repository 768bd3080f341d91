from broker.v1 import workflow_pb2 as _workflow_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WeeklyWindow(_message.Message):
    __slots__ = ("begin_s", "end_s", "weekdays")
    BEGIN_S_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    WEEKDAYS_FIELD_NUMBER: _ClassVar[int]
    begin_s: float
    end_s: float
    weekdays: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, begin_s: _Optional[float] = ..., end_s: _Optional[float] = ..., weekdays: _Optional[_Iterable[int]] = ...) -> None: ...

class PriceRule(_message.Message):
    __slots__ = ("price", "window")
    PRICE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    price: float
    window: WeeklyWindow
    def __init__(self, price: _Optional[float] = ..., window: _Optional[_Union[WeeklyWindow, _Mapping]] = ...) -> None: ...

class Closure(_message.Message):
    __slots__ = ("begin_s", "end_s")
    BEGIN_S_FIELD_NUMBER: _ClassVar[int]
    END_S_FIELD_NUMBER: _ClassVar[int]
    begin_s: float
    end_s: float
    def __init__(self, begin_s: _Optional[float] = ..., end_s: _Optional[float] = ...) -> None: ...

class Resource(_message.Message):
    __slots__ = ("name", "kind", "performance", "price", "price_rules", "opening", "closures", "capacity", "utc_offset_s", "site", "site_resource", "broken", "requires", "groups")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PERFORMANCE_FIELD_NUMBER: _ClassVar[int]
    PRICE_FIELD_NUMBER: _ClassVar[int]
    PRICE_RULES_FIELD_NUMBER: _ClassVar[int]
    OPENING_FIELD_NUMBER: _ClassVar[int]
    CLOSURES_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    UTC_OFFSET_S_FIELD_NUMBER: _ClassVar[int]
    SITE_FIELD_NUMBER: _ClassVar[int]
    SITE_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    BROKEN_FIELD_NUMBER: _ClassVar[int]
    REQUIRES_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    performance: float
    price: float
    price_rules: _containers.RepeatedCompositeFieldContainer[PriceRule]
    opening: _containers.RepeatedCompositeFieldContainer[WeeklyWindow]
    closures: _containers.RepeatedCompositeFieldContainer[Closure]
    capacity: int
    utc_offset_s: float
    site: str
    site_resource: str
    broken: bool
    requires: _containers.RepeatedCompositeFieldContainer[_workflow_pb2.Demand]
    groups: bool
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., performance: _Optional[float] = ..., price: _Optional[float] = ..., price_rules: _Optional[_Iterable[_Union[PriceRule, _Mapping]]] = ..., opening: _Optional[_Iterable[_Union[WeeklyWindow, _Mapping]]] = ..., closures: _Optional[_Iterable[_Union[Closure, _Mapping]]] = ..., capacity: _Optional[int] = ..., utc_offset_s: _Optional[float] = ..., site: _Optional[str] = ..., site_resource: _Optional[str] = ..., broken: bool = ..., requires: _Optional[_Iterable[_Union[_workflow_pb2.Demand, _Mapping]]] = ..., groups: bool = ...) -> None: ...

class RegisterRequest(_message.Message):
    __slots__ = ("resource",)
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    resource: Resource
    def __init__(self, resource: _Optional[_Union[Resource, _Mapping]] = ...) -> None: ...

class UpdateRequest(_message.Message):
    __slots__ = ("resource",)
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    resource: Resource
    def __init__(self, resource: _Optional[_Union[Resource, _Mapping]] = ...) -> None: ...

class RemoveRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class RemoveResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListResourcesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListResourcesResponse(_message.Message):
    __slots__ = ("resources",)
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.RepeatedCompositeFieldContainer[Resource]
    def __init__(self, resources: _Optional[_Iterable[_Union[Resource, _Mapping]]] = ...) -> None: ...
