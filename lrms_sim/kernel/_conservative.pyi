from lrms_sim.kernel._scheduler import Scheduler

class ConservativeScheduler(Scheduler):
    """Conservative backfilling with compression."""

    def __init__(self, long_queue: int = 256) -> None: ...
