"""Admission: who may call, how often, and how callers are refused.

Every refusal has a gRPC status, a reason for a person, and details for programs as `google.rpc`
defines them; it is counted.
"""

import time
from collections import Counter
from collections.abc import Callable, Container, Sequence
from typing import Final, TypeVar

import grpc
import structlog

from grms.daemon.pacing import Rate, Seldom
from grms.daemon.rpc.requests import Context, Questions, refuse
from grms.security.tls import NotAdmittedError, admit, shown_site
from grms.site.gateway.peer_listener import Shown
from grms.site.gateway.token_caller import TokenCaller, TokenUser
from grms.site.gateway.user_listener import User, UserSocket
from grms.site.model.commands import Refuse
from grms.site.model.events import Event
from grms.site.model.jobs import HomeJob
from grms.site.runtime.event_loop import Engine
from grms.site.scheduler.state import SiteState

T = TypeVar("T")

REFUSALS_LOGGED_PER_S: Final = 0.1
"""Rate of logging refusals of one caller for one reason; all are counted."""

STRANGE: Final = frozenset(
    {
        "no_operator",
        "no_certificate",
        "no_identity",
        "expired",
        "not_listed",
        "speaks_for_another",
        "forbidden",
        "disputed",
    }
)
"""Reasons worth attention; the others come with a busy day."""


class Admission(Questions[Event, SiteState]):
    """Lets callers in, and asks the engine for them.

    Attributes:
        refused: how many calls were refused, by reason.
        on_refused: called with the reason of each refusal.
        on_stopping: called when the daemon begins to end.
        partners: whom partners' calls are taken from.
        operators: names of users who may use the operators' service.
        shown: tells what the other side of a connection has shown, by the connection's source.
        check_standing: ends the standing connections of whoever may not call any more, by the names
            that may.

    Args:
        users: knows who is at the other end of a user's connection; `None` if there are none.
        operators: names of users who may use the operators' service, besides the daemon's own user
            and root.
        brokers: names that may use the reservation service over the network.
        submissions: how often users may submit.
        offers: how often partners may offer.
        output_reads: how often partners may ask what their running jobs print.
    """

    refuse = Refuse
    again = ": ask again then, with the same key"
    engine: Engine

    def __init__(
        self,
        engine: Engine,
        *,
        users: UserSocket | None,
        operators: Sequence[str],
        own_uid: int,
        partners: Sequence[str],
        brokers: Sequence[str],
        tls: bool,
        submissions: Rate,
        offers: Rate,
        output_reads: Rate,
        log: structlog.typing.FilteringBoundLogger | None = None,
    ) -> None:
        super().__init__(engine)
        self.refused: Counter[str] = Counter()
        self.on_refused: Callable[[str], None] | None = None
        self.on_stopping: list[Callable[[], None]] = []
        self.shown: Callable[[str], Shown] = lambda _: {}
        self.check_standing: Callable[[Container[str]], None] = lambda _: None
        self._users = users
        self.operators = frozenset(operators)
        self._own_uid = own_uid
        self.partners = frozenset(partners)
        self._brokers = frozenset(brokers)
        self._tls = tls
        self._submissions = submissions
        self._offers = offers
        self._output_reads = output_reads
        self._log = structlog.get_logger() if log is None else log
        self._refusals_logged = Seldom(REFUSALS_LOGGED_PER_S)

    def trust_changed(self) -> None:
        """Has every standing connection of partners and brokers checked anew."""
        self.check_standing(self.partners | self._brokers)

    def count(self, reason: str, context: Context | None = None, text: str = "") -> None:
        """Counts a refusal, and logs it if the call is known.

        At most six per minute are logged for one reason and caller; the next entry says how many
        were left out.
        """
        self.refused[reason] += 1
        if self.on_refused is not None:
            self.on_refused(reason)
        if context is None:
            return
        who = self.who(context)
        more = self._refusals_logged.to_tell(f"{reason} {who}")
        if more is None:
            return
        write = self._log.warning if reason in STRANGE else self._log.info
        write("refused", reason=reason, caller=who, text=text, **more)

    def who(self, context: Context) -> str:
        """Returns who calls, as far as it is known: `user:NAME`, `site:NAME` or an address."""
        if isinstance(context, TokenCaller):
            return f"user:{context.user.name}, by a token"
        peer = context.peer()
        if self._users is not None and (user := self._users.user(peer)) is not None:
            return f"user:{user.name}"
        for pem in self.shown(peer).get("x509_pem_cert", ()):
            return f"site:{shown_site(pem) or '?'}"
        return "somebody without a certificate"

    def audit(self, act: str, user: User | str, **details: object) -> None:
        """Logs what a user or an operator has done.

        `act` is one word; `user` may also be `broker:NAME` or `user:NAME`, an owner of
        reservations.
        """
        who = {"user": user} if isinstance(user, str) else {"user": user.name, "uid": user.uid}
        by = {"by": "token"} if isinstance(user, TokenUser) else {}
        self._log.info("audit", act=act, **who, **by, **details)

    def stop(self) -> None:
        """Stops admitting calls."""
        self.stopping = True
        for told in self.on_stopping:
            told()

    # --- who is it? ----------------------------------------------------------------------------

    async def user(self, context: Context) -> User:
        """Returns the user who calls; UNAUTHENTICATED if neither the kernel nor a token has identified it."""
        if isinstance(context, TokenCaller):
            return context.user
        user = None if self._users is None else self._users.user(context.peer())
        if user is None:
            self.count("no_user", context)
            await refuse(
                context,
                grpc.StatusCode.UNAUTHENTICATED,
                "users are served over the site's Unix socket alone",
            )
        return user

    def is_operator(self, user: User) -> bool:
        """Returns whether a user is an operator of this site; by a token nobody is."""
        if isinstance(user, TokenUser):
            return False
        return user.uid in {0, self._own_uid} or user.name in self.operators

    async def operator(self, context: Context) -> User:
        """Returns the operator who calls; PERMISSION_DENIED for any other user."""
        user = await self.user(context)
        if not self.is_operator(user):
            self.count("no_operator", context, "operators alone may do that")
            await refuse(
                context,
                grpc.StatusCode.PERMISSION_DENIED,
                f"{user.name} is no operator of this site; its configuration lists them",
            )
        return user

    async def partner(self, context: Context, claimed: str) -> str:
        """Returns the partner who calls.

        Refuses a caller whose certificate does not identify it, who is not listed, or who speaks
        for another.
        """
        speaker = await self._certified(context, self.partners, claimed)
        if speaker != claimed:
            self.count("speaks_for_another", context, f"it claims to be {claimed!r}")
            await refuse(
                context,
                grpc.StatusCode.PERMISSION_DENIED,
                f"{speaker} cannot speak for {claimed!r}",
                field="site",
            )
        return speaker

    async def check_listed(self, context: Context) -> None:
        """Refuses callers without a listed certificate; without TLS no one is identified."""
        if self._tls:
            await self._certified(context, self.partners | self._brokers, "")

    async def reserver(self, context: Context) -> str:
        """Returns who wants to reserve: `user:NAME`, or `broker:NAME` over the network."""
        if self._users is not None and (user := self._users.user(context.peer())) is not None:
            return f"user:{user.name}"
        if not self._tls:
            await self.user(context)
        return f"broker:{await self._certified(context, self._brokers, '')}"

    async def _certified(self, context: Context, allowed: frozenset[str], claimed: str) -> str:
        if not self._tls:
            # Only loopback is listened on: whoever is on this machine is taken at their word.
            if claimed not in allowed:
                reason = f"{claimed!r} is not among the partners of this site"
                self.count("not_listed", context, reason)
                await refuse(context, grpc.StatusCode.PERMISSION_DENIED, reason, field="site")
            return claimed
        try:
            return admit(self.shown(context.peer()), allowed, now=time.time())
        except NotAdmittedError as error:
            self.count(str(error.refusal), context, str(error))
            await refuse(context, error.status, str(error))

    # --- may it come in now? -------------------------------------------------------------------

    async def check_submission(self, context: Context, user: User) -> None:
        """Refuses a submission that comes too soon, or while nothing new can be kept."""
        await self._check_rate(context, self._submissions, user.name, "submissions")
        await self.check_journal(context)

    async def check_offer(self, context: Context, partner: str) -> None:
        """Refuses an offer that comes too soon, or while nothing new can be kept."""
        await self._check_rate(context, self._offers, partner, "offers")
        await self.check_journal(context)

    async def check_output(self, context: Context, partner: str) -> None:
        """Refuses a question for a job's output that comes too soon."""
        await self._check_rate(context, self._output_reads, partner, "output_reads")

    async def _check_rate(self, context: Context, rate: Rate, caller: str, what: str) -> None:
        wait_s = rate.wait_s(caller)
        if wait_s > 0:
            self.count(f"{what}_rate", context)
            await refuse(
                context,
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"too many {what} by {caller}; try again in {max(wait_s, 0.001):.3f} s",
                retry_s=wait_s,
            )

    async def look_at(
        self,
        context: Context,
        read: Callable[[SiteState], T],
        of: Callable[[HomeJob], bool],
    ) -> T:
        """As `look`, of local users' jobs alone: those without news are shown in any case."""
        return await self.look(
            context, read, settled=lambda: not any(map(of, self.engine.unwritten()))
        )
