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

    @property
    def requested_time(self) -> float:
        """Most that the job may run, seconds."""

    @property
    def starts_now(self) -> bool:
        """Whether the site's batch system would start the job at once; asked within rails alone."""

class CompiledTransfer:
    """A transfer policy in the form in which every host executes it."""

    @property
    def decides(self) -> bool:
        """Whether there is a policy: one made by a constructor below."""

    @property
    def rails(self) -> CompiledRails | None: ...
    @property
    def needs_rails(self) -> bool:
        """Whether its rules look at what is asked within rails alone, and it has none."""

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
        rules: Sequence[Sequence[float]],
        table: MembershipTable | None = None,
        *,
        requested_time: bool = False,
        starts_now: bool = False,
    ) -> CompiledTransfer:
        """Compiles rules: γ and σ for NWP, for NJP, for each further feature, then ±1."""

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

        Only rails, and rules within them, look at the requested time and at whether the job would
        start at once; only rails look at the books: own work, own requested, taken and given, as
        `grms.policy.rails` has them.
        """

    def output(
        self, nwp: float, njp: float, *, requested_time: float = 0.0, starts_now: bool = False
    ) -> float:
        """Returns Σφy of a rule base, whose sign is the decision."""
