import io
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from grms.learning.evolution.strategies import StrategySettings
from grms.learning.queueing.problem import TuneOptions
from scenarios.studies.queue_strategies import study as module
from scenarios.studies.queue_strategies.command import run_command
from scenarios.studies.queue_strategies.options import StudyOptions
from scenarios.studies.queue_strategies.reference import StudyLog
from scenarios.studies.queue_strategies.study import (
    best_constant,
    gains_of,
    learned_gain,
    run_folder,
    run_study,
    transfer_gain,
)
from tests.scenarios.studies.queue_strategies.made_up import made_up, row, run
from tests.tuning_cases import busy_log

LOGS = (StudyLog("ctc", 16, 2.0, 100), StudyLog("kth", 16, 2.0, 100))


@pytest.fixture
def two_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands two made-up logs in for the recorded ones."""
    for seed, key in ((1, "ctc"), (2, "kth")):
        busy_log(tmp_path / f"{key}.swf", seed=seed, count=200)
    monkeypatch.setattr(module, "LOGS", LOGS)
    small = partial(TuneOptions, settings=StrategySettings(parents=4, offspring=8))
    monkeypatch.setattr(module, "TuneOptions", small)
    # The pictures of each run have tests of their own, and take longer than the run.
    drawn = ("<svg></svg>", "<svg></svg>")
    monkeypatch.setattr("grms.learning.queueing.command.pictures", lambda _: drawn)
    monkeypatch.setattr(module, "require_trace", lambda key: tmp_path / f"{key}.swf")
    return tmp_path


def test_a_study_learns_judges_and_goes_on(two_logs: Path) -> None:
    """Every method on every log, on all at once, on the other log; a second time nothing is learned."""
    options = StudyOptions(
        "greedy-criteria", two_logs / "out", (1, 2), 1, logs=("ctc", "kth"), front=1, workers=1
    )
    quiet = Console(file=io.StringIO())
    page = run_command(options, quiet, quiet)
    assert page.exists()
    checkpoints = sorted((two_logs / "out" / "runs").rglob("checkpoint.json"))
    assert len(checkpoints) == 2 * 5 * 2 + 2
    before = [path.read_bytes() for path in checkpoints]
    study = run_study(options, quiet)
    assert [path.read_bytes() for path in checkpoints] == before
    assert {(one["log"], one["method"]) for one in study.runs} == {
        (log, method)
        for log in ("ctc", "kth")
        for method in ("f1", "f2", "f3", "f4", "easy-f3", "multiple")
    }
    assert len(study.of("ctc", "f2")) == 2
    assert learned_gain(study.of("ctc", "f2"), "unseen") is not None
    assert {one["log"] for one in study.transfers} == {"kth"}
    # Five methods with two seeds each, and one learned on all logs, beside the constants.
    kinds = Counter(one["kind"] for one in study.clouds["ctc"])
    assert [kinds[kind] for kind in ("fcfs", "easy", "clairvoyant")] == [120] * 3
    # What two searches have found both is there once.
    assert 1 <= kinds["learned"] <= 11
    assert kinds["users"] > 100
    assert kinds["judged"] >= kinds["learned"] - 1
    for log in ("ctc", "kth"):
        for method in ("f1", "f2", "f3", "f4"):
            for one in study.of(log, method):
                judged = {row["name"]: row["value"] for row in one["parts"]["training"]}
                constant = next(n for n in judged if n.startswith("fcfs-group"))
                assert judged["learned"] <= judged[constant]


def test_a_search_may_begin_at_random_as_in_the_papers(two_logs: Path) -> None:
    """Its runs have folders of their own, so that one is never taken for the other."""
    options = StudyOptions("greedy-criteria", two_logs / "out", start="random")
    assert run_folder(options, "f1", 3, "ctc") == two_logs / "out/runs/first-random/ctc-f1-seed-3"
    scaled = StudyOptions("greedy-criteria", two_logs / "out", scaled=True)
    assert run_folder(scaled, "f1", 3, "ctc").parent.name == "scaled-constant"


def test_rules_and_tables_are_learned_too(two_logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The iterative method has no chance in it, so one seed is enough; scaled, nothing is unseen."""
    monkeypatch.setattr(module, "SCALED", 32)
    options = StudyOptions(
        "genetic-fuzzy", two_logs / "out", (1, 2), 1, scaled=True, logs=("ctc",), front=0, workers=1
    )
    study = run_study(options, Console(file=io.StringIO()))
    assert not any(one["kind"] == "users" for one in study.clouds["ctc"])
    assert len(study.of("ctc", "iterative")) == 1
    assert len(study.of("ctc", "symbiotic")) == 2
    assert learned_gain(study.of("ctc", "symbiotic"), "unseen") is None
    assert study.options["processors"] == {"ctc": 32}


def test_figures_are_read_from_runs() -> None:
    """Medians over seeds; a constant is never what was learned; what was given up is nothing."""
    study = made_up("genetic-fuzzy", {"iterative": 4.0, "symbiotic": 20.0})
    spread = learned_gain(study.of("kth", "symbiotic"), "training")
    assert spread is not None
    assert (spread.median, spread.low, spread.high) == (20.0, 19.0, 21.0)
    found = best_constant(study.of("kth", "symbiotic")[0], "training")
    assert found is not None
    assert found[0] == "fcfs-group"
    assert found[1] == (10.0, 9.0, 8.0, 7.0, 6.0, 5.0)
    assert gains_of([row("x", None)], "x")[0] != gains_of([row("x", None)], "x")[0]
    assert best_constant(run("a", "b", 1, 2.0, None), "unseen") is None
    assert transfer_gain(study, "kth", "symbiotic") == -5.0
    gone = made_up("genetic-fuzzy", {"iterative": 4.0}, moved=None)
    assert transfer_gain(gone, "kth", "iterative") is None
