"""What can go wrong outside this program, as errors whose text is meant for its user."""

from collections.abc import Sequence
from dataclasses import dataclass


class ScenarioError(Exception):
    """The base of every error that a user can put right; its text says what, where and how."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a scenario file.

    Attributes:
        key: dotted path of the offending key, sites by name: `sites.KTH.workload.trace`; empty
            where the file as a whole is meant.
        text: the value and what is allowed.
    """

    key: str
    text: str


class SpecError(ScenarioError):
    """A scenario file that cannot be used, with everything that is wrong in it.

    Attributes:
        file: the file or bundled scenario as the user named it.
        problems: at least one.
    """

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        places = (f"{file}: {p.key}: " if p.key else f"{file}: " for p in self.problems)
        lines = (place + p.text for place, p in zip(places, self.problems, strict=True))
        super().__init__("\n".join(lines))


class UnknownScenarioError(ScenarioError):
    """Neither a bundled scenario nor a file has that name."""


class TraceMissingError(ScenarioError):
    """A recorded log is not on this machine."""


class WorkloadError(ScenarioError):
    """A workload cannot be read or made."""


class FetchError(ScenarioError):
    """A log could not be downloaded."""


class OutputError(ScenarioError):
    """The results cannot be written to, or read from, the folder."""


class LiveError(ScenarioError):
    """Daemons of a live scenario do not do what they should."""
