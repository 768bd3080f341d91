"""Selects a policy for a partner that none was trained with."""

from collections.abc import Mapping

from grms.policy.transfer import TransferPolicy


def nearest_size(pool: Mapping[int, TransferPolicy], processors: int) -> TransferPolicy:
    """Returns the policy learned against the partner nearest in size (paper 003, section 8.1).

    `pool` has the policies by the size, in processors, of the partner each was learned against. Of two equally
    near ones the smaller size wins.

    Raises:
        ValueError: the pool is empty, or a size is less than 1.
    """
    if not pool:
        raise ValueError("the pool of policies is empty; at least one is needed to choose from")
    for size in (processors, *pool):
        if size < 1:
            raise ValueError(f"a partner of {size} processors; at least 1 is needed")
    return pool[min(pool, key=lambda size: (abs(size - processors), size))]
