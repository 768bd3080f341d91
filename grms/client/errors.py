"""Why a site does not do what a program asks; nothing of gRPC is imported for it.

`grms.client` has both under the same names.
"""

from lrms_sim.errors import HanseError


class SiteError(HanseError):
    """A site has refused, or cannot be reached.

    Attributes:
        code: the gRPC status, `INVALID_ARGUMENT` and so on.
        reason: for a person.
        field: the field of the request that is wrong; may be empty.
    """

    def __init__(self, code: str, reason: str, field: str = "") -> None:
        self.code = code
        self.reason = reason
        self.field = field
        super().__init__(f"{reason} ({code})")


class SiteUnavailable(SiteError):  # noqa: N818  # named for what it says
    """The site could not be reached in time, or takes no work now."""


def unreached(socket: object) -> SiteUnavailable:
    """Returns the error that nobody listens on a socket."""
    return SiteUnavailable("UNAVAILABLE", f"no daemon answers on {socket}; is it running?")
