class Scheduler:
    """The compiled side of a queue discipline; one machine owns it."""

    @property
    def needs_groups(self) -> bool:
        """Whether the user group of every job has to be known."""

    @property
    def needs_users(self) -> bool:
        """Whether the user of a job matters, where known."""
