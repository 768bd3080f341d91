"""Rounds of offers in the fault test: who holds them, and what has left a queue."""

from collections.abc import Iterable
from dataclasses import replace

from grms.policy.rebalancing import Rebalancing
from grms.simulation.batch_system import FakeLrmsJob
from grms.simulation.random_source import RandomSource
from grms.simulation.simulated_site import SimulatedSite
from grms.site.model.jobs import GuestRef, lrms_key
from grms.site.model.records import JobLeaving, JobStays


def draw_rounds(draws: RandomSource, sites: Iterable[SimulatedSite]) -> None:
    """Lets sites that have not begun hold rounds of any kind."""
    # In half of the runs who waits at home has tried everybody before: rounds are all there is.
    patient = draws.chance(0.5)
    for site in sites:
        period = draws.between(0.5, 5.0)
        rounds: float | Rebalancing = period
        if draws.chance(0.7):
            rounds = Rebalancing(
                max(1.0, period),
                "widest" if draws.chance(0.5) else "queue",
                draws.integer(1, 4) if draws.chance(0.3) else None,
                2.0 * max(1.0, period) if draws.chance(0.3) else None,
            )
        draws.uniform()  # unused: without it every known seed would be another run
        site.timing.reoffer = period
        site.settings = replace(
            site.settings,
            reoffer=rounds,
            confirm_time_max=draws.between(2.0, 40.0),
            decision_time_max=2.0 if patient else site.settings.decision_time_max,
        )


def has_left(site: SimulatedSite, ran: FakeLrmsJob) -> bool:
    """Returns whether others have cancelled a job as it was about to leave its home's queue.

    That makes no difference: it has left, and runs elsewhere. The same holds for a partner's job
    that was to go home, as nothing started it, unless its site has noted that it stays. But if the
    batch system has answered a daemon that has never died that it does not let the job go, the first
    and only time that it was told to, the job is over: whether the cancel of the others was told
    before that answer or after it.
    """
    once = ran.told_to_leave == 1 and not ran.unanswered
    if ran.kept and once and site.crash_count == 0:
        return False
    home = ran.key.startswith(f"{site.settings.name}/")
    if not home and ran.by_others and ran.runs == 0:
        return _was_to_go_home(site, ran)
    keys = {job.lrms_key for job in site.state.jobs()} if ran.by_others and home else set()
    return bool(keys) and ran.runs == 0 and ran.key not in keys


def _was_to_go_home(site: SimulatedSite, ran: FakeLrmsJob) -> bool:
    was = ran.told_to_leave > 0
    # What is settled may be left out of the journal since.
    for record in (*site.left_out, *site.journal):
        if isinstance(record, JobLeaving | JobStays) and isinstance(record.job, GuestRef):
            offer = record.job.offer
            if lrms_key(record.job.partner, offer.epoch, offer.number) == ran.key:
                was = isinstance(record, JobLeaving)
    return was
