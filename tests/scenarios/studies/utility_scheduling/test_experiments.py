import pytest

from lrms_sim.malleable.machine import simulate
from lrms_sim.malleable.model import PaperModel
from lrms_sim.malleable.options import MachineOptions
from lrms_sim.malleable.policies import POLICIES
from scenarios.studies.utility_scheduling.experiments import (
    Case,
    Run,
    evolve_order,
    median_p,
    run_case,
)


def test_an_experiment_comes_out_the_same_every_time() -> None:
    """Equal cases, equal figures; each policy has the same jobs."""
    case = Case("figure-2", "never", 0.1, "linear", 5, ("best-fit", "both-value"))
    first = run_case(case)
    assert first == run_case(case)
    assert list(first) == ["best-fit", "both-value"]
    assert first["best-fit"].p == ()
    assert any(first["both-value"].p)
    alone = simulate(
        PaperModel(0.1).draw(20_000, 5),
        24,
        POLICIES["best-fit"],
        options=MachineOptions(step=1.0),
        horizon=20_000.0,
    )
    assert first["best-fit"].productivity == alone.productivity / 1000


def test_the_papers_own_p_is_not_learned() -> None:
    """It is used as printed."""
    case = Case("paper-p", "never", 0.1, "linear", 0, ("both-value",), paper_p=True)
    assert run_case(case)["both-value"].p[6] == 4.03
    assert case.key != Case("paper-p", "never", 0.1, "linear", 0, ("both-value",)).key


@pytest.mark.parametrize(
    ("policy", "least", "most"),
    [
        ("best-fit", 133.0, 136.5),
        ("over-aggressive", 130.2, 133.8),
        ("pre-aggressive", 137.5, 141.3),
        ("both-aggressive", 134.7, 138.0),
        ("over-value", 138.4, 142.0),
        ("pre-value", 140.0, 144.0),
        ("both-value", 142.9, 146.5),
    ],
)
def test_figure_2_comes_out_as_known(policy: str, least: float, most: float) -> None:
    """Over eight experiments the mean is where an independent program has it, within chance."""
    runs = [
        run_case(Case("figure-2", "never", 0.1, "linear", number, (policy,)))[policy]
        for number in range(20, 28)
    ]
    assert least < sum(run.productivity for run in runs) / len(runs) < most


def test_an_evolved_order_is_no_worse_than_where_it_began() -> None:
    """On the jobs that it was evolved on; the same seed gives the same weights."""
    jobs = PaperModel(0.3).draw(1500, 2)
    options = MachineOptions(step=1.0)
    order = evolve_order(jobs, options, seed=3, generations=4)
    assert order == evolve_order(jobs, options, seed=3, generations=4)
    found = simulate(jobs, 24, order, options=options).productivity
    assert found >= simulate(jobs, 24, POLICIES["replan"], options=options).productivity


def test_medians_are_of_each_output() -> None:
    """Rule by rule."""
    runs = [{"x": Run(0, 0, 0, 0, p)} for p in ((1.0, 9.0), (2.0, 1.0), (3.0, 5.0))]
    assert median_p(runs, "x") == [2.0, 5.0]
