from collections.abc import Callable, Sequence

from grms.policy._rails import CompiledRails

class MembershipTable:
    """Room for the memberships of one rule base at a time, for one site and one thread.

    A rule base that is compiled with a table decides to the last bit as without it, several
    times faster over a long replay. The table belongs to the rule base compiled with it last; one
    compiled with it before then computes every membership anew.
    """

    def __init__(self, processors: int, rules: int, waiting_max: int = 16384) -> None: ...

class TransferQuestion:
    """What a transfer policy written in Python is asked: what compiled ones are given."""

    @property
    def job_processors(self) -> int:
        """Width of the job."""

    @property
    def processors(self) -> int:
        """Size of the deciding site."""

    @property
    def processors_free(self) -> int:
        """Processors that are free there now."""

    @property
    def processors_waiting(self) -> int:
        """Sum of the widths of the jobs that wait there."""

    @property
    def own(self) -> bool:
        """Whether the job is of the site's own users; else it is a partner's offer."""

class CompiledTransfer:
    """A transfer policy in the form in which every host executes it."""

    @property
    def decides(self) -> bool:
        """Whether there is a policy: one made by a constructor below."""

    @property
    def rails(self) -> CompiledRails | None: ...
    @staticmethod
    def always_keep() -> CompiledTransfer: ...
    @staticmethod
    def always_agree() -> CompiledTransfer: ...
    def railed(self, rails: CompiledRails) -> CompiledTransfer:
        """Returns this policy, deciding among what rails allow."""

    @staticmethod
    def accept_when_fit() -> CompiledTransfer: ...
    @staticmethod
    def rule_base(
        rules: Sequence[tuple[float, float, float, float, float]],
        table: MembershipTable | None = None,
    ) -> CompiledTransfer:
        """Compiles rules (γ and σ for NWP, γ and σ for NJP, ±1)."""

    @staticmethod
    def written(answer: Callable[[TransferQuestion], object]) -> CompiledTransfer:
        """Returns a policy that asks a function; a replay raises what it has raised."""

    def check(self) -> None:
        """Raises what a function has raised since the last call."""

    def accept(
        self,
        job_processors: int,
        *,
        processors: int,
        processors_free: int,
        processors_waiting: int,
        own: bool,
        requested_time: float = 0.0,
        starts_now: bool = False,
        books: tuple[float, float, float, float] = ...,
    ) -> bool:
        """Returns whether the deciding site wants to run the job itself.

        Only rails look at the requested time, at whether the job would start at once and at the
        books: own work, own requested, taken and given, as `grms.policy.rails` has them.
        """

    def output(self, nwp: float, njp: float) -> float:
        """Returns Σφy of a rule base, whose sign is the decision."""
