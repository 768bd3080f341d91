"""What others mean by the same words, by schedules that were made by hand."""

import runpy
import tomllib
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from lrms_sim.analysis.metrics import mean_bounded_slowdown
from lrms_sim.machine.machine import simulate
from lrms_sim.machine.picks import pick_machine
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.scheduling.user_defined import UserDefinedDiscipline
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.preparation_report import PreparationOptions
from lrms_sim.workload.schedule import Schedule
from lrms_sim.workload.swf import read_swf
from tests.oracles.disciplines import simulate_plainly

HERE = Path(__file__).parent
FILES = sorted((HERE / "known_readings").glob("*.toml"))
EXAMPLES = runpy.run_path(str(HERE.parents[1] / "docs/examples/other_readings.py"))
WRITTEN = {"committed-sjf": EXAMPLES["CommittedSjf"], "unicep": EXAMPLES["Unicep"]}
Overrun = Literal["kill", "extend", "run"]
OVERRUNS: tuple[Overrun, ...] = ("kill", "extend", "run")


def known(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / f"known_readings/{name}.toml").read_text(encoding="utf-8"))


def table(document: dict[str, Any]) -> JobTable:
    columns = ("submit_time", "processors", "requested_time", "run_time")
    return JobTable.from_columns(**{key: [row[key] for row in document["jobs"]] for key in columns})


def prepared(document: dict[str, Any], overrun: Overrun, path: Path) -> JobTable:
    """Returns the jobs as they come out of a log."""
    lines = [
        f"{row['id']} {row['submit_time']} -1 {row['run_time']} {row['processors']} -1 -1 {row['processors']} "
        f"{row['requested_time']} -1 1 1 1 1 1 1 -1 -1\n"
        for row in document["jobs"]
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return prepare(read_swf(path), document["processors"], PreparationOptions(overrun=overrun)).jobs


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_known_schedule(path: Path, tmp_path: Path) -> None:
    document = known(path.stem)
    assert document["explanation"].strip()
    for reading, expected in document["start_times"].items():
        name, _, word = reading.rpartition("-")
        if word in OVERRUNS:
            jobs = prepared(document, word, tmp_path / "log.swf")
            discipline = discipline_by_name(name)
            oracle = simulate_plainly(jobs, document["processors"], name)
            assert [oracle.start_time[row] for row in range(len(jobs))] == expected, reading
        else:
            jobs = table(document)
            discipline = (
                UserDefinedDiscipline(WRITTEN[reading]())
                if reading in WRITTEN
                else discipline_by_name(reading)
            )
        found = simulate(jobs, document["processors"], discipline)
        assert found.start_time.tolist() == expected, reading


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_kept_pick_is_that_of_the_compiled_machine(seed: int) -> None:
    random = np.random.default_rng(seed)
    jobs = JobTable.from_columns(
        submit_time=np.floor(np.cumsum(random.exponential(20.0, 150)) / 40.0) * 40.0,
        processors=random.integers(1, 17, 150),
        run_time=(run_time := np.ceil(random.lognormal(3.0, 1.5, 150))),
        requested_time=run_time * 2,
    )
    machine = pick_machine(jobs, 24, window=len(jobs), commit=True)
    machine.reset(0, len(jobs))
    total, ended = 0.0, False
    while not ended:
        rows = machine.rows_seen()
        reward, ended = machine.step(int(np.argmin(jobs.requested_time[rows])))
        total -= reward
    found = simulate(jobs, 24, UserDefinedDiscipline(WRITTEN["committed-sjf"]()))
    assert total == pytest.approx(mean_bounded_slowdown(found), rel=1e-12)
    sjf: Schedule = simulate(jobs, 24, discipline_by_name("sjf"))
    assert mean_bounded_slowdown(sjf) != pytest.approx(total)
