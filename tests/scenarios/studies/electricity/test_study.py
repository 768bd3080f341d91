"""What is run and kept, that the study goes on, and its statements and page."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Easy
from scenarios.studies.common.frame import having
from scenarios.studies.electricity import study
from scenarios.studies.electricity.command import run_command
from scenarios.studies.electricity.grids import GRIDS, Workloads, supplies
from scenarios.studies.electricity.options import StudyOptions
from scenarios.studies.electricity.statements import changes, cost, cost_off, statements, values
from scenarios.studies.electricity.study import (
    ALONE,
    BOTH,
    DEFERRED,
    FAIR,
    FREELY,
    GREENER,
    IDLE_SHARES,
    ONLY,
    POLICIES,
    SPREAD,
    Case,
    cases,
    run_case,
    run_study,
)

DAYS = 2


def quiet() -> Console:
    """Returns a console that shows nothing to anybody."""
    return Console(file=io.StringIO())


def small_options(folder: Path) -> StudyOptions:
    """Returns the study of two short draws of the models with one seed."""
    return StudyOptions(folder, ("models",), parts=2, days=DAYS, seeds=(1,), workers=1)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyOptions, study.Study]:
    """Returns a small study that has been run."""
    options = small_options(tmp_path_factory.mktemp("electricity"))
    return options, run_study(options, quiet())


def test_each_seed_has_another_cheap_site() -> None:
    """Mean prices differ by the spread; no site is cheapest and cleanest; with no spread they are drawn alone."""
    for seed in (1, 2, 3):
        found = supplies("models", 0.5, seed, 150)
        means = [each.price.mean for each in found]
        carbons = [each.carbon.mean for each in found if each.carbon is not None]
        assert int(np.argmin(means)) == -seed % 3
        assert int(np.argmin(carbons)) == (-seed - 1) % 3
        assert max(means) > 1.5 * min(means)
    even = supplies("models", 0.0, 1, 150)
    assert max(each.price.mean for each in even) < 1.4 * min(each.price.mean for each in even)


def test_the_runs_are_those_that_are_said() -> None:
    """Alone is EASY; deferring moves nothing; only-cheaper exchange moves to cheaper sites alone."""
    workloads = Workloads(DAYS)

    def found(policy: str) -> dict[str, Any]:
        return run_case(Case("models", 1, 1, policy, SPREAD), workloads)

    alone = found(ALONE)
    for number, place in enumerate(GRIDS["models"]):
        schedule = simulate(workloads.jobs("models", 1)[number], place.processors, Easy())
        assert alone["wait"][number] == pytest.approx(schedule.wait_time.mean())
    assert alone["delay"] == alone["longer"] == [0.0] * 3
    assert alone["moved"] == found(DEFERRED)["moved"] == 0
    assert min(found(DEFERRED)["delay"]) > 0
    assert found(ONLY)["moved"] > 0
    assert found(FREELY)["cost_off"] < found(FAIR)["cost_off"]
    assert found(GREENER)["carbon_off"] < found(FREELY)["carbon_off"]
    assert found(BOTH)["cost_off"] < alone["cost_off"]
    # Without power when idle and with idle nodes off the bill is the same, and idle power raises it.
    for each in (alone, found(FREELY)):
        assert each["cost_off"] == pytest.approx(each["cost"][0])
        assert each["cost"] == sorted(each["cost"])
        assert sum(each["bills"]) == pytest.approx(each["cost"][IDLE_SHARES.index(study.IDLE)])
        assert sum(each["bills_off"]) == pytest.approx(each["cost_off"])


def test_a_study_goes_on(
    small: tuple[StudyOptions, study.Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is run twice; parts of another length are."""
    options, first = small
    planned = list(cases(options))
    assert [case for case, _ in first.runs] == planned
    ran: list[Case] = []

    def counted(case: Case, _workloads: Workloads) -> dict[str, object]:
        ran.append(case)
        return {}

    monkeypatch.setattr(study, "run_case", counted)
    assert run_study(options, quiet()).to_json() == first.to_json()
    assert ran == []
    run_study(replace(options, folder=options.folder, days=DAYS + 1), quiet())
    assert len(ran) == len(planned)


def test_statements_are_of_the_runs(small: tuple[StudyOptions, study.Study]) -> None:
    """Changes are those of the runs, by hand; the saved part is exact."""
    _, found = small
    base = having(found.runs, policy=ALONE, spread=SPREAD)
    moved = having(found.runs, policy=FREELY, spread=SPREAD)
    by_hand = [
        100 * (b["cost_off"] / a["cost_off"] - 1)
        for (_, a), (_, b) in zip(base, moved, strict=True)
    ]
    assert changes(found, "models", FREELY, cost_off) == pytest.approx(by_hand)
    assert values(found, "models", ALONE, cost) == [each["cost"][2] for _, each in base]
    every = list(statements(found))
    assert all(each.run and each.measured and each.rule for each in every)
    assert len({each.claim for each in every}) == len(every)
    exact = next(each for each in every if "busy-minus-idle" in each.claim)
    assert exact.holds is True


def test_the_command_writes_a_page(small: tuple[StudyOptions, study.Study]) -> None:
    """With statements, drawings and tables of every policy, and what is assumed."""
    options, _ = small
    shown = io.StringIO()
    page = run_command(options, Console(file=shown, width=160), quiet())
    text = page.read_text(encoding="utf-8")
    for label in (
        "saved cost by policy",
        "cost by differences of mean prices",
        "cost by idle power",
    ):
        assert f"models: {label}" in text
    for policy, about in POLICIES.items():
        assert policy in text
        assert about.words.split(";", 1)[0] in text
    assert "synthetic" in text
    assert "busy-minus-idle" in shown.getvalue()
    document = json.loads((options.folder / "study.json").read_text(encoding="utf-8"))
    assert len(document["runs"]) == 2 * (len(POLICIES) + 2 * len(study.BY_SPREAD))
    table = (options.folder / "statements.md").read_text(encoding="utf-8")
    assert table.count("\n| models: ") == len(list(statements(run_study(options, quiet()))))
