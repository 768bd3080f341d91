import pytest

from lrms_sim.malleable.value import PAPER_P
from scenarios.studies.utility_scheduling.experiments import Case, Run
from scenarios.studies.utility_scheduling.reference import RATES, READINGS, SEVEN, SHAPES
from scenarios.studies.utility_scheduling.statements import (
    behind_replan,
    slopes,
    statements,
    verdict,
)
from scenarios.studies.utility_scheduling.study import Study
from tests.scenarios.studies.utility_scheduling.measured import small_study

ORDER = list(SEVEN)


def made_up(*values: float, use: float = 0.5) -> Study:
    """Returns a study of two experiments in which the seven policies have these values."""
    names = (*SEVEN, "over-highest", "pre-highest", "both-highest")
    runs = []
    for number in range(3):
        found = {
            name: Run(value + 0.001 * number, use, 0, 0, PAPER_P)
            for name, value in zip(names, values, strict=True)
        }
        found["over-aggressive"] = Run(values[1] + 0.001 * number, 0.9 + 0.001 * number, 0, 0)
        runs.append((Case("figure-2", "never", 0.1, "linear", number, names), found))
    return Study({}, tuple(runs))


def test_a_verdict_follows_its_figures() -> None:
    """With learned policies above the others each statement holds; below them it does not."""
    good = statements(made_up(1, 2, 3, 4, 5, 6, 7, 1.5, 2.5, 3.5), "never")
    bad = statements(made_up(7, 6, 5, 4, 3, 2, 1, 8, 8, 8), "never")
    told = [(a.claim, a.holds, b.holds) for a, b in zip(good, bad, strict=True) if a.run]
    learned = [each for each in told if "learned" in each[0] and "value" not in each[0]]
    assert len(learned) == 7
    assert all(up is True and down is False for _, up, down in learned)
    smallest = [each for each in told if "smallest" in each[0]]
    assert [(up, down) for _, up, down in smallest] == [(True, False)] * 3


def test_a_difference_within_chance_is_no_verdict() -> None:
    """Policies that are ahead of each other by turns leave all open; equal ones are not above each other."""
    one, other = made_up(*range(10)).runs[0], made_up(*range(10, 0, -1)).runs[1]
    found = statements(Study({}, (one, other)), "never")
    assert {each.word for each in found if "above" in each.claim} == {"open"}
    equal = statements(made_up(*[5.0] * 10), "never")
    assert {each.word for each in equal if "above" in each.claim} == {"no"}


def test_what_was_not_run_is_said_to_be_so() -> None:
    """Of the rates and shapes nothing is known in a study of Figure 2 alone."""
    found = {each.claim: each for each in statements(made_up(*range(10)), "never")}
    assert not found["best fit falls at high rates"].run
    assert not found["the gain grows with convexity"].run
    assert not any(each.run for each in statements(made_up(*range(10)), "growth"))


def test_rates_and_shapes_are_judged_by_their_figures() -> None:
    """A sweep that rises, a best fit that falls, a gain that grows with convexity."""

    def study(sign: int) -> Study:
        runs = []
        for place, rate in enumerate(RATES):
            for number in range(2):
                best = 100.0 - (2 * place if sign > 0 else -2 * place) + 0.01 * number
                both = best * (1.1 + sign * 0.05 * place)
                both = both if sign < 0 else 120.0 + 10 * place + 0.01 * number
                found = {
                    "best-fit": Run(best, 0.3, 0, 0),
                    "both-value": Run(both, 0.5 + sign * 0.045 * place, 0, 0, PAPER_P),
                }
                case = Case("figure-4", "never", rate, "linear", number, tuple(found))
                runs.append((case, found))
        for place, shape in enumerate(SHAPES):
            for number in range(2):
                value = 110.0 + sign * place * (1 + 0.01 * number)
                found = {"best-fit": Run(100.0, 0, 0, 0), "both-value": Run(value, 0, 0, 0)}
                case = Case("figure-5", "never", 0.1, shape, number, tuple(found))
                runs.append((case, found))
        return Study({}, tuple(runs))

    for sign, wanted in ((1, True), (-1, False)):
        found = [each for each in statements(study(sign), "never") if each.run]
        assert len(found) == 5
        assert {each.holds for each in found} == {wanted}, [each.measured for each in found]


def test_the_papers_p_has_the_signs_that_it_says() -> None:
    """Value up with x1 and x2, down with free processors."""
    x1, x2, x3 = slopes(PAPER_P)
    assert x1 > 0
    assert x2 > 0
    assert x3 < 0


def test_the_verdict_counts_what_holds() -> None:
    """The number in the sentence is that of the statements below it."""
    study = small_study()
    found = [each for each in statements(study, next(iter(READINGS))) if each.run]
    holding = sum(each.holds is True for each in found)
    assert f"{holding} of {len(found)} statements" in verdict(study)
    behind = behind_replan(study)
    assert list(behind) == [0.1, 0.2, 0.3, 0.5]
    assert f"{100 * max(behind.values()):.1f} %" in verdict(study)
    assert ("beats" in verdict(study)) == all(each > 0 for each in behind.values())


@pytest.mark.parametrize("reading", list(READINGS))
def test_every_reading_is_held_against_every_statement(reading: str) -> None:
    """The same statements in the same order."""
    study = small_study()
    papers = [each.claim for each in statements(study, reading)]
    assert len(papers) == len(set(papers)) == 19
    assert papers == [each.claim for each in statements(study, "never")]
