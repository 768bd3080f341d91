from collections.abc import Callable, Sequence

from grms.policy._constraints import CompiledConstraints

class MembershipTable:
    """Memory for the memberships of one rule base at a time, for one site and one thread.

    A rule base compiled with a table decides bit-identically, several times faster over a long
    replay. The table belongs to the rule base compiled with it last; an earlier one then computes
    every membership anew.
    """

    def __init__(self, processors: int, rules: int, waiting_max: int = 16384) -> None: ...

class TransferQuestion:
    """Input of a transfer policy written in Python; compiled ones get the same."""

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
        """Whether the job is local; else it is a partner's offer."""

    @property
    def requested_time(self) -> float:
        """Wall-time limit in seconds."""

    @property
    def starts_now(self) -> bool:
        """Whether the site's batch system would start the job at once; only within constraints."""

    @property
    def fits(self) -> bool:
        """Whether there is room for the job at the site now, whoever waits."""

    @property
    def job_memory(self) -> int:
        """Memory that the job asks for in all, MiB; 0 where it says nothing."""

    @property
    def job_gpus(self) -> int:
        """GPUs that the job asks for in all."""

    @property
    def memory(self) -> int:
        """Memory of the deciding site's nodes, MiB; 0 where it is not counted."""

    @property
    def gpus(self) -> int:
        """GPUs of the deciding site's nodes."""

    @property
    def memory_share(self) -> float:
        """Memory that the job asks for over the site's; 0 where the site counts none."""

    @property
    def gpu_share(self) -> float:
        """GPUs that the job asks for over the site's; 0 where there are none."""

    @property
    def dominant_share(self) -> float:
        """The largest of its shares of the site's processors, memory and GPUs."""

class CompiledTransfer:
    """A transfer policy in the form in which every host executes it."""

    @property
    def decides(self) -> bool:
        """Whether there is a policy, made by a constructor below."""

    @property
    def rails(self) -> CompiledConstraints | None: ...
    @property
    def needs_constraints(self) -> bool:
        """Whether its rules need constraints, and it has none."""

    @staticmethod
    def always_keep() -> CompiledTransfer: ...
    @staticmethod
    def always_agree() -> CompiledTransfer: ...
    def constrained(self, rails: CompiledConstraints) -> CompiledTransfer:
        """Returns this policy within constraints."""

    @staticmethod
    def accept_when_fit() -> CompiledTransfer: ...
    @staticmethod
    def rule_base(
        rules: Sequence[Sequence[float]],
        table: MembershipTable | None = None,
        *,
        requested_time: bool = False,
        memory_share: bool = False,
        gpu_share: bool = False,
        dominant_share: bool = False,
        starts_now: bool = False,
    ) -> CompiledTransfer:
        """Compiles rules: γ and σ for NWP, for NJP, for each further feature, then ±1."""

    @staticmethod
    def written(answer: Callable[[TransferQuestion], object]) -> CompiledTransfer:
        """Returns a policy that calls a function; its exceptions are raised by the replay."""

    def check(self) -> None:
        """Raises the exception of a function since the last call."""

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
        fits: bool | None = None,
        job_memory: int = 0,
        job_gpus: int = 0,
        memory: int = 0,
        gpus: int = 0,
        within: bool = True,
    ) -> bool:
        """Returns whether the deciding site wants to run the job itself.

        On a machine of nodes `fits` is whether there is room for it now, by default whether as many
        processors are free; memory and GPUs are those of the job and of the site.

        Only constraints, and rules within them, use the requested time and whether the job would start
        at once; only constraints use the books: own work, own requested, taken and given, as in
        `grms.policy.constraints`. `within` its constraints, or as if it had none.
        """

    def output(
        self,
        nwp: float,
        njp: float,
        *,
        requested_time: float = 0.0,
        memory_share: float = 0.0,
        gpu_share: float = 0.0,
        dominant_share: float = -1.0,
        starts_now: bool = False,
    ) -> float:
        """Returns Σφy of a rule base, whose sign is the decision.

        Shares are in percent; a dominant share below 0 is the largest of `njp` and the two others.
        """

def history_with_open(
    consumption: float,
    weighted_response: float,
    open_consumption: float,
    open_submitted: float,
    now: float,
) -> tuple[float, float]:
    """Returns a partner's sums including its open jobs.

    They count once they have waited longer, on average, than the completed ones took; then as if
    they ended now (`AwrtLocation.open_jobs`).

    Args:
        consumption: Σ p·m of jobs that ended there, processor seconds.
        weighted_response: Σ p·m·(C−r) of these.
        open_consumption: Σ of requested processor seconds of the open ones.
        open_submitted: Σ of the same times r, their submit times.
        now: seconds.

    Returns:
        Consumption and weighted response, to be divided.
    """

def order_by_awrt(
    consumption: Sequence[float],
    weighted_response: Sequence[float],
    asked: Sequence[int] | None = None,
) -> list[int]:
    """Returns partner numbers in ascending order of AWRT, ties by how often each has been asked."""
