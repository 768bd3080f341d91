"""Sorts users into five groups by how much of the machine they use."""

from typing import Final

import numpy as np
import numpy.typing as npt

from lrms_sim.workload.jobs import JobTable

Int8Array = npt.NDArray[np.int8]

GROUPS: Final = (1, 2, 3, 4, 5)
"""The groups, heaviest users first."""

# In thousandths: a share above the first is group 1; from the others on groups 2, 3 and 4.
_SHARE_ABOVE: Final = 80
_SHARES_FROM: Final = (20, 10, 1)


def user_groups(jobs: JobTable) -> Int8Array:
    """Returns the group of the user of each job, 1 for the heaviest to 5 for the lightest, shape (n,).

    A user's share is Σ run_time · processors of their jobs over that of all jobs. Group 1 has
    more than 8 %, group 2 from 2 to 8 %, group 3 from 1 to 2 %, group 4 from 0.1 to 1 %, group 5
    less than 0.1 %; a share on a border belongs to the heavier group, except that exactly 8 % is
    group 2 (Ernemann, Song, Yahyapour 2003, "Scaling of workload traces"; the borders are those
    of Franke, Lepping, Schwiegelshohn 2007). Jobs without a known user count as one user.
    """
    _, index = np.unique(jobs.user, return_inverse=True)
    consumption = np.bincount(index, weights=jobs.resource_consumption)
    total = consumption.sum()
    # Products of whole numbers, not quotients, so that a share of exactly 2 % is just that.
    group: Int8Array = np.where(1000 * consumption > _SHARE_ABOVE * total, 1, 2).astype(np.int8)
    for share in _SHARES_FROM:
        group += (1000 * consumption < share * total).astype(np.int8)
    return group[index]


def known_user_groups(jobs: JobTable) -> Int8Array:
    """Returns `user_groups`; `ValueError` if no job's user is known, so that groups mean nothing."""
    if len(jobs) and int(jobs.user.max()) < 0:
        raise ValueError(
            "user groups are needed, and the log does not say which user any of its jobs belongs to"
        )
    return user_groups(jobs)


def check_groups(groups: npt.NDArray[np.integer], count: int) -> Int8Array:
    """Returns groups, shape (count,), values 1 to 5, as the kernels take them.

    Raises:
        ValueError: they have another shape or other values.
    """
    groups = np.asarray(groups)
    if groups.shape != (count,):
        raise ValueError(f"groups has shape {groups.shape} for {count} jobs")
    if groups.dtype.kind not in "iu":
        raise ValueError(f"groups are {groups.dtype}; whole numbers are needed")
    if count and not (groups.min() >= GROUPS[0] and groups.max() <= GROUPS[-1]):
        raise ValueError(
            f"groups run from {groups.min()} to {groups.max()}; they must be in "
            f"{GROUPS[0]}..{GROUPS[-1]}"
        )
    return np.ascontiguousarray(groups, np.int8)
