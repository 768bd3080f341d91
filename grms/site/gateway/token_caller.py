"""Who calls by a token, and how a call ends that the services of gRPC answer for one who does not use gRPC."""

from collections.abc import Sequence
from typing import NoReturn, cast

import grpc

from grms.daemon.rpc.requests import Context
from grms.daemon.status_details import DETAILS_KEY, read_details
from grms.site.gateway.user_listener import User


class CallRefusedError(Exception):
    """A service has refused.

    Attributes:
        code: status of gRPC.
        reason: for people.
        field: the wrong one of the request; empty for none.
        retry_s: after so many seconds it is worth trying again; `None` if the service does not say.
    """

    def __init__(
        self, code: grpc.StatusCode, reason: str, field: str = "", retry_s: float | None = None
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.field = field
        self.retry_s = retry_s


class TokenUser(User):
    """A user whom a token has identified, and not the kernel; never an operator."""


class TokenCaller:
    """The context of a call by a user whom a token has identified."""

    def __init__(self, user: TokenUser) -> None:
        self.user = user

    @property
    def context(self) -> Context:
        """This, for services: of a context they use these methods alone where there is one answer."""
        return cast(Context, self)

    def peer(self) -> str:
        """Returns what stands for the connection's source, which no connection has."""
        return f"token:{self.user.name}"

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, bytes]] = (),
    ) -> NoReturn:
        """Ends the call.

        Raises:
            CallRefusedError: always.
        """
        field, retry_s = read_details(dict(trailing_metadata).get(DETAILS_KEY, b""))
        raise CallRefusedError(code, details, field, retry_s)
