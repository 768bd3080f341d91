import gzip
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.lublin import generate
from scenarios.run.workloads import Workload, first_arrivals, load_workload
from scenarios.spec.spec import ScenarioSpec, SiteSpec
from scenarios.spec.traces import TRACES
from scenarios.util.errors import TraceMissingError, WorkloadError

HEADER = "; Version: 2.2\n; Installation: Hall 4\n; Acknowledge: A. Person\n"


def line(job: int, submit: float, run: float, width: int, request: float) -> str:
    """Returns a record of a log."""
    return f"{job} {submit} 0 {run} {width} -1 -1 {width} {request} -1 1 7 1 1 1 -1 -1 -1\n"


LOG = HEADER + "".join(
    (
        line(1, 0, 10, 1, 20),
        line(2, 86400, 50, 2, 20),
        line(3, 2 * 86400, 10, 9, 20),
        line(4, 2 * 86400 + 5, 0, 1, 20),
        line(5, 3 * 86400, 10, 4, 20),
    )
)


def site(workload: dict[str, Any], processors: int = 8) -> SiteSpec:
    """Returns a resolved site with that workload."""
    one = {"name": "A", "processors": processors, "workload": workload}
    return ScenarioSpec.model_validate({"name": "x", "sites": [one]}).resolved().sites[0]


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "a.swf"
    path.write_text(LOG)
    return str(path)


def test_a_log_is_prepared_for_the_site_and_everything_left_out_is_counted(log: str) -> None:
    """Records dropped, altered and outside the window add up to those that are not jobs."""
    window = {"first_day": 1, "last_day": 3}
    workload = load_workload(site({"swf": log, "window": window}))
    assert workload.jobs.job_id.tolist() == [2]
    assert workload.jobs.run_time.tolist() == [20]
    notes = {reason: (count, treatment) for reason, count, treatment in workload.notes}
    assert notes == {
        "wider than the machine (8)": (1, "dropped"),
        "run time 0 s": (1, "dropped"),
        "run time above request, killed at the request": (1, "altered"),
        "outside the window (from day 1, before day 3)": (2, "left out"),
    }
    assert workload.source == log
    assert len(workload.warnings) == 1
    assert "2 of 5 records (40.0%) were dropped" in workload.warnings[0]
    assert workload.acknowledgement == (
        "The log of Hall 4 was given by A. Person through the Parallel Workloads Archive."
    )


def test_preparation_options_are_followed(log: str) -> None:
    """A site may ask for other rules than the papers'."""
    options = {"overrun": "extend", "run_time_zero": "one_second"}
    workload = load_workload(site({"swf": log, "preparation": options}, processors=16))
    assert workload.jobs.run_time.tolist() == [10, 50, 10, 1, 10]


@pytest.mark.parametrize(
    ("shift", "submitted"),
    [("none", [86400, 259200]), ("window", [43200, 216000]), ("first_job", [0, 172800])],
)
def test_the_clock_says_what_falls_on_second_0(log: str, shift: Any, submitted: list[int]) -> None:
    """The log's time 0, the window's beginning, or the first submission in it."""
    window = {"first_day": 0.5}
    workload = load_workload(site({"swf": log, "window": window}), shift)
    assert workload.jobs.submit_time.tolist() == submitted


def test_a_window_without_jobs_is_a_warning(log: str) -> None:
    """A site may serve partners alone, but whoever mistyped a day wants to know."""
    workload = load_workload(site({"swf": log, "window": {"first_day": 10}}))
    assert len(workload.jobs) == 0
    assert workload.warnings == (f"{log} has no job in the window (from day 10)",)


def test_a_log_of_which_much_is_lost_is_a_warning(log: str) -> None:
    """It names the reasons, and the key that keeps the records."""
    workload = load_workload(site({"swf": log}, processors=1))
    (warning,) = workload.warnings
    assert warning.startswith(f"{log}")
    assert "records (" in warning
    assert 'run time 0 s (preparation.run_time_zero = "one_second" keeps them)' in warning
    assert "wider than the machine (1)" in warning


def test_a_log_without_jobs_is_a_warning(tmp_path: Path) -> None:
    """A header alone is a log, though hardly the one that was meant."""
    path = tmp_path / "empty.swf"
    path.write_text("; Version: 2.2\n")
    workload = load_workload(site({"swf": str(path)}))
    assert workload.warnings == (f"{path} has no job",)
    assert workload.acknowledgement == ""


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "cannot be read: No such file"),
        (b"", "is empty"),
        (b"1 2 3\n", "a.swf:1: 3 fields; expected 18"),
        (b"\x00\xff" * 40 + b"\n", "a.swf:1: "),
        (gzip.compress(LOG.encode(), mtime=0)[:60], "is cut off"),
    ],
)
def test_a_log_that_cannot_be_read_names_site_and_place(
    tmp_path: Path, content: bytes | None, text: str
) -> None:
    """Whatever the reader says is told with the site's key."""
    path = tmp_path / "a.swf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(WorkloadError, match=rf"^sites\.A\.workload: .*{text}"):
        load_workload(site({"swf": str(path)}))


def test_a_rule_that_stops_names_site_and_record(log: str) -> None:
    """`error` as a treatment ends the run with the reason."""
    with pytest.raises(WorkloadError, match=r"sites\.A\.workload: .*job 3 needs 9 processors"):
        load_workload(site({"swf": log, "preparation": {"too_wide": "error"}}))


def test_a_model_gives_the_jobs_of_its_seed() -> None:
    """The generator is called with the site's size and exactly what the scenario says."""
    made = load_workload(site({"model": "lublin", "days": 2.5, "load": 0.7, "seed": 5}))
    same = generate(8, seed=5, duration=2.5 * 86400, load=0.7)
    assert np.array_equal(made.jobs.submit_time, same.submit_time)
    assert np.array_equal(made.jobs.run_time, same.run_time)
    assert made.source == "Lublin-Feitelson model, seed 5"
    shifted = load_workload(site({"model": "lublin", "jobs": 4, "seed": 5}), "first_job")
    assert shifted.jobs.submit_time[0] == 0
    assert len(shifted.jobs) == 4


def test_an_unresolved_model_is_refused() -> None:
    """A workload without a seed would be another one each time."""
    one = {"name": "A", "processors": 8, "workload": {"model": "lublin", "jobs": 1}}
    spec = ScenarioSpec.model_validate({"name": "x", "sites": [one]})
    with pytest.raises(WorkloadError, match=r"has no seed"):
        load_workload(spec.sites[0])


def test_a_known_log_that_is_not_here_says_how_to_get_it(tmp_path: Path) -> None:
    """The error is that of the lookup, not of a reader."""
    with pytest.raises(TraceMissingError, match="scenario fetch kth"):
        load_workload(site({"trace": "kth"}), environment={"XDG_CACHE_HOME": str(tmp_path)})


def test_another_version_of_a_known_log_is_a_warning(tmp_path: Path) -> None:
    """It is used, since it is there, but nobody should wonder at other figures."""
    path = tmp_path / TRACES["kth"].file
    path.write_bytes(gzip.compress(LOG.encode()))
    workload = load_workload(
        site({"trace": "kth"}, 100), environment={"HANSE_TRACES": str(tmp_path)}
    )
    assert len(workload.jobs) == 4
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(workload.warnings) == 1
    assert "another version of the log 'kth'" in workload.warnings[0]
    assert digest in workload.warnings[0]


def test_the_first_arrivals_are_the_earliest_of_all_sites() -> None:
    """Of jobs at one instant those of the first site come first; what is left out is counted."""
    early, late = (
        JobTable.from_columns(
            submit_time=moments, processors=[1] * 4, run_time=[1] * 4, requested_time=[1] * 4
        )
        for moments in ([0, 5, 5, 9], [1, 5, 5, 5])
    )
    whole = [Workload(early, (("x", 1, "y"),), "a"), Workload(late, (), "b")]
    cut = first_arrivals(whole, 5)
    assert [one.jobs.submit_time.tolist() for one in cut] == [[0, 5, 5], [1, 5]]
    assert cut[0].notes == (
        ("x", 1, "y"),
        ("after the first 5 arrivals at all sites", 1, "left out"),
    )
    assert cut[1].notes == (("after the first 5 arrivals at all sites", 2, "left out"),)
    assert first_arrivals(whole, 8) == whole == first_arrivals(whole, None)
    with pytest.raises(ValueError, match="count is 0; it must be at least 1"):
        first_arrivals(whole, 0)
