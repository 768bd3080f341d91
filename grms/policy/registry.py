"""Policies by their names in files and on command lines, and by the size of the partner they were trained with.

A transfer policy has a word or is a rule base file; a location policy has a word or is a list of
partners' names. A new policy only needs a word here.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from grms.policy.constraints import CONSTRAINTS
from grms.policy.files import RuleBaseError, load_rule_base
from grms.policy.location import (
    AwrtLocation,
    FixedOrder,
    LocationPolicy,
    location_of,
)
from grms.policy.transfer import (
    AcceptWhenFit,
    AlwaysKeep,
    Constrained,
    TransferPolicy,
    UserDefinedTransfer,
    compiled_transfer,
)
from lrms_sim.scheduling.user_defined import load_user_defined, names_user_defined
from lrms_sim.util.plugins import LOCATION_GROUP, TRANSFER_GROUP

_POLICIES: Final[tuple[TransferPolicy, ...]] = (
    AcceptWhenFit(),
    AlwaysKeep(),
    *(Constrained(rails, name=word) for word, rails in CONSTRAINTS.items()),
)

TRANSFER_POLICIES: Final[Mapping[str, TransferPolicy]] = MappingProxyType(
    {policy.name: policy for policy in _POLICIES}
)
"""By word. One object serves all pairs of sites: a thousand sites have a million of them."""

NO_EXCHANGE: Final = "none"
"""The word for no exchange of jobs with a partner, and so for no policy."""

TRANSFER_DEFAULT: Final = AcceptWhenFit().name
POOL_WORDS: Final = tuple(TRANSFER_POLICIES)
"""Values for a policy of a pool besides the path of a rule base file."""

TRANSFER_WORDS: Final = (*TRANSFER_POLICIES, NO_EXCHANGE)
"""Values for the policy of a partner besides the path of a rule base file."""


def is_user_defined(name: str) -> bool:
    """Returns whether a policy's name means one written in Python."""
    return not name.endswith(".json") and names_user_defined(TRANSFER_GROUP, name)


def user_defined_transfer(name: str) -> UserDefinedTransfer:
    """Returns a transfer policy written in Python; `RuleBaseError` if it cannot be loaded or is no policy."""
    try:
        written = load_user_defined(TRANSFER_GROUP, name, "transfer policy")
        compiled_transfer(written)
    except (TypeError, ValueError) as error:
        raise RuleBaseError(str(error)) from error
    return UserDefinedTransfer(written)


def user_defined_location(name: str) -> LocationPolicy:
    """Returns a location policy written in Python; `ValueError` if it cannot be loaded or is no policy."""
    try:
        return location_of(load_user_defined(LOCATION_GROUP, name, "location policy"))
    except TypeError as error:
        raise ValueError(str(error)) from error


LOCATION_POLICIES: Final[Mapping[str, LocationPolicy]] = MappingProxyType(
    {"awrt-completed": AwrtLocation(), "awrt-open": AwrtLocation(open_jobs="count")}
)
AWRT: Final = "awrt"
"""One of the two, depending on the host: a scenario follows the paper, a daemon counts open jobs."""

LOCATION_WORDS: Final = (AWRT, *LOCATION_POLICIES)
"""Values for a location policy besides a list of partners' names."""


def location_by_name(named: str | Sequence[str], awrt: str) -> LocationPolicy:
    """Returns a location policy; `awrt` is what the word `awrt` means, one of `LOCATION_POLICIES`.

    `named` is one of `LOCATION_WORDS`, an entry point of the group `hanse.location_policies`,
    `package.module:name`, or the names of partners in the order in which they are asked.

    Raises:
        ValueError: a name comes twice, or code cannot be loaded or is no policy.
    """
    if not isinstance(named, str):
        return FixedOrder(tuple(named))
    word = awrt if named == AWRT else named
    return LOCATION_POLICIES[word] if word in LOCATION_POLICIES else user_defined_location(word)


class PolicyShelf:
    """Policies by their word or file, each file read once."""

    def __init__(self) -> None:
        self._read: dict[str, TransferPolicy | RuleBaseError] = {}

    def policy_by_name(self, name: str) -> TransferPolicy:
        """Returns a policy.

        `name` is one of `TRANSFER_POLICIES`, the path of a rule base file, an entry point of the group
        `hanse.transfer_policies`, or `package.module:name`.

        Raises:
            RuleBaseError: the file cannot be used, or the code cannot be loaded.
        """
        if name in TRANSFER_POLICIES:
            return TRANSFER_POLICIES[name]
        if name not in self._read:
            try:
                self._read[name] = (
                    user_defined_transfer(name) if is_user_defined(name) else load_rule_base(name)
                )
            except RuleBaseError as error:
                self._read[name] = error
        found = self._read[name]
        if isinstance(found, RuleBaseError):
            raise found
        return found


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
