"""What the daemon's process takes: processor, memory, descriptors."""

import time

from prometheus_client import ProcessCollector


class ProcessFigures(ProcessCollector):
    """The figures of this process, also where a sandbox hides all of /proc but processes (`ProcSubset=pid`)."""

    def _boot_time(self) -> float:
        # The library reads it from /proc/stat, and has no figures at all where that is hidden.
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
