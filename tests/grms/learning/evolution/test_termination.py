import json
import math
from collections.abc import Callable

import pytest

from grms.learning.evolution.termination import (
    AnyOf,
    EvaluationLimit,
    GenerationLimit,
    GenerationRecord,
    Stagnation,
    TargetValue,
    Termination,
    TimeLimit,
)


def history(*best: float) -> list[GenerationRecord]:
    """Returns generations of ten evaluations and half a second each, founders first."""
    return [
        GenerationRecord(number, 10 * (number + 1), value, value + 1, 0.5, 0.5 * (number + 1))
        for number, value in enumerate(best)
    ]


@pytest.mark.parametrize(
    ("termination", "generations", "reason"),
    [
        (GenerationLimit(3), 4, "generation 3 of 3 is done"),
        (EvaluationLimit(31), 4, "40 of 31 evaluations are done"),
        (EvaluationLimit(40), 4, "40 of 40 evaluations are done"),
        (TimeLimit(1.8), 4, "2.0 of 1.8 s are over"),
        (TargetValue(97), 4, "the target 97 is reached"),
        (TargetValue(97.5), 4, "the target 97.5 is reached"),
        (Stagnation(3), None, ""),
        (Stagnation(3, 0.05), 4, "no gain in 3 generations"),
        (AnyOf((GenerationLimit(9), TimeLimit(2), TargetValue(97))), 4, "2.0 of 2 s are over"),
        (AnyOf((TargetValue(97), TimeLimit(2))), 4, "the target 97 is reached"),
    ],
)
def test_a_termination_stops_in_time_and_says_why(
    termination: Termination, generations: int | None, reason: str
) -> None:
    """Not a generation too early, and with the figures that decided."""
    records = history(100, 99, 98, 97, 96, 95)
    stopped = next(
        (count for count in range(1, 7) if termination.reason(records[:count]) is not None), None
    )
    assert stopped == generations
    if generations is not None:
        assert termination.reason(records[:generations]) == reason


def test_any_gain_ends_stagnation() -> None:
    """The best of so many generations ago is compared; without a least gain the smallest counts."""
    assert Stagnation(2).reason(history(5, 5)) is None
    assert Stagnation(2).reason(history(5, 5, 5)) == "no gain in 2 generations"
    assert Stagnation(2).reason(history(5, 5, math.nextafter(5, 0))) is None
    assert Stagnation(2).reason(history(6, 5, 5)) is None
    assert Stagnation(1).reason(history(0, 0)) == "no gain in 1 generations"
    assert Stagnation(1, 0.1).reason(history(-10, -11)) is None
    assert Stagnation(1, 0.1).reason(history(-10, -10.9)) == "no gain in 1 generations"


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: GenerationLimit(0), "generation limit is 0"),
        (lambda: EvaluationLimit(-1), "evaluation limit is -1"),
        (lambda: TimeLimit(0), "time limit is 0 s"),
        (lambda: TimeLimit(math.nan), "time limit is nan s"),
        (lambda: TimeLimit(math.inf), "time limit is inf s"),
        (lambda: Stagnation(0), "without gain is 0"),
        (lambda: Stagnation(1, 1.0), "least gain is 1.0"),
        (lambda: Stagnation(1, -0.1), "least gain is -0.1"),
        (lambda: TargetValue(math.nan), "target is nan"),
        (lambda: TargetValue(-math.inf), "target is -inf"),
        (lambda: AnyOf(()), "at least one"),
    ],
)
def test_limits_that_are_none_are_refused(make: Callable[[], Termination], complaint: str) -> None:
    """The text names the limit and its value."""
    with pytest.raises(ValueError, match=complaint):
        make()


def test_a_record_comes_back_to_the_last_bit() -> None:
    """Through JSON, as a checkpoint keeps it."""
    record = GenerationRecord(3, 286, 0.1 + 0.2, 1e300, math.pi, 1 / 3)
    assert GenerationRecord.from_state(json.loads(json.dumps(record.to_state()))) == record
