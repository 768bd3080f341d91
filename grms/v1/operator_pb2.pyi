from grms.v1 import job_pb2 as _job_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PilotsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PilotStatus(_message.Message):
    __slots__ = ("resource_id", "state", "job_id", "processors", "host", "connected", "programs", "asked_time_s", "open_time_s", "until_s", "over_time_s", "reason", "held", "used")
    RESOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    ASKED_TIME_S_FIELD_NUMBER: _ClassVar[int]
    OPEN_TIME_S_FIELD_NUMBER: _ClassVar[int]
    UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    OVER_TIME_S_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    resource_id: str
    state: str
    job_id: str
    processors: int
    host: str
    connected: bool
    programs: int
    asked_time_s: float
    open_time_s: float
    until_s: float
    over_time_s: float
    reason: str
    held: float
    used: float
    def __init__(self, resource_id: _Optional[str] = ..., state: _Optional[str] = ..., job_id: _Optional[str] = ..., processors: _Optional[int] = ..., host: _Optional[str] = ..., connected: bool = ..., programs: _Optional[int] = ..., asked_time_s: _Optional[float] = ..., open_time_s: _Optional[float] = ..., until_s: _Optional[float] = ..., over_time_s: _Optional[float] = ..., reason: _Optional[str] = ..., held: _Optional[float] = ..., used: _Optional[float] = ...) -> None: ...

class PilotsResponse(_message.Message):
    __slots__ = ("pilots", "held", "used")
    PILOTS_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    pilots: _containers.RepeatedCompositeFieldContainer[PilotStatus]
    held: float
    used: float
    def __init__(self, pilots: _Optional[_Iterable[_Union[PilotStatus, _Mapping]]] = ..., held: _Optional[float] = ..., used: _Optional[float] = ...) -> None: ...

class OpenPagesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OpenPagesResponse(_message.Message):
    __slots__ = ("address", "seconds")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    address: str
    seconds: float
    def __init__(self, address: _Optional[str] = ..., seconds: _Optional[float] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ("site", "version", "now_s", "clock", "up_time_s", "draining", "lrms_reachable", "processors", "processors_free", "processors_waiting", "jobs", "guest_jobs", "journal_records", "journal_bytes", "telemetry_connected", "lrms_problem", "lrms_load_age_s", "lrms_commands_open", "circuit_breaker", "clock_ahead_s")
    class JobsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class GuestJobsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SITE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NOW_S_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    UP_TIME_S_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    LRMS_REACHABLE_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FREE_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_WAITING_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    GUEST_JOBS_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_RECORDS_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    TELEMETRY_CONNECTED_FIELD_NUMBER: _ClassVar[int]
    LRMS_PROBLEM_FIELD_NUMBER: _ClassVar[int]
    LRMS_LOAD_AGE_S_FIELD_NUMBER: _ClassVar[int]
    LRMS_COMMANDS_OPEN_FIELD_NUMBER: _ClassVar[int]
    CIRCUIT_BREAKER_FIELD_NUMBER: _ClassVar[int]
    CLOCK_AHEAD_S_FIELD_NUMBER: _ClassVar[int]
    site: str
    version: str
    now_s: float
    clock: str
    up_time_s: float
    draining: bool
    lrms_reachable: bool
    processors: int
    processors_free: int
    processors_waiting: int
    jobs: _containers.ScalarMap[str, int]
    guest_jobs: _containers.ScalarMap[str, int]
    journal_records: int
    journal_bytes: int
    telemetry_connected: bool
    lrms_problem: str
    lrms_load_age_s: float
    lrms_commands_open: int
    circuit_breaker: CircuitBreakerStatus
    clock_ahead_s: float
    def __init__(self, site: _Optional[str] = ..., version: _Optional[str] = ..., now_s: _Optional[float] = ..., clock: _Optional[str] = ..., up_time_s: _Optional[float] = ..., draining: bool = ..., lrms_reachable: bool = ..., processors: _Optional[int] = ..., processors_free: _Optional[int] = ..., processors_waiting: _Optional[int] = ..., jobs: _Optional[_Mapping[str, int]] = ..., guest_jobs: _Optional[_Mapping[str, int]] = ..., journal_records: _Optional[int] = ..., journal_bytes: _Optional[int] = ..., telemetry_connected: bool = ..., lrms_problem: _Optional[str] = ..., lrms_load_age_s: _Optional[float] = ..., lrms_commands_open: _Optional[int] = ..., circuit_breaker: _Optional[_Union[CircuitBreakerStatus, _Mapping]] = ..., clock_ahead_s: _Optional[float] = ...) -> None: ...

class CircuitBreakerStatus(_message.Message):
    __slots__ = ("stops", "stopped_since_s", "looked_s", "jobs", "jobs_min", "improvement_percent", "cost")
    STOPS_FIELD_NUMBER: _ClassVar[int]
    STOPPED_SINCE_S_FIELD_NUMBER: _ClassVar[int]
    LOOKED_S_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    JOBS_MIN_FIELD_NUMBER: _ClassVar[int]
    IMPROVEMENT_PERCENT_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    stops: bool
    stopped_since_s: float
    looked_s: float
    jobs: int
    jobs_min: int
    improvement_percent: float
    cost: float
    def __init__(self, stops: bool = ..., stopped_since_s: _Optional[float] = ..., looked_s: _Optional[float] = ..., jobs: _Optional[int] = ..., jobs_min: _Optional[int] = ..., improvement_percent: _Optional[float] = ..., cost: _Optional[float] = ...) -> None: ...

class PartnersRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PartnersResponse(_message.Message):
    __slots__ = ("partners",)
    PARTNERS_FIELD_NUMBER: _ClassVar[int]
    partners: _containers.RepeatedCompositeFieldContainer[PartnerStatus]
    def __init__(self, partners: _Optional[_Iterable[_Union[PartnerStatus, _Mapping]]] = ...) -> None: ...

class PartnerStatus(_message.Message):
    __slots__ = ("name", "endpoint", "processors", "reachable", "lost", "last_heard_s", "offered", "accepted", "ended", "open", "awrt_s", "guest_offered", "guest_accepted", "guest_open", "problem", "faulty", "faults", "incompatible", "disbelieved", "distrust", "disputed", "taken", "given", "credit", "breaches", "overdue", "suspended_until_s", "guest_owners", "unused_acceptances", "declined_for_unused", "taken_month", "given_month", "declined_limited", "way", "tunnels")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    REACHABLE_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARD_S_FIELD_NUMBER: _ClassVar[int]
    OFFERED_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    AWRT_S_FIELD_NUMBER: _ClassVar[int]
    GUEST_OFFERED_FIELD_NUMBER: _ClassVar[int]
    GUEST_ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    GUEST_OPEN_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    FAULTY_FIELD_NUMBER: _ClassVar[int]
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    INCOMPATIBLE_FIELD_NUMBER: _ClassVar[int]
    DISBELIEVED_FIELD_NUMBER: _ClassVar[int]
    DISTRUST_FIELD_NUMBER: _ClassVar[int]
    DISPUTED_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    BREACHES_FIELD_NUMBER: _ClassVar[int]
    OVERDUE_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    GUEST_OWNERS_FIELD_NUMBER: _ClassVar[int]
    UNUSED_ACCEPTANCES_FIELD_NUMBER: _ClassVar[int]
    DECLINED_FOR_UNUSED_FIELD_NUMBER: _ClassVar[int]
    TAKEN_MONTH_FIELD_NUMBER: _ClassVar[int]
    GIVEN_MONTH_FIELD_NUMBER: _ClassVar[int]
    DECLINED_LIMITED_FIELD_NUMBER: _ClassVar[int]
    WAY_FIELD_NUMBER: _ClassVar[int]
    TUNNELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    endpoint: str
    processors: int
    reachable: bool
    lost: bool
    last_heard_s: float
    offered: int
    accepted: int
    ended: int
    open: int
    awrt_s: float
    guest_offered: int
    guest_accepted: int
    guest_open: int
    problem: str
    faulty: bool
    faults: int
    incompatible: int
    disbelieved: int
    distrust: int
    disputed: int
    taken: float
    given: float
    credit: float
    breaches: int
    overdue: int
    suspended_until_s: float
    guest_owners: _containers.RepeatedCompositeFieldContainer[GuestOwner]
    unused_acceptances: int
    declined_for_unused: int
    taken_month: MonthStanding
    given_month: MonthStanding
    declined_limited: int
    way: str
    tunnels: int
    def __init__(self, name: _Optional[str] = ..., endpoint: _Optional[str] = ..., processors: _Optional[int] = ..., reachable: bool = ..., lost: bool = ..., last_heard_s: _Optional[float] = ..., offered: _Optional[int] = ..., accepted: _Optional[int] = ..., ended: _Optional[int] = ..., open: _Optional[int] = ..., awrt_s: _Optional[float] = ..., guest_offered: _Optional[int] = ..., guest_accepted: _Optional[int] = ..., guest_open: _Optional[int] = ..., problem: _Optional[str] = ..., faulty: bool = ..., faults: _Optional[int] = ..., incompatible: _Optional[int] = ..., disbelieved: _Optional[int] = ..., distrust: _Optional[int] = ..., disputed: _Optional[int] = ..., taken: _Optional[float] = ..., given: _Optional[float] = ..., credit: _Optional[float] = ..., breaches: _Optional[int] = ..., overdue: _Optional[int] = ..., suspended_until_s: _Optional[float] = ..., guest_owners: _Optional[_Iterable[_Union[GuestOwner, _Mapping]]] = ..., unused_acceptances: _Optional[int] = ..., declined_for_unused: _Optional[int] = ..., taken_month: _Optional[_Union[MonthStanding, _Mapping]] = ..., given_month: _Optional[_Union[MonthStanding, _Mapping]] = ..., declined_limited: _Optional[int] = ..., way: _Optional[str] = ..., tunnels: _Optional[int] = ...) -> None: ...

class MonthStanding(_message.Message):
    __slots__ = ("month", "used", "open", "limit")
    MONTH_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    month: str
    used: float
    open: float
    limit: float
    def __init__(self, month: _Optional[str] = ..., used: _Optional[float] = ..., open: _Optional[float] = ..., limit: _Optional[float] = ...) -> None: ...

class GuestsRequest(_message.Message):
    __slots__ = ("partner",)
    PARTNER_FIELD_NUMBER: _ClassVar[int]
    partner: str
    def __init__(self, partner: _Optional[str] = ...) -> None: ...

class GuestsResponse(_message.Message):
    __slots__ = ("guests", "users", "now_s")
    GUESTS_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    NOW_S_FIELD_NUMBER: _ClassVar[int]
    guests: _containers.RepeatedCompositeFieldContainer[Guest]
    users: _containers.RepeatedCompositeFieldContainer[GuestUser]
    now_s: float
    def __init__(self, guests: _Optional[_Iterable[_Union[Guest, _Mapping]]] = ..., users: _Optional[_Iterable[_Union[GuestUser, _Mapping]]] = ..., now_s: _Optional[float] = ...) -> None: ...

class Guest(_message.Message):
    __slots__ = ("key", "partner", "pseudonym", "state", "processors", "memory_mib", "gpus", "requested_time_s", "accept_time_s", "start_time_s", "since_s", "cost", "reason")
    KEY_FIELD_NUMBER: _ClassVar[int]
    PARTNER_FIELD_NUMBER: _ClassVar[int]
    PSEUDONYM_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_TIME_S_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_TIME_S_FIELD_NUMBER: _ClassVar[int]
    START_TIME_S_FIELD_NUMBER: _ClassVar[int]
    SINCE_S_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    key: str
    partner: str
    pseudonym: str
    state: str
    processors: int
    memory_mib: int
    gpus: int
    requested_time_s: float
    accept_time_s: float
    start_time_s: float
    since_s: float
    cost: float
    reason: str
    def __init__(self, key: _Optional[str] = ..., partner: _Optional[str] = ..., pseudonym: _Optional[str] = ..., state: _Optional[str] = ..., processors: _Optional[int] = ..., memory_mib: _Optional[int] = ..., gpus: _Optional[int] = ..., requested_time_s: _Optional[float] = ..., accept_time_s: _Optional[float] = ..., start_time_s: _Optional[float] = ..., since_s: _Optional[float] = ..., cost: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...

class GuestUser(_message.Message):
    __slots__ = ("partner", "pseudonym", "month")
    PARTNER_FIELD_NUMBER: _ClassVar[int]
    PSEUDONYM_FIELD_NUMBER: _ClassVar[int]
    MONTH_FIELD_NUMBER: _ClassVar[int]
    partner: str
    pseudonym: str
    month: MonthStanding
    def __init__(self, partner: _Optional[str] = ..., pseudonym: _Optional[str] = ..., month: _Optional[_Union[MonthStanding, _Mapping]] = ...) -> None: ...

class GuestOwner(_message.Message):
    __slots__ = ("pseudonym", "jobs")
    PSEUDONYM_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    pseudonym: str
    jobs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pseudonym: _Optional[str] = ..., jobs: _Optional[_Iterable[str]] = ...) -> None: ...

class PardonRequest(_message.Message):
    __slots__ = ("partner",)
    PARTNER_FIELD_NUMBER: _ClassVar[int]
    partner: str
    def __init__(self, partner: _Optional[str] = ...) -> None: ...

class PardonResponse(_message.Message):
    __slots__ = ("partner", "breaches")
    PARTNER_FIELD_NUMBER: _ClassVar[int]
    BREACHES_FIELD_NUMBER: _ClassVar[int]
    partner: str
    breaches: int
    def __init__(self, partner: _Optional[str] = ..., breaches: _Optional[int] = ...) -> None: ...

class ReloadPoliciesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReloadPoliciesResponse(_message.Message):
    __slots__ = ("policies", "restart_needed")
    class PoliciesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    RESTART_NEEDED_FIELD_NUMBER: _ClassVar[int]
    policies: _containers.ScalarMap[str, str]
    restart_needed: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, policies: _Optional[_Mapping[str, str]] = ..., restart_needed: _Optional[_Iterable[str]] = ...) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResumeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class InterveneRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...
