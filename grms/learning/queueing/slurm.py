"""A constant order of user groups as settings of Slurm's multifactor priority plugin.

Slurm adds up weighted factors between 0 and 1. A quality of service (QOS) for each group gives the
order of groups: its factor is its priority over the largest of all. The age of a job orders those
of one group; its weight is less than the step from one group to the next, so no job passes a more
urgent group. Multifactor cannot express learned policies beyond such an order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.workload.groups import GROUPS
from lrms_sim.workload.jobs import JobTable

QOS_WEIGHT = 1_000_000
"""PriorityWeightQOS: far above what a site's other weights usually are."""

AGE_WEIGHT = QOS_WEIGHT // (2 * len(GROUPS))
"""PriorityWeightAge: half a step from one group to the next."""

QOS_PREFIX = "hanse-group"

USERS_SHOWN = 10
"""How many users of a group are printed; the file has all."""


@dataclass(frozen=True, slots=True)
class UserShare:
    """A user's number in the log, group, 1 to 5, and share of the total resource consumption, 0 to 1."""

    user: int
    group: int
    share: float


def user_shares(jobs: JobTable, groups: Sequence[int] | np.ndarray) -> tuple[UserShare, ...]:
    """Returns users, group after group, the heaviest first; `groups`, shape (n,), are of each job's user."""
    work = jobs.resource_consumption
    total = float(work.sum())
    users, first, place = np.unique(jobs.user, return_index=True, return_inverse=True)
    consumed = np.bincount(place, weights=work)
    found = [
        UserShare(int(user), int(groups[row]), float(used) / total if total else 0.0)
        for user, row, used in zip(users, first, consumed, strict=True)
    ]
    return tuple(sorted(found, key=lambda one: (one.group, -one.share, one.user)))


def qos_priorities(order: GroupOrder) -> dict[int, int]:
    """Returns the priority of each group's QOS: 50 for the first, 10 for the last."""
    count = len(GROUPS)
    return {group: 10 * (count - place) for place, group in enumerate(order.groups)}


def slurm_document(order: GroupOrder, users: Sequence[UserShare]) -> dict[str, object]:
    """Returns the settings as plain values."""
    return {
        "PriorityType": "priority/multifactor",
        "PriorityWeightQOS": QOS_WEIGHT,
        "PriorityWeightAge": AGE_WEIGHT,
        "qos": {
            f"{QOS_PREFIX}{group}": {
                "Priority": priority,
                "users": [one.user for one in users if one.group == group],
            }
            for group, priority in sorted(qos_priorities(order).items())
        },
    }


def slurm_text(order: GroupOrder, users: Sequence[UserShare], gains: Mapping[str, float]) -> str:
    """Returns the settings as an operator types them, with the order's gains over EASY, percent."""
    said = "; ".join(f"{words} {gain:+.2f} %" for words, gain in gains.items())
    lines = [
        f"# Serve user groups in the order {' > '.join(map(str, order.groups))}, EASY backfilling.",
        f"# Objective against plain EASY: {said}." if said else "",
        "# slurm.conf:",
        "PriorityType=priority/multifactor",
        f"PriorityWeightQOS={QOS_WEIGHT}",
        f"PriorityWeightAge={AGE_WEIGHT}   # within a group, the one that waits longest",
        "PriorityMaxAge=14-0",
        "PriorityWeightFairshare=0",
        "PriorityWeightJobSize=0",
        "PriorityWeightPartition=0",
        "AccountingStorageEnforce=associations,qos",
        "SchedulerType=sched/backfill",
        "# No other QOS of the cluster may have a Priority above 50: the largest is the unit, unless",
        "# PriorityFlags has NO_NORMAL_QOS or NO_NORMAL_ALL, which must not be.",
    ]
    for group, priority in sorted(qos_priorities(order).items()):
        mine = [one for one in users if one.group == group]
        share = sum(one.share for one in mine)
        lines += [
            f"# Group {group}: {len(mine)} users with {100 * share:.1f} % of the work"
            + (", of them" if len(mine) > USERS_SHOWN else ""),
            f"sacctmgr -i add qos {QOS_PREFIX}{group} Priority={priority}",
            *(
                f"sacctmgr -i modify user where name=user{one.user} set qos+={QOS_PREFIX}{group} "
                f"defaultqos={QOS_PREFIX}{group}   # {100 * one.share:.2f} %"
                for one in mine[:USERS_SHOWN]
            ),
        ]
    return "\n".join(line for line in lines if line) + "\n"


def users_csv(users: Sequence[UserShare]) -> str:
    """Returns all users as CSV: user, group, QOS, percent of the work."""
    rows = [
        f"{one.user},{one.group},{QOS_PREFIX}{one.group},{100 * one.share:.6f}" for one in users
    ]
    return "\n".join(("user,group,qos,percent", *rows)) + "\n"
