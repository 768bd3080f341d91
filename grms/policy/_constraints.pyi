class CompiledConstraints:
    """Exchange constraints in the form that every host executes, with the values of `grms.policy.constraints`.

    Work in `balance` is in seconds of the whole machine; `promise` is tolerance, trust and
    suspension in seconds, and the number of doublings, or `None` if it is not enforced; `account` is
    whether guests are preempted, allowance, memory in seconds, cap, period in seconds, lost work as
    balance, empty returns, whether guests may be protected, and whether some give way by what partners are
    owed, or `None` if none is kept.
    """

    def __init__(
        self,
        *,
        start_now: bool = True,
        guest_length: float = ...,
        balance: float = ...,
        balance_weight: float = 1.0,
        promise: tuple[float, float, float, int] | None = None,
        account: tuple[bool, float, float, float, float, float, int, bool, bool] | None = None,
    ) -> None: ...
    @property
    def start_now(self) -> bool:
        """Whether a decision needs to know if a job would start at once."""

    @property
    def promise(self) -> bool:
        """Whether partners are held to their promise to start a job at once."""

    @property
    def account(self) -> bool:
        """Whether the site keeps an account of itself."""

    def may_offer(
        self,
        job_processors: int,
        requested_time: float,
        *,
        processors: int,
        now: float,
        credit: float,
        open_work: float,
        open_count: int,
        suspended_until: float,
    ) -> bool:
        """Returns whether a site of that size entrusts such a job to a partner."""

    def late(self, delegated: float, lasted: float, ended: float) -> bool:
        """Returns whether a job that has ended was not started as promised."""

    def overdue(self, delegated: float, requested_time: float, now: float) -> bool:
        """Returns whether a job that has not ended should have, by its request."""

    def broken(self, now: float, *, breaches: int, suspended_until: float) -> tuple[int, float]:
        """Returns breaches and the end of the suspension once another promise is broken."""

    def handing(
        self,
        job_processors: int,
        requested_time: float,
        checkpoint: float,
        *,
        processors: int,
        own_work: float,
        own_requested: float,
        taken: float,
        given: float,
        in_credit: bool,
        starts_now: bool,
    ) -> int:
        """Returns how a site that can preempt takes a guest for which enough processors are idle.

        Args:
            job_processors: of the guest.
            requested_time: what is left of its request, seconds.
            checkpoint: it keeps its state so often, seconds; 0: never.
            processors: of the site.
            own_work: processor seconds of own users' ended jobs.
            own_requested: the same, each times its request in seconds.
            taken: of this partner's jobs, processor seconds.
            given: to this partner, processor seconds.
            in_credit: the site is, by its account.
            starts_now: its batch system would start such a job at once.

        Returns:
            2 protected, 1 preemptible, 0 declined.
        """

    def lost(
        self,
        lost: float,
        now: float,
        *,
        processors: int,
        debt: float,
        credit: float,
        breaches: int,
        suspended_until: float,
    ) -> tuple[float, float, int, float]:
        """Returns debt, credit, breaches and end of the suspension once a job was sent home.

        `lost` is the work lost with it, processor seconds; `processors` is the home site's size.
        """

def favored(favor: float, received: float, done: float) -> float:
    """Returns what a site owes a partner that has done so much for it, and it so much for the partner.

    All in processor seconds; `favor` is what it owed before.
    """

def kept(elapsed: float, checkpoint: float, run_left: float) -> float:
    """Returns what a job has kept that is sent home, seconds of its run time.

    `elapsed` is the time since this start, `checkpoint` how often it keeps its state (0: never), `run_left`
    what was left to do at this start; infinity where nobody knows.
    """
