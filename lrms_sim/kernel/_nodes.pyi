import numpy as np
import numpy.typing as npt

from lrms_sim.kernel._scheduler import Scheduler

class NodeScheduler(Scheduler):
    """FCFS, LIST, EASY or EASY++ on a machine of nodes; knows the demands of all jobs that may come.

    Args:
        discipline: one of `lrms_sim.machine.nodes.NODE_DISCIPLINES` but conservative.
        kinds: shape (k, 4): nodes, cores, memory in MiB, GPUs of each kind.
        demands: shape (s, 11 + l), a row for each shape: tasks, cores, most, nodes_min, nodes_max, task_gpus,
            node_gpus, exclusive, task_memory, node_memory, kinds as bits; then how many it takes of
            each licence.
        shape: shape (n,), by job its row in `demands`.
        licences: shape (l,), how many there are of each.
    """

    def __init__(
        self,
        discipline: str,
        kinds: npt.NDArray[np.int64],
        demands: npt.NDArray[np.int64],
        shape: npt.NDArray[np.int32],
        licences: npt.NDArray[np.int64],
        *,
        best_fit: bool = True,
    ) -> None: ...
    def misfits(self) -> list[int]:
        """Returns the shapes of jobs that do not fit on the machine as it is, ascending."""

    def held(self) -> npt.NDArray[np.int64]:
        """Returns an array of shape (n, 4): nodes, cores, memory in MiB and GPUs that each job has or had."""

    def keep_places(self) -> None:
        """Keeps where jobs have run after their ends."""

    def places(self, job: int) -> list[tuple[int, int]]:
        """Returns where a job runs, or has run if places are kept: pairs of node and tasks."""
