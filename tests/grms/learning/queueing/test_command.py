import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from grms.learning.checkpoint import CheckpointError
from grms.learning.evolution.strategies import StrategySettings
from grms.learning.evolution.symbiotic import SymbioticSettings
from grms.learning.evolution.termination import Limits
from grms.learning.queueing.command import (
    figures_document,
    print_tuning,
    run_tuning,
    slurm_settings,
)
from grms.learning.queueing.options import WorkloadOptions
from grms.learning.queueing.outcome import LEARNED, best_constant
from grms.learning.queueing.problem import TuneOptions, WorkloadError
from lrms_sim.scheduling.strategy_files import load_strategy
from lrms_sim.util.executors import Workers
from lrms_sim.util.trace_folders import LOG_FILES
from tests.examples import runs
from tests.tuning_cases import busy_log

SYMBIOTIC = SymbioticSettings(
    parents=6, offspring=10, base_rules=5, bases_per_rule=2, recombined=3, similar=1, clusters=2
)


def options(folder: Path, **changes: Any) -> TuneOptions:
    usual: dict[str, Any] = {
        "logs": (busy_log(folder / "busy.swf"),),
        "workloads": WorkloadOptions(training=(0, 1)),
        "settings": StrategySettings(4, 8),
        "symbiotic": SYMBIOTIC,
        "limits": Limits(generations=3),
        "workers": Workers(count=1),
        "output": folder / "out",
    }
    return TuneOptions(**usual | changes)


def quiet() -> Console:
    return Console(file=io.StringIO(), width=120)


def texts(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("method", "algorithm"),
    [
        ("f2", "fcfs"),
        ("f3", "easy"),
        ("f1,f2,f4", "fcfs"),
        ("iterative", "fcfs"),
        ("symbiotic", "fcfs"),
    ],
)
def test_what_is_written_is_what_was_judged(tmp_path: Path, method: str, algorithm: Any) -> None:
    """The file's policy has, on both parts, the very figures of the run."""
    chosen = options(tmp_path, method=method, algorithm=algorithm)
    tuning = run_tuning(chosen, quiet())
    comparison = tuning.comparisons[0]
    assert comparison.training[-1].name == LEARNED
    assert comparison.training[-1].value == tuning.result.best.evaluation.value
    saved = load_strategy(chosen.folder / "strategy.json")
    for _, case, judged in comparison.parts:
        assert case.run(saved.policy).value == judged[-1].value
    assert saved.provenance["search"]["method"] == method
    assert saved.provenance["workloads"][0]["log"] == "busy.swf"
    assert json.loads((chosen.folder / "tuning.json").read_text()) == tuning.to_document()
    page = (chosen.folder / "tuning.html").read_text()
    assert page.count('<svg class="chart"') == (1 if method.startswith("f") else 2)
    assert len((chosen.folder / "users.csv").read_text().splitlines()) > 20


def test_nothing_learned_is_worse_than_the_constant_it_began_with(tmp_path: Path) -> None:
    """FCFS by group lies within the search space."""
    tuning = run_tuning(options(tmp_path, limits=Limits(generations=1)), quiet())
    by_name = {one.name: one.value for one in tuning.comparisons[0].training}
    group = next(name for name in by_name if name.startswith("fcfs-group"))
    assert by_name[LEARNED] <= by_name[group]


def test_a_constant_that_is_as_good_is_said(tmp_path: Path) -> None:
    """In the tables' warnings, on the page, and in the JSON; and only then."""
    chosen = options(tmp_path, method="iterative", limits=Limits(evaluations=1))
    console = quiet()
    tuning = run_tuning(chosen, console)
    print_tuning(console, chosen, tuning)
    comparison = tuning.comparisons[0]
    for word, _, judged in comparison.parts:
        beaten = judged[-1].value < best_constant(judged).value
        jobs = "the jobs it was tuned on" if word == "training" else "unseen jobs"
        assert any(f"on {jobs} what was learned" in text for text in tuning.warnings) != beaten
    # A table that is the standard everywhere is that constant.
    assert tuning.warnings
    assert f"warning: {tuning.warnings[0]}" in texts(console)
    assert figures_document(tuning, slurm=False)["warnings"] == list(tuning.warnings)
    assert tuning.warnings[0].split(" (")[0] in (chosen.folder / "tuning.html").read_text()


def test_several_logs_and_slurm(tmp_path: Path) -> None:
    """A table for each log; the settings are of the first one's group order."""
    logs = (busy_log(tmp_path / "one.swf", seed=1), busy_log(tmp_path / "two.swf", seed=2))
    chosen = options(tmp_path, logs=logs, combination="relative")
    console = quiet()
    tuning = run_tuning(chosen, console)
    print_tuning(console, chosen, tuning)
    assert "one: f, and its gain" in texts(console)
    assert "two: f, and its gain" in texts(console)
    assert tuning.easy_value == pytest.approx(1.0)
    settings = slurm_settings(tuning)
    comparison = tuning.comparisons[0]
    gain = next(one.gain for one in comparison.unseen if one.name.startswith("easy-group"))
    assert "on unseen jobs" in settings
    assert any(f"{one.gain:+.2f}" in settings for one in comparison.unseen)
    assert gain == gain  # noqa: PLR0124  # not nan
    assert figures_document(tuning, slurm=True)["slurm"]["qos"]["hanse-group1"]["Priority"] > 0


def test_a_run_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    """And refuses other jobs, or other users' groups."""
    whole = run_tuning(options(tmp_path, limits=Limits(generations=4)), quiet())
    part = options(tmp_path, output=tmp_path / "part", limits=Limits(generations=2))
    run_tuning(part, quiet())
    again = options(tmp_path, output=tmp_path / "part", limits=Limits(generations=4), resume=True)
    assert run_tuning(again, quiet()).result.best.evaluation == whole.result.best.evaluation
    with pytest.raises(CheckpointError, match="theta"):
        run_tuning(
            options(
                tmp_path,
                output=tmp_path / "part",
                workloads=WorkloadOptions(training=(0, 1), theta=(1.0, 1.0, 1.0, 1.0, 1.0)),
                resume=True,
            ),
            quiet(),
        )
    log = options(tmp_path).logs[0]
    lines = log.read_text(encoding="ascii").splitlines()
    rows = [line.split() for line in lines if not line.startswith(";")]
    users = [[*row[:11], str(number % 2), *row[12:]] for number, row in enumerate(rows)]
    text = [line for line in lines if line.startswith(";")] + [" ".join(row) for row in users]
    log.write_text("\n".join(text) + "\n", encoding="ascii")
    with pytest.raises(CheckpointError, match="groups_sha256"):
        run_tuning(replace(again, logs=(log,)), quiet())


def test_situations_need_local_time(tmp_path: Path) -> None:
    """A header without it is refused before the first replay; a table does without."""
    log = busy_log(tmp_path / "nowhere.swf", header="; MaxProcs: 16\n")
    with pytest.raises(WorkloadError, match="needs UnixStartTime"):
        run_tuning(options(tmp_path, logs=(log,)), quiet())
    run_tuning(options(tmp_path, logs=(log,), method="iterative"), quiet())


@pytest.mark.traces
@pytest.mark.parametrize(
    ("standard", "value", "evaluations"),
    [("fcfs-arrival", 814017.0363, 673), ("fcfs-group", 799268.5071, 601)][: runs(1, 2)],
)
def test_the_iterative_method_finds_what_an_independent_program_found(
    tmp_path: Path, traces_folder: Path, standard: str, value: float, evaluations: int
) -> None:
    """The first 10,000 jobs of CTC, from either standard: the value, and in as many replays."""
    chosen = options(
        tmp_path,
        logs=(traces_folder / LOG_FILES["ctc"],),
        workloads=WorkloadOptions(processors=430, first_jobs=10_000),
        method="iterative",
        standard=standard,
        limits=Limits(),
        workers=Workers(),
    )
    tuning = run_tuning(chosen, quiet())
    assert tuning.result.best.evaluation.value == pytest.approx(value, abs=1e-4)
    assert tuning.result.evaluations == evaluations
