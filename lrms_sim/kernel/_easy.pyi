from lrms_sim.kernel._scheduler import Scheduler

class EasyScheduler(Scheduler):
    """EASY backfilling."""

    def __init__(self, *, per_event: bool = False) -> None: ...
