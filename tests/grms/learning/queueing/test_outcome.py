import math
from pathlib import Path

import pytest

from grms.learning.queueing.constants import Judged
from grms.learning.queueing.options import WorkloadOptions
from grms.learning.queueing.outcome import (
    LEARNED,
    Comparison,
    best_constant,
    compare,
    gain_words,
    group_words,
    value_words,
)
from grms.learning.queueing.workloads import Workload, read_workload
from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.scheduling.strategies import Strategy
from tests.tuning_cases import busy_case, busy_log


def workload(folder: Path) -> Workload:
    return read_workload(busy_log(folder / "busy.swf"), WorkloadOptions(training=(0, 1)))


def test_all_stand_on_both_parts_with_what_training_knows(tmp_path: Path) -> None:
    """The orders of groups of unseen jobs are not looked at; what is learned comes last."""
    comparison = compare(workload(tmp_path), Strategy("fcfs", GroupOrder((5, 4, 3, 2, 1))))
    names = [one.name for one in comparison.training]
    assert names == [one.name for one in comparison.unseen]
    assert names[-1] == LEARNED
    assert names[:2] == ["fcfs-arrival", "easy-arrival"]
    for (word, case, judged), expected in zip(
        comparison.parts, ("training", "unseen"), strict=True
    ):
        assert word == expected
        assert judged[1].gain == pytest.approx(0.0)
        own = Strategy("fcfs", GroupOrder((5, 4, 3, 2, 1)))
        assert judged[-1].value == case.run(own).value


@pytest.mark.parametrize(("value", "said"), [(9.0, 0), (10.0, 1), (11.0, 1)])
def test_a_constant_that_is_as_good_is_warned_of(tmp_path: Path, value: float, said: int) -> None:
    """Equal is not better."""
    rows = (
        Judged("a", 12.0, 0.0, None),
        Judged("b", 10.0, 1.0, None),
        Judged(LEARNED, value, 2.0, None),
    )
    assert best_constant(rows).name == "b"
    found = workload(tmp_path)
    comparison = Comparison(Workload("x", found.training, None, {}), rows, ())
    assert len(comparison.warnings()) == said


def test_what_was_given_up_is_said() -> None:
    """No number for what nobody measured."""
    given_up = Judged("x", math.inf, -math.inf, None)
    assert (value_words(given_up), gain_words(given_up)) == ("given up", "given up")
    assert group_words(given_up, busy_case()) == ("–",) * 5
    assert gain_words(Judged("x", 1.0, 2.345, None)) == "+2.35 %"
