"""What is told of a run on a scaled clock, and what stays of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scenarios.live.live import LiveResult
from scenarios.live.outcome import scaled_outcome
from scenarios.report.output import load_run
from scenarios.run.replay import Run, run_scenario
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import OutputError


@pytest.fixture(scope="module")
def replayed() -> Run:
    """Returns a small scenario's replay; one site submits nothing."""
    sites = [
        {"name": "a", "processors": 8, "workload": {"model": "lublin", "jobs": 20, "load": 0.9}},
        {"name": "b", "processors": 8, "workload": {"model": "lublin", "jobs": 0}},
    ]
    return run_scenario(ScenarioSpec.model_validate({"name": "two", "sites": sites}))


def test_figures_stand_beside_the_replays(replayed: Run, tmp_path: Path) -> None:
    """A run in which all ended 10 s later has them, and is saved whole."""
    known = replayed.result
    later = replace(
        known.schedule,
        start_time=known.schedule.start_time + 10,
        end_time=known.schedule.end_time + 10,
    )
    words, problem = scaled_outcome(replayed, LiveResult(later, "", 2.5, tmp_path), html=False)
    assert problem == ""
    a = known.sites[0]
    assert f"  a: AWRT {a.awrt + 10:,.1f} s and {a.awrt:,.1f} s" in words
    assert "  b: AWRT – and –, 0 and 0 jobs given away" in words
    assert words.endswith(f"scenario report {tmp_path / 'run'}")
    saved = load_run(tmp_path / "run")
    assert saved.sites[0].awrt == pytest.approx(a.awrt + 10)
    assert saved.sites[0].awrt_alone == pytest.approx(a.awrt_alone)
    assert saved.elapsed_s == 2.5


def test_jobs_that_were_not_completed_are_counted(replayed: Run, tmp_path: Path) -> None:
    """Some are named; there are no figures of the others."""
    schedule = replayed.result.schedule
    nowhere = replace(schedule, end_time=np.full(len(schedule), np.nan))
    failures = tuple(f"{number} of a (failed)" for number in range(5))
    live = LiveResult(nowhere, "", 1.0, tmp_path, failures)
    words, problem = scaled_outcome(replayed, live, html=False)
    assert words == ""
    assert problem == (
        "5 of 20 jobs were not completed, such as 0 of a (failed); 1 of a (failed); 2 of a "
        f"(failed); see the logs in {tmp_path}"
    )
    assert list(tmp_path.iterdir()) == []


def test_another_persons_folder_is_not_written_to(replayed: Run, tmp_path: Path) -> None:
    """The error names it."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("precious")
    with pytest.raises(OutputError, match="run has files that are not of a run"):
        scaled_outcome(
            replayed, LiveResult(replayed.result.schedule, "", 1.0, tmp_path), html=False
        )
