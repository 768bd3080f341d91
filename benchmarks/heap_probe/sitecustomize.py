"""Has a process write down what its memory consists of; Python imports this by its name where it is on the path.

A line of JSON each second, to the file that HANSE_HEAP_LOG names, after a collection of garbage: private memory,
what the C library's heaps have given out and what lies free in them, and how many objects Python has there. As it is
there to find what stays, it has the simulated batch system remember few ended jobs.
"""

import ctypes
import gc
import json
import os
import sys
import threading
import time
from pathlib import Path

REMEMBERED = 256
"""Ended jobs in the simulated batch system."""


class Mallinfo(ctypes.Structure):
    """What glibc says of its heaps (`mallinfo2`)."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def sample() -> dict[str, float]:
    """Returns how the memory of this process stands, in bytes and objects."""
    gc.collect()
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = Mallinfo
    heaps = library.mallinfo2()
    rows = (line.split() for line in Path("/proc/self/smaps_rollup").read_text().splitlines())
    (private,) = (1024 * int(row[1]) for row in rows if row[0] == "Anonymous:")
    return {
        "at": time.time(),
        "private": private,
        "given_out": heaps.uordblks + heaps.hblkhd,
        "free": heaps.fordblks,
        "objects": sys.getallocatedblocks(),
    }


def _write(path: Path) -> None:
    while True:
        time.sleep(1)
        simulated = sys.modules.get("grms.lrms.simulated.machine")
        if simulated is not None:
            vars(simulated)["FORGOTTEN_AFTER"] = REMEMBERED
        with path.open("a") as log:
            log.write(json.dumps(sample()) + "\n")


if path := os.environ.get("HANSE_HEAP_LOG"):
    threading.Thread(target=_write, args=(Path(path),), daemon=True, name="heap").start()
