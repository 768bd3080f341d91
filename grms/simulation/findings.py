"""What came of a run: the verdict, what a site still waits for, and what has to survive a restart.

Every job, every honest site's journal and what a Byzantine partner has said are judged when the sites are at rest.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from grms.simulation.actors import Wish
from grms.simulation.batch_system import FakeLrmsJob
from grms.simulation.rebalance_checks import has_left
from grms.simulation.scripted_site import excused
from grms.simulation.simulated_site import SimulatedSite
from grms.site.model.invariants import check
from grms.site.model.jobs import HomeJob
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.scheduler.state import SiteState

Runs = Mapping[bytes, list[FakeLrmsJob]]
"""Runs at honest sites' batch systems, by what was to run."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a run.

    Attributes:
        seed: of the run.
        problems: what was not as it has to be, in sentences; empty if all was well.
        jobs: how many were acknowledged.
        delegated: how many of these ran elsewhere.
        cancelled: how many of these ended cancelled.
        crashes: how often daemons died.
        twice: how many ran more than once; a problem unless jobs are resubmitted.
        rogue: what one of the sites was; empty if all were honest.
        faults: how often honest sites found it faulty.
        disbelieved: how many of its reports they did not believe.
        resubmitted: how many jobs operators have taken out of its hands.
        epochs: how many were begun because a journal was put back.
        judged: how many offers were judged by the order of those who are asked.
        reserved: how many questions of brokers were answered with a reservation.
        reoffered: how many jobs that waited were offered again.
        moved: how many of these have left the queue.
        sent_home: how often honest partners have sent a job home.
        lost_s: how long these had run, seconds, without what was kept.
        kept_s: what was kept of that, seconds.
        breaches: how many promises honest sites have found to be broken.
        taken_back: how many jobs operators have asked the Byzantine partner to give back.
        longest: so long a job was with the Byzantine partner beyond its deadline at most, seconds.
        settled: when the honest sites had come to rest, seconds after the last fault, by tens.
        blocked: how many messages were stopped in one direction while the other was open.
    """

    seed: int
    problems: tuple[str, ...]
    jobs: int
    delegated: int
    cancelled: int
    crashes: int
    twice: int
    rogue: str = ""
    faults: int = 0
    disbelieved: int = 0
    resubmitted: int = 0
    epochs: int = 0
    judged: int = 0
    reserved: int = 0
    reoffered: int = 0
    moved: int = 0
    sent_home: int = 0
    lost_s: float = 0.0
    kept_s: float = 0.0
    breaches: int = 0
    taken_back: int = 0
    longest: float = 0.0
    settled: float = 0.0
    blocked: int = 0
    hopeless: int = 0
    held: int = 0


def unfinished(state: SiteState, rogue: str) -> list[str]:
    """Returns what a site still waits for, but of a Byzantine partner, in sentences."""
    found = []
    for name, book in state.partners.items():
        if name == rogue:
            continue  # what it never answers is never settled
        for what, things in (
            ("undecided offers", book.undecided),
            ("open jobs", book.open),
            ("abandoned offers", book.abandoned),
            ("guests", book.guests),
        ):
            if things:
                found.append(f"{what} with {name}: {list(things)}")
    if state.memory.reservations.open:
        found.append(f"open reservations: {list(state.memory.reservations.open)}")
    if state.memory.at_lrms or state.memory.unconfirmed:
        found.append(f"jobs thought to be in the batch system: {list(state.memory.at_lrms)}")
    return found


def known(state: SiteState) -> object:
    """Returns what a site knows that has to survive a restart, to compare."""
    memory = state.memory
    jobs = [
        (job.job_id, job.state, job.outcome, job.partner, job.asked, job.end_time, job.sent_home)
        for job in memory.jobs.values()
    ]
    books = [
        (
            name,
            book.next_number,
            book.settled(),
            book.consumption,
            book.weighted_response,
            book.epoch,
            book.settled_below,
            sorted(book.answered),
            sorted((offer.epoch, offer.number) for offer in book.guests),
            Counter(type(answer).__name__ for answer in book.answered.values()),
            (book.offered, book.accepted, book.ended, book.guest_offered, book.guest_accepted),
            (book.faults, book.disbelieved, book.distrust, book.doubt, book.number_seen),
            sorted(book.abandoned_epochs.items()),
            (book.taken, book.given, book.trust.credit, book.trust.breaches),
            (book.trust.suspended_until, book.trust.work, book.trust.rows()),
        )
        for name, book in memory.books.items()
        # Of one that was taken off the list before anything happened nothing needs to be known.
        if book.listed or book.offered or book.faults or book.offer_seen
    ]
    reservations = [
        # As text, in which a moment that has not come is equal to itself.
        repr(one)
        for one in memory.reservations.reservations.values()
    ]
    numbers = (memory.next_job, memory.reservations.next_number, memory.epoch)
    sums = (memory.own_work, memory.own_requested)
    there = (sorted(memory.at_lrms), sorted(memory.reserved))
    return jobs, books, reservations, numbers, sums, there


@dataclass(slots=True)
class Judgement:
    """Judges a run when its sites are at rest; `problems` gets violations, in sentences.

    `rogue` is the name of a site, or empty if all are honest.
    """

    sites: Mapping[str, SimulatedSite]
    rogue: str
    manner: str
    on_lost: Literal["wait", "resubmit"]
    problems: list[str]

    @property
    def honest(self) -> list[SimulatedSite]:
        """The sites that are no Byzantine partner."""
        return [site for name, site in self.sites.items() if name != self.rogue]

    def runs(self, wishes: Mapping[bytes, Wish]) -> Runs:
        """Returns what honest sites' batch systems have run, or would have, of each wish."""
        runs: dict[bytes, list[FakeLrmsJob]] = {payload: [] for payload in wishes}
        for site in self.honest:
            for ran in site.lrms.history:
                held_copy = ran.unwanted and not ran.runs
                if not (ran.lost or ran.let_go or held_copy or has_left(site, ran)):
                    runs[ran.payload].append(ran)
        return runs

    def jobs(self, wishes: Mapping[bytes, Wish], runs: Runs) -> list[HomeJob]:
        """Judges every job of an honest site's user; returns those that have ended."""
        ended: list[HomeJob] = []
        for payload, wish in wishes.items():
            if wish.home == self.rogue:
                continue  # its users have nobody to rely on
            job = self.sites[wish.home].state.job(wish.job_id)
            if job is None or job.state is not JobState.ENDED:
                state = "nowhere" if job is None else job.state.name
                self.problems.append(f"{payload!r} ({wish.job_id}) has not ended: {state}")
                continue
            ended.append(job)
            if self.rogue in job.asked:
                self._judge_with_byzantine(wish, job, runs[payload])
            else:
                self._judge(wish, job, runs[payload])
        return ended

    def honest_sites(self) -> None:
        """Judges what honest sites have left over, and what they have written down."""
        for site in self.honest:
            name = site.settings.name
            self.problems += [f"{name}: {what}" for what in unfinished(site.state, self.rogue)]
            if site.lrms.free != site.lrms.processors or site.lrms.load().processors_waiting:
                self.problems.append(f"{name}: the batch system is not empty")
            self._judge_journal(site)
            self._judge_partners(site)

    def _judge_partners(self, site: SimulatedSite) -> None:
        # A liar is seen through each time.
        for partner, book in site.state.partners.items():
            if partner == self.rogue and self.manner == "liar" and book.ended != book.disbelieved:
                told = f"{book.disbelieved} of {book.ended} lies were not believed"
                self.problems.append(f"{site.settings.name}: {told}")

    def _judge_with_byzantine(self, wish: Wish, job: HomeJob, runs: list[FakeLrmsJob]) -> None:
        # What the Byzantine partner has done with it nobody knows; the honest sites have to be right.
        if len(runs) > 1 and self.on_lost == "resubmit":
            return
        if len(runs) > 1:
            self.problems.append(f"{job.job_id} was run by honest sites {len(runs)} times")
        if job.partner == self.rogue and runs and self.on_lost == "wait":
            self.problems.append(f"{job.job_id} ended at {job.partner}, and an honest site ran it")
        if (
            wish.cancel_time is not None
            or job.partner == self.rogue
            or excused(job, self._of_its_end(wish, job, runs), self.sites.values())
        ):
            return
        outcome = runs[0].outcome if runs else None
        if job.outcome is not Outcome.COMPLETED or outcome is not Outcome.COMPLETED:
            text = f"{job.job_id} is {job.outcome} at home, and in truth {outcome}"
            self.problems.append(text)

    def _judge(self, wish: Wish, job: HomeJob, runs: list[FakeLrmsJob]) -> None:
        name = job.job_id
        if len(runs) > 1 and self.on_lost == "wait":
            self.problems.append(f"{name} was given to batch systems {len(runs)} times")
        if len(runs) > 1 or (self.on_lost == "resubmit" and wish.cancel_time is not None):
            # What a site that was lost did with the job is not the home's to know.
            return
        if excused(job, self._of_its_end(wish, job, runs), self.sites.values()):
            return
        outcome = runs[0].outcome if runs else None
        if wish.after and job.outcome is Outcome.CANCELLED and not runs:
            return  # whether it could begin is judged with all others (`dependent_jobs`)
        if wish.cancel_time is None:
            if outcome is not Outcome.COMPLETED:
                self.problems.append(f"{name} has not run to its end: {outcome}")
            if job.outcome is not Outcome.COMPLETED:
                self.problems.append(f"{name} ran to its end, and its home says {job.outcome}")
        elif (job.outcome is Outcome.COMPLETED) != (outcome is Outcome.COMPLETED):
            self.problems.append(f"{name} is {job.outcome} at home, and in truth {outcome}")
        elif job.outcome not in {Outcome.COMPLETED, Outcome.CANCELLED}:
            self.problems.append(f"{name} was cancelled, and its home says {job.outcome}")

    def _of_its_end(self, wish: Wish, job: HomeJob, runs: list[FakeLrmsJob]) -> list[FakeLrmsJob]:
        # Of a job that is said to be lost: what was run where it ended. One that was decided anew may have
        # run at the lost partner before, which is not the home's to know.
        if self.on_lost == "wait" or job.outcome is not Outcome.LOST:
            return runs
        there = self.sites[job.partner or wish.home].lrms.history
        return [run for run in runs if any(run is one for one in there)]

    def _judge_journal(self, site: SimulatedSite) -> None:
        check(site.state.memory)
        again = SiteState(site.settings, site.journal)
        if known(again) != known(site.state):
            self.problems.append(
                f"{site.settings.name}: the journal says {known(again)}, the site "
                f"{known(site.state)}"
            )
