import numpy as np
import numpy.typing as npt

from lrms_sim.kernel._nodes import NodeScheduler

class NodeConservative(NodeScheduler):
    """Conservative backfilling with compression on a machine of nodes; arguments as in `NodeScheduler`."""

    def __init__(
        self,
        kinds: npt.NDArray[np.int64],
        demands: npt.NDArray[np.int64],
        shape: npt.NDArray[np.int32],
        licences: npt.NDArray[np.int64],
        *,
        best_fit: bool = True,
    ) -> None: ...
