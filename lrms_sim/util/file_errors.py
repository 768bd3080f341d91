"""Errors in a file, key by key, as shown to the user."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from lrms_sim.util.errors import HanseError
from lrms_sim.util.messages import printable

MISTAKES_SHOWN_MAX: Final = 20
"""Most errors shown for one file; one slip in a large file repeats."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One error in a file.

    Attributes:
        key: path of the offending key: `workflow.specification.tasks[3].parents[0]`; empty for the
            file as a whole.
        text: the value and what is allowed.
    """

    key: str
    text: str


def said_of(file: str, mistakes: Sequence[Mistake]) -> str:
    """Returns a line for each error, up to `MISTAKES_SHOWN_MAX`; `file` is as the user named it."""
    lines = [
        # A name within the path may have line ends; every mistake is one line.
        f"{file}: {printable(each.key)}: {each.text}" if each.key else f"{file}: {each.text}"
        for each in mistakes[:MISTAKES_SHOWN_MAX]
    ]
    if (more := len(mistakes) - MISTAKES_SHOWN_MAX) > 0:
        lines.append(f"{file}: … and {more} more mistakes")
    return "\n".join(lines)


class MistakesError(HanseError):
    """A file that cannot be used, as the user named it, with everything that is wrong in it."""

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        self.file = file
        self.mistakes = tuple(mistakes)
        super().__init__(said_of(file, self.mistakes))

    @classmethod
    def of(cls, file: str, text: str) -> Self:
        """Returns the error of a text of `lrms_sim.util.files`, which begins with the file."""
        return cls(file, [Mistake("", text.removeprefix(f"{file}: "))])
