"""A site on which a replay tries other transfer policies: its machine, and what it knows of its partners.

Under strict exchange guests may be sent home, and which of them decides its account. Looks and decisions are those of the daemon. What is modelled besides: every guest may be run again, none keeps its
state, and no partner sends a job home that the replay gives it.
"""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass

from grms.policy._decisions import CompiledTransfer
from grms.policy.constraints import AccountRules
from grms.policy.transfer import TransferPolicy, compiled_transfer, rails_of
from grms.site.accounting.accounts import GuestRun, OwnRun
from grms.site.accounting.peer_model import PartnerAnswers
from grms.site.model.jobs import Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.own_account import SiteAccount
from grms.site.model.partners import PartnerBook
from grms.site.scheduler.exchange_decisions import review
from lrms_sim.machine.stepped import Machine
from lrms_sim.scheduling.disciplines import Discipline
from lrms_sim.workload.groups import GROUPS
from lrms_sim.workload.jobs import FloatArray


class PolicySite:
    """The machine, the policies, and the counters that constraints use.

    Args:
        processors: of the machine.
        discipline: of its queue.
        policies: by partner; partners without one exchange nothing.
        partners_asked: most partners that are asked about a job; `None`: all.
    """

    def __init__(
        self,
        processors: int,
        discipline: Discipline,
        policies: Mapping[str, TransferPolicy],
        partners_asked: int | None,
    ) -> None:
        self._asked_max = len(policies) if partners_asked is None else partners_asked
        self._machine = Machine(processors, discipline)
        self._inclusive = not discipline.per_event
        self._processors = processors
        self._policies: dict[str, CompiledTransfer] = {
            name: compiled_transfer(policy) for name, policy in policies.items()
        }
        self._work = self._requested = 0.0
        self._books = {name: PartnerBook(name, listed=True) for name in policies}
        self._on_machine: list[OwnRun | GuestRun] = []
        self._away: list[tuple[float, int, OwnRun, str]] = []

    def come_to(self, now: float) -> None:
        """Lets everything happen that is due by a moment, seconds."""
        machine = self._machine
        machine.advance(max(now, machine.now), inclusive=self._inclusive)
        started, ended = machine.collect()
        for number in started:
            self._started(number, machine.times_of(number)[0])
        for number in ended:
            run = self._on_machine[number]
            self._ended(run, run.run_time * run.processors)
            self._left(number, machine.times_of(number)[1])
        while self._away and self._away[0][0] <= now:
            end, _, run, partner = heapq.heappop(self._away)
            book = self._books[partner]
            book.given += run.run_time * run.processors
            book.trust.end(run.job, end, run.run_time, Outcome.COMPLETED)
            self._ended(run, run.run_time * run.processors)
            self._came_back(run, end, partner)

    def _started(self, number: int, time: float) -> None:
        """Notes that a job of the machine's queue runs."""

    def _left(self, number: int, time: float) -> None:
        """Notes that a job has ended on the machine."""

    def _came_back(self, run: OwnRun, time: float, partner: str) -> None:
        """Notes that a local job has ended at a partner."""

    def _ended(self, run: OwnRun | GuestRun, work: float) -> None:
        if isinstance(run, OwnRun):
            self._work += work
            self._requested += work * run.requested_time
        else:
            # Until then it counts with its request.
            self._books[run.partner].taken += work - run.requested_time * run.processors

    def take(self, run: GuestRun) -> bool:
        """Returns whether the site takes a guest, which is then on its machine."""
        policy = self._policies.get(run.partner)
        if policy is None or not self._wants(policy, run.partner, run, own=False):
            return False
        self._books[run.partner].taken += run.requested_time * run.processors
        self._submit(run, run.accept_time)
        return True

    def give(self, run: OwnRun, answers: PartnerAnswers) -> str | None:
        """Returns who takes a local job; `None` if it stays."""
        asked = 0
        for partner in answers.order(run.job):
            policy = self._policies.get(partner)
            if policy is None:
                continue
            if asked == self._asked_max:
                return None
            if self._wants(policy, partner, run, own=True):
                return None
            if not self._trusts(policy, partner, run):
                continue
            asked += 1
            if answers.accepts(run.job, partner, run.processors, run.requested_time):
                return partner
        return None

    def _trusts(self, policy: CompiledTransfer, partner: str, run: OwnRun) -> bool:
        rails, book, now = policy.rails, self._books[partner], self._machine.now
        if rails is None or not rails.promise:
            return True
        found = review(book, rails, now)
        trust = book.trust
        if found is not None:
            trust.look(
                found.closed, found.overdue, found.credit, found.breaches, found.suspended_until
            )
        return rails.may_offer(
            run.processors,
            run.requested_time,
            processors=self._processors,
            now=now,
            credit=trust.credit,
            open_work=trust.work,
            open_count=len(trust.promised),
            suspended_until=trust.suspended_until,
        )

    def _wants(
        self, policy: CompiledTransfer, partner: str, run: OwnRun | GuestRun, *, own: bool
    ) -> bool:
        state, rails, book = self._machine.state, policy.rails, self._books[partner]
        return policy.accept(
            run.processors,
            processors=self._processors,
            processors_free=state.processors_free,
            processors_waiting=state.processors_waiting,
            own=own,
            requested_time=run.requested_time,
            starts_now=rails is not None
            and rails.start_now
            and self._machine.starts_now(
                processors=run.processors, requested_time=run.requested_time
            ),
            books=(self._work, self._requested, book.taken, book.given),
        )

    def keep(self, run: OwnRun) -> int:
        """Keeps a local job, and returns its number on the machine."""
        return self._submit(run, run.submit_time)

    def _submit(self, run: OwnRun | GuestRun, now: float) -> int:
        self._on_machine.append(run)
        return self._machine.submit(
            submit_time=max(now, self._machine.now),
            processors=run.processors,
            requested_time=max(run.requested_time, run.run_time),
            run_time=run.run_time,
            group=GROUPS[-1],
        )

    def entrust(self, run: OwnRun, partner: str, end: float) -> None:
        """Notes that a partner has a local job, until a moment in seconds."""
        rails = self._policies[partner].rails
        if rails is not None and rails.promise:
            self._books[partner].trust.promise(
                run.job, run.submit_time, run.requested_time, run.processors
            )
        heapq.heappush(self._away, (end, run.job, run, partner))

    def ends(self) -> FloatArray:
        """Returns when all jobs of the machine have ended, seconds, by number."""
        self._machine.advance(math.inf)
        return self._machine.end_time

    def check(self) -> None:
        """Raises ValueError if a policy in Python has failed."""
        for policy in self._policies.values():
            policy.check()


_PREEMPTIBLE, _PROTECTED = 1, 2
"""How a guest is taken, as compiled constraints say it."""


def policy_site(
    processors: int,
    discipline: Discipline,
    policies: Mapping[str, TransferPolicy],
    partners_asked: int | None,
) -> PolicySite:
    """Returns a site with policies, as `PolicySite` explains them; with an account of itself where they want one.

    Raises:
        ValueError: they want one, and under that discipline none can be kept.
    """
    rules = account_rules(policies)
    if rules is None:
        return PolicySite(processors, discipline, policies, partners_asked)
    return StrictPolicySite(processors, discipline, policies, partners_asked, rules)


def account_rules(policies: Mapping[str, TransferPolicy]) -> AccountRules | None:
    """Returns how a site with these policies keeps its account; `None` if it keeps none."""
    for policy in policies.values():
        rails = rails_of(policy)
        if rails is not None and rails.account is not None:
            return rails.account
    return None


@dataclass(frozen=True, slots=True)
class _Ended:
    # A local job, as the account wants it.
    job: int
    request: Request
    partner: str
    end_time: float
    run_time: float
    restored_time: float = 0.0


@dataclass(frozen=True, slots=True)
class _Guest:
    request: Request
    charge: float = 0.0
    protected: bool = False


class StrictPolicySite(PolicySite):
    """A site that keeps an account of itself, as `rules` say."""

    def __init__(
        self,
        processors: int,
        discipline: Discipline,
        policies: Mapping[str, TransferPolicy],
        partners_asked: int | None,
        rules: AccountRules,
    ) -> None:
        super().__init__(processors, discipline, policies, partners_asked)
        self._account = SiteAccount(processors, discipline, rules)
        self._kept_by = {name for name, policy in policies.items() if account_rules({name: policy})}
        self._next_look = math.nan
        self._guests: dict[int, _Guest] = {}

    def come_to(self, now: float) -> None:
        """Lets everything happen that is due by a moment, seconds, with all looks at the account."""
        every = self._account.rules.every
        if math.isnan(self._next_look):
            self._next_look = every * math.ceil(now / every)
        while self._next_look <= now:
            self._come_to(self._next_look)
            self._look(self._next_look)
            self._next_look += every
        self._come_to(now)

    def _come_to(self, now: float) -> None:
        super().come_to(now)
        machine = self._machine
        for number in machine.preempted():
            start, end = machine.times_of(number)
            run = self._on_machine[number]
            self._ended(run, (end - start) * run.processors)
            self._left(number, end)

    def _look(self, time: float) -> None:
        account, before = self._account, self._account.in_credit
        account.look(time, ())
        if account.in_credit is before or account.rules.guests != "preempt":
            return
        for number, guest in self._guests.items():
            if guest.protected:
                (self._machine.show if account.in_credit else self._machine.hide)(number)
        self._machine.make_pass()

    def _started(self, number: int, time: float) -> None:
        run = self._on_machine[number]
        if isinstance(run, OwnRun):
            self._account.started(run.job, time)

    def _left(self, number: int, time: float) -> None:
        self._guests.pop(number, None)
        run = self._on_machine[number]
        if isinstance(run, OwnRun):
            self._came_back(run, time, "")

    def _came_back(self, run: OwnRun, time: float, partner: str) -> None:
        self._account.ended(_Ended(run.job, _request(run), partner, time, run.run_time))

    def give(self, run: OwnRun, answers: PartnerAnswers) -> str | None:
        """Returns who takes a local job; `None` if it stays."""
        self._account.submitted(run.job, max(run.submit_time, self._machine.now), _request(run))
        return super().give(run, answers)

    def entrust(self, run: OwnRun, partner: str, end: float) -> None:
        """Notes that a partner has a local job, until a moment in seconds."""
        self._account.started(run.job, self._machine.now)
        super().entrust(run, partner, end)

    def take(self, run: GuestRun) -> bool:
        """Returns whether the site takes a guest, which is then on its machine."""
        policy = self._policies.get(run.partner)
        if policy is None or run.partner not in self._kept_by:
            return super().take(run)
        self._machine.make_pass()
        if run.processors > self._machine.idle:
            return False
        if self._account.rules.guests == "preempt":
            return self._take_preemptible(run)
        others = self._guests.values()
        request = _request(run)
        charge = self._account.charge(self._machine.now, self._machine.idle, request, others)
        number = len(self._on_machine)
        if charge is None or not super().take(run):
            return False
        self._guests[number] = _Guest(request, charge)
        return True

    def _take_preemptible(self, run: GuestRun) -> bool:
        policy, book, machine = self._policies[run.partner], self._books[run.partner], self._machine
        rails, state = policy.rails, machine.state
        assert rails is not None
        starts_now = machine.starts_now(
            processors=run.processors, requested_time=run.requested_time
        )
        found = rails.handing(
            run.processors,
            run.requested_time,
            0.0,
            processors=self._processors,
            own_work=self._work,
            own_requested=self._requested,
            taken=book.taken,
            given=book.given,
            in_credit=self._account.in_credit,
            starts_now=starts_now,
        )
        agreed = found in {_PREEMPTIBLE, _PROTECTED} and policy.accept(
            run.processors,
            processors=self._processors,
            processors_free=state.processors_free,
            processors_waiting=state.processors_waiting,
            own=False,
            requested_time=run.requested_time,
            starts_now=starts_now,
            within=False,
        )
        if not agreed:
            return False
        protected = found == _PROTECTED
        number = machine.start_guest(
            now=max(run.accept_time, machine.now),
            processors=run.processors,
            requested_time=max(run.requested_time, run.run_time),
            run_time=run.run_time,
            seen=protected and self._account.in_credit,
        )
        self._on_machine.append(run)
        book.taken += run.requested_time * run.processors
        self._guests[number] = _Guest(_request(run), protected=protected)
        return True

    def ends(self) -> FloatArray:
        """Returns when all jobs of the machine have ended, seconds, by number."""
        while self._machine.next_event_time < math.inf:
            self.come_to(self._next_look)
        return super().ends()


def _request(run: OwnRun | GuestRun) -> Request:
    return Request(run.processors, run.requested_time)
