import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.criteria import Criterion, CriterionOrder, GroupOrder
from lrms_sim.scheduling.selection import StrategyTable
from lrms_sim.scheduling.situations import make_calendar, zone_named
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.scheduling.strategy_files import StrategyFile, save_strategy
from scenarios.run.replay import run_scenario
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import SpecError, WorkloadError

DAY, NIGHT = (
    Criterion("f2", (1.0, 0.4, 0.1, 0.1, 0.1), (0.0,) * 5, 1.0, size) for size in (0.0, -0.5)
)
BY_DAY = Strategy("easy", CriterionOrder((NIGHT, DAY, NIGHT)))


def spec(folder: Path, **site: Any) -> ScenarioSpec:
    """Returns two synthetic sites, the first one with further keys."""
    document = {
        "name": "two",
        "sites": [
            {"name": "a", "processors": 64, "workload": {"model": "lublin", "jobs": 800}} | site,
            {"name": "b", "processors": 32, "workload": {"model": "lublin", "jobs": 300}},
        ],
    }
    return ScenarioSpec.model_validate(document, context={"folder": folder})


def alone(scenario: ScenarioSpec) -> list[float]:
    """Returns the starts of the first site's jobs, alone, in order of arrival."""
    schedule = run_scenario(scenario).result.schedule_alone
    start_time: list[float] = schedule.start_time[schedule.submitted_to == 0].tolist()
    return start_time


def test_a_run_has_figures_by_user_group_where_a_queue_looks_at_them(tmp_path: Path) -> None:
    """Of every site: the others' users have groups at home as well."""
    found = run_scenario(spec(tmp_path, discipline="easy-group")).result
    assert {one.site for one in found.user_groups} == {"a", "b"}
    assert sum(one.jobs for one in found.user_groups) == found.jobs
    assert json.loads(found.to_json())["user_groups"][0]["site"] == "a"
    assert run_scenario(spec(tmp_path)).result.user_groups == ()


def test_a_site_runs_a_strategy_file(tmp_path: Path) -> None:
    """Both spellings mean the file, relative to the scenario, in the site's own time zone."""
    save_strategy(StrategyFile(BY_DAY), tmp_path / "by-day.json")
    flat = spec(tmp_path, strategy="by-day.json", time_zone="Asia/Tokyo")
    table = spec(tmp_path, discipline={"strategy": "by-day.json", "time_zone": "Asia/Tokyo"})
    assert table == flat
    assert flat.sites[0].queue_name == "by-day"
    run = run_scenario(flat).result
    jobs = run.schedule_alone.jobs.select(run.schedule_alone.submitted_to == 0)
    calendar = make_calendar(
        "week", zone=zone_named("Asia/Tokyo"), unix_start=345600.0, first=0.0, last=1e7
    )
    expected = simulate(jobs, 64, BY_DAY.at(calendar)).start_time.tolist()
    assert alone(flat) == expected
    assert alone(spec(tmp_path, strategy="by-day.json")) != expected
    assert run.sites[0].discipline == "by-day"


def test_an_order_of_groups_can_be_given(tmp_path: Path) -> None:
    """The groups in front are served first, and reports say which."""
    scenario = spec(tmp_path, discipline="easy-group", group_order=[5, 4, 3, 2, 1])
    schedule = run_scenario(scenario).result.schedule_alone
    jobs = schedule.jobs.select(schedule.submitted_to == 0)
    backwards = Strategy("easy", GroupOrder((5, 4, 3, 2, 1)))
    assert alone(scenario) == simulate(jobs, 64, backwards).start_time.tolist()
    assert scenario.sites[0].queue_name == "easy-group-54321"
    named = spec(tmp_path, discipline={"name": "easy-group", "group_order": [5, 4, 3, 2, 1]})
    assert named == scenario


@pytest.mark.parametrize(
    ("site", "said"),
    [
        ({"strategy": "by-day.toml"}, "is no strategy file"),
        ({"strategy": "a.json", "discipline": "easy"}, "has the strategy .* and the discipline"),
        ({"strategy": "a.json", "group_order": [1, 2, 3, 4, 5]}, "group_order goes with"),
        ({"group_order": [1, 2, 3, 4, 5]}, "group_order goes with"),
        ({"discipline": "easy-group", "group_order": [1, 2, 3]}, "each of 1 to 5"),
        ({"discipline": {"strategie": "a.json"}}, "'strategie' is no key of discipline"),
        ({"discipline": {"strategy": "a.json"}, "strategy": "b.json"}, "one of them is enough"),
        ({"time_zone": "Atlantis"}, "time zone 'Atlantis' is not known"),
        ({"time_zone": 1e9}, "offset is"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(
    site: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """The file is refused before anything runs."""
    with pytest.raises(ValidationError, match=said):
        spec(tmp_path, **site)


def test_a_strategy_file_that_cannot_be_used_names_the_site(tmp_path: Path) -> None:
    """So does one that is not there."""
    with pytest.raises(SpecError, match=r"sites\.a\.strategy: .*missing\.json: cannot be read"):
        run_scenario(spec(tmp_path, strategy="missing.json"))
    (tmp_path / "bad.json").write_text(json.dumps({"schema": "hanse.greedy/1"}), encoding="utf-8")
    with pytest.raises(SpecError, match=r"sites\.a\.strategy: .*has no criteria"):
        run_scenario(spec(tmp_path, strategy="bad.json"))


def log(tmp_path: Path, header: str, user: int) -> dict[str, Any]:
    """Returns the workload of a log with ten jobs of one user."""
    lines = [
        f"{number} {number} -1 10 1 -1 -1 1 10 -1 1 {user} -1 -1 -1 -1 -1 -1"
        for number in range(1, 11)
    ]
    (tmp_path / "log.swf").write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    return {"swf": "log.swf"}


def test_a_log_without_users_or_time_is_refused(tmp_path: Path) -> None:
    """Where some site looks at groups every workload needs users; where it asks for the time, a zone."""
    table = StrategyTable(tuple(np.zeros(192, int).tolist()))
    save_strategy(StrategyFile(table), tmp_path / "table.json")
    save_strategy(StrategyFile(BY_DAY), tmp_path / "by-day.json")
    workload = log(tmp_path, "; MaxProcs: 8", -1)
    with pytest.raises(WorkloadError, match=r"sites\.a\.workload: user groups are needed"):
        run_scenario(spec(tmp_path, strategy="table.json", workload=workload))
    workload = log(tmp_path, "; MaxProcs: 8\n; UnixStartTime: 0", 3)
    with pytest.raises(SpecError, match=r"sites\.a\.time_zone: the header .* names no time zone"):
        run_scenario(spec(tmp_path, strategy="by-day.json", workload=workload))
    known = spec(tmp_path, strategy="by-day.json", workload=workload, time_zone="Europe/Berlin")
    assert len(alone(known)) == 10
