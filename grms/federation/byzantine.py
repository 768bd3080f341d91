"""Dishonest sites, for replays that measure what honest ones lose.

Honest sites do not know them: a Byzantine partner has other policies than it shows, defers its guests, or misreports
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from grms.policy.transfer import AcceptWhenFit, AlwaysAgree, AlwaysKeep, TransferPolicy

Share = Literal["rules", "fit", "everything", "nothing"]
"""By the site's own policies, by accept when fit, everything, nothing."""


@dataclass(frozen=True, slots=True)
class ByzantinePartner:
    """A kind of dishonest partner.

    Attributes:
        gives: own jobs it offers.
        takes: offers it accepts, of jobs that fit its machine.
        holds: it starts no guest before the last arrival of the whole replay.
        lies: it reports that a guest has run since it came, or for its whole request if that is less, whatever
            its wait.
        returns: it sends guests home after 99.9 % of their run time, with nothing kept, as if an own job needed
            their processors.
        hides: partners are not told that its jobs keep their state.
    """

    name: str
    text: str
    gives: Share = "rules"
    takes: Share = "rules"
    holds: bool = False
    lies: bool = False
    returns: bool = False
    hides: bool = False

    def giving(self, policy: TransferPolicy) -> TransferPolicy:
        """Returns the policy that selects own jobs to offer; `policy` is an honest site's."""
        return _POLICIES.get(self.gives, policy)

    def taking(self, policy: TransferPolicy) -> TransferPolicy:
        """Returns the policy that selects a partner's jobs to accept; `policy` is an honest site's."""
        return _POLICIES.get(self.takes, policy)


_POLICIES: Final[Mapping[Share, TransferPolicy]] = MappingProxyType(
    {"fit": AcceptWhenFit(), "everything": AlwaysAgree(), "nothing": AlwaysKeep()}
)

_BYZANTINE: Final = (
    ByzantinePartner(
        "black-hole",
        "takes every job into its queue, and offers what does not fit",
        gives="fit",
        takes="everything",
    ),
    ByzantinePartner(
        "starts-nothing",
        "takes every job and starts no guest before the last arrival of all",
        takes="everything",
        holds=True,
    ),
    ByzantinePartner(
        "takes-all", "takes every job and gives none", gives="nothing", takes="everything"
    ),
    ByzantinePartner("free-rider", "offers by its rules and takes nothing", takes="nothing"),
    ByzantinePartner(
        "free-rider-all", "offers every job and takes nothing", gives="everything", takes="nothing"
    ),
    ByzantinePartner(
        "liar",
        "takes every job, and reports that it has run since it came",
        takes="everything",
        lies=True,
    ),
    ByzantinePartner("awf-taker", "offers by its rules and takes what fits", takes="fit"),
    ByzantinePartner("awf", "offers and takes by accept when fit", gives="fit", takes="fit"),
)

BYZANTINE_PARTNERS: Final[Mapping[str, ByzantinePartner]] = MappingProxyType(
    {rogue.name: rogue for rogue in _BYZANTINE}
)

_BYZANTINE_PREEMPTING: Final = (
    ByzantinePartner(
        "returns-all",
        "takes by its rules and sends every guest home just before its end, with its work lost",
        returns=True,
    ),
    ByzantinePartner(
        "hides-checkpoints", "does not say that its jobs keep their state", hides=True
    ),
)

BYZANTINE_PREEMPTING: Final[Mapping[str, ByzantinePartner]] = MappingProxyType(
    {rogue.name: rogue for rogue in _BYZANTINE_PREEMPTING}
)
"""Those that only differ where guests may be sent home: at a site with strict exchange."""
