"""What can go wrong outside this program, as errors whose text is meant for its user."""

from lrms_sim.commandline.mistakes import MistakesError
from lrms_sim.errors import HanseError


class BrokerError(HanseError):
    """The base of every error that a user can put right; its text says what, where and how."""


class FileError(MistakesError, BrokerError):
    """A file that cannot be used, with everything that is wrong in it."""


class InputError(BrokerError):
    """Files that can be read, but make no problem together."""


class OutputError(BrokerError):
    """A result cannot be written where it should."""
