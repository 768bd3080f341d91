import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grms.policy.constraints import FAIR_EXCHANGE, START_NOW
from grms.policy.files import save_rule_base
from grms.policy.transfer import (
    AcceptWhenFit,
    AlwaysAgree,
    Constrained,
    Gaussian,
    Rule,
    RuleBase,
    TransferPolicy,
)
from lrms_sim.workload.schedule import Schedule
from lrms_sim.workload.schedule_files import write_csv
from scenarios.run.replay import check_files, load_policies, run_scenario
from scenarios.spec.spec import BYZANTINE_NAMES, ScenarioSpec
from scenarios.util.errors import SpecError, TraceMissingError, WorkloadError

RULE_BASE = Path(__file__).parents[2] / "grms" / "data" / "kth-for-ctc.json"


def site(name: str, processors: int, jobs: int = 300, **changes: Any) -> dict[str, Any]:
    """Returns a site with a synthetic workload."""
    workload = {"model": "lublin", "jobs": jobs, "load": 0.9}
    return {"name": name, "processors": processors, "workload": workload} | changes


def spec(*sites: dict[str, Any], **changes: Any) -> ScenarioSpec:
    """Returns a scenario of these sites."""
    document = {"name": "test", "title": "A test", "seed": 3, "sites": list(sites)} | changes
    return ScenarioSpec.model_validate(document, context={"folder": Path("/scenarios")})


THREE = (site("a", 16), site("b", 64), site("c", 48))


def given(schedule: Schedule) -> set[tuple[str, str]]:
    """Returns the pairs of sites between which jobs moved, the giver first."""
    names = [machine.name for machine in schedule.machines]
    pairs = np.stack([schedule.submitted_to, schedule.executed_on], axis=1)
    return {(names[i], names[j]) for i, j in np.unique(pairs, axis=0) if i != j}


def digest(schedule: Schedule, folder: Path) -> str:
    """Returns the checksum of a schedule's file."""
    write_csv(schedule, folder / "s.csv")
    return hashlib.sha256((folder / "s.csv").read_bytes()).hexdigest()


def test_a_run_has_both_schedules_of_the_same_jobs() -> None:
    """Alone nobody moves; federated somebody does; the jobs are the same."""
    run = run_scenario(spec(*THREE))
    result = run.result
    assert given(result.schedule_alone) == set()
    assert given(result.schedule)
    assert len(result.schedule) == 900
    assert result.name == "test"
    assert result.seed == 3
    assert [one.name for one in result.sites] == ["a", "b", "c"]
    assert run.spec == spec(*THREE).resolved()


def test_sites_that_exchange_nothing_work_as_if_alone() -> None:
    """With `none` for everybody both schedules are one."""
    sites = [one | {"transfer": {"default": "none"}} for one in THREE]
    result = run_scenario(spec(*sites)).result
    assert np.array_equal(result.schedule.start_time, result.schedule_alone.start_time)
    assert result.jobs_exchanged == 0


def test_policies_hold_for_the_partner_they_are_for() -> None:
    """Nothing moves to a site that keeps to itself, nor between two that do not speak."""
    sites = (
        site("a", 64, transfer={"b": "none", "c": "awf"}),
        site("b", 64),
        site("c", 64, transfer={"a": "awf", "b": "keep"}, location=["a", "b"]),
    )
    moved = given(run_scenario(spec(*sites)).result.schedule)
    # a and b do not speak, and c declines what b offers; what a declines of c stays in c.
    assert moved == {("a", "c"), ("c", "a")}


def test_to_keep_a_job_from_the_first_partner_keeps_it_from_all() -> None:
    """As the paper has it, "execute locally" ends the asking; `none` skips a partner instead."""
    others = (site("b", 64), site("c", 64))
    for policy, moved in (("keep", set()), ("none", {("a", "c")})):
        first = site("a", 64, location=["b", "c"], transfer={"b": policy, "c": "awf"})
        flows = given(run_scenario(spec(first, *others)).result.schedule)
        assert {pair for pair in flows if pair[0] == "a"} == moved


def test_a_fixed_order_is_followed() -> None:
    """Asked first, a partner gets at least what it gets when asked last."""
    orders = (["b", "c"], ["c", "b"])
    flows = []
    for order in orders:
        sites = (site("a", 64, 600, location=order), site("b", 64, 10), site("c", 64, 10))
        flows.append(run_scenario(spec(*sites)).result.flow_jobs[0])
    assert flows[0][1] > flows[0][2]
    assert flows[1][2] > flows[1][1]


def test_each_site_has_its_own_discipline() -> None:
    """What a scenario says of a queue reaches the machine."""
    fcfs = run_scenario(spec(site("a", 64, 2000))).result
    easy = run_scenario(spec(site("a", 64, 2000, discipline="easy"))).result
    assert easy.sites[0].discipline == "easy"
    assert easy.sites[0].awrt < fcfs.sites[0].awrt


def test_rule_bases_are_read_once_and_used(tmp_path: Path) -> None:
    """A rule base changes who gives what; one file is one policy however often it is named."""
    path = str(shutil.copy(RULE_BASE, tmp_path / "r.json"))
    rules = spec(site("a", 16, transfer={"b": path, "c": path}), *THREE[1:])
    policies = load_policies(rules)
    assert policies["a"]["b"] is policies["a"]["c"]
    assert policies["b"]["a"].name == "awf"
    learned = run_scenario(rules).result.flow_jobs
    plain = run_scenario(spec(*THREE)).result.flow_jobs
    assert not np.array_equal(learned, plain)


def test_an_unknown_partner_gets_the_policy_of_the_nearest_size(tmp_path: Path) -> None:
    """A named policy comes first; of two sizes as near, the smaller wins."""
    path = str(shutil.copy(RULE_BASE, tmp_path / "r.json"))
    pool = [{"processors": 20, "policy": path}, {"processors": 76, "policy": "keep"}]
    sites = (
        site("a", 8, transfer={"pool": pool, "d": "awf"}),
        site("b", 48),
        site("c", 49),
        site("d", 76),
    )
    policies = load_policies(spec(*sites))["a"]
    assert policies["b"].name == "kth-for-ctc"
    assert policies["c"].name == "keep"
    assert policies["d"].name == "awf"


def test_every_rule_base_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """Missing files and files of another kind are told together, each at its key."""
    bad = tmp_path / "bad.json"
    bad.write_text('{"schema": "x"}')
    pool = [{"processors": 5, "policy": str(bad)}]
    sites = (site("a", 8, transfer={"b": "no.json"}), site("b", 8, transfer={"pool": pool}))
    with pytest.raises(SpecError) as caught:
        load_policies(spec(*sites), shown="f.toml")
    lines = str(caught.value).split("\n")
    assert len(lines) == 2
    no_file = "f.toml: sites.a.transfer.b: /scenarios/no.json: cannot be read: No such file"
    assert lines[0].startswith(no_file)
    assert lines[1].startswith(f"f.toml: sites.b.transfer.pool[0].policy: {bad}: schema is 'x'")


def test_checking_files_finds_missing_logs_too() -> None:
    """Everything a file names is looked for, without reading logs."""
    sites = (
        site("a", 8, workload={"swf": "no.swf"}, transfer={"b": "no.json"}),
        site("b", 8, workload={"trace": "kth"}),
    )
    with pytest.raises(SpecError) as caught:
        check_files(spec(*sites))
    keys = [problem.key for problem in caught.value.mistakes]
    assert keys == ["sites.a.workload.swf", "sites.a.transfer.b"]
    check_files(spec(*THREE))


def test_what_happens_is_told() -> None:
    """Events have names and values; stages end with all of it done."""
    events: list[tuple[str, dict[str, Any]]] = []
    stages: dict[str, tuple[int, int]] = {}

    def notify(event: str, **values: Any) -> None:
        events.append((event, values))

    def progress(stage: str, done: int, total: int) -> None:
        assert done >= stages.get(stage, (0, 0))[0]
        stages[stage] = (done, total)

    run_scenario(spec(*THREE), notify=notify, progress=progress)
    assert [event for event, _ in events] == ["workload_loaded"] * 3 + ["replayed"] * 2
    assert events[1][1]["site"] == "b"
    assert events[1][1]["jobs"] == 300
    assert stages == {
        "workloads": (3, 3),
        "each site alone": (900, 900),
        "federated": (900, 900),
    }


def test_treated_records_and_warnings_are_told(tmp_path: Path) -> None:
    """Nothing is dropped in silence."""
    log = tmp_path / "a.swf"
    log.write_text("; x\n1 0 0 10 99 -1 -1 99 20 -1 1 7 1 1 1 -1 -1 -1\n")
    told: list[str] = []

    def notify(event: str, **values: Any) -> None:
        told.append(f"{event} {values.get('text', values.get('reason', ''))}")

    result = run_scenario(spec(site("a", 8, workload={"swf": str(log)})), notify=notify).result
    assert told[0] == (
        f"warning {log} has no job: 1 of 1 records (100.0%) were dropped: 1 wider than the machine (8)"
    )
    assert "records_treated wider than the machine (8)" in told
    assert result.workload_notes[0][0].count == 1


def test_a_site_without_jobs_of_its_own_serves_its_partners() -> None:
    """A workload may be empty; so may all of them."""
    result = run_scenario(spec(site("a", 16), site("b", 64, 0))).result
    assert result.sites[1].jobs == 0
    assert result.sites[1].jobs_taken > 0
    assert len(run_scenario(spec(site("a", 1, 0))).result.schedule) == 0


def test_a_machine_of_one_processor_runs() -> None:
    """The smallest site takes part."""
    result = run_scenario(spec(site("a", 1, 50), site("b", 8, 50))).result
    assert np.isfinite(result.schedule.end_time).all()


def test_missing_logs_end_the_run(tmp_path: Path) -> None:
    """The error is for the user, whatever site it came from."""
    with pytest.raises(TraceMissingError, match="scenario fetch ctc"):
        run_scenario(
            spec(site("a", 430, workload={"trace": "ctc"})),
            environment={"XDG_CACHE_HOME": str(tmp_path)},
        )


def test_too_many_jobs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of one table is told before the kernel sees it."""
    monkeypatch.setattr("scenarios.run.replay.JOBS_MAX", 899)
    with pytest.raises(WorkloadError, match="900 jobs together; at most 899"):
        run_scenario(spec(*THREE))


def test_the_same_scenario_and_seed_give_the_same_bytes(tmp_path: Path) -> None:
    """Twice here, and in other processes whose hashes are salted otherwise."""
    program = """
import sys
from pathlib import Path
from lrms_sim.workload.schedule_files import write_csv
from scenarios.library import scenario_path
from scenarios.run.replay import run_scenario
from scenarios.spec.files import load_spec
spec = load_spec(scenario_path("synthetic-three-sites"))
write_csv(run_scenario(spec).result.schedule, Path(sys.argv[1]))
"""
    root = str(Path(__file__).parents[3])
    files = []
    for salt in ("1", "2"):
        files.append(tmp_path / f"{salt}.csv")
        path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), root])
        environment = os.environ | {"PYTHONHASHSEED": salt, "PYTHONPATH": path}
        subprocess.run([sys.executable, "-c", program, files[-1]], env=environment, check=True)  # noqa: S603  # this very interpreter
    assert files[0].read_bytes() == files[1].read_bytes()
    first = digest(run_scenario(spec(*THREE)).result.schedule, tmp_path)
    assert digest(run_scenario(spec(*THREE)).result.schedule, tmp_path) == first
    other = run_scenario(spec(*THREE, seed=4)).result.schedule
    assert digest(other, tmp_path) != first


def test_constraints_go_around_whatever_policy_a_site_has() -> None:
    """Alone they are the policy of their word; one that has constraints of its own keeps these."""

    def policies(**changes: Any) -> dict[str, TransferPolicy]:
        return load_policies(spec(site("a", 8, **changes), site("b", 8), site("c", 8)))["a"]

    alone = policies(rails="fair-exchange")
    assert alone == {"b": Constrained(FAIR_EXCHANGE, AlwaysAgree(), "agree")} | {"c": alone["b"]}
    assert alone["b"] is alone["c"]
    mixed = policies(rails="start-now", transfer={"b": "awf", "c": "fair-exchange"})
    assert mixed["b"] == Constrained(START_NOW, AcceptWhenFit(), "awf")
    assert mixed["c"] == Constrained(FAIR_EXCHANGE, name="fair-exchange")
    assert policies(rails="none")["b"] == AcceptWhenFit()


def test_rules_that_need_constraints_are_refused_without_them(tmp_path: Path) -> None:
    """With the key; within constraints they are what they are."""
    near = Gaussian(0, 1)
    file = tmp_path / "learned.json"
    save_rule_base(RuleBase((Rule(near, near, accept=True, starts_now=near),), "mine"), file)
    bare = spec(site("a", 8, transfer={"b": str(file)}), site("b", 8))
    with pytest.raises(SpecError, match=r'sites\.a\.transfer: .*mine.*rails = "fair-exchange"'):
        load_policies(bare)
    constrained = spec(site("a", 8, transfer={"b": str(file)}, rails="start-now"), site("b", 8))
    policy = load_policies(constrained)["a"]["b"]
    assert isinstance(policy, Constrained)
    assert policy.policy.name == "mine"
    rails = {"rules": "none", "balance": "1d"}
    unasked = spec(site("a", 8, transfer={"b": str(file)}, rails=rails), site("b", 8))
    with pytest.raises(
        SpecError, match=r"sites\.a\.transfer: .*mine.* constraints without start-now"
    ):
        load_policies(unasked)


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ({"rogue": "starts-nothing"}, {}, "puts guests aside"),
        (
            {},
            {"reoffer": "15min"},
            "takes what would wait there, and 'b' offers waiting jobs again",
        ),
    ],
    ids=["aside", "rounds"],
)
def test_guests_that_a_discipline_cannot_have_are_said_with_the_key(
    a: dict[str, Any], b: dict[str, Any], text: str
) -> None:
    """By a run, and by a look at the file alone."""
    wrong = spec(site("a", 8, discipline="conservative", **a), site("b", 8, **b))
    for look in (run_scenario, check_files):
        with pytest.raises(SpecError, match=rf"^name: sites\.a\.discipline: 'a' {text}") as caught:
            look(wrong, shown="name")
        assert len(caught.value.mistakes) == 1
    kept: dict[str, Any] = {**a, "rails": "start-now"} if b else {}
    check_files(spec(site("a", 8, discipline="conservative", **kept), site("b", 8, **b)))


def test_rounds_let_more_waiting_jobs_go() -> None:
    """Whatever found no place on its arrival is offered again."""

    def moved(**changes: Any) -> int:
        sites = [site(name, 32, rails="start-now", **changes) for name in "ab"]
        schedule = run_scenario(spec(*sites).resolved()).result.schedule
        return int(np.count_nonzero(schedule.submitted_to != schedule.executed_on))

    assert moved(reoffer="1min") > moved() > 0


@pytest.mark.parametrize("word", BYZANTINE_NAMES)
def test_every_byzantine_has_a_word(word: str) -> None:
    """The word is what the federation has; whoever is overloaded has all its jobs twice."""
    sites = [site("a", 32, 40, rails="fair-exchange"), site("b", 32, 40, rogue=word)]
    result = run_scenario(spec(*sites)).result
    counts = np.bincount(result.schedule.submitted_to).tolist()
    assert counts == ([40, 80] if word == "overloaded" else [40, 40])
    assert np.array_equal(np.isnan(result.schedule.end_time), np.zeros(sum(counts), bool))
    assert bool(given(result.schedule) - {("a", "b")}) == (word != "takes-all")
    assert (("a", "b") in given(result.schedule)) == (not word.startswith("free-rider"))
