"""Errors of a site's clients, without importing gRPC.

`grms.client` exports both.
"""

from lrms_sim.util.errors import HanseError


class SiteError(HanseError):
    """A site has refused, or cannot be reached.

    Attributes:
        code: the gRPC status, such as `INVALID_ARGUMENT`.
        field: the invalid field of the request; may be empty.
    """

    def __init__(self, code: str, reason: str, field: str = "") -> None:
        self.code = code
        self.reason = reason
        self.field = field
        super().__init__(f"{reason} ({code})")

    @property
    def is_forgotten(self) -> bool:
        """Whether a job was asked for, or handed in again with its key, that ended so long ago that the site has forgotten how."""
        return self.field in {"job_id.forgotten", "idempotency_key.forgotten"}

    @property
    def never_was(self) -> bool:
        """Whether a job was asked for of whose name the site has never had one."""
        return self.field == "job_id.never"

    @property
    def is_draining(self) -> bool:
        """Whether the site itself has said that it takes no job now; a job was not taken then, with this key neither before."""
        return self.field == "site.draining"


class SiteUnavailable(SiteError):  # noqa: N818  # named for what it says
    """The site could not be reached in time, or takes no work now."""


def unreached(socket: object) -> SiteUnavailable:
    """Returns the error for a socket without a listener."""
    return SiteUnavailable("UNAVAILABLE", f"no daemon answers on {socket}; is it running?")
