"""What operators ask, over gRPC: how the site is, its policies, and an end of new work."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final

import grpc

from grms.daemon.clock import ahead_of
from grms.daemon.messages import WireError
from grms.daemon.rpc.requests import Context, refuse
from grms.daemon.web.access import LINK_S
from grms.policy.circuit_breaker import CircuitBreaker, CircuitBreakerFound
from grms.policy.constraints import DAY, HOUR
from grms.site.config.load import ConfigError
from grms.site.gateway.admission import Admission
from grms.site.gateway.user_listener import User
from grms.site.model.commands import ReplyJob, ReplyPardon
from grms.site.model.events import Drain, Event, Pardon, Resubmit, Resume, TakeBack, WriteOff
from grms.site.model.jobs import GuestJob, full_job_id
from grms.site.model.partners import PartnerBook, two_daemons
from grms.site.model.usage import Weights, cost, month_of
from grms.site.peers.peers import PeerClients
from grms.site.peers.tunnels import Tunnels
from grms.site.pilots.manager import Pilots
from grms.site.rpc.job_service import shown_job
from grms.site.rpc.reconfigure import Reloaded
from grms.site.runtime.journal import Journal
from grms.site.scheduler.exchange_decisions import Standing, given, taken, taken_by_user
from grms.site.scheduler.state import SiteState
from grms.v1 import job_pb2, operator_pb2, operator_pb2_grpc
from lrms_sim.util.version import __version__

NO_PAGES: Final = (
    "this site serves no pages: its configuration has no [dashboard], or the log says why not"
)

OWNER_JOBS_MAX: Final = 100
Intervention = type[TakeBack | Resubmit | WriteOff]
"""What an operator can decide about a job at a partner."""


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What the operators' service shows that the state does not know.

    Attributes:
        clock: "wall", "scaled" or "virtual".
        telemetry_connected: whether the MQTT broker is connected.
        owner: says whose a guest's job is, by its key; empty if nobody has said.
        pilots: what all pilots of the site have done; `None` if it has none.
        reload: reads the configuration anew; raises ConfigError.
        pages: makes an address that shows the pages to one browser; empty if none are served.
    """

    clock: str
    journal: Journal
    telemetry_connected: Callable[[], bool]
    owner: Callable[[str], str]
    pilots: Pilots | None
    reload: Callable[[], Reloaded]
    pages: Callable[[], str]


class OperatorService(operator_pb2_grpc.OperatorServiceServicer):
    """Implements `proto/grms/v1/operator.proto`; `facts` are what the state does not know."""

    def __init__(
        self, admission: Admission, links: PeerClients, tunnels: Tunnels, facts: SiteFacts
    ) -> None:
        self._admission = admission
        self._engine = admission.engine
        self._links = links
        self._tunnels = tunnels
        self._facts = facts
        self._begin = time.monotonic()

    def _write_owners(self, entry: operator_pb2.PartnerStatus, keys: Iterable[str]) -> None:
        found: dict[str, list[str]] = {}
        for key in keys:
            found.setdefault(self._facts.owner(key), []).append(key)
        for pseudonym, jobs in sorted(found.items()):
            entry.guest_owners.add(pseudonym=pseudonym, jobs=jobs[:OWNER_JOBS_MAX])

    async def Status(  # noqa: N802  # gRPC's name
        self,
        request: operator_pb2.StatusRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> operator_pb2.StatusResponse:
        """Returns how the site is."""
        await self._admission.operator(context)
        return await self._status(context)

    async def Pilots(  # noqa: N802  # gRPC's name
        self,
        request: operator_pb2.PilotsRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> operator_pb2.PilotsResponse:
        """Returns the site's pilots."""
        await self._admission.operator(context)
        book, pilots = self._engine.state.memory.pilots, self._facts.pilots
        answer = operator_pb2.PilotsResponse(held=book.held, used=book.used)
        for pilot in book.pilots.values():
            entry = answer.pilots.add(
                resource_id=pilot.resource_id,
                state=pilot.state,
                host=pilot.host,
                asked_time_s=pilot.asked_time,
                reason=pilot.reason or pilot.drained,
            )
            for name in ("open_time", "until", "over_time"):
                value = getattr(pilot, name)
                if not math.isnan(value):
                    setattr(entry, f"{name}_s", value)
            if pilots is not None:
                for name, value in asdict(pilots.use(pilot)).items():
                    setattr(entry, name, value)
        return answer

    async def Partners(  # noqa: N802  # gRPC's name
        self,
        request: operator_pb2.PartnersRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> operator_pb2.PartnersResponse:
        """Returns what the site knows of its partners."""
        await self._admission.operator(context)
        state, now = self._engine.state, self._engine.clock.now()
        count_open = state.settings.location.count_open
        answer = operator_pb2.PartnersResponse()
        for partner in state.settings.partners:
            name = partner.name
            link, book = self._links.links.get(name), state.partners[name]
            if link is None:
                continue  # it is off the list, as the state is to hear
            way = self._tunnels.way(name)
            entry = answer.partners.add(
                name=name,
                endpoint=self._tunnels.shown(name),
                processors=book.processors,
                reachable=link.up,
                lost=book.lost,
                offered=book.offered,
                accepted=book.accepted,
                ended=book.ended,
                open=len(book.open),
                awrt_s=book.awrt(now, count_open=count_open),
                guest_offered=book.guest_offered,
                guest_accepted=book.guest_accepted,
                guest_open=len(book.guests),
                problem=problem_with(link.problem or way.problem or link.unheard, book, now),
                faulty=bool(book.faulty),
                faults=book.faults,
                incompatible=book.incompatible,
                disbelieved=book.disbelieved,
                distrust=book.distrust,
                disputed=book.disputed,
                unused_acceptances=book.budget.unused_lately(now),
                declined_for_unused=book.budget.declined,
                taken=book.taken,
                given=book.given,
                credit=book.trust.credit,
                breaches=book.trust.breaches,
                overdue=book.trust.overdue,
                taken_month=write_standing(taken(state.memory, book, now)),
                given_month=write_standing(given(state.memory, book, now)),
                declined_limited=book.declined_limited,
                way=way.word,
                tunnels=way.tunnels,
            )
            self._write_owners(entry, (guest.lrms_key for guest in book.guests.values()))
            if now < book.trust.suspended_until:
                entry.suspended_until_s = book.trust.suspended_until
            if link.last_heard == link.last_heard:  # nan: never
                entry.last_heard_s = link.last_heard
        return answer

    async def Guests(  # noqa: N802  # gRPC's name
        self, request: operator_pb2.GuestsRequest, context: Context
    ) -> operator_pb2.GuestsResponse:
        """Returns partners' jobs here, and what their users have used this month."""
        await self._admission.operator(context)
        if request.partner and request.partner not in self._engine.state.partners:
            text = f"{request.partner!r} is no partner of this site"
            await refuse(context, grpc.StatusCode.NOT_FOUND, text, field="partner")
        read = partial(guests_of, partner=request.partner, now=self._engine.clock.now())
        return await self._admission.look(context, read)

    async def ReloadPolicies(  # noqa: N802  # gRPC's name
        self,
        request: operator_pb2.ReloadPoliciesRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> operator_pb2.ReloadPoliciesResponse:
        """Reads the configuration anew, all that can be changed or none of it."""
        user = await self._admission.operator(context)
        try:
            reloaded = self._facts.reload()
        except ConfigError as error:
            self._admission.audit("reload", user, problem=str(error))
            await self._admission.invalid(context, WireError("", str(error)))
        self._admission.audit("reload", user, restart_needed=list(reloaded.restart_needed))
        return operator_pb2.ReloadPoliciesResponse(
            policies=reloaded.policies, restart_needed=reloaded.restart_needed
        )

    async def OpenPages(  # noqa: N802  # gRPC's name
        self,
        request: operator_pb2.OpenPagesRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> operator_pb2.OpenPagesResponse:
        """Returns an address that shows the daemon's pages to one browser."""
        user = await self._admission.operator(context)
        address = self._facts.pages()
        if not address:
            await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, NO_PAGES)
        self._admission.audit("open_pages", user)
        return operator_pb2.OpenPagesResponse(address=address, seconds=LINK_S)

    async def Drain(  # noqa: N802  # gRPC's name
        self,
        request: operator_pb2.DrainRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> operator_pb2.StatusResponse:
        """Takes no more work; what has been taken is brought to its end."""
        user = await self._admission.operator(context)
        return await self._let_work(context, user, "drain", Drain(self._engine.new_id()))

    async def Resume(  # noqa: N802  # gRPC's name
        self,
        request: operator_pb2.ResumeRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> operator_pb2.StatusResponse:
        """Undoes Drain."""
        user = await self._admission.operator(context)
        return await self._let_work(context, user, "resume", Resume(self._engine.new_id()))

    async def _let_work(
        self, context: Context, user: User, act: str, event: Event
    ) -> operator_pb2.StatusResponse:
        self._engine.tell(event)
        self._admission.audit(act, user, cause=event.id)
        return await self._status(
            context, f"{act} takes effect all the same; ask for the status then"
        )

    async def TakeBack(  # noqa: N802  # gRPC's name
        self, request: operator_pb2.InterveneRequest, context: Context
    ) -> job_pb2.Job:
        """Has a job ended at its partner, and then decided anew."""
        return await self._intervene(context, "take_back", TakeBack, request.job_id)

    async def Resubmit(  # noqa: N802  # gRPC's name
        self, request: operator_pb2.InterveneRequest, context: Context
    ) -> job_pb2.Job:
        """Decides a job anew, whatever its partner does with it."""
        return await self._intervene(context, "resubmit", Resubmit, request.job_id)

    async def WriteOff(  # noqa: N802  # gRPC's name
        self, request: operator_pb2.InterveneRequest, context: Context
    ) -> job_pb2.Job:
        """Ends a job as failed, whatever its partner does with it."""
        return await self._intervene(context, "write_off", WriteOff, request.job_id)

    async def Pardon(  # noqa: N802  # gRPC's name
        self, request: operator_pb2.PardonRequest, context: Context
    ) -> operator_pb2.PardonResponse:
        """Ends a partner's suspension, and forgets its breaches."""
        user = await self._admission.operator(context)
        await self._admission.check_journal(context)
        event = Pardon(self._engine.new_id(), request.partner, user.name)
        reply = await self._admission.ask(context, event, _pardon)
        self._admission.audit(
            "pardon", user, partner=reply.partner, breaches=reply.breaches, cause=reply.cause
        )
        return operator_pb2.PardonResponse(partner=reply.partner, breaches=reply.breaches)

    async def _intervene(
        self, context: Context, act: str, kind: Intervention, job_id: str
    ) -> job_pb2.Job:
        user = await self._admission.operator(context)
        await self._admission.check_journal(context)
        job_id = full_job_id(self._engine.state.settings.name, job_id)
        event = kind(*self._engine.stamp(), job_id, user.name)
        answer = await self._admission.ask(context, event, self._job)
        self._admission.audit(act, user, job=job_id, cause=event.id)
        return answer

    def _job(self, reply: ReplyJob) -> job_pb2.Job:
        state = self._engine.state
        job = state.job(reply.job_id)
        assert job is not None
        return shown_job(self._engine, job)

    async def _status(
        self, context: Context, then: str = "ask again then"
    ) -> operator_pb2.StatusResponse:
        self._engine.catch_up()
        return await self._admission.look(context, self._shown, then=then)

    def _shown(self, state: SiteState) -> operator_pb2.StatusResponse:
        engine, facts = self._engine, self._facts
        load, age = engine.load(), engine.driver.load_age
        return operator_pb2.StatusResponse(
            site=state.settings.name,
            version=__version__,
            now_s=engine.clock.now(),
            clock=facts.clock,
            up_time_s=time.monotonic() - self._begin,
            draining=state.draining,
            lrms_reachable=load is not None and not state.memory.lrms_away,
            processors=state.settings.processors if load is None else load.processors,
            processors_free=0 if load is None else load.processors_free,
            processors_waiting=0 if load is None else load.processors_waiting,
            jobs={key.name: number for key, number in state.job_counts().items() if number},
            guest_jobs={key.name: number for key, number in state.guest_counts().items() if number},
            journal_records=facts.journal.count,
            journal_bytes=facts.journal.size_bytes,
            telemetry_connected=facts.telemetry_connected(),
            lrms_problem=lrms_problem(
                state.memory.lrms_away or engine.driver.problem, age, len(state.memory.unseen)
            ),
            lrms_load_age_s=age,
            lrms_commands_open=engine.driver.commands_open,
            circuit_breaker=circuit_breaker_status(
                state.settings.circuit_breaker, state.memory.circuit_breaker_found
            ),
            clock_ahead_s=ahead_of(engine.clock) or None,
        )


def write_standing(standing: Standing) -> operator_pb2.MonthStanding:
    """Returns what was used in a month as a message."""
    return operator_pb2.MonthStanding(
        month=standing.month,
        used=standing.used,
        open=standing.open,
        limit=None if math.isinf(standing.limit) else standing.limit,
    )


def guests_of(state: SiteState, *, partner: str, now: float) -> operator_pb2.GuestsResponse:
    """Returns partners' jobs here, and what their users have used this month; of one partner, or all (empty)."""
    memory, answer = state.memory, operator_pb2.GuestsResponse(now_s=now)
    month = month_of(now)
    for book in memory.books.values():
        if partner not in {"", book.name}:
            continue
        answer.guests.extend(
            _guest(guest, now, state.settings.weights) for guest in book.guests.values()
        )
        users = {whose for name, whose in memory.usage.taken.get(month, {}) if name == book.name}
        users |= {guest.pseudonym for guest in book.guests.values() if guest.outcome is None}
        for user in sorted(users):
            standing = taken_by_user(memory, book, user, now)
            answer.users.add(partner=book.name, pseudonym=user, month=write_standing(standing))
    return answer


def _guest_word(guest: GuestJob) -> str:
    if guest.reserved:
        return "place"
    standing = guest.standing
    return guest.shown.value if standing is None else standing[0].value


def _guest(guest: GuestJob, now: float, weights: Weights) -> operator_pb2.Guest:
    asked = guest.asked_here.asked
    standing = guest.standing
    message = operator_pb2.Guest(
        key=guest.lrms_key,
        partner=guest.partner,
        pseudonym=guest.pseudonym,
        state=_guest_word(guest),
        processors=guest.request.processors,
        memory_mib=asked.memory_least,
        gpus=asked.gpus_least,
        requested_time_s=guest.request.requested_time,
        accept_time_s=guest.accept_time,
        since_s=guest.end_time if standing is None else standing[1],
        reason=guest.hindered,
    )
    if not math.isnan(guest.start_time):
        message.start_time_s = guest.start_time
        message.cost = cost(guest, now, weights)
    return message


def _pardon(reply: ReplyPardon) -> ReplyPardon:
    return reply


def lrms_problem(away: str, age: float | None, unseen: int = 0) -> str:
    """Returns the problem with the batch system, for a person; empty if there is none.

    `away` says why it does not answer, or is empty; `age` is that of the load in seconds, or
    `None`; `unseen` counts jobs whose state there is unknown.
    """
    if away:
        return away
    if unseen:
        return f"it is not known where {unseen} jobs stand; `grms jobs --stuck` says why"
    return "it has not said yet how busy it is" if age is None else ""


def circuit_breaker_status(
    circuit_breaker: CircuitBreaker | None, found: CircuitBreakerFound | None
) -> operator_pb2.CircuitBreakerStatus | None:
    """Returns how a site's circuit breaker is; `None` if it has none.

    `found` is when it last looked; `None` before the first time.
    """
    if circuit_breaker is None:
        return None
    if found is None:
        return operator_pb2.CircuitBreakerStatus(
            stops=True, jobs_min=circuit_breaker.jobs, cost=circuit_breaker.cost
        )
    gain = 100.0 * found.improvement
    return operator_pb2.CircuitBreakerStatus(
        stops=found.stops,
        stopped_since_s=found.stopped_since if found.stops else None,
        looked_s=found.looked,
        jobs=found.jobs,
        jobs_min=circuit_breaker.jobs,
        improvement_percent=None if math.isnan(gain) else gain,
        cost=circuit_breaker.cost,
    )


def problem_with(link_problem: str, book: PartnerBook, now: float) -> str:
    """Returns what is in the way at a partner, for a person; empty if nothing is.

    `now` is in seconds.
    """
    said = [link_problem] if link_problem else []
    if book.duplicated:
        said.append(two_daemons(book.name))
    if book.faulty:
        said.append(f"faulty: {book.faulty}")
    if book.distrust:
        said.append(
            f"not believed: it has reported {book.doubt or 'what cannot be'}; believed again "
            f"after {book.distrust} believable reports"
        )
    if broken := broken_promises(book, now):
        said.append(broken)
    if book.budget.declined and (unused := book.budget.unused_lately(now)):
        said.append(
            f"took back {unused} accepted offers within an hour before their jobs began, and was "
            f"declined {book.budget.declined} times for that: it may be asking how busy this site is"
        )
    if undone := undone_jobs(book, now):
        said.append(undone)
    if book.declined_limited:
        said.append(
            f"{book.declined_limited} of its offers were declined as the month's limit was used up, the last: {book.limited}"
        )
    if book.disputed:
        said.append(f"offered {book.disputed} jobs by numbers of others: its journal is older")
    return "; ".join(said)


def undone_jobs(book: PartnerBook, now: float) -> str:
    """Returns which jobs have gone home undone of late, in either direction, for a person; empty for none.

    `now` is in seconds.
    """
    said = []
    until = book.returns.until(now)
    if until is not None:
        said.append(
            f"it sends jobs back undone ({book.returns.count} so far); such ones are offered again "
            f"in {math.ceil(until - now)} s"
        )
    if book.away_why:
        said.append(f"what its jobs run does not come: {book.away_why}")
    if book.no_meaning:
        said.append(f"a job of it was declined: {book.no_meaning} (guests.translate)")
    if book.given_back and now - book.given_back_time < HOUR:
        said.append(
            f"{book.given_back} of its jobs were sent back undone, the last {now - book.given_back_time:.0f} s "
            f"ago: {book.given_back_why}"
        )
    return "; ".join(said)


def broken_promises(book: PartnerBook, now: float) -> str:
    """Returns why a partner is offered nothing, for a person; empty if it is.

    `now` is in seconds.
    """
    trust = book.trust
    left = trust.suspended_until - now
    if left <= 0:
        return ""
    days, rest = divmod(left, DAY)
    span = f"{days:.0f} d {rest // HOUR:.0f} h" if days else f"{rest / HOUR:.1f} h"
    times = f", {trust.breaches} times" if trust.breaches > 1 else ""
    return f"suspended for {span}: it has broken its promise to start a job at once{times}"
