from lrms_sim.kernel._scheduler import Scheduler

class EasyPlusPlusScheduler(Scheduler):
    """EASY++."""

    def __init__(self, *, predicts: bool = True) -> None: ...
    @property
    def history(self) -> tuple[tuple[int, float, float], ...]:
        """The last two run times of every user of whom a job has ended, seconds.

        Rows (user, last, before); nan where there was none before.
        """

    def remember(self, history: tuple[tuple[int, float, float], ...]) -> None:
        """Takes over the history of a machine before this one, as `history` gave it."""
