class Scheduler:
    """The compiled side of a queue discipline; one machine owns it."""

    @property
    def needs_groups(self) -> bool:
        """Whether the user group of every job has to be known."""
