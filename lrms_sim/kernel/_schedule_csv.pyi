from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

def write_rows(
    sink: Callable[[bytes], object],
    names: list[bytes],
    sizes: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    columns: Mapping[str, npt.NDArray[np.generic]],
    progress: Callable[[int], None] | None = None,
) -> None: ...
