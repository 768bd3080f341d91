"""What can go wrong outside this program, as errors whose text is meant for its user."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MISTAKES_SHOWN_MAX: Final = 20
"""Most mistakes of one file that are said; one slip in a large file is made many times."""


class BrokerError(Exception):
    """The base of every error that a user can put right; its text says what, where and how."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong in a file.

    Attributes:
        key: path of the offending key: `workflow.specification.tasks[3].parents[0]`; empty where
            the file as a whole is meant.
        text: the value and what is allowed.
    """

    key: str
    text: str


class FileError(BrokerError):
    """A file that cannot be used, with everything that is wrong in it.

    Attributes:
        file: as the user named it.
        mistakes: at least one.
    """

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        self.file = file
        self.mistakes = tuple(mistakes)
        lines = [
            f"{file}: {each.key}: {each.text}" if each.key else f"{file}: {each.text}"
            for each in self.mistakes[:MISTAKES_SHOWN_MAX]
        ]
        more = len(self.mistakes) - MISTAKES_SHOWN_MAX
        if more > 0:
            lines.append(f"{file}: … and {more} more mistakes")
        super().__init__("\n".join(lines))


class InputError(BrokerError):
    """Files that can be read, but make no problem together."""


class OutputError(BrokerError):
    """A result cannot be written where it should."""
