"""What is wrong with the write-ahead log of an SQLite file that nobody has open.

SQLite reads such a log up to the first frame that is not as it was written, and takes that for its end, as it
has to after a power failure in the middle of a commit. So whatever stands behind a bit that has flipped would be
forgotten without a word. But each commit is on the disk before the next one begins: behind a frame that a
power failure has spoilt stands the end of its own commit, and no other. The form of the log is that of
https://www.sqlite.org/fileformat2.html#walformat.
"""

import struct
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

_HEAD: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")
_CHECKED: Final = 8
"""So many bytes of a frame's head count in its checksum, and then its page."""

_MAGIC: Final = 0x377F0682
"""The last bit says how the words are read that checksums are made of."""

_VERSION: Final = 3_007_000
_PAGES: Final = frozenset(2**power for power in range(9, 17))

_Checksum = tuple[int, int]


def log_problem(path: Path) -> str:
    """Returns what is wrong with a write-ahead log, for a person; empty where nothing is, or there is none.

    What is spoilt of the last commit cannot be told from what a power failure leaves of one that nobody has
    been told of, and neither can the end of a log that was cut off.

    Args:
        path: of the log; nobody writes it meanwhile.

    Raises:
        OSError: it cannot be read.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ""
    if len(content) < _HEAD.size or not any(content):
        return ""  # its first commit was not to be
    magic, version, page_size, _, *salts, first, second = _HEAD.unpack_from(content)
    words = ">u4" if magic & 1 else "<u4"
    checksum = _checksum(content[: _HEAD.size - 8], words, (0, 0))
    known = (magic & ~1, version) == (_MAGIC, _VERSION) and page_size in _PAGES
    if not known or checksum != (first, second):
        return "the head of its log (-wal) is not what was written"
    size = _FRAME.size + page_size
    spoilt, commits = 0, 0
    for number, begin in enumerate(range(_HEAD.size, len(content) - size + 1, size), 1):
        _, pages, *salt, first, second = _FRAME.unpack_from(content, begin)
        ours = salt == salts  # else of an older log, whose place this one takes little by little
        if ours and not spoilt:
            checksum = _checksum(content[begin : begin + _CHECKED], words, checksum)
            checksum = _checksum(content[begin + _FRAME.size : begin + size], words, checksum)
        if not ours or checksum != (first, second):
            spoilt = spoilt or number
        if spoilt and ours and pages:
            commits += 1
    return f"frame {spoilt} of its log (-wal) is not what was written" if commits > 1 else ""


def _checksum(content: bytes, words: str, before: _Checksum) -> _Checksum:
    # Each word is added to the sum of the last two sums, so that it counts in a later one by a Fibonacci number.
    values = np.frombuffer(content, words).astype(np.uint32)
    count = len(values)
    numbers = _fibonacci(count + 2)
    last = int((values * numbers[count:0:-1]).sum(dtype=np.uint32))
    last_but_one = int((values[:-1] * numbers[count - 1 : 0 : -1]).sum(dtype=np.uint32))
    a, b, c = (int(number) for number in numbers[count - 1 : count + 2])
    return (
        (last_but_one + a * before[0] + b * before[1]) & 0xFFFFFFFF,
        (last + b * before[0] + c * before[1]) & 0xFFFFFFFF,
    )


@cache
def _fibonacci(count: int) -> npt.NDArray[np.uint32]:
    numbers = [0, 1]
    while len(numbers) < count:
        numbers.append((numbers[-1] + numbers[-2]) & 0xFFFFFFFF)
    return np.array(numbers, np.uint32)
