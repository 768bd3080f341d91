"""One batch machine on which somebody outside picks the job that starts next: an agent that learns, a person, a search."""

import math
from typing import Final, Literal, get_args

from lrms_sim.kernel._picks import FEATURES, PickMachine, step_all
from lrms_sim.machine.machine import check_machine
from lrms_sim.workload.jobs import JobTable

__all__ = ["FEATURES", "OBJECTIVES", "Objective", "PickMachine", "pick_machine", "step_all"]

Objective = Literal["bounded-slowdown", "wait", "awrt"]
"""What rewards are made of: mean bounded slowdown, mean wait (s), average weighted response time (s)."""

OBJECTIVES: Final[tuple[Objective, ...]] = get_args(Objective)


def pick_machine(
    jobs: JobTable,
    processors: int,
    *,
    window: int = 128,
    backfill: bool = False,
    commit: bool = False,
    objective: Objective = "bounded-slowdown",
    reward_at_end: bool = False,
    tau: float = 10.0,
) -> PickMachine:
    """Returns a machine for sequences of consecutive jobs of a workload; `reset` begins one.

    Args:
        jobs: the workload, none wider than the machine.
        processors: size of the machine.
        window: how many of the first waiting jobs are seen and may be picked.
        backfill: whether others may pass a picked job that does not fit, by EASY's rule in order of arrival.
        commit: whether such a job blocks the queue until it has started; otherwise the next pick is made at the next
            instant at which something happens and a waiting job fits.
        objective: what rewards are made of.
        reward_at_end: whether the last step has the whole reward.
        tau: shorter run times count as this in bounded slowdowns, seconds.

    Raises:
        ValueError: there is no job, one is wider than the machine or outlives its request, no job would be seen, the
            objective is unknown, or `tau` is not more than 0.
    """
    check_machine(jobs, processors, "machine")
    if objective not in OBJECTIVES:
        raise ValueError(f"objective is {objective!r}; it must be one of {', '.join(OBJECTIVES)}")
    if not 0 < tau < math.inf:
        raise ValueError(f"tau is {tau} s; it must be finite and more than 0")
    return PickMachine(
        jobs.submit_time,
        jobs.processors,
        jobs.requested_time,
        jobs.run_time,
        machine_processors=processors,
        window=window,
        backfills=backfill,
        commits=commit,
        objective=OBJECTIVES.index(objective),
        at_end=reward_at_end,
        tau=tau,
    )
