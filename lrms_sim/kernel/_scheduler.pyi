class Scheduler:
    """The compiled side of a queue discipline; one machine owns it."""

    @property
    def any_order(self) -> bool:
        """Whether jobs may join the queue in another order than that of their numbers."""

    @property
    def preempts(self) -> bool:
        """Whether jobs that it does not see may run beside its own, and jobs come back to their places."""

    @property
    def needs_groups(self) -> bool:
        """Whether the user group of every job has to be known."""

    @property
    def needs_users(self) -> bool:
        """Whether the user of a job matters, where known."""
