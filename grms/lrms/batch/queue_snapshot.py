"""The result of polling any batch system. Pure data.

Batch systems number jobs, and some reuse a number after a crash. So a job is identified by its name, which is
unique to this site and job, with number and moment of submission.
"""

from dataclasses import dataclass, field

from grms.lrms.base import LrmsEnd, LrmsPhase
from grms.lrms.exit_status import ScriptEnd
from grms.lrms.immediate_start import QueuePlan
from grms.lrms.nodes import NodeTable
from grms.lrms.partitions import NO_PARTITIONS, Partitions
from lrms_sim.workload.requests import Request


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job of this site in the batch system's queue.

    Attributes:
        name: from `encode`.
        number: the batch system's own id.
        submit_time: seconds since 1970; `None` if unknown.
        processors: requested or held.
        start_time: of its present or last run, seconds; `None` if it has not started.
        end: as far as the queue says; `None` if it has not ended.
        exact: `end` is complete.
        reason: of its state, in the batch system's words.
        can_start: it waits only for processors, if the site has enough of them.
        hindered: what it waits for other than room, for people.
        deferred: it waits for a moment, or for another job, as somebody has told the batch system.
        request: all that it asks for; `None` if this process has not submitted it.
        partition: in which it is, or several joined by commas; empty if the batch system has none.
        nodes: on which it runs, as far as the batch system says.
        in_array: the batch system has it under the name of the array in which it was submitted; `name` is what it is to have.
        known_as: the key of the job where its name has that of an earlier submission, or none, as somebody has renamed it;
            empty if its name has its own.
    """

    name: str
    number: str
    submit_time: float | None
    phase: LrmsPhase
    processors: int
    start_time: float | None = None
    end: LrmsEnd | None = None
    exact: bool = True
    reason: str = ""
    can_start: bool = False
    hindered: str = ""
    deferred: bool = False
    request: Request | None = None
    partition: str = ""
    nodes: tuple[str, ...] = ()
    in_array: bool = False
    known_as: str = ""

    @property
    def live(self) -> bool:
        """Whether it may still start or run."""
        return self.phase is not LrmsPhase.ENDED


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """One poll.

    Attributes:
        began_at: just before it, seconds since 1970: it includes everything acknowledged earlier.
        taken_at: just after it.
        processors: size of the working part of the machine that the site may use.
        processors_all: its size when everything works; wider jobs never start.
        free: of `processors`, those that no job holds.
        waiting_others: processors of others' jobs that wait and could start.
        plan: whether one more job would start; `None` if unknown.
        partitions: which jobs are accepted, and start when there is room.
        nodes: the same for what a job asks for besides processors; `None` if unknown.
        idle: for guests that may be ended, where `free` has those, too, whose jobs lose them to own ones; `None`: the same.
    """

    began_at: float
    taken_at: float
    processors: int
    processors_all: int
    free: int
    waiting_others: int
    rows: tuple[JobRow, ...]
    plan: QueuePlan | None = field(default=None, compare=False)
    partitions: Partitions = field(default=NO_PARTITIONS, compare=False)
    nodes: NodeTable | None = field(default=None, compare=False)
    idle: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a job by records; `start_time` in seconds, `None` if it never started."""

    start_time: float | None
    end: LrmsEnd


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a job besides a poll.

    Attributes:
        ending: by records; `None` without any.
        known: whether the batch system, asked for this one job, has it; `None` if it was not asked, or did not say.
        script: how its script has ended, by its folder; `None` if unknown.
        begun: whether it has begun to run, by its folder; `None` if unknown.
        begun_at: when, by its node's clock, seconds; `None` if unknown.
        released: its hold was lifted, or was about to be.
        limit_s: its requested time; 0 if unknown.
        evicted: the site or its batch system has ended it for another job, or was about to.
        preemptible: it may be ended for another job.
        written_at: when it has last written its state, by the clock of the file server, seconds; `None` if it has not.
    """

    ending: Ending | None = None
    known: bool | None = None
    script: ScriptEnd | None = None
    begun: bool | None = None
    begun_at: float | None = None
    released: bool = False
    limit_s: float = 0.0
    evicted: bool = False
    preemptible: bool = False
    written_at: float | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A job whose end must be looked up in records, as the queue is incomplete.

    Attributes:
        name: at the batch system.
        submit_time: seconds, if known.
        row: from the queue; `None` if it is gone.
        ran: a poll has shown it started, or its folder says that it has begun.
    """

    key: str
    name: str
    number: str
    submit_time: float | None
    row: JobRow | None
    ran: bool = False
