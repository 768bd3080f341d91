import hashlib
from pathlib import Path

import pytest

from grms.federation.federation import replay
from grms.learning.transfer.fitness import SourceError, training_cases
from grms.policy.files import save_rule_base
from grms.policy.location import FixedOrder
from grms.policy.transfer import AcceptWhenFit, RuleBase
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.swf import write_swf
from scenarios.run.replay import run_scenario
from scenarios.run.training_source import load_training_source
from scenarios.spec.files import load_spec
from tests.training_grids import YES

SCENARIO = """
name = "mixed"
title = "A log and a model"
seed = 5
[[sites]]
name = "a"
processors = 4
discipline = "easy"
workload = { swf = "a.swf" }
transfer = { b = "yes.json" }
[[sites]]
name = "b"
processors = 64
location = ["a"]
workload = { model = "lublin", jobs = 50, load = 0.5 }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a working folder with the scenario and its log."""
    monkeypatch.chdir(tmp_path)
    jobs = JobTable.from_columns(
        submit_time=[0, 5, 9],
        processors=[4, 2, 1],
        run_time=[10, 20, 5],
        requested_time=[10, 30, 9],
    )
    write_swf(tmp_path / "a.swf", jobs)
    save_rule_base(YES, tmp_path / "yes.json")
    (tmp_path / "mixed.toml").write_text(SCENARIO)
    return tmp_path


def test_sites_are_those_of_the_scenario(folder: Path) -> None:
    """Sizes, disciplines, workloads and policies, just as a run of it has them."""
    source = load_training_source("mixed.toml", {})
    assert source.name == "mixed"
    a, b = source.sites
    assert (a.name, a.processors, a.discipline.name, len(a.jobs)) == ("a", 4, "easy", 3)
    assert (b.name, b.processors, b.discipline.name, len(b.jobs)) == ("b", 64, "fcfs", 50)
    assert isinstance(a.transfer_policies["b"], RuleBase)
    assert isinstance(b.transfer_policies["a"], AcceptWhenFit)
    assert b.location_policy == FixedOrder(("a",))
    run = run_scenario(load_spec(folder / "mixed.toml"), environment={})
    assert replay(source.sites).start_time.tolist() == run.result.schedule.start_time.tolist()


def test_provenance_tells_where_workloads_come_from(folder: Path) -> None:
    """A log by name and checksum, never by a path of this machine; a model with its seed."""
    source = load_training_source(str(folder / "mixed.toml"), {})
    a, b = source.provenance["a"], source.provenance["b"]
    assert a["file"] == "a.swf"
    assert a["file_sha256"] == hashlib.sha256((folder / "a.swf").read_bytes()).hexdigest()
    assert str(folder) not in repr(source.provenance)
    assert b["workload"]["model"] == "lublin"
    assert isinstance(b["workload"]["seed"], int)
    assert "file" not in b


def test_a_scenario_can_be_learned_from(folder: Path) -> None:
    """The replays of a training are made of these sites."""
    (case,) = training_cases(load_training_source("mixed.toml", {}), "a", ["b"])
    assert [len(site.jobs) for site in case.federation.sites] == [3, 50]
    assert folder.exists()


@pytest.mark.parametrize(
    ("damage", "complaints"),
    [
        (lambda text: text.replace("processors = 4", "processors = 0"), ["sites.a.processors"]),
        (lambda text: text.replace("yes.json", "no.json"), ["no.json: cannot be read"]),
        (lambda text: text.replace("a.swf", "gone.swf"), ["gone.swf"]),
        (lambda text: text.replace('"easy"', '"esy"'), ["sites.a.discipline", "easy"]),
        (
            lambda text: text.replace("jobs = 50", "job = 50").replace('"easy"', '"esy"'),
            ["sites.a.discipline", "sites.b.workload.job"],
        ),
        (lambda text: text[:20], ["mixed.toml"]),
    ],
)
def test_what_is_wrong_is_said_in_words(
    folder: Path, damage: object, complaints: list[str]
) -> None:
    """A line for each thing, with its place."""
    assert callable(damage)
    (folder / "mixed.toml").write_text(damage(SCENARIO))
    with pytest.raises(SourceError) as caught:
        load_training_source("mixed.toml", {})
    for complaint in complaints:
        assert complaint in str(caught.value)


def test_a_missing_log_says_how_to_get_it(folder: Path) -> None:
    """The command that downloads it."""
    (folder / "traced.toml").write_text(SCENARIO.replace('swf = "a.swf"', 'trace = "kth"'))
    with pytest.raises(SourceError, match="`scenario fetch kth`"):
        load_training_source("traced.toml", {"XDG_CACHE_HOME": "nowhere"})
    with pytest.raises(SourceError, match="neither a file nor a bundled scenario"):
        load_training_source("nowhere", {})


def test_warnings_of_a_workload_name_its_site(folder: Path) -> None:
    """What a run of the scenario would warn of, training warns of too."""
    outside = 'swf = "a.swf", window = { first_day = 900 }'
    (folder / "mixed.toml").write_text(SCENARIO.replace('swf = "a.swf"', outside))
    (warning,) = load_training_source("mixed.toml", {}).warnings
    assert warning.startswith("sites.a: ")
    assert "900" in warning
