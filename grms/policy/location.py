"""Location policies: whom to ask first.

Both know of a partner what a site may know: its name and size, and how one's own jobs fared there.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AwrtLocation:
    """Asks in ascending order of the AWRT of the jobs one has delegated to each partner.

    Only jobs that have been delivered to the partner and are completed by now count; a partner
    without history counts 0 and comes first; ties go by site order (paper 003, section 7.1).
    """

    name: str = "awrt"


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
