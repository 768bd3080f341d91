"""Location policies: whom to ask first.

All know of a partner what a site may know: its name, and how one's own jobs fared there. Hosts ask a
policy for `order` and `count_open`; one written in Python is asked with a `PartnerRecord` of each partner.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from types import FunctionType
from typing import Any, Literal

from lrms_sim.written import name_of_written


@dataclass(frozen=True, slots=True)
class AwrtLocation:
    """Asks in ascending order of the AWRT of the jobs one has delegated to each partner.

    Only jobs that have been delivered to the partner and are completed by now count; a partner
    without history counts 0 and comes first; ties go by site order (paper 003, section 7.1).

    A partner that accepts jobs and never completes them would so keep the good name of its last
    completed job for ever, or stay first without one. A site can therefore count the jobs that
    are open at a partner: as soon as they have waited there longer, on average, than the
    completed ones took, they count with the time they have waited so far, and with the
    consumption they asked for. Open jobs never make a partner look better.

    Attributes:
        open_jobs: "ignore" (the paper) or "count".

    Raises:
        ValueError: `open_jobs` is something else.
    """

    open_jobs: Literal["ignore", "count"] = "ignore"

    def __post_init__(self) -> None:
        """Checks the word."""
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
    """Asks in a given order; a partner that is not named is not asked.

    Attributes:
        order: names of partners, each once.

    Raises:
        ValueError: a name comes twice.
    """

    order: tuple[str, ...]

    def __post_init__(self) -> None:
        """Checks that no name comes twice."""
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
    """What a site knows of a partner when it decides whom to ask first.

    Attributes:
        name: of the partner.
        consumption: Σ p·m of own jobs that were delegated there and are completed,
            processor-seconds.
        weighted_response: Σ p·m·(C - r) of these.
    """

    name: str
    consumption: float
    weighted_response: float

    @property
    def awrt(self) -> float:
        """Their average weighted response time, seconds; 0 where there are none."""
        return self.weighted_response / self.consumption if self.consumption > 0 else 0.0


@dataclass(frozen=True, slots=True)
class WrittenLocation:
    """A location policy written in Python: a function, or an object with a method `ask`.

    It is given a `PartnerRecord` of each partner, in site order, and returns the names of those
    to ask, in order; a partner that is left out is not asked. It is called for every job.

    Attributes:
        written: the object or function.
    """

    written: Any

    @property
    def name(self) -> str:
        """A word for people."""
        return name_of_written(self.written)

    @property
    def order(self) -> None:
        """There is no fixed order: the policy is asked for every job."""
        return

    @property
    def count_open(self) -> bool:
        """Completed jobs alone count."""
        return False

    def among(self, _partners: Collection[str]) -> "WrittenLocation":
        """Returns itself: a written policy is given the partners with every job."""
        return self

    def asking_order(self, partners: Sequence[PartnerRecord]) -> list[str]:
        """Returns the names of partners in the order in which they are to be asked.

        Raises:
            ValueError: the policy has named somebody twice, or who is no partner.
            TypeError: it has not returned several names.
        """
        ask = getattr(self.written, "ask", self.written)
        answer = ask(list(partners))
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            raise TypeError(
                f"location policy {self.name!r} returns {answer!r}; it must be a list of names"
            )
        # One more than there are is enough to see a name twice, and an iterator may have no end.
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


LocationPolicy = AwrtLocation | FixedOrder | WrittenLocation


def location_of(policy: Any) -> LocationPolicy:
    """Returns a location policy; one written in Python is wrapped.

    Raises:
        TypeError: it is none.
    """
    # First what asks by itself: a class of a user may be derived from one of those above.
    asks = callable(getattr(policy, "ask", None)) and not isinstance(policy, type)
    if isinstance(policy, FunctionType) or asks:
        return WrittenLocation(policy)
    if isinstance(policy, LocationPolicy):
        return policy
    raise TypeError(
        f"{policy!r} is no location policy; possible are AwrtLocation and FixedOrder, a function, "
        "and an object with a method ask(partners)"
    )
