from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from lrms_sim.kernel._nodes import NodeScheduler
from lrms_sim.kernel._scheduler import Scheduler
from lrms_sim.machine.node_kinds import NodeKind, NodeMachine
from lrms_sim.workload.requests import Request

class QueuedJob:
    """A job as a queue discipline knows it."""

    @property
    def number(self) -> int:
        """Row of the job table, or number on the machine: its place in the order of arrival.

        It tells jobs of one machine apart and says nothing of their log; `job_id` does.
        """

    @property
    def job_id(self) -> int:
        """Number of the job in its log, as in `JobTable.job_id`; on a machine without a log its `number`."""

    @property
    def submit_time(self) -> float:
        """When it was submitted, seconds."""

    @property
    def processors(self) -> int:
        """Its width."""

    @property
    def requested_time(self) -> float:
        """How long it runs at most, seconds."""

    @property
    def group(self) -> int | None:
        """Group of its user, 1 to 5; `None` if groups are not known."""

    @property
    def user(self) -> int:
        """Number of its user, -1 where unknown; dense numbers, not those of a log."""

    @property
    def start_time(self) -> float | None:
        """When it started, seconds; None while it waits."""

    @property
    def estimated_end(self) -> float | None:
        """When a running job ends at the latest, seconds; None while it waits."""

    @property
    def request(self) -> Request | None:
        """What it asks for on a machine of nodes; None on one of processors."""

class NodeView:
    """A node of a machine and what nobody holds on it."""

    @property
    def number(self) -> int:
        """Its number on the machine, from 0."""

    @property
    def kind(self) -> NodeKind:
        """What it is."""

    @property
    def cores_free(self) -> int:
        """Cores that no job holds."""

    @property
    def memory_free(self) -> int | None:
        """Free memory in MiB; `None` if memory is not counted."""

    @property
    def gpus_free(self) -> int:
        """GPUs that no job holds."""

    @property
    def jobs(self) -> int:
        """How many jobs run there."""

class MachineView:
    """All that a discipline may see of a machine; to be used during a call only."""

    @property
    def now(self) -> float:
        """The moment, seconds."""

    @property
    def processors(self) -> int:
        """Size of the machine."""

    @property
    def processors_free(self) -> int:
        """Processors that no running job holds."""

    @property
    def processors_waiting(self) -> int:
        """Sum of the widths of the waiting jobs."""

    @property
    def head(self) -> QueuedJob | None:
        """The waiting job that came first; `None` if no job waits."""

    @property
    def waiting(self) -> list[QueuedJob]:
        """The waiting jobs in order of arrival, a new list."""

    @property
    def running(self) -> list[QueuedJob]:
        """The running jobs in the order of their starts, a new list."""

    @property
    def nodes(self) -> list[NodeView]:
        """The nodes by number, as they are now, a new list; none on a machine of processors."""

    @property
    def licences_free(self) -> dict[str, int]:
        """Free licences by name, a new dictionary; none on a machine of processors."""

    def fits(self, job: QueuedJob) -> bool:
        """Returns whether a waiting job could be started now."""

    def start(self, job: QueuedJob) -> None:
        """Starts a waiting job now."""

class PythonScheduler(Scheduler):
    """What runs a discipline written in Python on one machine."""

    def __init__(
        self,
        decide: Callable[[MachineView], object],
        *,
        submitted: Callable[[MachineView, QueuedJob], object] | None = None,
        ended: Callable[[MachineView, QueuedJob], object] | None = None,
        noted: Callable[[], object] | None = None,
        per_event: bool = False,
        needs_groups: bool = False,
    ) -> None: ...
    def name_jobs(self, job_ids: Sequence[int] | npt.NDArray[np.int64] | None) -> None:
        """Sets the log's ids of the jobs, by number; the default is the number."""
    def noted_so_far(self) -> object:
        """Returns what the discipline has noted on this machine; `None` if it gives nothing back."""

    def place_on(
        self,
        placing: NodeScheduler,
        machine: NodeMachine,
        request_of: Callable[[int], Request],
    ) -> None:
        """Makes it run on a machine of nodes.

        `placing` is a scheduler of that machine that keeps the nodes and starts nothing itself;
        `request_of` returns a job's request by number.
        """
