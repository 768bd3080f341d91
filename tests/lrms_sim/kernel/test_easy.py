"""What EASY backfilling promises."""

from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Easy
from tests.oracles.disciplines import simulate_plainly
from tests.replays import replayed
from tests.strategies import OneMachine, one_machine

easy_variants = st.booleans().map(lambda per_event: Easy(per_event=per_event))


@given(case=one_machine(), discipline=easy_variants)
def test_easy_keeps_the_heads_shadow_time(case: OneMachine, discipline: Easy) -> None:
    """The head starts no later than the shadow time it has at any moment of its being blocked."""
    replay = replayed(case, discipline.name)
    for moment in replay.moments():
        for head in replay.waiting(moment)[:1]:
            assert head.processors > replay.processors_free(moment)
            assert replay.start_time[head.row] <= replay.shadow_time(head, moment)


@given(case=one_machine(), discipline=easy_variants)
def test_easy_keeps_the_oracles_first_shadow_time(case: OneMachine, discipline: Easy) -> None:
    """The head starts no later than the shadow time of the pass in which it became the head."""
    start_time = simulate(case.jobs, case.processors, discipline).start_time
    oracle = simulate_plainly(case.jobs, case.processors, discipline.name)
    for row, shadow_time in oracle.first_shadow.items():
        assert start_time[row] <= shadow_time


@given(case=one_machine(), discipline=easy_variants)
def test_easy_leaves_no_harmless_job_waiting(case: OneMachine, discipline: Easy) -> None:
    """A waiting job that fits would end after the shadow time on processors the head needs."""
    replay = replayed(case, discipline.name)
    for moment in replay.moments():
        if not replay.waiting(moment):
            continue
        head, *later = replay.waiting(moment)
        shadow = replay.shadow_time(head, moment)
        in_use = sum(
            job.processors
            for job in replay.running(moment)
            if replay.start_time[job.row] + job.requested_time > shadow
        )
        extra = case.processors - in_use - head.processors
        for job in later:
            if job.processors <= replay.processors_free(moment):
                assert moment + job.requested_time > shadow
                assert job.processors > extra
