"""What a run amounts to for the user groups of each site, alone and federated."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lrms_sim.analysis import metrics
from lrms_sim.workload.groups import GROUPS
from lrms_sim.workload.schedule import Schedule


@dataclass(frozen=True, slots=True)
class GroupResult:
    """One user group of one site.

    Attributes:
        site: name of the site its users submit to.
        group: 1 to 5.
        jobs: number of the group's jobs.
        awrt_alone: average weighted response time of these jobs without exchange, seconds.
        awrt: the same in the federation, wherever the jobs ran.
        awrt_improvement: `1 - awrt / awrt_alone`; positive is better.
    """

    site: str
    group: int
    jobs: int
    awrt_alone: float
    awrt: float
    awrt_improvement: float


def group_results(
    schedule: Schedule, schedule_alone: Schedule, groups: npt.NDArray[np.integer]
) -> tuple[GroupResult, ...]:
    """Returns the figures of every group that has jobs, site after site.

    Both schedules have the same n jobs in the same rows, `schedule_alone` without exchange;
    `groups` has shape (n,), the group of each job's user at home.
    """
    found = []
    for k, machine in enumerate(schedule.machines):
        for group in GROUPS:
            mine = (schedule.submitted_to == k) & (groups == group)
            count = int(np.count_nonzero(mine))
            if count:
                alone = metrics.awrt(schedule_alone.select(mine))
                federated = metrics.awrt(schedule.select(mine))
                found.append(
                    GroupResult(
                        machine.name, group, count, alone, federated, 1.0 - federated / alone
                    )
                )
    return tuple(found)
