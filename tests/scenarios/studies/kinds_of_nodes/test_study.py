"""What is replayed and kept, that the study goes on, and its statements and page."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from grms.federation.federation import Federation
from scenarios.studies.kinds_of_nodes import study
from scenarios.studies.kinds_of_nodes.command import run_command
from scenarios.studies.kinds_of_nodes.options import StudyOptions
from scenarios.studies.kinds_of_nodes.sites import Logs
from scenarios.studies.kinds_of_nodes.statements import mean_gain, statements, values, worst_gain
from scenarios.studies.kinds_of_nodes.study import (
    CLASSES,
    PROCESSORS,
    REQUESTS,
    Case,
    cases,
    federation_of,
    gain,
    run_case,
    run_study,
)
from tests.scenarios.studies.kinds_of_nodes.small import small_logs, small_pods


def quiet() -> Console:
    """Returns a console that shows nothing to anybody."""
    return Console(file=io.StringIO())


def test_a_case_compares_with_alone() -> None:
    """Gains by hand, moved jobs by class, and what is told decides who travels."""
    workloads = Logs(small_logs()).sites(1)
    case = Case("logs", "easy", "accept when fit", REQUESTS, 1)
    found = run_case(case, workloads)
    federation = federation_of(case, workloads)
    schedule, alone = federation.replay(), federation.replay_alone()
    first = schedule.submitted_to == 0
    work = (schedule.jobs.run_time * schedule.jobs.processors)[first]
    times = [
        float((work * (one.end_time - one.jobs.submit_time)[first]).sum())
        for one in (schedule, alone)
    ]
    assert found["gain"][0] == pytest.approx(100 * (1 - times[0] / times[1]))
    assert found["gain"][0] == gain(schedule, alone, schedule.jobs.processors.astype(float), first)
    moved = int(np.count_nonzero(schedule.submitted_to != schedule.executed_on))
    assert sum(one["moved"] for one in found["classes"]) == moved > 0
    assert sum(one["jobs"] for one in found["classes"]) == len(schedule.jobs)
    plain = run_case(Case("logs", "easy", "accept when fit", PROCESSORS, 1), workloads)
    by_class = dict(zip(CLASSES, plain["classes"], strict=True))
    assert by_class["GPUs"]["moved"] == by_class["much memory"]["moved"] == 0
    assert by_class["others"]["moved"] > 0


def test_rows_say_whose_jobs_are_whose() -> None:
    """A federation's rows lead back to the sites' tables."""
    workloads = Logs(small_logs()).sites(1)
    federation: Federation = federation_of(
        Case("logs", "fcfs", "fair exchange", REQUESTS, 1), workloads
    )
    widths = np.concatenate([each.jobs.processors for each in workloads])
    assert np.array_equal(widths[federation.rows], federation.jobs.processors)


def test_a_study_goes_on_and_says_what_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is replayed twice; another table of pods is."""
    monkeypatch.setattr(study, "read_logs", small_logs)
    pods = small_pods(tmp_path)
    folder = tmp_path / "out"
    folder.mkdir()
    options = StudyOptions(folder, draws=2, pods=pods, workers=1)
    first = run_study(options, quiet())
    assert [case for case, _ in first.runs] == list(cases(options))
    ran: list[Case] = []

    def counted(case: Case, workloads: object) -> object:
        ran.append(case)
        return run_case(case, workloads)  # type: ignore[arg-type]  # what the study hands on

    monkeypatch.setattr(study, "run_case", counted)
    assert run_study(options, quiet()).to_json() == first.to_json()
    assert ran == []
    with pods.open("a", encoding="utf-8") as file:
        file.write("more,4000,1024,0,0,,LS,Succeeded,50,900,60\n")
    run_study(options, quiet())
    assert {case.workload for case in ran} == {"pods"}
    every = list(statements(first))
    assert len(every) == 2 * 2 * 2 * 4
    assert all(each.run for each in every)
    chosen = values(
        first, mean_gain, workload="logs", discipline="easy", policy="fair exchange", told=REQUESTS
    )
    assert len(chosen) == 2
    least = values(
        first, worst_gain, workload="logs", discipline="easy", policy="fair exchange", told=REQUESTS
    )
    assert all(low <= mean for low, mean in zip(least, chosen, strict=True))


def test_the_command_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With statements, gains and waits; without a table of pods nothing is said of them."""
    monkeypatch.setattr(study, "read_logs", small_logs)
    shown = io.StringIO()
    page = run_command(
        StudyOptions(tmp_path / "out", draws=2, workers=1), Console(file=shown, width=120), quiet()
    )
    text = page.read_text(encoding="utf-8")
    assert "Recorded logs, requests drawn" in text
    assert "jobs with GPUs wait less than alone" in text
    assert "Pods: gains" not in text
    assert "16 statements" in shown.getvalue()
    document = json.loads((tmp_path / "out" / "study.json").read_text(encoding="utf-8"))
    assert len(document["runs"]) == 16
    table = (tmp_path / "out" / "statements.md").read_text(encoding="utf-8")
    assert table.count("\n") == 18
