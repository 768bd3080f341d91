from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

def central_schedule(
    submit: npt.NDArray[np.float64],
    width: npt.NDArray[np.int32],
    run: npt.NDArray[np.float64],
    home: npt.NDArray[np.int16],
    sizes: Sequence[int],
    start: npt.NDArray[np.float64],
    site: npt.NDArray[np.int16],
    preempt: bool,
) -> int:
    """Places jobs, in order of arrival; returns how many had started elsewhere when they lost their place."""
