"""What no site could take of a job; nothing of gRPC is imported to say so."""

from typing import Final

PROCESSORS_MAX: Final = 2**31 - 1


def check_values(
    *,
    processors: int,
    script: str | None = None,
    run_time_s: float | None = None,
    user_group: int | None = None,
    key: str | None = None,
) -> None:
    """Checks values that a program has given, as `grms.client.Client.submit` describes them.

    Raises:
        ValueError: no site could take such a job.
    """
    if abs(processors) > PROCESSORS_MAX:
        # More than a message can say; what is too much or too little for a site, it says.
        raise ValueError(f"processors is {processors}; 1 to {PROCESSORS_MAX} are possible")
    if key == "":
        # Of a variable that is not set: each repetition would be another job.
        raise ValueError("key is empty; leave it out, or give each job one of its own")
    if script is not None and run_time_s is not None:
        raise ValueError("run_time_s is for a job without a script, where it is simulated")
    if user_group is not None and (run_time_s is None or not 1 <= user_group <= 5):
        raise ValueError(
            f"user_group is {user_group}; 1 to 5 is possible, for a job with run_time_s"
        )
