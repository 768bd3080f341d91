from lrms_sim._scheduler import Scheduler

class FcfsScheduler(Scheduler):
    """First come, first served."""

class ListScheduler(Scheduler):
    """List scheduling."""
