import re
from pathlib import Path

import pytest

from grms.policy.files import load_rule_base
from scenarios.library import bundled_names, rule_base_folder, scenario_path
from scenarios.run.replay import check_files, run_scenario
from scenarios.run.results import ScenarioResult
from scenarios.spec.files import load_spec
from scenarios.spec.traces import TRACES
from scenarios.util.errors import UnknownScenarioError

ALONE = {
    "KTH-5": (11775, 475699.8689),
    "CTC-5": (35360, 57897.7752),
    "SDSC05-5": (28185, 56858.3509),
    "KTH-6": (16699, 100013.1841),
    "CTC-6": (41839, 59118.1572),
    "SDSC05-6": (46732, 77472.7091),
    "SDSC00-6": (16316, 391742.4292),
}
"""Jobs and AWRT in seconds of each site alone under FCFS, by log and months: an independent
program's figures, beside which the papers' Table 1 differs where its logs were other versions."""

ACCEPT_WHEN_FIT = {
    "setup-1-kth-ctc": {"KTH": 89547.4226, "CTC": 59905.6119},
    "setup-3-kth-sdsc05": {"KTH": 80715.0350, "SDSC05": 58439.9832},
    "setup-5-ctc-sdsc05": {"CTC": 47295.6015, "SDSC05": 59209.5901},
    "kth-ctc-6": {"KTH": 73525.3215, "CTC": 59634.9918},
    "kth-sdsc05-6": {"KTH": 70710.9658, "SDSC05": 76474.7120},
    "ctc-sdsc05-6": {"CTC": 58556.6070, "SDSC05": 75428.4777},
    "three-sites-6": {"KTH": 63346.7364, "CTC": 53647.3254, "SDSC05": 74633.6410},
}
"""AWRT in seconds with AWF everywhere, of the same independent program."""

LEARNED = {
    "setup-1-kth-ctc": {"KTH": 66267.8044, "CTC": 60170.2996},
    "kth-ctc-6": {"KTH": 59271.0186, "CTC": 55977.1855},
    "three-sites-6": {"KTH": 59009.6937, "CTC": 49332.6249, "SDSC05": 67311.1395},
    "three-sites-6-no-loser": {"KTH": 70721.6452, "CTC": 51907.6999, "SDSC05": 66004.3353},
    "three-sites-6-easy": {"KTH": 60040.6683, "CTC": 45867.7372, "SDSC05": 54403.4413},
    "four-sites-6": {
        "KTH": 58748.5778,
        "CTC": 49220.4614,
        "SDSC05": 68408.0952,
        "SDSC00": 44834.7777,
    },
}
"""AWRT in seconds with the rule bases that come along: this program's own figures, which stand in
docs/experiments.md and must not change unnoticed."""

EXCHANGED = {
    "setup-1-kth-ctc": {"KTH": (1917, 1810)},
    "setup-3-kth-sdsc05": {"KTH": (2016, 634)},
    "setup-5-ctc-sdsc05": {"CTC": (2780, 1563)},
    "kth-ctc-6": {"KTH": (2517, 2253)},
    "kth-sdsc05-6": {"KTH": (2562, 1637)},
    "ctc-sdsc05-6": {"CTC": (4463, 3383)},
    "three-sites-6": {"KTH": (2608, 1453), "CTC": (4881, 5691), "SDSC05": (4152, 4497)},
}
"""Jobs given and taken, of the same independent program."""


def ran(name: str, traces_folder: Path, transfer: str | None = None) -> ScenarioResult:
    """Runs a bundled scenario on the recorded logs, with its own policies or another one."""
    environment = {"HANSE_TRACES": str(traces_folder)}
    spec = load_spec(scenario_path(name))
    if transfer is not None:
        spec = spec.with_transfer(transfer)
    return run_scenario(spec, environment=environment).result


@pytest.mark.parametrize("name", bundled_names())
def test_a_bundled_scenario_is_valid_and_called_like_its_file(name: str) -> None:
    """Each can be found by the name it has, and says what it is about."""
    spec = load_spec(scenario_path(name))
    assert spec.name == name
    assert spec.title
    assert spec.description
    check_files(spec)
    sizes = {trace.key: trace.processors for trace in TRACES.values()}
    for site in spec.sites:
        trace = getattr(site.workload, "trace", None)
        assert trace is None or site.processors == sizes[trace]


def test_every_setup_of_the_paper_is_there() -> None:
    """Table 1, setups I to VI, the pairs on unseen months, three sites, four sites."""
    names = bundled_names()
    assert len(names) == 17
    pairs = [name.split("-", 2)[2] for name in names if name.startswith("setup-")]
    assert pairs == ["kth-ctc", "ctc-kth", "kth-sdsc05", "sdsc05-kth", "ctc-sdsc05", "sdsc05-ctc"]
    assert {"table-1-five-months", "table-1-six-months", "three-sites-6", "four-sites-6"} < set(
        names
    )


def test_two_scenarios_need_no_download() -> None:
    """A newcomer without a network sees something."""
    free = [name for name in bundled_names() if not load_spec(scenario_path(name)).traces]
    assert free == ["batch-and-workflows", "synthetic-three-sites"]


def test_batch_jobs_and_workflows_run_side_by_side() -> None:
    """All workflows but the one given up are done, and batch users have figures for both cases."""
    result = run_scenario(load_spec(scenario_path("batch-and-workflows"))).result
    broker = result.broker
    assert broker is not None
    assert (len(broker.workflows), broker.completed) == (59, 58)
    assert broker.keeping >= 45, "most workflows keep due date and budget"
    assert broker.refusals == 0
    (broken,) = [each for each in broker.resources if each.broken]
    ((begin, end),) = broken.broken
    assert not [
        each
        for each in broker.tasks
        if each.resource == broken.name and each.start_time < end and each.end_time > begin
    ]
    for site in broker.batch:
        assert site.awrt_without is not None
        assert site.awrt_with != site.awrt_without
        assert site.reserved_share is not None
        assert 0.4 < site.reserved_share < 0.9


def test_the_synthetic_scenario_shows_what_exchange_does() -> None:
    """The sites that wait long alone gain much; nobody loses half; thousands of jobs move."""
    result = run_scenario(load_spec(scenario_path("synthetic-three-sites"))).result
    small, middle, large = result.sites
    assert 20_000 < result.jobs < 50_000
    assert small.awrt_improvement > 0.3
    assert middle.awrt_improvement > 0.3
    assert large.awrt_improvement > -0.1
    assert result.jobs_exchanged > 3000
    assert large.squashed_area_change > 0 > small.squashed_area_change


def test_names_come_before_files_and_paths_before_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stray file does not hide a bundled scenario, and a path is always a path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "three-sites-6").write_text("")
    (tmp_path / "three-sites-6.toml").write_text("")
    (tmp_path / "mine").write_text("")
    assert scenario_path("three-sites-6").parent.name == "library"
    assert scenario_path("./three-sites-6") != scenario_path("three-sites-6")
    assert scenario_path("three-sites-6.toml") == Path("three-sites-6.toml")
    assert scenario_path("mine") == Path("mine")


def test_a_saved_run_is_a_scenario_too(tmp_path: Path) -> None:
    """The folder of a run stands for the scenario in it."""
    (tmp_path / "scenario.toml").write_text("")
    assert scenario_path(str(tmp_path)) == tmp_path / "scenario.toml"


@pytest.mark.parametrize("name", ["tree-sites", "Three-Sites", "x.toml", "", "/nowhere/x"])
def test_an_unknown_scenario_says_how_to_find_one(name: str) -> None:
    """With a suggestion where one is near."""
    with pytest.raises(UnknownScenarioError, match="`scenario list` shows them") as caught:
        scenario_path(name)
    assert ("did you mean 'three-sites-6'?" in str(caught.value)) == name.lower().endswith("-sites")


@pytest.mark.traces
@pytest.mark.parametrize(("name", "months"), [("five", "5"), ("six", "6")])
def test_table_1_to_all_digits(name: str, months: str, traces_folder: Path) -> None:
    """Jobs and AWRT of every window alone, and C_max as the table counts it."""
    result = ran(f"table-1-{name}-months", traces_folder)
    found = {f"{s.name}-{months}": (s.jobs, round(s.awrt_alone, 4)) for s in result.sites}
    assert found == {key: value for key, value in ALONE.items() if key.endswith(months)}
    assert all(site.awrt == site.awrt_alone for site in result.sites)
    makespan = {site.name: site.makespan_alone for site in result.sites}
    assert makespan["CTC"] == {"5": 13009718, "6": 16346403}[months]
    assert makespan["SDSC05"] == {"5": 13078215, "6": 16419455}[months]
    assert makespan["KTH"] == {"5": 13753968, "6": 16420496}[months]


@pytest.mark.traces
@pytest.mark.parametrize("name", sorted(ACCEPT_WHEN_FIT))
def test_exchange_when_fit_to_all_digits(name: str, traces_folder: Path) -> None:
    """AWRT, and jobs given and taken, with AWF at every site."""
    result = ran(name, traces_folder, "awf")
    assert {s.name: round(s.awrt, 4) for s in result.sites} == ACCEPT_WHEN_FIT[name]
    found = {s.name: (s.jobs_given, s.jobs_taken) for s in result.sites}
    assert found | EXCHANGED[name] == found


@pytest.mark.traces
@pytest.mark.parametrize("name", sorted(LEARNED))
def test_learned_rule_bases_to_all_digits(name: str, traces_folder: Path) -> None:
    """On months that nobody has learned from every site gains, whatever the regime."""
    result = ran(name, traces_folder)
    assert {s.name: round(s.awrt, 4) for s in result.sites} == LEARNED[name]
    if name.endswith("-6"):
        assert min(site.awrt_improvement for site in result.sites) > 0.05


@pytest.mark.parametrize("file", sorted(rule_base_folder("").rglob("*.json")), ids=lambda f: f.name)
def test_a_shipped_rule_base_says_where_it_comes_from(file: Path) -> None:
    """Strategy, seed, objective, workloads with checksums, and what came of it."""
    provenance = load_rule_base(file).provenance
    assert re.fullmatch("[0-9a-f]{40}", provenance["commit"]), "of no commit, or of changed sources"
    assert provenance["strategy"]["name"] == "paper"
    assert provenance["strategy"]["seed"] in range(1, 6)
    assert provenance["objective"].replace("_", "-") in file.parent.name
    (case,) = provenance["cases"]
    assert f"{case['site']}-for-{case['partners'][0]}".lower() == file.stem
    assert {site["discipline"] for site in case["sites"]} == {file.parent.name[:4]}
    assert all(site["jobs_sha256"] and site["origin"]["file_sha256"] for site in case["sites"])


@pytest.mark.traces
@pytest.mark.parametrize("number", [1, 3, 5])
def test_the_order_of_sites_hardly_matters(number: int, traces_folder: Path) -> None:
    """Setups II, IV and VI are I, III and V the other way round: ties alone differ."""
    names = sorted(name for name in bundled_names() if name.startswith("setup-"))
    one, other = (ran(names[i], traces_folder, "awf") for i in (number - 1, number))
    assert [s.name for s in one.sites] == [s.name for s in reversed(other.sites)]
    for mine, theirs in zip(one.sites, reversed(other.sites), strict=True):
        assert mine.awrt == pytest.approx(theirs.awrt, rel=1e-6)


@pytest.mark.traces
def test_a_fourth_site_joins(traces_folder: Path) -> None:
    """SDSC00, which waits long alone, gains most, and nobody else loses."""
    result = ran("four-sites-6", traces_folder)
    gains = {site.name: site.awrt_improvement for site in result.sites}
    assert max(gains, key=lambda name: gains[name]) == "SDSC00"
    assert min(gains.values()) > 0
    assert result.acknowledgements
