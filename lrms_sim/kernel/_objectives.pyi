from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Times: TypeAlias = npt.NDArray[np.float64]

def objective_sums(
    submit_time: _Times,
    processors: npt.NDArray[np.int32],
    run_time: _Times,
    start_time: _Times,
    end_time: _Times,
    groups: npt.NDArray[np.int8],
) -> tuple[list[float], list[float], float, float]:
    """Returns per group Σ p·m and Σ p·m·(C - r), the earliest start and the latest end."""
