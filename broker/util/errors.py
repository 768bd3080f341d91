"""What can go wrong outside this program, as errors whose text is meant for its user."""

from lrms_sim.util.errors import HanseError
from lrms_sim.util.file_errors import MistakesError


class BrokerError(HanseError):
    """Base of all errors that a user can fix; the text says what, where and how."""


class FileError(MistakesError, BrokerError):
    """A file that cannot be used, with everything that is wrong in it."""


class InputError(BrokerError):
    """Files that can be read, but make no problem together."""


class OutputError(BrokerError):
    """A result cannot be written."""


class CallError(BrokerError):
    """A broker has refused or cannot be reached; `code` is the gRPC status, such as `NOT_FOUND`."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(f"{reason} ({code})")


def unreached(socket: object) -> CallError:
    """Returns the error for a socket without a listener."""
    return CallError(
        "UNAVAILABLE",
        f"no broker answers on {socket}; is it running? `gorba serve CONFIG` runs one, --broker or "
        "GORBA_SOCKET names its socket",
    )
