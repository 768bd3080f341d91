"""Checks of jobs that no site could accept, without importing gRPC."""

from typing import Final

from grms.util.dependencies import parse_dependencies
from grms.util.job_arrays import ArraySpec

PROCESSORS_MAX: Final = 2**31 - 1


def check_values(
    *,
    processors: int,
    script: str | None = None,
    run_time_s: float | None = None,
    user_group: int | None = None,
    key: str | None = None,
    array: str = "",
    dependency: str = "",
) -> None:
    """Checks arguments of `grms.client.Client.submit`; `ValueError` if no site could accept such a job."""
    if abs(processors) > PROCESSORS_MAX:
        # Limits of the message format; the site has limits of its own.
        raise ValueError(f"processors is {processors}; 1 to {PROCESSORS_MAX} are possible")
    if key == "":
        # From an unset variable: each repetition would be another job.
        raise ValueError("key is empty; leave it out, or give each job one of its own")
    if script is not None and run_time_s is not None:
        raise ValueError("run_time_s is for a job without a script, where it is simulated")
    if array:
        ArraySpec.parse(array)
    if dependency:
        parse_dependencies(dependency)
    if user_group is not None and (run_time_s is None or not 1 <= user_group <= 5):
        raise ValueError(
            f"user_group is {user_group}; 1 to 5 is possible, for a job with run_time_s"
        )
