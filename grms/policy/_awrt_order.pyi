from collections.abc import Sequence

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
