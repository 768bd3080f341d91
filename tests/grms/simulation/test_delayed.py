"""Replays through site states with messages that take time and clocks that go apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grms.federation.federation import Federation, Site
from grms.policy.constraints import START_NOW
from grms.policy.registry import TRANSFER_POLICIES
from grms.policy.transfer import AcceptWhenFit, Constrained, TransferPolicy
from grms.simulation.delayed import Delays
from grms.simulation.replay import LockStepReplay
from lrms_sim.scheduling.disciplines import Discipline, Easy, EasyPlusPlus, Fcfs
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.lublin import generate
from lrms_sim.workload.schedule import Schedule

NAMES = ("a", "b", "c")


def drawn(
    policy: TransferPolicy, discipline: Discipline, seed: int, reoffer: float | None = None
) -> list[Site]:
    """Returns three sites of unlike load that all deal with each other."""
    return [
        Site(
            name,
            16,
            generate(16, jobs=40, load=load, seed=seed + number),
            discipline,
            {other: policy for other in NAMES if other != name},
            reoffer=reoffer,
        )
        for number, (name, load) in enumerate(zip(NAMES, (1.2, 0.6, 0.4), strict=True))
    ]


def pair(policy: TransferPolicy) -> list[Site]:
    """Returns a site with two jobs over its whole machine, and one with none."""
    jobs = JobTable.from_columns(
        job_id=[1, 2],
        submit_time=[0.0, 0.0],
        processors=np.array([4, 4], np.int32),
        run_time=[100.0, 100.0],
        requested_time=[100.0, 100.0],
    )
    none = jobs.select(np.array([], np.int64))
    return [
        Site("home", 4, jobs, Fcfs(), {"away": policy}),
        Site("away", 4, none, Fcfs(), {"home": policy}),
    ]


def starts(schedule: Schedule) -> list[float]:
    """Returns when jobs started, in order of arrival."""
    return [float(start) for start in schedule.start_time]


@settings(max_examples=12)
@given(
    st.sampled_from([AcceptWhenFit(), TRANSFER_POLICIES["fair-exchange"]]),
    st.sampled_from([Fcfs(), Easy()]),
    st.integers(0, 50),
    st.sampled_from([None, 450.0]),
)
def test_without_delay_it_is_the_replay_of_the_kernel(
    policy: TransferPolicy, discipline: Discipline, seed: int, reoffer: float | None
) -> None:
    """Job by job, and question by question, in rounds too."""
    sites = drawn(policy, discipline, seed, reoffer)
    replay = LockStepReplay(sites, delays=Delays())
    found, expected = replay.run(), Federation(sites).exchange()
    assert starts(found) == starts(expected.schedule)
    assert list(found.executed_on) == list(expected.schedule.executed_on)
    assert replay.network.offers == sum(expected.offers)


@settings(max_examples=8)
@given(
    st.floats(0.0, 600.0), st.floats(0.0, 1.0), st.integers(0, 20), st.sampled_from([None, 450.0])
)
def test_every_job_runs_once_wherever_messages_are(
    delay: float, late: float, seed: int, reoffer: float | None
) -> None:
    """No machine has more than it can hold, no job starts before it was there."""
    sites = drawn(TRANSFER_POLICIES["fair-exchange"], Easy(), seed, reoffer)
    delays = Delays(delay, late=late, extra=100.0, clocks=(0.0, 200.0, -200.0))
    schedule = LockStepReplay(sites, delays=delays, rng=np.random.default_rng(seed)).run()
    assert not np.isnan(schedule.end_time).any()
    assert (schedule.start_time >= schedule.jobs.submit_time).all()
    moved = schedule.executed_on != schedule.submitted_to
    assert (schedule.start_time >= schedule.jobs.submit_time + delay)[moved].all()
    for number in range(len(sites)):
        here = schedule.executed_on == number
        for moment in schedule.start_time[here]:
            runs = here & (schedule.start_time <= moment) & (moment < schedule.end_time)
            assert schedule.jobs.processors[runs].sum() <= 16


@pytest.mark.parametrize(("delay", "start"), [(0.0, 0.0), (7.0, 7.0), (60.0, 60.0)])
def test_an_accepted_job_starts_when_its_offer_has_arrived(delay: float, start: float) -> None:
    """Its answer comes home later, and nothing waits for it."""
    replay = LockStepReplay(pair(Constrained(START_NOW)), delays=Delays(delay))
    assert starts(replay.run()) == [0.0, start]
    assert replay.network.offers == 1
    # The offer, its answer, the report of the end, and what acknowledges it.
    assert replay.network.delivered == (4 if delay else 0)


def waiting(run_time: float, *, guest_runs: float = 650.0) -> list[Site]:
    """Returns a site whose second job waits, and one whose machine is busy until `guest_runs`.

    Both deal with each other, and both hold rounds every 900 s.
    """
    times = [run_time, 100.0]
    own = JobTable.from_columns(
        job_id=[1, 2],
        submit_time=[0.0, 1.0],
        processors=np.array([4, 4], np.int32),
        run_time=times,
        requested_time=times,
    )
    busy = own.select(np.array([0]))
    other = JobTable.from_columns(**busy.columns() | {"run_time": np.array([guest_runs])})
    policy = Constrained(START_NOW)
    return [
        Site("home", 4, own, Fcfs(), {"away": policy}, reoffer=900.0),
        Site("away", 4, other, Fcfs(), {"home": policy}, reoffer=900.0),
    ]


@pytest.mark.parametrize(("ahead", "start"), [(0.0, 930.0), (100.0, 830.0), (-50.0, 980.0)])
def test_a_job_leaves_in_a_round_when_its_messages_have_arrived(ahead: float, start: float) -> None:
    """A question, a yes, and the word to start it; rounds are held by the site's own clock."""
    replay = LockStepReplay(waiting(5000.0), delays=Delays(10.0, clocks=(ahead, 0.0)))
    assert starts(replay.run())[-1] == start
    assert list(replay.executed_on) == [0, 1, 1]


def test_a_job_that_starts_at_home_meanwhile_stays_there() -> None:
    """The partner lets go of the place that it holds, and takes the next job."""
    replay = LockStepReplay(waiting(915.0), delays=Delays(10.0))
    assert starts(replay.run())[-1] == 915.0
    assert list(replay.executed_on) == [0, 1, 0]
    away = replay.hosts[1].state
    assert not away.memory.reserved


def test_a_declined_job_waits_at_home_only_when_the_answer_is_there() -> None:
    """Here the partner keeps its machine for itself, and the answer comes late."""
    one, other = pair(Constrained(START_NOW))
    sites = [one, Site("away", 4, other.jobs, Fcfs(), {"home": TRANSFER_POLICIES["keep"]})]
    assert starts(LockStepReplay(sites, delays=Delays(10.0)).run()) == [0.0, 100.0]
    late = LockStepReplay(
        sites, delays=Delays(10.0, late=1.0, extra=200.0), rng=np.random.default_rng(1)
    )
    assert starts(late.run()) == [0.0, 220.0]


def test_what_cannot_be_replayed_is_said() -> None:
    """Before anything is."""
    sites = pair(Constrained(START_NOW))
    with pytest.raises(ValueError, match="1 clocks for 2 sites"):
        LockStepReplay(sites, delays=Delays(clocks=(0.0,)))
    with pytest.raises(ValueError, match="an rng is needed"):
        LockStepReplay(sites, delays=Delays(late=0.5))
    with pytest.raises(ValueError, match="late is 2"):
        Delays(late=2.0)
    with pytest.raises(ValueError, match="message is -1"):
        Delays(-1.0)
    per_event = [Site("a", 4, sites[0].jobs, EasyPlusPlus(), {})]
    with pytest.raises(ValueError, match="per event"):
        LockStepReplay(per_event, delays=Delays(1.0))
