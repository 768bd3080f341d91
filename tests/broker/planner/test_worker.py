import numpy as np
import pytest

from broker.model.instances import paper_problem
from broker.planner.planning import Planner


def planner() -> Planner:
    """Returns a planner of thirty tasks."""
    return Planner(paper_problem("lRlD", 30, np.random.default_rng(2)))


def test_many_are_judged_as_one_by_one() -> None:
    """And every schedule built is counted."""
    one = planner()
    rng = np.random.default_rng(1)
    genes = np.array([rng.permutation(30) for _ in range(20)], np.int32)
    strategies = rng.integers(0, 3, 20).astype(np.int32)
    worker, other = one.worker(), one.worker()
    singly = [worker.evaluate(g, int(s)) for g, s in zip(genes, strategies, strict=True)]
    assert list(other.evaluate_many(genes, strategies)) == singly
    assert worker.evaluations == other.evaluations == 20
    assert len(set(singly)) > 10


def test_what_is_no_sequence_is_refused() -> None:
    """Of a wrong length, with a task twice, or with an unknown strategy."""
    worker = planner().worker()
    good = np.arange(30, dtype=np.int32)[None, :]
    none = np.zeros(1, np.int32)
    for genes, strategies in (
        (good[:, :-1].copy(), none),
        (np.zeros((1, 30), np.int32), none),
        (good, np.array([6], np.int32)),
        (good, np.array([-1], np.int32)),
        (good, np.zeros(2, np.int32)),
    ):
        with pytest.raises(ValueError, match=r"sequence|strateg"):
            worker.evaluate_many(genes, strategies)
    assert worker.evaluations == 0
