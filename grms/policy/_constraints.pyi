class CompiledConstraints:
    """Exchange constraints in the form that every host executes, with the values of `grms.policy.constraints`.

    Work in `balance` is in seconds of the whole machine; `promise` is tolerance, trust and
    suspension in seconds, and the number of doublings, or `None` if it is not enforced.
    """

    def __init__(
        self,
        *,
        start_now: bool = True,
        guest_length: float = ...,
        balance: float = ...,
        balance_weight: float = 1.0,
        promise: tuple[float, float, float, int] | None = None,
    ) -> None: ...
    @property
    def start_now(self) -> bool:
        """Whether a decision needs to know if a job would start at once."""

    @property
    def promise(self) -> bool:
        """Whether partners are held to their promise to start a job at once."""

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
