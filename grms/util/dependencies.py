"""Dependencies among jobs, in the notation of Slurm: `afterok:a-12:a-13,afterany:a-14_3,singleton`."""

import re
from typing import Final

import msgspec

KINDS: Final = {
    "afterok": "after jobs that have completed",
    "afterany": "after jobs that have ended, however they did",
    "afternotok": "after jobs that have ended, and not completed",
    "aftercorr": "each element of an array after the element of the same index of another array has completed",
    "singleton": "after all jobs of the same name and user that were handed in before",
}
"""What a job may wait for."""

DEPENDENCIES_MAX: Final = 1000
"""Most jobs that one job may wait for; an array counts as one."""

ALL_MAX: Final = 200_000
"""Most jobs that the elements of an array may wait for, counted for each element."""

_JOB: Final = re.compile(r"[^\s,:?+]+", re.ASCII)
_JOB_ID: Final = re.compile(r"\S*\d\S*", re.ASCII)


class Dependency(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a job waits for; `job_id` is that of a job, an element or a whole array; empty for `singleton`.

    Raises:
        ValueError: there is no such kind, or a job is missing or one too many.
    """

    kind: str
    job_id: str = ""

    def __post_init__(self) -> None:
        """Checks the fields."""
        if self.kind not in KINDS:
            raise ValueError(
                f"dependency {self.kind!r} is none that a site knows; there are {', '.join(KINDS)}"
            )
        if bool(self.job_id) != (self.kind != "singleton"):
            what = "goes without a job" if self.job_id else "needs a job, as in afterok:a-12"
            raise ValueError(f"dependency {self.kind} {what}")

    def __str__(self) -> str:
        """Returns the notation."""
        return f"{self.kind}:{self.job_id}" if self.job_id else self.kind


def parse_dependencies(text: str) -> tuple[Dependency, ...]:
    """Returns what a text in Slurm's notation names; a job without a kind means `afterany`, as there.

    Raises:
        ValueError: it is none, or has what a site does not know: `?` for alternatives, and other kinds.
    """
    if "?" in text:
        raise ValueError(
            f"dependency {text!r}: of alternatives (?) a site knows nothing; jobs wait for all that "
            f"is listed, with a comma between"
        )
    found: list[Dependency] = []
    for part in text.split(","):
        kind, *jobs = part.split(":")
        if kind not in KINDS and _JOB_ID.fullmatch(kind):
            kind, jobs = "afterany", [kind, *jobs]
        for job in jobs:
            if not _JOB.fullmatch(job):
                raise ValueError(f"dependency {text!r}: {job!r} is no job")
        found += [Dependency(kind, job) for job in jobs] or [Dependency(kind)]
    unique = tuple(dict.fromkeys(found))
    if len(unique) > DEPENDENCIES_MAX:
        raise ValueError(
            f"{len(unique)} dependencies; at most {DEPENDENCIES_MAX} are possible, and an array is one"
        )
    return unique
