import numpy as np

from lrms_sim.analysis.trial import Trial
from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.scheduling.strategies import Strategy
from scenarios.studies.queue_strategies.cloud import cloud, not_dominated
from tests.tuning_cases import busy_jobs


def test_a_dominated_point_is_as_bad_in_all_and_worse_in_one() -> None:
    """Compared with the plain definition; of equal points none is dominated by the other."""
    rng = np.random.default_rng(1)
    seven = rng.integers(0, 3, (60, 7)).astype(float)
    seven[1] = seven[0]
    signed = seven * np.array([-1, 1, 1, 1, 1, 1, 1])
    plain = [
        not any((other <= one).all() and (other < one).any() for other in signed) for one in signed
    ]
    assert not_dominated(seven.tolist()).tolist() == plain
    assert 0 < sum(plain) < 60


def test_all_orders_are_there_as_they_are_simulated() -> None:
    """120 for each of three kinds; true run times only in the third."""
    jobs = busy_jobs(count=150)
    trial = Trial(jobs, 16)
    points = cloud(trial)
    assert len({(one.kind, one.groups) for one in points}) == len(points) == 360
    for one in points[::37]:
        order = GroupOrder((one.groups[0], *one.groups[1:]))  # type: ignore[arg-type]  # five of them
        strategy = Strategy("fcfs" if one.kind == "fcfs" else "easy", order)
        found = trial.run(strategy).objectives
        assert found is not None
        if one.kind != "clairvoyant":
            assert found.seven == one.seven
    assert any(one.front for one in points)
    assert not all(one.front for one in points)


def test_what_was_learned_is_judged_beside_the_constants() -> None:
    """One that is better in everything is on the front, and pushes all others off it."""
    trial = Trial(busy_jobs(count=60), 16)
    points = cloud(trial, [(1.0, *(0.0,) * 6), (0.0, *(1e9,) * 6)])
    assert [one.front for one in points[-2:]] == [True, False]
    assert [one.kind for one in points[-2:]] == ["learned", "learned"]
    assert not any(one.front for one in points[:-2])
