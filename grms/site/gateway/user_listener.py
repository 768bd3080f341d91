"""The Unix socket of users, who are authenticated by the kernel.

gRPC does not tell a service which user is at the other end of a Unix socket. So users connect to a
socket of ours, which asks the kernel for the peer's credentials (`SO_PEERCRED`) and relays the
bytes to gRPC's own socket (`gateway`). Connections are shared out: no user has more than a share, and
some are reserved for operators, so that no user can lock them out.
"""

import asyncio
import os
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from grms.daemon.socket_folder import remove_stale_socket
from grms.daemon.user_names import user_name
from grms.site.gateway.gateway import Connection, Gateway, RelayedConnection
from grms.site.gateway.open_calls import CallShares

CREDENTIALS: Final = struct.Struct("3i")
"""`SO_PEERCRED`: process, user, group (unix(7))."""

SOCKET_MODE: Final = 0o666
"""World-writable; authorization is by peer credentials."""


@dataclass(frozen=True, slots=True)
class User:
    """The peer, as the kernel identifies it; `name` is `#NUMBER` if it has no name here."""

    uid: int
    name: str


def user_of(uid: int) -> User:
    """Returns the user of that number."""
    return User(uid, user_name(uid))


@dataclass(frozen=True, slots=True)
class Shares:
    """How the connections of users are shared out.

    Attributes:
        total: connections at a time; more are closed at once.
        per_user: of these, for one user who is no operator.
        reserved: of these, for operators alone.

    Raises:
        ValueError: a share is larger than all, or nothing is left for users.
    """

    total: int
    per_user: int
    reserved: int

    def __post_init__(self) -> None:
        if not (self.total >= 1 and self.per_user >= 1 and 0 <= self.reserved < self.total):
            raise ValueError(f"{self} cannot be kept")

    @classmethod
    def of(cls, total: int, per_user: int, reserved: int) -> "Shares":
        """Returns the wanted shares, reduced if the total is small.

        `per_user` is at most half of the rest of a small total, `reserved` at most a fifth of the
        total.
        """
        reserved = min(reserved, total // 5)
        return cls(total, max(1, min(per_user, (total - reserved + 1) // 2)), reserved)


class UserSocket(Gateway[User]):
    """The socket users connect to, and the list of who is connected.

    Attributes:
        is_operator: tells operators from others.

    Args:
        shares: of the connections; a number is a total without shares.
        request_s: for a request, from its first byte to its last, seconds.
        requests: of one connection that are begun and not finished.
        calls: how calls are shared out; None: 2,000 in all, half of them for one user at most.
        clock: tells real seconds.
    """

    def __init__(
        self,
        path: Path,
        shares: Shares | int,
        *,
        request_s: float = 20.0,
        requests: int = 250,
        calls: CallShares | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self.is_operator: Callable[[User], bool] = lambda user: user.uid in {0, os.getuid()}
        self._shares = Shares(shares, shares, 0) if isinstance(shares, int) else shares
        self._by_user: Counter[int] = Counter()
        super().__init__(
            self._shares.total,
            calls or CallShares.of(2000, 1 << 20),
            request_s=request_s,
            requests=requests,
            clock=clock,
        )

    def turn(self) -> None:
        """Sends users from now on to another server, which is to listen at the new address."""
        self._relay.turn()

    def user(self, peer: str) -> User | None:
        """Returns who is at the other end of a connection.

        `peer` is the connection's source as gRPC shows it.
        """
        return self._relay.caller(peer)

    async def _bound(self) -> list[socket.socket]:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            remove_stale_socket(self.path)
            listening.bind(str(self.path))
            self.path.chmod(SOCKET_MODE)
        except BaseException as error:
            listening.close()
            if isinstance(error, OSError):
                raise OSError(
                    f"listen.users is {self.path}: {error.strerror}; its folder must exist, and the "
                    "daemon's user must be allowed to write there"
                ) from error
            raise
        return [listening]

    async def __aexit__(self, *exc_info: object) -> None:
        await super().__aexit__(*exc_info)
        self.path.unlink(missing_ok=True)

    def _accepted(self, connection: socket.socket) -> None:
        try:
            _, uid, _ = CREDENTIALS.unpack(
                connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
            )
        except OSError:
            connection.close()
            return
        user = user_of(uid)
        problem = self._problem(user)
        if problem:
            connection.close()
            self.refuse(*problem)
            return
        self._by_user[uid] += 1
        end = _Outer(self, user)
        self._ends.add(end)
        self._relay.start(connection, end)

    def _problem(self, user: User) -> tuple[str, str] | None:
        # In words, and by which limit of the configuration.
        shares, there = self._shares, sum(self._by_user.values())
        if there >= shares.total:
            text = f"{shares.total} connections of users are open; {user.name} is refused"
            return text, "connections"
        if self.is_operator(user):
            return None
        if there >= shares.total - shares.reserved:
            text = (
                f"{there} connections of users are open, and the last {shares.reserved} are kept "
                f"for operators; {user.name} is refused"
            )
            return text, "connections"
        if self._by_user[user.uid] >= shares.per_user:
            text = f"{user.name} has {shares.per_user} connections, as many as one user may have"
            return text, "connections_per_user"
        return None

    def link(self, end: "_Outer") -> RelayedConnection | None:
        """Returns the way of a connection to gRPC, `None` if there is none."""
        return self._connected(end, end.user)

    def left(self, end: "_Outer") -> None:
        """Notes that a connection is over."""
        super().left(end)
        uid = end.user.uid
        self._by_user[uid] -= 1
        if not self._by_user[uid]:
            del self._by_user[uid]


class _Outer(Connection):
    # The end at the user.

    def __init__(self, owner: UserSocket, user: User) -> None:
        super().__init__(owner, user.name, "" if owner.is_operator(user) else user.name)
        self.user = user

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.connect()
