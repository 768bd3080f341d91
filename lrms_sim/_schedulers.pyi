class Scheduler:
    """The compiled side of a queue discipline; one machine owns it."""

    @property
    def per_event(self) -> bool:
        """Whether a pass follows every single event."""

class FcfsScheduler(Scheduler):
    """First come, first served."""

class ListScheduler(Scheduler):
    """List scheduling."""

class EasyScheduler(Scheduler):
    """EASY backfilling."""

    def __init__(self, *, per_event: bool = False) -> None: ...

class ConservativeScheduler(Scheduler):
    """Conservative backfilling with compression."""
