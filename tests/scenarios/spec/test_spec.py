import dataclasses
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from grms.policy.constraints import ConstraintsSpec
from lrms_sim.workload.preparation import PreparationOptions
from scenarios.spec.broker import (
    BreakdownSpec,
    BrokerSpec,
    CancelSpec,
    CycleSpec,
    PlanningSpec,
    ReservableSpec,
    WorkflowsSpec,
)
from scenarios.spec.electricity import ElectricityClockSpec, ElectricitySpec
from scenarios.spec.spec import (
    SEED_MAX,
    ClockSpec,
    LublinWorkload,
    PreparationSpec,
    ScenarioSpec,
    SiteSpec,
    SwfWorkload,
    TraceWorkload,
    TransferSpec,
    WindowSpec,
)


def site(name: str, **changes: Any) -> dict[str, Any]:
    """Returns a site as a file would say it."""
    workload = {"model": "lublin", "jobs": 10}
    return {"name": name, "processors": 8, "workload": workload} | changes


def spec(*sites: dict[str, Any], folder: str = "/scenarios", **changes: Any) -> ScenarioSpec:
    """Returns a scenario of these sites."""
    document = {"name": "test", "sites": list(sites) or [site("A")]} | changes
    return ScenarioSpec.model_validate(document, context={"folder": Path(folder)})


def test_everything_but_name_and_sites_has_a_default() -> None:
    """The shortest scenario is FCFS, AWF, AWRT, on the logs' own clock."""
    made = spec()
    assert made.sites[0].discipline == "fcfs"
    assert made.sites[0].location == "awrt"
    assert made.sites[0].transfer.default is None
    assert dict(made.sites[0].transfer.partners) == {}
    assert made.clock.shift == "none"


def test_paths_are_relative_to_the_file() -> None:
    """Logs and rule bases mean the same wherever the program is started."""
    made = spec(
        site("A", workload={"swf": "logs/a.swf"}, transfer={"B": "../b.json", "default": "c.json"}),
        site("B", transfer={"pool": [{"processors": 8, "policy": "/abs.json"}]}),
    )
    workload = made.sites[0].workload
    assert isinstance(workload, SwfWorkload)
    assert workload.swf == "/scenarios/logs/a.swf"
    assert made.sites[0].transfer.partners["B"] == "/scenarios/../b.json"
    assert made.sites[0].transfer.default == "/scenarios/c.json"
    assert made.sites[1].transfer.pool is not None
    assert made.sites[1].transfer.pool[0].policy == "/abs.json"


def test_every_field_has_a_line_in_the_documentation() -> None:
    """Nobody has to read the program to write a scenario."""
    page = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("|")]
    words = set(re.findall(r"\w+", " ".join(rows)))
    models = (
        ScenarioSpec,
        ClockSpec,
        SiteSpec,
        TraceWorkload,
        SwfWorkload,
        LublinWorkload,
        WindowSpec,
        PreparationSpec,
        TransferSpec,
        ConstraintsSpec,
        ReservableSpec,
        BrokerSpec,
        CycleSpec,
        PlanningSpec,
        WorkflowsSpec,
        BreakdownSpec,
        CancelSpec,
        ElectricitySpec,
        ElectricityClockSpec,
    )
    missing = {name for model in models for name in model.model_fields} - words
    assert missing <= {"preparation", "window"}, "tables whose fields have their own lines"


def test_derived_seeds_depend_on_seed_and_name_alone() -> None:
    """A further site changes nobody's workload; another seed changes everybody's."""

    def seeds(made: ScenarioSpec) -> list[int | None]:
        workloads = [one.workload for one in made.resolved().sites]
        return [one.seed for one in workloads if isinstance(one, LublinWorkload)]

    alone = seeds(spec(site("A")))
    assert seeds(spec(site("B"), site("A")))[1] == alone[0]
    assert seeds(spec(site("A"), seed=2)) != alone
    assert len(set(seeds(spec(site("A"), site("B"), site("C"))))) == 3
    assert all(seed is not None and 0 <= seed <= SEED_MAX for seed in alone)
    # The first half of a promise that a file made last year still gives the same jobs.
    assert alone == [4755621239651068925]


def test_a_seed_of_ones_own_stays() -> None:
    """Only what is left open is derived, and the given seed replaces the scenario's."""
    own = {"model": "lublin", "jobs": 10, "seed": 5}
    made = spec(site("A", workload=own)).resolved(77)
    assert made.seed == 77
    assert isinstance(made.sites[0].workload, LublinWorkload)
    assert made.sites[0].workload.seed == 5
    assert not made.is_random
    assert spec().is_random
    assert not spec().resolved().is_random


def test_resolving_twice_changes_nothing() -> None:
    """A resolved scenario is its own resolution."""
    made = spec(site("A"), site("B")).resolved(3)
    assert made.resolved() == made


@pytest.mark.parametrize("seed", [-1, SEED_MAX + 1])
def test_a_seed_that_toml_cannot_hold_is_refused(seed: int) -> None:
    """The bounds are in the text."""
    with pytest.raises(ValueError, match=rf"{seed}; it must be from 0 to {SEED_MAX}"):
        spec().resolved(seed)


def test_logs_are_listed_once_in_site_order() -> None:
    """What has to be downloaded is known without running anything."""
    logs = {"A": "ctc", "B": "kth", "C": "ctc"}
    made = spec(*(site(name, workload={"trace": key}) for name, key in logs.items()))
    assert made.traces == ["ctc", "kth"]
    assert spec().traces == []


def test_the_mapping_of_a_scenario_is_read_back_the_same() -> None:
    """Nothing is lost between a model and the values of its file."""
    made = spec(
        site("A", workload={"trace": "kth", "window": {"first_jobs": 5}}, location=["C", "B"]),
        site("B", workload={"swf": "x.swf"}, transfer={"A": "keep", "C": "x.json"}),
        site("C", transfer={"pool": [{"processors": 8, "policy": "awf"}]}, discipline="easy"),
        clock={"time_zero": "window"},
    ).resolved(9)
    assert ScenarioSpec.model_validate(made.to_mapping()) == made
    assert made.clock.shift == "window"


@pytest.mark.parametrize(
    "wrong",
    [
        site("A", processors=0),
        site("A", processors=2**31),
        site("A", processors="8"),
        site("A", processors=True),
        site("A", workload={"model": "lublin"}),
        site("A", workload={"model": "lublin", "jobs": 1, "days": 1}),
        site("A", workload={"model": "lublin", "days": float("inf")}),
        site("A", workload={"model": "lublin", "jobs": 1, "load": 0}),
        site("A", workload={"trace": "kth", "window": {"first_day": 2, "last_day": 2}}),
        site("A", workload={"trace": "kth", "window": {"last_day": 0}}),
        site("A", workload={"swf": ""}),
        site("A", transfer={"default": "awf", "pool": [{"processors": 1, "policy": "awf"}]}),
        site("A", transfer={"pool": [{"processors": 1, "policy": "awf"}] * 2}),
        site("A", transfer={"pool": [{"processors": 1, "policy": "none"}]}),
        site("A", transfer={"pool": []}),
        site("a site"),
        site("A\n"),
        site(""),
    ],
)
def test_what_cannot_be_run_is_no_scenario(wrong: dict[str, Any]) -> None:
    """Bounds hold, and types are not bent."""
    with pytest.raises(ValidationError):
        spec(wrong)


def test_preparation_offers_what_the_preparation_offers() -> None:
    """Names, defaults and choices are those of `PreparationOptions`, but for jobs that run over their requests."""
    assert PreparationSpec().options == PreparationOptions()
    names = [option.name for option in dataclasses.fields(PreparationOptions)]
    assert list(PreparationSpec.model_fields) == names
    hints = dict(PreparationOptions.__annotations__)
    overruns = get_args(PreparationSpec.model_fields["overrun"].annotation)
    assert {*overruns, "run"} == set(get_args(hints.pop("overrun")))
    for name, hint in hints.items():
        assert PreparationSpec.model_fields[name].annotation == hint
    assert PreparationSpec(overrun="extend").options.overrun == "extend"


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ({}, "the whole log"),
        ({"last_day": 150}, "before day 150"),
        ({"first_day": 0.5, "first_jobs": 1000}, "from day 0.5, the first 1,000 jobs"),
    ],
)
def test_windows_are_said_in_words(window: dict[str, Any], words: str) -> None:
    """The words are those of reports and tables."""
    assert WindowSpec(**window).words == words
