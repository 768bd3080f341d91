"""Run times learned from runs: by hand, and against what programs truly do."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.estimates import (
    FACTOR_MAX,
    PROGRAMS_MAX,
    RUNS_KEPT,
    Estimate,
    Estimates,
    MeasuredRun,
)


def learned(*runs: MeasuredRun, program: str = "fit") -> Estimates:
    """Returns what comes of runs of one program."""
    made = Estimates()
    for run in runs:
        made.learn(program, run)
    return made


def ran(
    work: float, estimate: float = 100.0, *, on: str = "a", size: float | None = None
) -> MeasuredRun:
    """Returns a run that took so much work."""
    return MeasuredRun(size, on, estimate, work)


def test_before_any_run_the_user_is_believed() -> None:
    """A program that is not known, and one of which another one has run."""
    assert learned(ran(50.0)).estimate("other", None, 70.0) == Estimate(70.0, 0, 70.0, 70.0, "file")


def test_the_users_word_counts_as_one_run() -> None:
    """One run of four times the estimate moves it to twice that, two to four times; a third odd one nothing."""
    one, two = learned(ran(400.0)), learned(ran(400.0), ran(400.0))
    assert one.estimate("fit", None, 10.0).work == pytest.approx(20.0)
    assert two.estimate("fit", None, 10.0).work == pytest.approx(40.0)
    odd = learned(ran(400.0), ran(400.0), ran(400.0), ran(90_000.0)).estimate("fit", None, 10.0)
    assert odd.work == pytest.approx(40.0)
    assert (odd.runs, odd.form) == (4, "ratio")
    assert odd.low < odd.work < odd.high


@given(st.lists(st.floats(1e-2, 1e6), min_size=1, max_size=80), st.floats(1e-2, 1e6))
def test_estimates_that_are_right_stay_to_the_last_bit(works: list[float], estimate: float) -> None:
    """Also where runs are measured with some rounding."""
    made = learned(
        *(ran(work * (1 + 1e-9), work, on=f"r{n % 3}", size=n) for n, work in enumerate(works))
    )
    assert made.estimate("fit", 5.0, estimate).work == estimate
    assert not made.has_factors("fit")


def test_a_time_that_does_not_depend_on_the_estimate_is_constant() -> None:
    """Users who guess from 1 to 1000 for what takes 60 are not asked any more."""
    rng = random.Random(1)  # noqa: S311  # no secret
    runs = [ran(60 * rng.uniform(0.9, 1.1), 10 ** rng.uniform(0, 3)) for _ in range(20)]
    found = learned(*runs).estimate("fit", None, 900.0)
    assert found.form == "constant"
    assert 55 < found.work < 65


def test_sizes_are_learned_from_where_they_say_more() -> None:
    """With one word for all inputs the time follows the size; of an unknown size it is that of the others."""
    rng = random.Random(2)  # noqa: S311  # no secret
    sizes = [10 ** rng.uniform(3, 6) for _ in range(30)]
    made = learned(*(ran(size / 100 * rng.uniform(0.9, 1.1), 60.0, size=size) for size in sizes))
    found = made.estimate("fit", 50_000.0, 60.0)
    assert found.form == "size"
    assert 400 < found.work < 600
    assert made.estimate("fit", None, 60.0).form in {"ratio", "constant"}


def test_a_resource_on_which_a_program_is_slow_has_a_factor() -> None:
    """Only from some runs on, and not for small differences."""
    even = [ran(100.0, on=name) for name in "aaabbb"]
    assert not learned(*even).has_factors("fit")
    slow = learned(*even, *(ran(200.0, on="slow") for _ in range(9)), *even)
    assert 1.5 < slow.factor("fit", "slow") < 2.0
    assert slow.factor("fit", "a") == slow.factor("fit", "unheard of") == 1.0
    assert not learned(*even, ran(200.0, on="slow"), ran(200.0, on="slow")).has_factors("fit")


def test_old_runs_and_programs_are_forgotten() -> None:
    """What has changed is believed after half as many runs as are kept; the number of programs is bounded."""
    made = learned(*[ran(100.0)] * RUNS_KEPT, *[ran(300.0)] * (RUNS_KEPT // 2 + 1))
    assert made.estimate("fit", None, 100.0).work == pytest.approx(300.0)
    assert made.runs("fit") == RUNS_KEPT
    for number in range(PROGRAMS_MAX):
        made.learn(f"p{number}", ran(1.0))
    assert made.runs("fit") == 0
    assert len(made.programs()) == PROGRAMS_MAX


@given(
    st.lists(
        st.builds(
            MeasuredRun,
            st.none() | st.floats(0, 1e15),
            st.sampled_from("abc"),
            st.floats(1e-3, 1e10),
            st.floats(1e-9, 1e10),
        ),
        max_size=90,
    ),
    st.none() | st.floats(0, 1e15),
    st.floats(1e-3, 1e10),
)
def test_whatever_has_run_the_estimate_is_a_time(
    runs: list[MeasuredRun], size: float | None, said: float
) -> None:
    """Within bounds, with quantiles around it, and the same again."""
    made = learned(*runs)
    found = made.estimate("fit", size, said)
    assert 0 < found.low <= found.work * (1 + 1e-9) <= found.high * (1 + 1e-9) ** 2 < math.inf
    assert min(said, said / FACTOR_MAX) * 0.999 <= found.work or found.work >= 1e-3
    assert found.work <= said * FACTOR_MAX * 1.001
    assert learned(*runs).estimate("fit", size, said) == found
    assert all(0 < each.ratio < math.inf for each in made.programs())


@pytest.mark.parametrize("off", [0.3, 1.0, 5.0])
def test_few_runs_take_most_of_a_bias_away(off: float) -> None:
    """With noise of ±10 % ten runs leave an error below 10 %."""
    rng = random.Random(3)  # noqa: S311  # no secret
    truths = [rng.uniform(30, 600) for _ in range(60)]
    made, errors = Estimates(), []
    for number, truth in enumerate(truths):
        found = made.estimate("fit", None, truth * off).work
        if number >= 10:
            errors.append(abs(math.log(found / truth)))
        made.learn("fit", ran(truth * rng.uniform(0.9, 1.1), truth * off))
    assert max(errors) < 0.1
