"""What a pick is, what an agent sees of the queue, and what it is rewarded for."""

from dataclasses import asdict, dataclass

from hanse_gym.sequences import Sequences
from lrms_sim.machine.picks import Objective, PickMachine, pick_machine


@dataclass(frozen=True, slots=True)
class PickOptions:
    """The rules of an environment.

    Attributes:
        window: how many of the first waiting jobs an agent sees and may pick.
        backfill: whether others may pass a picked job that does not fit, by EASY's rule in order of arrival.
        commit: whether such a job blocks the queue until it has started, as in RLScheduler; otherwise the agent
            picks anew at the next instant at which something happens, as disciplines do.
        objective: `bounded-slowdown`, `wait` or `awrt`.
        reward_at_end: whether the last step has the whole reward; otherwise each step has the part of the jobs
            that started with it. Both sum up to −(the objective).
        tau: shorter run times count as this in bounded slowdowns, seconds.
    """

    window: int = 128
    backfill: bool = False
    commit: bool = False
    objective: Objective = "bounded-slowdown"
    reward_at_end: bool = False
    tau: float = 10.0

    def machine(self, sequences: Sequences) -> PickMachine:
        """Returns a machine for sequences; a ValueError says which option is impossible."""
        return pick_machine(sequences.jobs, sequences.processors, **asdict(self))
