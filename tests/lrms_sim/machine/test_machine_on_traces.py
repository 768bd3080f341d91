"""Recorded traces on one machine: the figures of an independent program, to all digits.

The first four columns of paper 003, Table 1, are for comparison. The paper truncates to two
decimals. CTC agrees with it exactly; KTH, SDSC05 and SDSC00 were other versions of the logs.
"""

from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from lrms_sim.analysis import metrics
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import EasyPlusPlus, discipline_by_name
from lrms_sim.workload.preparation import PreparationOptions, prepare
from lrms_sim.workload.swf import read_swf
from tests.examples import THOROUGH
from tests.long_queues import NEVER, LongFrom
from tests.oracles.disciplines import simulate_plainly
from tests.recorded import LOGS, PROCESSORS, recorded

pytestmark = pytest.mark.traces


@dataclass(frozen=True)
class Expected:
    """One row: AWRT in seconds, U in percent, C_max in seconds, as text with all its digits."""

    workload: str
    jobs: int
    awrt: str
    utilization: str | None = None
    makespan: int | None = None


# C_max counts from 0 in the -5 windows, from the first submission in the -6 windows.
FCFS = [
    Expected("CTC-5", 35360, "57897.7752", "63.747", 13009718),
    Expected("CTC-6", 41839, "59118.1572", "67.055", 16346403),
    Expected("SDSC05-5", 28185, "56858.3509", "45.978", 13078215),
    Expected("SDSC05-6", 46732, "77472.7091", "71.027", 16419455),
    Expected("KTH-5", 11775, "475699.8689", "64.888", 13753968),
    Expected("KTH-6", 16699, "100013.1841", "68.569", 16420496),
    Expected("SDSC00-6", 16316, "391742.4292"),
]

# The first is the value the paper's group published for EASY over the log's 11 months.
EASY = [
    Expected("CTC", 77199, "52937.9601"),
    Expected("CTC-5", 35360, "52323.9341"),
    Expected("KTH", 28481, "75631.2446"),
]


def named(row: Expected) -> str:
    """Returns the row's name in the test's id."""
    return row.workload


@pytest.mark.parametrize("row", FCFS, ids=named)
def test_fcfs(row: Expected, traces_folder: Path) -> None:
    """FCFS gives the reference's job count, AWRT, utilization and makespan.

    The table's U is SA / (m·C_max). Equation 13 measures from the first start instead; that is
    the same in all rows but SDSC05-5, the first 24 days of whose log are empty.
    """
    jobs = recorded(traces_folder, row.workload)
    assert len(jobs) == row.jobs
    processors = PROCESSORS[row.workload.partition("-")[0]]
    schedule = simulate(jobs, processors)
    assert f"{metrics.awrt(schedule):.4f}" == row.awrt
    if row.makespan is None:
        return
    origin = jobs.submit_time[0] if row.workload.endswith("-6") else 0.0
    assert metrics.makespan(schedule, origin=origin) == row.makespan
    utilization = metrics.squashed_area(schedule) / (processors * row.makespan)
    assert f"{100 * utilization:.3f}" == row.utilization
    if schedule.start_time.min() == origin:
        assert metrics.utilization(schedule) == pytest.approx(utilization, rel=1e-12)
    else:
        assert row.workload == "SDSC05-5"


@pytest.mark.parametrize("row", EASY, ids=named)
def test_easy(row: Expected, traces_folder: Path) -> None:
    """EASY with batched passes gives the reference's job count and AWRT."""
    jobs = recorded(traces_folder, row.workload)
    assert len(jobs) == row.jobs
    machine = PROCESSORS[row.workload.partition("-")[0]]
    schedule = simulate(jobs, machine, discipline_by_name("easy"))
    assert f"{metrics.awrt(schedule):.4f}" == row.awrt


# What a well-known simulator of that kind gives, which takes the requested processors (field 8):
# discipline, log, machine, mean wait in seconds, and a digest of the lines "job start" of all jobs.
PER_EVENT = [
    (
        "easy-per-event",
        "KTH",
        100,
        "6836.8721",
        "0502a5909e58c8728ea921b189b266a15fc2ec6f5cd0a109ec206dd8ba004b8c",
    ),
    (
        "easy-plus-plus",
        "KTH",
        100,
        "6235.8539",
        "1c3d77d8ae17083c15ad972ae899a4e6e02ce09e1e50c502de4579238675673b",
    ),
    (
        "easy-per-event",
        "CTC",
        338,
        "14272.5945",
        "61dcd199189e9093fccfc899753bbdf386722881c8b4a445fa49c0d013662e04",
    ),
]


@pytest.mark.parametrize("reference", PER_EVENT, ids=lambda row: f"{row[0]}-{row[1]}")
def test_disciplines_per_event_start_every_job_as_the_reference_does(
    reference: tuple[str, str, int, str, str], traces_folder: Path
) -> None:
    """EASY per event and EASY++ give the reference's wait of every job."""
    discipline, log, processors, mean_wait, digest = reference
    options = PreparationOptions(processors_from="requested")
    jobs = prepare(read_swf(traces_folder / LOGS[log]), processors, options).jobs
    schedule = simulate(jobs, processors, discipline_by_name(discipline))
    assert f"{metrics.mean_wait_time(schedule):.4f}" == mean_wait
    starts = zip(jobs.job_id.tolist(), schedule.start_time.tolist(), strict=True)
    lines = "".join(f"{job} {start:.0f}\n" for job, start in starts)
    assert sha256(lines.encode()).hexdigest() == digest


def test_easy_plus_plus_with_perfect_predictions(traces_folder: Path) -> None:
    """Where every request is the run time, the mean wait on KTH is the reference's."""
    options = PreparationOptions(processors_from="requested")
    jobs = prepare(read_swf(traces_folder / LOGS["KTH"]), 100, options).jobs
    exact = replace(jobs, requested_time=jobs.run_time)
    schedule = simulate(exact, 100, EasyPlusPlus(predicts=False))
    assert f"{metrics.mean_wait_time(schedule):.2f}" == "5436.02"


# What the kernel gave when it kept every plan in flat arrays: log, machine, and a digest of the lines
# "job start" of all jobs.
CONSERVATIVE = [
    ("KTH", 100, "48c260573bfa92c486b5345961af39dc6b532e8616e7430956d06b3e07c2b2ee"),
    ("CTC", 430, "46107288d9b62d225c7c10a938981eb366c141643426e79bf556a5e29ebe43b6"),
    ("CTC", 338, "534bcc949c0ca5909a61cc9182147a6577fcbcaa2600600a1d1b835da4e4f199"),
    ("SDSC00", 128, "114479d141aa39503f6584becf113b2eedd8f4883a929f4c6c166820039fea92"),
]


@pytest.mark.parametrize(
    ("log", "processors", "digest", "long_queue"),
    [
        (*each, long_queue)
        for number, each in enumerate(CONSERVATIVE)
        for long_queue in ([1, 30, 256, NEVER] if number == 0 or THOROUGH else [256])
    ],
)
def test_conservative_starts_every_job_as_it_always_did(
    log: str, processors: int, digest: str, long_queue: int, traces_folder: Path
) -> None:
    """Wherever a queue begins to count as long, every start of a recorded log stays the same."""
    jobs = prepare(read_swf(traces_folder / LOGS[log]), processors).jobs
    schedule = simulate(jobs, processors, LongFrom(long_queue))
    starts = zip(jobs.job_id.tolist(), schedule.start_time.tolist(), strict=True)
    lines = "".join(f"{job} {start:.0f}\n" for job, start in starts)
    assert sha256(lines.encode()).hexdigest() == digest


# The plain oracle recomputes everything at every event; conservative backfilling it can follow
# only for a while, and the others for half a year of the log.
WHOLE, HALF = 10**9, 14_000


@pytest.mark.parametrize(
    ("discipline", "first_jobs"),
    [
        ("fcfs", WHOLE),
        ("list", HALF),
        ("easy", HALF),
        ("easy-per-event", HALF),
        ("conservative", 3000),
    ],
)
def test_every_start_equals_the_oracles(
    discipline: str, first_jobs: int, traces_folder: Path
) -> None:
    """On the KTH log every single job starts when the plain oracle says."""
    jobs = recorded(traces_folder, "KTH")
    jobs = jobs.select(np.arange(len(jobs)) < first_jobs)
    schedule = simulate(jobs, PROCESSORS["KTH"], discipline_by_name(discipline))
    oracle = simulate_plainly(jobs, PROCESSORS["KTH"], discipline)
    assert schedule.start_time.tolist() == [oracle.start_time[row] for row in range(len(jobs))]
