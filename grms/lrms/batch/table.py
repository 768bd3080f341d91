"""What a look at a batch system has shown, whichever it is. Pure data.

Batch systems number jobs, and some use a number twice after a crash. So a job is its name, which
this site has given it and gives no other, with number and moment of submission.
"""

from dataclasses import dataclass, field

from grms.lrms.launched import ScriptEnd
from grms.lrms.partitions import NO_PARTITIONS, Partitions
from grms.lrms.plan import QueuePlan
from grms.lrms.port import LrmsEnd, LrmsPhase


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job of this site in the batch system's table.

    Attributes:
        name: as `encode` has made it.
        number: the batch system's own id.
        submit_time: seconds since 1970; None where the table does not say.
        phase: where it stands.
        processors: how many it asks for or has.
        start_time: of its present or last run, seconds; None where it has not started.
        end: how it ended, as far as the table says; None where it has not.
        exact: `end` is all that there is to know.
        reason: why it stands where it stands, in the batch system's words.
        can_start: it waits, and nothing but a lack of processors keeps it from starting, where the
            site has them.
        hindered: what it waits for, where that is no room, for a person.
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

    @property
    def live(self) -> bool:
        """Whether it may still start or run."""
        return self.phase is not LrmsPhase.ENDED


@dataclass(frozen=True, slots=True)
class Table:
    """One look.

    Attributes:
        began_at: just before it, seconds since 1970: what was acknowledged earlier is in it.
        taken_at: just after it.
        processors: size of the part of the machine that the site may use, and that works.
        processors_all: its size when everything works; what is wider never starts.
        free: of these, what no job holds.
        waiting_others: processors of others' jobs that wait and could start.
        rows: jobs of this site.
        plan: whether one more job would start; None where nobody can know.
        partitions: which jobs are taken, and start when there is room.
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


@dataclass(frozen=True, slots=True)
class Ending:
    """What records say of the end of a job.

    Attributes:
        start_time: seconds; None where it never started.
        end: how it ended.
    """

    start_time: float | None
    end: LrmsEnd


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a job beside what a look shows of it.

    Attributes:
        ending: what records say; None where they say nothing.
        known: whether the batch system itself, asked for this one job, says that it has it; None where
            it was not asked, or has not said.
        script: how its script has ended, by its folder; None where that says nothing.
        begun: its folder says whether it has begun to run; None where nobody knows.
        begun_at: when, by the clock of its node, seconds; None where nobody knows.
        released: its hold was lifted, or was about to be.
        limit_s: its requested time; 0 where that is not known.
    """

    ending: Ending | None = None
    known: bool | None = None
    script: ScriptEnd | None = None
    begun: bool | None = None
    begun_at: float | None = None
    released: bool = False
    limit_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """A job whose end has to be looked up in records, as the table does not have all of it.

    Attributes:
        key: of the job.
        name: as the batch system has it.
        number: the batch system's id.
        submit_time: where it is known, seconds.
        row: what the table says of it; None where it is gone from there.
        ran: a look has shown that it had started.
    """

    key: str
    name: str
    number: str
    submit_time: float | None
    row: JobRow | None
    ran: bool = False
