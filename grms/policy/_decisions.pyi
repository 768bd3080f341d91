from collections.abc import Sequence

class CompiledTransfer:
    """A transfer policy in the form in which every host executes it."""

    @staticmethod
    def always_keep() -> CompiledTransfer: ...
    @staticmethod
    def accept_when_fit() -> CompiledTransfer: ...
    @staticmethod
    def rule_base(rules: Sequence[tuple[float, float, float, float, float]]) -> CompiledTransfer:
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
