"""The command that says what is to be beaten."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hanse_gym import PickOptions, Sequences
from hanse_gym.bench import bootstrap, comparisons, constants, judged, main
from hanse_gym.workloads import workload
from lrms_sim.machine.picks import OBJECTIVES, Objective
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.swf import write_swf
from lrms_sim.workload.swf_log import SwfHeader


def log(count: int = 200) -> JobTable:
    random = np.random.default_rng(2)
    return JobTable.from_columns(
        submit_time=np.floor(np.cumsum(random.exponential(20.0, count))),
        processors=random.integers(1, 33, count),
        run_time=np.ceil(random.lognormal(4.0, 1.5, count)),
    )


def test_an_interval_is_about_the_standard_error() -> None:
    values = np.random.default_rng(4).normal(50.0, 10.0, 400)
    low, high = bootstrap(values)
    assert low == pytest.approx(values.mean() - 1.96 * 0.5, abs=0.15)
    assert high == pytest.approx(values.mean() + 1.96 * 0.5, abs=0.15)
    assert bootstrap(np.array([3.0])) == (3.0, 3.0)
    with pytest.raises(ValueError, match="no values"):
        bootstrap(np.array([]))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_an_agent_that_picks_the_oldest_is_judged_as_fcfs(objective: Objective) -> None:
    sequences = Sequences(log(), 64, 30, "test")
    firsts = sequences.fixed(4, seed=1)
    (fcfs,) = constants(sequences, firsts, ("fcfs",), objective)
    found = []
    for tau in (10.0, 600.0):
        (same,) = constants(sequences, firsts, ("fcfs",), objective, tau)
        options = PickOptions(window=5, objective=objective, tau=tau)
        agent = judged("oldest", lambda _: 0, sequences, firsts, options)
        assert agent.values == pytest.approx(same.values, rel=1e-12)
        found.append(agent.mean)
    assert (found[0] > found[1]) == (objective == "bounded-slowdown")
    with pytest.raises(ValueError, match="tau is 0"):
        PickOptions(tau=0.0).machine(sequences)
    assert fcfs.low <= fcfs.mean <= fcfs.high
    with pytest.raises(ValueError, match="must be one of bounded-slowdown"):
        constants(sequences, firsts, ("fcfs",), "makespan")  # type: ignore[arg-type]  # none of them


def test_the_command_prints_a_table_and_json(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    write_swf(path, log(), SwfHeader(("; MaxProcs: 64",)))
    words = [str(path), "--length", "30", "--sequences", "3", "--disciplines", "fcfs,easy"]
    table = CliRunner().invoke(main, words)
    assert table.exit_code == 0, table.output
    assert "bounded-slowdown of 3 sequences of 30 jobs" in " ".join(table.output.split())
    assert "easy" in table.output
    (document,) = json.loads(CliRunner().invoke(main, [*words, "--json"]).output)
    assert (document["processors"], document["split"]) == (64, "test")
    assert min(document["first_rows"]) >= 160
    (again, _) = constants(
        Sequences(log(), 64, 30, "test"), document["first_rows"], ("fcfs", "easy")
    )
    assert document["results"][0]["values"] == again.values
    assert document["comparisons"] == []


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    write_swf(path, log(50), SwfHeader(("; MaxProcs: 64",)))
    short = CliRunner().invoke(main, [str(path)])
    assert short.exit_code == 1
    assert "the test part has 10 jobs; a sequence needs 256" in short.output
    unknown = CliRunner().invoke(main, [str(path), "--length", "5", "--disciplines", "best"])
    assert unknown.exit_code == 1
    assert "best" in unknown.output


def test_the_command_of_the_page_can_be_typed() -> None:
    page = Path(__file__).parents[3] / "docs/how-to/learning-bench.md"
    typed = re.findall(r"^    hanse-gym (.*)$", page.read_text("utf-8"), re.MULTILINE)
    given = [main.make_context("hanse-gym", words.split()).params for words in typed]
    assert [(each["learn"], each["agent"]) for each in given] == [
        (0, "linear"),
        (0, "linear"),
        (5, "linear"),
        (5, "ppo"),
    ]
    assert [each["suite"] for each in given] == [False, True, False, False]


def test_the_clairvoyant_are_given_run_times() -> None:
    jobs = log()
    wrong = replace(jobs, requested_time=2 * jobs.run_time.max() - jobs.run_time)
    sequences = Sequences(wrong, 32, 30, "test")
    firsts = sequences.fixed(4, seed=1)
    (exact, given) = constants(sequences, firsts, ("clairvoyant-sjf", "sjf"))
    (expected,) = constants(Sequences(jobs, 32, 30, "test"), firsts, ("sjf",))
    assert exact.values == expected.values
    assert exact.values != given.values
    agent = replace(exact, name="mine")
    first, second = comparisons([agent], [exact, given])
    assert first.constant == "sjf"
    assert first.difference < 0
    assert second.sentence.startswith(
        "mine does not beat clairvoyant-sjf, the best constant that knows run times: +0.00"
    )


def test_workloads_by_name() -> None:
    model = workload("lublin-64")
    assert (model.name, model.processors, len(model.jobs)) == ("lublin-64", 64, 10_000)
    assert workload("lublin-64").jobs.run_time.tolist() == model.jobs.run_time.tolist()
    with pytest.raises(ValueError, match="a model of 64 processors, not of 32"):
        workload("lublin-64", 32)


def test_several_logs_in_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANSE_TRACES", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = ["--length", "30", "--sequences", "3", "--disciplines", "fcfs,easy", "--json"]
    both = json.loads(CliRunner().invoke(main, ["lublin-64", "lublin-128", *words]).output)
    assert [one["log"] for one in both] == ["lublin-64", "lublin-128"]
    assert CliRunner().invoke(main, words).exit_code == 2
    missing = CliRunner().invoke(main, ["--suite", *words])
    assert missing.exit_code == 1
    assert "the log 'kth'" in missing.output
