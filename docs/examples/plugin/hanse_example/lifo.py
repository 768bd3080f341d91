"""A queue discipline."""

from lrms_sim.scheduling.user_defined import MachineView


class Lifo:
    """The job that came last starts first; one that does not fit blocks all others."""

    name = "lifo"

    def decide(self, view: MachineView) -> None:
        """Starts the jobs that fit."""
        for job in reversed(view.waiting):
            if job.processors > view.processors_free:
                break
            view.start(job)
