"""The Unix socket of users: who speaks is who the kernel says.

gRPC does not tell a service which user is at the other end of a Unix socket. So users connect to a
socket of ours, which asks the kernel for the peer's credentials (`SO_PEERCRED`) and passes the
bytes on to gRPC's own socket (`relay`).

Connections are shared out: no user has more than a share of them, and some are kept for operators, so
that nobody who opens them all keeps those away who could do something about it. So are their calls, over
all connections of a user (`shares`). A connection whose requests are begun and not finished is closed
(`half_sent`), and so is one whose answers are not read (`open_calls`).
"""

import asyncio
import contextlib
import os
import pwd
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from grms.kit.unix_sockets import remove_stale_socket
from grms.site.sockets.half_sent import LOOK_S, HalfSent
from grms.site.sockets.relay import End, Link, Listener, Relay
from grms.site.sockets.shares import CallBudget, CallShares, CallWatch

CREDENTIALS: Final = struct.Struct("3i")
"""What `SO_PEERCRED` gives: process, user, group (unix(7))."""

SOCKET_MODE: Final = 0o666
"""Everybody may knock; what one may do depends on who one is."""


@dataclass(frozen=True, slots=True)
class User:
    """Who is at the other end, as the kernel says.

    Attributes:
        uid: number of the user.
        name: the user's name on this machine; the number where there is none.
    """

    uid: int
    name: str


def user_of(uid: int) -> User:
    """Returns the user of that number."""
    try:
        return User(uid, pwd.getpwuid(uid).pw_name)
    except KeyError:
        return User(uid, str(uid))


@dataclass(frozen=True, slots=True)
class Shares:
    """How the connections of users are shared out.

    Attributes:
        total: connections at one time; more are closed at once.
        per_user: of these, for one user who is no operator.
        reserved: of these, for operators alone.

    Raises:
        ValueError: a share is larger than all, or nothing is left for users.
    """

    total: int
    per_user: int
    reserved: int

    def __post_init__(self) -> None:
        """Checks the bounds."""
        if not (self.total >= 1 and self.per_user >= 1 and 0 <= self.reserved < self.total):
            raise ValueError(f"{self} cannot be kept")

    @classmethod
    def of(cls, total: int, per_user: int, reserved: int) -> "Shares":
        """Returns the shares that are wanted, made smaller where the total is small.

        Args:
            total: connections at one time.
            per_user: wanted for one user; at most half of the rest of a small total.
            reserved: wanted for operators; at most a fifth of the total.
        """
        reserved = min(reserved, total // 5)
        return cls(total, max(1, min(per_user, (total - reserved + 1) // 2)), reserved)


class UserSocket:
    """The socket users connect to, and the list of who is connected.

    Use it as an asynchronous context; gRPC is to listen on `inner_address` before.

    Attributes:
        path: where users connect.
        refused: connections refused.
        on_refused: is told why each one is, and by which limit of the configuration.
        on_exhausted: is told why none can be taken for now.
        is_operator: tells operators from others.

    Args:
        path: where users connect.
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
        self.calls = CallBudget(calls or CallShares.of(2000, 1 << 20))
        self.request_s = request_s
        self.requests = requests
        self.clock = clock
        self.refused = 0
        self.on_refused: Callable[[str, str], None] | None = None
        self.on_exhausted: Callable[[str], None] | None = None
        self.is_operator: Callable[[User], bool] = lambda user: user.uid in {0, os.getuid()}
        self._shares = Shares(shares, shares, 0) if isinstance(shares, int) else shares
        self._relay: Relay[User] = Relay()
        self._by_user: Counter[int] = Counter()
        self._ends: set[_Outer] = set()
        self._look: asyncio.TimerHandle | None = None
        self._listener: Listener | None = None

    @property
    def inner_address(self) -> str:
        """Where gRPC is to listen, as gRPC writes it."""
        return self._relay.inner_address

    def turn(self) -> None:
        """Sends users from now on to another server, which is to listen at the new address."""
        self._relay.turn()

    def user(self, peer: str) -> User | None:
        """Returns who is at the other end of a connection.

        Args:
            peer: the connection's source as gRPC shows it.
        """
        return self._relay.caller(peer)

    @property
    def connections(self) -> int:
        """Connections of users now."""
        return len(self._relay.links)

    async def __aenter__(self) -> Self:
        """Begins to listen.

        Raises:
            SocketInUseError: somebody else does.
            OSError: the socket cannot be made.
        """
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            remove_stale_socket(self.path)
            listening.bind(str(self.path))
            self.path.chmod(SOCKET_MODE)
            # All that are allowed may come at one moment.
            self._listener = Listener(
                [listening], self._shares.total, self._accepted, self._exhausted
            )
        except BaseException as error:
            listening.close()
            self._relay.close()
            if isinstance(error, OSError):
                raise OSError(
                    f"listen.users is {self.path}: {error.strerror}; its folder must exist, and the "
                    "daemon's user must be allowed to write there"
                ) from error
            raise
        self._look_again()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Stops listening and closes every connection."""
        if self._listener is not None:
            self._listener.close()
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()
        if self._look is not None:
            self._look.cancel()
        self._relay.close()

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

    def link(self, outer: "_Outer") -> Link | None:
        """Returns the way of a connection to gRPC, None where there is none."""
        try:
            link = self._relay.connect(outer, outer.user)
        except OSError as error:
            self.refuse(f"the daemon's own socket: {error.strerror}")
            return None
        return link

    def left(self, end: "_Outer") -> None:
        """Notes that a connection is over."""
        self._ends.discard(end)
        uid = end.user.uid
        self._by_user[uid] -= 1
        if not self._by_user[uid]:
            del self._by_user[uid]

    def _look_again(self) -> None:
        now = self.clock()
        for end in list(self._ends):
            end.look(now)
        self._look = asyncio.get_running_loop().call_later(LOOK_S, self._look_again)

    def refuse(self, reason: str, limit: str = "") -> None:
        """Tells why a connection is closed or not taken, and by which limit of the configuration."""
        self.refused += 1
        if self.on_refused is not None:
            self.on_refused(reason, limit)

    def _exhausted(self, why: str) -> None:
        if self.on_exhausted is not None:
            self.on_exhausted(why)


class _Outer(End):
    # The end at the user.

    def __init__(self, owner: UserSocket, user: User) -> None:
        self._owner = owner
        self.user = user
        self._begin = owner.clock()
        self._sent = HalfSent()
        self._calls = CallWatch(owner.calls, "" if owner.is_operator(user) else user.name)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.pause_reading()
        self.link = self._owner.link(self)
        if self.link is None:
            self.transport.abort()

    def other(self) -> End | None:
        return self.link.inner if self.link is not None else None

    def data_received(self, data: bytes) -> None:
        now = self._owner.clock()
        self._sent.feed(data, now)
        if self._sent.count > self._owner.requests:
            self._hang_up(f"has begun {self._sent.count} requests and finished none", "calls")
            return
        if problem := self._calls.asked(data, now):
            self._hang_up(problem, "calls")
            return
        super().data_received(data)
        self._calls.hold(self.transport)

    def deliver(self, data: bytes) -> None:
        self._calls.answered(data, self._owner.clock())
        self._calls.wrote(len(data))
        super().deliver(data)

    def look(self, now: float) -> None:
        limit = self._owner.request_s
        if self.transport is not None and not self.transport.is_closing():
            waiting = self.transport.get_write_buffer_size()
            if now - self._calls.unread_since(waiting, now) > limit:
                text = f"has not read what it was answered within {limit:g} s"
                self._hang_up(text, "request_timeout_s")
                return
            self._calls.let_go(self.transport)
        if now - self._sent.since(self._begin) > limit:
            text = f"has begun a request and not finished it within {limit:g} s"
            self._hang_up(text, "request_timeout_s")

    def _hang_up(self, reason: str, limit: str) -> None:
        self._owner.refuse(f"{self.user.name} {reason}", limit)
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._calls.close()
        self._owner.left(self)
        super().connection_lost(exc)
