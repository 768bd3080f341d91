"""Location policies: whom to ask first.

Both know of a partner what a site may know: its name and size, and how one's own jobs fared there.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class AwrtLocation:
    """Asks in ascending order of the AWRT of the jobs one has delegated to each partner.

    Only jobs that have been delivered to the partner and are completed by now count; a partner
    without history counts 0 and comes first; ties go by site order (paper 003, section 7.1).

    So it is in replays. A partner that accepts jobs and never completes them would keep the good
    name of its last completed job for ever, or stay first without one. A daemon can therefore
    count the jobs that are open at a partner: as soon as they have waited there longer, on
    average, than the completed ones took, they count with the time they have waited so far, and
    with the consumption they asked for. Open jobs never make a partner look better.

    Attributes:
        open_jobs: "ignore" (the paper, replays) or "count".

    Raises:
        ValueError: `open_jobs` is something else.
    """

    name: str = "awrt"
    open_jobs: Literal["ignore", "count"] = "ignore"

    def __post_init__(self) -> None:
        """Checks the word."""
        if self.open_jobs not in {"ignore", "count"}:
            raise ValueError(f"open_jobs is {self.open_jobs!r}; it must be 'ignore' or 'count'")


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


LocationPolicy = AwrtLocation | FixedOrder
