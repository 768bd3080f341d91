from collections.abc import Sequence

class MembershipTable:
    """Room for the memberships of one rule base at a time, for one site and one thread.

    A rule base that is compiled with a table decides to the last bit as without it, several
    times faster over a long replay. The table belongs to the rule base compiled with it last; one
    compiled with it before then computes every membership anew.
    """

    def __init__(self, processors: int, rules: int, waiting_max: int = 16384) -> None: ...

class CompiledTransfer:
    """A transfer policy in the form in which every host executes it."""

    @property
    def decides(self) -> bool:
        """Whether there is a policy: one made by a constructor below."""

    @staticmethod
    def always_keep() -> CompiledTransfer: ...
    @staticmethod
    def accept_when_fit() -> CompiledTransfer: ...
    @staticmethod
    def rule_base(
        rules: Sequence[tuple[float, float, float, float, float]],
        table: MembershipTable | None = None,
    ) -> CompiledTransfer:
        """Compiles rules (γ and σ for NWP, γ and σ for NJP, ±1)."""

    def accept(
        self,
        job_processors: int,
        *,
        processors: int,
        processors_free: int,
        processors_waiting: int,
        own: bool,
    ) -> bool:
        """Returns whether the deciding site wants to run the job itself."""

    def output(self, nwp: float, njp: float) -> float:
        """Returns Σφy of a rule base, whose sign is the decision."""

def order_by_awrt(consumption: Sequence[float], weighted_response: Sequence[float]) -> list[int]:
    """Returns partner numbers in ascending order of AWRT."""
