from typing import Final

import numpy as np
import numpy.typing as npt

NOT_A_NUMBER: Final[int]
NOT_WHOLE: Final[int]
TOO_LARGE: Final[int]
TOO_FEW: Final[int]

def parse_block(
    text: bytes | memoryview,
    line: int,
    kinds: bytes,
    slots: bytes,
    reals: npt.NDArray[np.float64],
    longs: npt.NDArray[np.int64],
    ints: npt.NDArray[np.int32],
    comments: list[bytes],
) -> tuple[int, int, tuple[int, int, int, bytes | int] | None, int]: ...
def format_block(
    kinds: bytes,
    slots: bytes,
    reals: npt.NDArray[np.float64],
    wholes: npt.NDArray[np.int64],
) -> bytes: ...
