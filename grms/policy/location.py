"""Location policies: whom to ask first.

All use what a site may know of a partner: its name, and how the site's own jobs fared there. Hosts call
`order` and `count_open`; a policy written in Python gets a `PartnerRecord` of each partner.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from types import FunctionType
from typing import Any, Literal

from lrms_sim.scheduling.user_defined import name_of_user_defined


@dataclass(frozen=True, slots=True)
class AwrtLocation:
    """Asks in ascending order of the AWRT of the jobs delegated to each partner.

    Only jobs delivered to the partner and completed by now count; a partner without history counts 0
    and comes first; ties go by site order (paper 003, section 7.1).

    A partner that accepts jobs and never completes them would thereby keep the rank of its last completed
    job, or stay first without one. A site can therefore count open jobs: once they have waited at the
    partner longer, on average, than the completed ones took, they count with the time waited so far and
    the requested consumption. Open jobs never improve a partner's rank.

    Attributes:
        open_jobs: "ignore" (the paper) or "count".
    """

    open_jobs: Literal["ignore", "count"] = "ignore"

    def __post_init__(self) -> None:
        if self.open_jobs not in {"ignore", "count"}:
            raise ValueError(f"open_jobs is {self.open_jobs!r}; it must be 'ignore' or 'count'")

    @property
    def name(self) -> str:
        """A word for people."""
        return "awrt-open" if self.count_open else "awrt"

    @property
    def order(self) -> None:
        """There is no fixed order: it follows from what a site has seen."""
        return

    @property
    def count_open(self) -> bool:
        """Whether jobs that are open at a partner count."""
        return self.open_jobs == "count"

    def among(self, _partners: Collection[str]) -> "AwrtLocation":
        """Returns the policy of a site that has no partners but these."""
        return self


@dataclass(frozen=True, slots=True)
class FixedOrder:
    """Asks in a given order; partners not in `order` are not asked.

    Raises:
        ValueError: a name comes twice.
    """

    order: tuple[str, ...]

    def __post_init__(self) -> None:
        for position, partner in enumerate(self.order):
            if partner in self.order[:position]:
                raise ValueError(f"partner {partner!r} comes twice in the order {self.order}")

    @property
    def name(self) -> str:
        """A word for people."""
        return "fixed: " + ", ".join(self.order)

    @property
    def count_open(self) -> bool:
        """What has become of jobs does not count at all."""
        return False

    def among(self, partners: Collection[str]) -> "FixedOrder":
        """Returns the policy of a site that has no partners but these."""
        return FixedOrder(tuple(name for name in self.order if name in partners))


@dataclass(frozen=True, slots=True)
class PartnerRecord:
    """What a site knows of a partner when it chooses whom to ask first.

    Attributes:
        consumption: Σ p·m of completed own jobs delegated there, processor-seconds.
        weighted_response: Σ p·m·(C - r) of these.
    """

    name: str
    consumption: float
    weighted_response: float

    @property
    def awrt(self) -> float:
        """Their average weighted response time, seconds; 0 if there are none."""
        return self.weighted_response / self.consumption if self.consumption > 0 else 0.0


@dataclass(frozen=True, slots=True)
class UserDefinedLocation:
    """A location policy written in Python: a function, or an object with a method `ask`.

    It gets a `PartnerRecord` of each partner, in site order, and returns the names to ask, in order;
    partners left out are not asked. It is called for every job.
    """

    written: Any

    @property
    def name(self) -> str:
        """A word for people."""
        return name_of_user_defined(self.written)

    @property
    def order(self) -> None:
        """`None`: there is no fixed order, as the policy is called for every job."""
        return

    @property
    def count_open(self) -> bool:
        """Completed jobs alone count."""
        return False

    def among(self, _partners: Collection[str]) -> "UserDefinedLocation":
        """Returns itself: a written policy is given the partners with every job."""
        return self

    def asking_order(self, partners: Sequence[PartnerRecord]) -> list[str]:
        """Returns the names of partners in the order in which they are asked.

        Raises:
            ValueError: the policy returned a duplicate or a name that is no partner.
            TypeError: it did not return a collection of names.
        """
        ask = getattr(self.written, "ask", self.written)
        answer = ask(list(partners))
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            raise TypeError(
                f"location policy {self.name!r} returns {answer!r}; it must be a list of names"
            )
        # One more name than partners suffices to see a duplicate, and an iterator may be endless.
        names = list(islice(answer, len(partners) + 1))
        known = {partner.name for partner in partners}
        for place, name in enumerate(names):
            named = isinstance(name, str) and name in known
            if not named or name in names[:place]:
                raise ValueError(
                    f"location policy {self.name!r} asks {name!r}, which is "
                    f"{'named twice' if named else 'no partner'}"
                )
        return names


LocationPolicy = AwrtLocation | FixedOrder | UserDefinedLocation


def location_of(policy: Any) -> LocationPolicy:
    """Returns a location policy; one written in Python is wrapped.

    Raises:
        TypeError: it is no location policy.
    """
    # First what has a method `ask`: a user's class may derive from one of those above.
    asks = callable(getattr(policy, "ask", None)) and not isinstance(policy, type)
    if isinstance(policy, FunctionType) or asks:
        return UserDefinedLocation(policy)
    if isinstance(policy, LocationPolicy):
        return policy
    raise TypeError(
        f"{policy!r} is no location policy; possible are AwrtLocation and FixedOrder, a function, "
        "and an object with a method ask(partners)"
    )
