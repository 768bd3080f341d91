"""What the site remembers of each partner, and the order of asking them.

For the end of a job, the home site knows the request, the time of the offer and the current time. A report that contradicts
these is not believed: it is counted, its numbers are clipped to what is possible, and the partner is asked last until it has
made up for it. A lie within these bounds is undetectable here; docs/protocol.md lists what remains. An answer outside the
protocol is a protocol error of the partner.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from grms.policy._decisions import history_with_open, order_by_awrt
from grms.policy.location import FixedOrder, LocationPolicy, PartnerRecord, UserDefinedLocation
from grms.site.model.events import StatusAnswered
from grms.site.model.jobs import Completion, GuestJob, HomeJob, OfferId, Request
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.partner_conduct import AcceptanceBudget, PromiseBook, ReturnBook
from grms.site.model.settings import SiteSettings
from grms.site.model.usage import NO_LIMITS, Committed
from lrms_sim.machine.node_kinds import NodeKind, NodeMachine
from lrms_sim.machine.nodes import fits

DISTRUST = 10
"""So many believable ends make good for one that cannot be believed."""

DISTRUST_MAX = 1000
"""The most that has to be made good."""


class PartnerBook:
    """All that the site knows of one partner: offers to it, and offers from it.

    Attributes:
        listed: it is on the allow-list. A removed partner is not asked and not answered; what the journal has of it
            stays.
        processors: its size; 0 while unknown.
        nodes: its nodes, where it has told them.
        reachable: it can be asked.
        lost: it has been unreachable for too long.
        faulty: its violation of the protocol, until it is known to be well again; else empty.
        faults: how often it has become faulty.
        faults_in_row: the same since it last answered an offer properly.
        incompatible: its version of the protocol, if that is another; else 0.
        duplicated: two daemons use its name.
        disbelieved: number of its impossible reports.
        doubt: what was impossible about the last of them.
        distrust: number of believable ends in a row until it is trusted again.
        next_number: of the next offer to it.
        undecided: jobs by number of an offer whose outcome is open, in the order of numbers.
        open: local users' jobs at the partner, by offer number, in order of acceptance.
        abandoned: numbers of offers that were given up, with the withdrawal under way, by the id of its event.
        abandoned_epochs: the epochs of these offers, by number.
        consumption: Σ p·m of local users' jobs that ended there, processor seconds.
        weighted_response: Σ p·m·(C−r) of these.
        open_consumption: Σ of requested processor seconds of the open jobs.
        open_submitted: Σ of the same times r, the jobs' submit times.
        offered, accepted, ended: number of offers to it, those of them that it accepted, and those of them that ended.
        epoch: of the partner's journal.
        settled_below: offers of that epoch with smaller numbers are settled.
        number_seen: greatest number of a received offer of that epoch; 0 for none.
        disputed: number of offers that came with the number of another job.
        guests: its jobs here whose end is not acknowledged.
        answered: other offers of its epoch that are not settled: the state of a declined or withdrawn one, or the
            guest whose end is acknowledged.
        guest_offered, guest_accepted: number of offers received from it, and of those accepted.
        taken: Σ p·m of its jobs that have ended here, and Σ requested time·m of those that have not.
        given: Σ p·m of local users' jobs that have ended there.
        trust: the record of its promise to start accepted jobs at once.
        limits: of a month, by the site's file.
        committed: what its jobs here that have not ended may still use.
        committed_there: the same of local users' jobs there, by user.
        limited: why an offer of it was declined last by a limit of a month, for the site's own operator; empty for none.
        declined_limited: how many were, since the daemon's start.
        budget: of acceptances that lead to no run, since this process began.
        returns: local users' jobs that it has sent back undone.
        given_back: number of its jobs sent back undone since the daemon's start.
        given_back_why: reason for the last of these, for the site's own operator; empty for none.
        given_back_time: of the last of these, seconds; nan for none.
        no_meaning: the name in the last of its jobs declined for it that has no meaning here, for the site's own operator;
            empty for none.
        away_why: why programs of its jobs do not arrive at this site; empty if they do.
        away_times: number of failed attempts in a row.
        away_until: until when its offers are declined, seconds.
    """

    __slots__ = (
        "abandoned",
        "abandoned_epochs",
        "accepted",
        "answered",
        "away_times",
        "away_until",
        "away_why",
        "budget",
        "committed",
        "committed_there",
        "consumption",
        "declined_limited",
        "disbelieved",
        "disputed",
        "distrust",
        "doubt",
        "duplicated",
        "ended",
        "epoch",
        "faults",
        "faults_in_row",
        "faulty",
        "given",
        "given_back",
        "given_back_time",
        "given_back_why",
        "guest_accepted",
        "guest_offered",
        "guests",
        "incompatible",
        "limited",
        "limits",
        "listed",
        "lost",
        "name",
        "next_number",
        "no_meaning",
        "nodes",
        "number_seen",
        "offered",
        "open",
        "open_consumption",
        "open_submitted",
        "processors",
        "reachable",
        "returns",
        "settled_below",
        "taken",
        "trust",
        "undecided",
        "weighted_response",
    )

    def __init__(self, name: str, *, listed: bool, processors: int = 0) -> None:
        self.name = name
        self.listed = listed
        self.processors = processors
        self.nodes: tuple[NodeKind, ...] = ()
        self.reachable = False
        self.lost = False
        self.faulty = ""
        self.faults = 0
        self.faults_in_row = 0
        self.incompatible, self.duplicated = 0, False
        self.disbelieved = 0
        self.doubt = ""
        self.distrust = 0
        self.next_number = 1
        self.undecided: dict[int, HomeJob] = {}
        self.open: dict[int, HomeJob] = {}
        self.abandoned: dict[int, int] = {}
        self.abandoned_epochs: dict[int, int] = {}
        self.consumption = 0.0
        self.weighted_response = 0.0
        self.open_consumption = 0.0
        self.open_submitted = 0.0
        self.offered = 0
        self.accepted = 0
        self.ended = 0
        self.epoch = 0
        self.settled_below = 1
        self.number_seen = 0
        self.disputed = 0
        self.guests: dict[OfferId, GuestJob] = {}
        self.answered: dict[int, GuestState | GuestJob] = {}
        self.guest_offered = 0
        self.guest_accepted = 0
        self.taken = 0.0
        self.given = 0.0
        self.limits = NO_LIMITS
        self.committed = Committed()
        self.committed_there: dict[str, Committed] = {}
        self.limited = ""
        self.declined_limited = 0
        self.trust = PromiseBook()
        self.budget = AcceptanceBudget()
        self.returns = ReturnBook()
        self.given_back = 0
        self.given_back_why = ""
        self.given_back_time = math.nan
        self.no_meaning = ""
        self.away_why = ""
        self.away_times = 0
        self.away_until = -math.inf

    # --- as home -------------------------------------------------------------------------------

    def could_run(self, request: Request) -> bool:
        """Returns whether it has room for such a job at all, by what it has told of itself.

        What a job's names mean there is its own affair.
        """
        if request.processors > self.processors:
            return False
        shape = request.shape
        if shape is None or not self.nodes:
            return True
        gpus = shape.gpus
        typeless = None if gpus is None else replace(gpus, type="")
        unnamed = replace(shape, features=(), licences=(), gpus=typeless)
        return fits(unnamed, NodeMachine(self.nodes))

    def settled(self) -> int:
        """Returns the number below which the outcome of every own offer is known."""
        return next(iter(self.undecided), self.next_number)

    def away(self, offer: OfferId) -> HomeJob | None:
        """Returns the job of an offer, while its end is open; else `None`."""
        number = offer.number
        if number in self.abandoned:
            return None
        job = self.undecided.get(number) or self.open.get(number)
        return job if job is not None and job.offer_epoch == offer.epoch else None

    def gave_up(self, offer: OfferId) -> bool:
        """Returns whether an offer was given up, and the partner has not acknowledged that."""
        return self.abandoned_epochs.get(offer.number) == offer.epoch

    def doubt_report(self, reason: str) -> None:
        """Notes an impossible report."""
        self.disbelieved += 1
        self.doubt = reason
        self.distrust = min(self.distrust + DISTRUST, DISTRUST_MAX)

    def believe_report(self) -> None:
        """Notes a believable end of a job."""
        self.distrust = max(0, self.distrust - 1)

    def open_job(self, job: HomeJob) -> None:
        """Notes that the partner has a job."""
        self.open[job.offer_number] = job
        consumption = job.consumption_requested
        self.open_consumption += consumption
        self.open_submitted += consumption * job.eligible_time
        self.committed_there.setdefault(job.user, Committed()).add(job.request)

    def close_job(self, job: HomeJob) -> None:
        """Notes that the partner no longer has a job."""
        del self.open[job.offer_number]
        consumption = job.consumption_requested
        self.open_consumption -= consumption
        self.open_submitted -= consumption * job.eligible_time
        committed = self.committed_there[job.user]
        committed.add(job.request, -1)
        if not committed.jobs:
            del self.committed_there[job.user]
        if not self.open:
            # Rounding does not pile up over the years.
            self.open_consumption = self.open_submitted = 0.0

    def count_response(self, consumption: float, response_time: float) -> None:
        """Adds a job's response to the history.

        `consumption` is in processor seconds, and a job without any has no weight; `response_time` is in seconds.
        """
        self.consumption += consumption
        self.weighted_response += consumption * response_time

    def history(self, now: float, *, count_open: bool) -> tuple[float, float]:
        """Returns the sums whose ratio is the AWRT by which partners are ordered.

        These are consumption, processor seconds, and weighted response, processor seconds squared. With `count_open`
        open jobs count as `AwrtLocation` says, and so do offers whose outcome is open: a partner that never decides
        is no better than one that never completes. `now` is in seconds.
        """
        if not count_open:
            return self.consumption, self.weighted_response
        consumption, submitted = self.open_consumption, self.open_submitted
        for number, job in self.undecided.items():
            if number not in self.abandoned:
                consumption += job.consumption_requested
                submitted += job.consumption_requested * job.eligible_time
        return history_with_open(
            self.consumption, self.weighted_response, consumption, submitted, now
        )

    def awrt(self, now: float, *, count_open: bool) -> float:
        """Returns the AWRT by which partners are ordered, seconds; 0 without history."""
        consumption, weighted = self.history(now, count_open=count_open)
        return weighted / consumption if consumption > 0 else 0.0

    # --- as guest's host -----------------------------------------------------------------------

    def meet_epoch(self, epoch: int) -> None:
        """Notes the epoch of the partner's journal; only open jobs of an older one are kept."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.settled_below = 1
            self.number_seen = 0
            self.answered.clear()

    def see(self, offer: OfferId) -> None:
        """Notes the arrival of an offer, or of a withdrawal."""
        self.meet_epoch(offer.epoch)
        if offer.epoch == self.epoch:
            self.number_seen = max(self.number_seen, offer.number)

    @property
    def offer_seen(self) -> OfferId | None:
        """The last offer that has arrived, or `None`."""
        return OfferId(self.epoch, self.number_seen) if self.number_seen else None

    def settle(self, below: int) -> None:
        """Forgets the answers to offers with smaller numbers."""
        if below > self.settled_below:
            self.settled_below = below
            for number in [number for number in self.answered if number < below]:
                del self.answered[number]

    def is_stale(self, offer: OfferId) -> bool:
        """Returns whether an offer that is not remembered was settled before."""
        return offer.epoch < self.epoch or (
            offer.epoch == self.epoch and offer.number < self.settled_below
        )

    def answer_to(self, offer: OfferId) -> GuestState | GuestJob | None:
        """Returns the answer to an offer: the guest it became, its state, or `None`."""
        guest = self.guests.get(offer)
        if guest is not None:
            return guest
        return self.answered.get(offer.number) if offer.epoch == self.epoch else None


def two_daemons(partner: str) -> str:
    """Returns that two daemons use a partner's name, and what follows, for a person."""
    return (
        f"two daemons use the name {partner}, as after a machine was copied: "
        "its offers are declined and none are made to it until one of them has ended"
    )


def asking_order(
    location: LocationPolicy,
    books: dict[str, PartnerBook],
    now: float,
    *,
    in_turn: bool = False,
    put: Mapping[str, int] | None = None,
) -> list[str]:
    """Returns the names of partners in the order of asking.

    The order of `books` breaks ties; with `in_turn`, of partners with the same AWRT the one asked less often comes
    first, without the questions in `put` (by partner). `now` is in seconds.
    """
    if isinstance(location, FixedOrder):
        return [name for name in location.order if name in books]
    if isinstance(location, UserDefinedLocation):
        records = [
            PartnerRecord(name, *book.history(now, count_open=False))
            for name, book in books.items()
        ]
        return location.asking_order(records)
    names = list(books)
    if len(names) < 2:
        return names
    sums = [book.history(now, count_open=location.count_open) for book in books.values()]
    put = put or {}
    asked = [book.offered - put.get(name, 0) for name, book in books.items()] if in_turn else None
    order = order_by_awrt([one for one, _ in sums], [other for _, other in sums], asked)
    names = [names[index] for index in order]
    if any(book.distrust > 0 for book in books.values()):
        # Sorting keeps the order of equals: those who are believed, then the others.
        names.sort(key=lambda name: books[name].distrust > 0)
    return names


def response_time(submit_time: float, end_time: float) -> float:
    """Returns the response time of a job that ended elsewhere, seconds.

    As a partner's clock may be slow, no job ends before its submission.
    """
    return max(0.0, end_time - submit_time)


def violation(job: HomeJob, completion: Completion, now: float, settings: SiteSettings) -> str:
    """Returns what makes a reported end impossible, for a person; empty if it is possible.

    `now` is the time of receipt on the home site's clock, seconds.
    """
    run_time, requested = completion.run_time, job.request.requested_time
    ended = completion.end_time
    grace, skew = settings.run_time_grace, settings.clock_grace
    elapsed = max(0.0, now - job.offer_time)
    clocks = math.isfinite(skew)
    for wrong, text in (
        (run_time > requested + grace, f"a run time of {run_time:g} s, {requested:g} s requested"),
        (
            completion.outcome is Outcome.TIMEOUT and run_time < requested - grace,
            f"cut at its limit after {run_time:g} s, {requested:g} s requested",
        ),
        (
            clocks and run_time > elapsed * (1.0 + settings.clock_drift) + settings.elapsed_grace,
            f"a run time of {run_time:g} s, {elapsed:g} s after the offer",
        ),
        (
            completion.kept > run_time,
            f"{completion.kept:g} s kept of a run time of {run_time:g} s",
        ),
        (clocks and ended > now + skew, f"an end {ended - now:g} s in the future"),
        (
            clocks and ended - run_time < job.offer_time - skew,
            f"a start {job.offer_time - (ended - run_time):g} s before the offer",
        ),
    ):
        if wrong:
            return text
    return ""


def believable(job: HomeJob, completion: Completion, now: float) -> Completion:
    """Returns an impossible report with its times clipped to what is possible.

    `now` is the time of receipt on the home site's clock, seconds.
    """
    run_time = min(completion.run_time, job.request.requested_time, max(0.0, now - job.offer_time))
    return replace(completion, run_time=run_time, end_time=now, kept=min(completion.kept, run_time))


def senseless(job: HomeJob, event: StatusAnswered) -> bool:
    """Returns whether an answer about an offer is outside the protocol.

    That is the end of another offer, or of none; or "never heard of" in reply to a withdrawal.
    """
    if event.completion is not None:
        return event.completion.offer != event.offer or event.status is not GuestState.ENDED
    if event.status is GuestState.ENDED:
        return True
    withdrawn = job.cancel_told or job.state is JobState.WITHDRAWING
    return event.status is None and withdrawn
