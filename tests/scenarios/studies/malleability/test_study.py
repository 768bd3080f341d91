"""What is run and kept, that the study goes on, and its statements and page."""

import io
import json
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest
from rich.console import Console

from lrms_sim.machine.machine import simulate as simulate_rigid
from lrms_sim.malleable.options import Speedup, speedup_of
from lrms_sim.scheduling.disciplines import discipline_by_name
from scenarios.cli import main
from scenarios.studies.common.verdicts import Margin
from scenarios.studies.malleability import study
from scenarios.studies.malleability.command import run_command
from scenarios.studies.malleability.options import SpeedupText, StudyOptions
from scenarios.studies.malleability.page import law_words, least_words
from scenarios.studies.malleability.statements import (
    FAMILIES,
    WAITS,
    Claim,
    best,
    changes,
    statements,
    values,
    variant,
)
from scenarios.studies.malleability.study import (
    EASY,
    PERFECT,
    POLICIES,
    SHARES,
    Case,
    Logs,
    cases,
    held,
    malleable,
    outcome_of,
    perfect,
    run_case,
    run_study,
)
from scenarios.util.errors import WorkloadError
from tests.scenarios.studies.malleability.small import PROCESSORS, small_log


def quiet() -> Console:
    """Returns a console that shows nothing to anybody."""
    return Console(file=io.StringIO())


def small_options(folder: Path) -> StudyOptions:
    """Returns the study of a small log in two parts with one seed."""
    return StudyOptions(folder, (str(small_log(folder)),), parts=2, seeds=(1,), workers=1)


@pytest.mark.parametrize("policy", [EASY, PERFECT])
def test_the_constants_are_easy_on_the_rigid_machine(tmp_path: Path, policy: str) -> None:
    """Start for start, with the users' estimates and with run times."""
    name = str(small_log(tmp_path))
    logs = Logs((name,), 2)
    part = logs.part(name, 1)
    jobs = part.jobs
    if policy == PERFECT:
        jobs = replace(jobs, requested_time=jobs.run_time)
    schedule = simulate_rigid(jobs, PROCESSORS, discipline_by_name("easy"))
    case = Case(name, 1, 0, policy, 0, "linear", 0.5)
    assert np.array_equal(outcome_of(case, logs).start, schedule.start_time)
    found = run_case(case, logs)
    waits = schedule.start_time - jobs.submit_time
    assert found["wait"] == pytest.approx(waits.mean())
    assert waits.max() > 0
    assert found["longest_wait"] == pytest.approx(waits.max())
    assert found["response"] == pytest.approx((schedule.end_time - jobs.submit_time).mean())
    assert found["suspensions"] == found["squeezed"] == 0


def test_perfect_run_times_change_no_worth(tmp_path: Path) -> None:
    """A job is worth the same at the same time, however well its run time is known."""
    name = str(small_log(tmp_path))
    part = Logs((name,), 2).part(name, 1)
    known = perfect(part)
    assert np.array_equal(known.jobs.requested_time, part.jobs.run_time)
    for after in (1000.0, 40000.0, 120000.0):
        worth = part.unit_utility(after / part.jobs.requested_time)
        assert known.unit_utility(after / known.jobs.requested_time) == pytest.approx(worth)


@pytest.mark.parametrize("policy", POLICIES)
def test_waits_are_the_time_without_processors(tmp_path: Path, policy: str) -> None:
    """Every stretch of the log counts; squeezed jobs are malleable ones, and hold as long as they are slow."""
    name = str(small_log(tmp_path))
    logs = Logs((name,), 2)
    case = Case(name, 1, 3, policy, 60, "linear", 0.5)
    outcome = outcome_of(case, logs)
    assert outcome.log is not None
    seconds = np.zeros(len(outcome.workload))
    for each in outcome.log.allocations():
        seconds[each.job] += each.end - each.start
        assert each.processors >= outcome.workload.processors_min[each.job]
    assert held(outcome) == pytest.approx(seconds)
    assert np.all(held(outcome) >= outcome.workload.jobs.run_time - 1e-6)
    found = run_case(case, logs)
    part = malleable(logs.part(name, 1), case)
    rigid = int(np.count_nonzero(part.processors_min == part.jobs.processors))
    assert 0 < rigid < len(part)
    assert 0 < found["squeezed"] <= len(part) - rigid
    assert (found["suspensions"] > 0) == (policy in FAMILIES["squeezing and suspending"])


def test_parts_are_the_log(tmp_path: Path) -> None:
    """Each job is in one part, none is malleable yet, and the last part is followed by the first."""
    name = str(small_log(tmp_path))
    logs = Logs((name,), 3)
    parts = [logs.part(name, number) for number in (1, 2, 3)]
    assert sorted(np.concatenate([part.jobs.job_id for part in parts])) == list(range(1, 61))
    assert all(np.array_equal(part.processors_min, part.jobs.processors) for part in parts)
    assert logs.part(name, 4) is parts[0]


def test_a_study_goes_on_and_says_what_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is run twice; another log of the same name is. Changes are those of the runs, by hand."""
    options = small_options(tmp_path)
    first = run_study(options, quiet())
    planned = list(cases(options))
    assert [case for case, _ in first.runs] == planned
    assert len(planned) == 2 * (2 + len(POLICIES) * (len(SHARES) + 2))
    ran: list[Case] = []

    def counted(case: Case, logs: Logs) -> object:
        ran.append(case)
        return run_case(case, logs)

    monkeypatch.setattr(study, "run_case", counted)
    assert run_study(options, quiet()).to_json() == first.to_json()
    assert ran == []
    log = options.logs[0]
    same = {"policy": "both-aggressive", "share": 100, **variant(first)}
    waits = values(first, "wait", log=log, **same)
    base = values(first, "wait", log=log, policy=EASY)
    assert changes(first, "wait", log, **same) == pytest.approx(
        [100 * (wait / of - 1) for wait, of in zip(waits, base, strict=True)]
    )
    chosen = best(first, log, POLICIES, 100)
    least = sum(values(first, "wait", log=log, policy=chosen, share=100, **variant(first)))
    assert all(
        least <= sum(values(first, "wait", log=log, policy=each, share=100, **variant(first)))
        for each in POLICIES
    )
    every = list(statements(first))
    assert len(every) == 2 * 8
    assert all(each.run and each.measured for each in every)
    small_log(tmp_path, 61)
    run_study(replace(options, parts=2), quiet())
    assert len(ran) == len(planned)


def test_a_claim_holds_from_the_least_of_the_published_changes_on() -> None:
    """Below for what falls, above for what rises, open where the interval includes it."""
    assert WAITS.holds(Margin.exact(-73.0)) is True
    assert WAITS.holds(Margin.of([-70.0, -71.0, -70.5])) is False
    assert WAITS.holds(Margin.of([-60.0, -90.0])) is None
    rises = Claim("utilization", "utilization", 5, 52)
    assert rises.holds(Margin.exact(6.0)) is True
    assert rises.holds(Margin.exact(4.0)) is False


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    """With statements, curves and tables of every variant, and what is assumed."""
    shown = io.StringIO()
    page = run_command(small_options(tmp_path), Console(file=shown, width=120), quiet())
    text = page.read_text(encoding="utf-8")
    assert "change of the mean wait</title>" in text
    assert "Mean waits fall by 73 to 99 % where all jobs are malleable" in text
    assert "Downey’s model (A model for speedup of parallel programs, 1997)" in text
    assert "one processor is enough" in text
    assert "Squeezing and suspending: the best of both-aggressive, both-value, replan" in text
    assert "16 statements" in shown.getvalue()
    document = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    assert document["options"]["speedup"] == ["linear", "downey:1:1"]
    assert (tmp_path / "statements.md").read_text(encoding="utf-8").count("\n") == 18


def test_speedups_are_said_as_they_are_written() -> None:
    """Laws with their parameters, and a word for what is none."""
    assert speedup_of("linear") == Speedup()
    assert speedup_of("amdahl:0.25") == Speedup("amdahl", serial=0.25)
    assert speedup_of("downey:2:0.5") == Speedup("downey", parallelism=2, variance=0.5)
    assert "25 % serial" in law_words(speedup_of("amdahl:0.25"))
    assert "2 times the width, variance 0.5" in law_words(speedup_of("downey:2:0.5"))
    assert least_words(0.25) == "at least 25 % of the width"


@pytest.mark.parametrize(
    "text", ["amdahl", "linear:1", "downey:1", "downey:one:1", "moore", "amdahl:2"]
)
def test_what_is_no_speedup_is_refused(text: str) -> None:
    """Before anything runs."""
    with pytest.raises(click.UsageError):
        SpeedupText().convert(text, None, None)


def test_logs_that_cannot_be_used_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file, no size in the header, no job in a part; the command ends with status 2."""
    with pytest.raises(WorkloadError, match="no log of the archive"):
        Logs((str(tmp_path / "none.swf"),), 2)
    path = small_log(tmp_path)
    with pytest.raises(WorkloadError, match="of 100 has no job"):
        Logs((str(path),), 100).part(str(path), 1)
    path.write_text(path.read_text(encoding="utf-8").partition("\n")[2], encoding="utf-8")
    with pytest.raises(WorkloadError, match="the header says no"):
        Logs((str(path),), 2).part(str(path), 1)
    words = ["study", "malleability", "--workload", "none.swf", "--output", str(tmp_path / "out")]
    assert main.run_command(words) == 2
    assert "no log of the archive" in capsys.readouterr().err
