"""What can go wrong outside this program, as errors whose text is meant for its user."""

from collections.abc import Sequence

from lrms_sim.commandline.mistakes import Mistake, said_of
from lrms_sim.errors import HanseError


class BrokerError(HanseError):
    """The base of every error that a user can put right; its text says what, where and how."""


class FileError(BrokerError):
    """A file that cannot be used, with everything that is wrong in it.

    Attributes:
        file: as the user named it.
        mistakes: at least one.
    """

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        self.file = file
        self.mistakes = tuple(mistakes)
        super().__init__(said_of(file, self.mistakes))


class InputError(BrokerError):
    """Files that can be read, but make no problem together."""


class OutputError(BrokerError):
    """A result cannot be written where it should."""
