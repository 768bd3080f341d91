from lrms_sim.kernel._scheduler import Scheduler

class FcfsScheduler(Scheduler):
    """First come, first served."""

class ListScheduler(Scheduler):
    """List scheduling."""
