"""How long a job that has outlived its request is taken to run for, as docs/disciplines.md says."""

MINUTE, HOUR = 60.0, 3600.0
CORRECTIONS = [
    *(minutes * MINUTE for minutes in (1, 5, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 5, 10, 20, 50, 100)),
]
"""What is added to the first estimate of a running job, one after the other, in seconds."""


def longer(requested_time: float, start_time: float, now: float) -> float:
    """Returns the next estimate whose end is still to come, in seconds from the start."""
    added = list(CORRECTIONS)
    while not start_time + (requested_time + added[0]) > now:
        added.append(2.0 * added[-1])
        del added[0]
    return requested_time + added[0]
