from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.workload.preparation import PreparationOptions, Prepared, prepare
from lrms_sim.workload.preparation_report import PreparationEntry
from lrms_sim.workload.swf_log import SwfLog

GOOD: dict[str, float] = {
    "submit_time": 10,
    "run_time": 50,
    "processors_allocated": 4,
    "processors_requested": 4,
    "requested_time": 100,
    "status": 1,
    "user": 3,
}


def log_of(*records: Mapping[str, float]) -> SwfLog:
    """Returns a log of good records with some fields replaced; numbered where not said."""
    rows = [{"job_id": at + 1, **GOOD, **record} for at, record in enumerate(records)]
    return SwfLog.from_columns({name: [row[name] for row in rows] for name in rows[0]})


def one_of(record: Mapping[str, float], processors: int = 8, **options: Any) -> Prepared:
    return prepare(log_of(record), processors, PreparationOptions(**options))


def reasons(prepared: Prepared) -> dict[str, tuple[int, str]]:
    return {entry.reason: (entry.count, entry.treatment) for entry in prepared.report.entries}


def test_good_records_pass_unchanged() -> None:
    """A complete record becomes a job as it stands, and nothing is reported."""
    prepared = prepare(log_of({}, {"submit_time": 20}), 4)
    jobs = prepared.jobs
    assert jobs.job_id.tolist() == [1, 2]
    assert jobs.submit_time.tolist() == [10, 20]
    assert jobs.processors.tolist() == [4, 4]
    assert jobs.run_time.tolist() == [50, 50]
    assert jobs.requested_time.tolist() == [100, 100]
    assert jobs.user.tolist() == [3, 3]
    assert prepared.report.entries == ()
    assert prepared.report.records_read == prepared.report.jobs_prepared == 2


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"run_time": 0}, "run-time-zero"),
        ({"run_time": -1}, "run-time-unknown"),
        ({"requested_time": 0}, "requested-time-missing"),
        ({"requested_time": -1}, "requested-time-missing"),
        ({"processors_allocated": -1, "processors_requested": 0}, "processors-unknown"),
        ({"processors_allocated": 9}, "too-wide"),
        ({"processors_allocated": -1, "processors_requested": 9}, "too-wide"),
        ({"submit_time": -1}, "submit-time-negative"),
        ({"job_id": 1, "status": 2}, "partial-execution"),
        ({"job_id": 1, "status": 3}, "partial-execution"),
        ({"job_id": 1, "status": 4}, "partial-execution"),
    ],
)
def test_unusable_records_are_dropped_and_counted(record: dict[str, float], reason: str) -> None:
    """A record that cannot be run is left out, under the reason that applies."""
    prepared = prepare(log_of({}, record), 8)
    assert prepared.jobs.job_id.tolist() == [1]
    assert reasons(prepared) == {reason: (1, "dropped")}
    assert prepared.report.records_dropped == 1
    assert prepared.report.count(reason) == 1
    assert prepared.report.count("unsorted") == 0


@pytest.mark.parametrize("status", [-1, 0, 1, 5])
def test_status_of_whole_jobs_does_not_matter(status: int) -> None:
    """Failed, completed and cancelled jobs that ran are jobs."""
    assert len(one_of({"status": status}).jobs) == 1


def test_record_is_dropped_under_one_reason_only() -> None:
    """A record with several faults is counted once."""
    prepared = one_of({"run_time": 0, "requested_time": 0, "processors_allocated": 99})
    assert reasons(prepared) == {"run-time-zero": (1, "dropped")}


def test_requested_processors_stand_in_for_allocated() -> None:
    """Field 8 is taken where field 5 is not positive, and the other way round on demand."""
    prepared = one_of({"processors_allocated": 0, "processors_requested": 6})
    assert prepared.jobs.processors.tolist() == [6]
    assert reasons(prepared) == {"processors-from-other-field": (1, "altered")}

    both = {"processors_allocated": 3, "processors_requested": 6}
    assert one_of(both).jobs.processors.tolist() == [3]
    assert one_of(both, processors_from="requested").jobs.processors.tolist() == [6]

    prepared = one_of({"processors_requested": -1}, processors_from="requested")
    assert prepared.jobs.processors.tolist() == [4]
    assert prepared.report.rows() == [
        ("requested processors unknown, allocated taken", 1, "altered")
    ]


def test_run_time_of_zero_may_become_a_second() -> None:
    """`run_time_zero = one_second` keeps such jobs; an unknown run time is dropped even so."""
    prepared = one_of({"run_time": 0}, run_time_zero="one_second")
    assert prepared.jobs.run_time.tolist() == [1]
    assert reasons(prepared) == {"run-time-zero": (1, "altered")}
    assert len(one_of({"run_time": -1}, run_time_zero="one_second").jobs) == 0


def test_missing_request_may_become_the_run_time() -> None:
    """`requested_time_missing = run_time` keeps jobs that asked for nothing."""
    prepared = one_of({"requested_time": -1}, requested_time_missing="run_time")
    assert prepared.jobs.requested_time.tolist() == [50]
    assert reasons(prepared) == {"requested-time-missing": (1, "altered")}


def test_overrun_is_killed_or_extended() -> None:
    """A job past its request ends there, or its request grows."""
    killed = one_of({"run_time": 150})
    assert (killed.jobs.run_time[0], killed.jobs.requested_time[0]) == (100, 100)
    assert reasons(killed) == {"overrun": (1, "altered")}
    extended = one_of({"run_time": 150}, overrun="extend")
    assert (extended.jobs.run_time[0], extended.jobs.requested_time[0]) == (150, 150)
    assert reasons(extended) == {"overrun": (1, "altered")}
    exact = one_of({"run_time": 100})
    assert reasons(exact) == {}


def test_wide_jobs_may_be_an_error() -> None:
    """`too_wide = error` names the first such job, its width, the machine and the number."""
    log = log_of({}, {"job_id": 41, "processors_allocated": 9}, {"processors_allocated": 10})
    with pytest.raises(
        ValueError, match=r"<memory>: job 41 needs 9 processors, the machine has 8 \(2 such jobs"
    ):
        prepare(log, 8, PreparationOptions(too_wide="error"))
    # A record that is dropped for another reason is no wide job.
    assert len(one_of({"run_time": 0, "processors_allocated": 9}, too_wide="error").jobs) == 0


def test_negative_submissions_may_stay() -> None:
    """`submit_time_negative = keep` keeps them where they are, and says so."""
    prepared = one_of({"submit_time": -30}, submit_time_negative="keep")
    assert prepared.jobs.submit_time.tolist() == [-30]
    assert reasons(prepared) == {"submit-time-negative": (1, "kept")}


def test_partial_executions_may_stay() -> None:
    """`partial_execution = keep` takes every line for a job."""
    log = log_of({}, {"job_id": 1, "status": 3})
    assert len(prepare(log, 8, PreparationOptions(partial_execution="keep")).jobs) == 2
    assert len(prepare(log, 8).jobs) == 1


@pytest.mark.parametrize("status", [2, 3, 4])
def test_a_part_of_no_other_job_is_a_job(status: int) -> None:
    """Some logs hold exit codes in that field: without a line of the whole job it is the job."""
    prepared = prepare(log_of({}, {"status": status}), 8)
    assert prepared.jobs.job_id.tolist() == [1, 2]
    assert reasons(prepared) == {"partial-without-whole": (1, "kept")}


def test_parts_without_a_whole_line_are_all_kept() -> None:
    """Nothing is lost of a job whose log has its parts alone; they get numbers of their own."""
    prepared = prepare(log_of({"job_id": 7, "status": 2}, {"job_id": 7, "status": 3}), 8)
    assert prepared.jobs.job_id.tolist() == [7, 8]


@pytest.mark.parametrize("field", ["submit_time", "run_time", "requested_time"])
def test_times_that_lose_seconds_are_refused(field: str) -> None:
    """Beyond 2**53 s a second more is the same number; AWRT would be nonsense without a word."""
    last = {"requested_time": 2.0**53, "submit_time": 2.0**53 - 50, "run_time": 2.0**53 - 10}[field]
    assert len(one_of({"requested_time": 2.0**53, field: last}).jobs) == 1
    with pytest.raises(ValueError, match=r"of job 1 is 9.0072e\+15 s; beyond 2\*\*53 s"):
        one_of({"requested_time": 2.0**53, field: 2.0**53 + 2})
    # A record that is dropped does no harm.
    assert len(one_of({field: 2.0**53 + 2, "processors_allocated": 9}).jobs) == 0


@pytest.mark.parametrize(
    ("last", "times"),
    [
        ({"submit_time": 2.0**53}, r"up to 9.0072e\+15 s and run times of 100 s"),
        ({"submit_time": 2.0**53 - 99}, r"up to 9.0072e\+15 s and run times of 100 s"),
        ({"run_time": 2.0**53 - 50}, r"up to 10 s and run times of 9.0072e\+15 s"),
    ],
)
def test_ends_that_lose_seconds_are_refused(last: dict[str, float], times: str) -> None:
    """A clock that has come beyond 2**53 s stands still: responses would be 0 without a word."""
    log = log_of({}, {"requested_time": 2.0**53, **last})
    with pytest.raises(ValueError, match=f"{times} together: jobs could end beyond 2\\*\\*53 s"):
        prepare(log, 8)
    # What is cut at its request ends in time, and so does what is left out.
    assert len(prepare(log, 3).jobs) == 0
    if "run_time" in last:
        assert len(prepare(log_of({}, last), 8).jobs) == 2
    else:
        just = log_of({}, {"submit_time": 2.0**53 - 100})
        assert len(prepare(just, 8).jobs) == 2


def test_unsorted_log_is_sorted_and_counted() -> None:
    """Jobs come out in order of submission, equal times in order of their numbers."""
    times = [50, 20, 20, 60, 10]
    ids = [1, 9, 3, 4, 5]
    records = [{"submit_time": time, "job_id": id_} for time, id_ in zip(times, ids, strict=True)]
    prepared = prepare(log_of(*records), 8)
    assert prepared.jobs.job_id.tolist() == [5, 3, 9, 1, 4]
    assert reasons(prepared) == {"unsorted": (2, "altered")}


REPEATED = ({"job_id": 5}, {"job_id": 7, "submit_time": 11}, {"job_id": 5, "submit_time": 12})


def test_repeated_job_numbers_are_renumbered() -> None:
    """Of equal numbers the first record keeps it, the others get numbers that are free."""
    prepared = prepare(log_of(*REPEATED), 8)
    assert prepared.jobs.job_id.tolist() == [5, 7, 8]
    assert reasons(prepared) == {"job-id-repeated": (1, "altered")}


def test_repeated_job_numbers_may_be_dropped_or_an_error() -> None:
    """The other two treatments of a repeated number."""
    prepared = prepare(log_of(*REPEATED), 8, PreparationOptions(job_id_repeated="drop"))
    assert prepared.jobs.job_id.tolist() == [5, 7]
    assert reasons(prepared) == {"job-id-repeated": (1, "dropped")}
    with pytest.raises(ValueError, match=r"job number 5 stands for more than one job \(1 such"):
        prepare(log_of(*REPEATED), 8, PreparationOptions(job_id_repeated="error"))


def test_repeat_of_a_dropped_record_is_no_repeat() -> None:
    """A number is taken only by records that are kept."""
    prepared = prepare(log_of({"job_id": 5, "run_time": 0}, {"job_id": 5}), 8)
    assert prepared.jobs.job_id.tolist() == [5]
    assert reasons(prepared) == {"run-time-zero": (1, "dropped")}


def test_renumbering_needs_room() -> None:
    """At the end of the 64-bit numbers there is an error, not a wrap."""
    largest = 2**63 - 1
    log = SwfLog.from_columns(
        {
            "job_id": np.array([largest, largest]),
            **{name: np.full(2, value) for name, value in GOOD.items()},
        }
    )
    with pytest.raises(ValueError, match="leaves no room for 1 new numbers"):
        prepare(log, 8)


def test_empty_log_gives_no_jobs() -> None:
    """A log without records is no error."""
    prepared = prepare(SwfLog.from_columns({}), 8)
    assert len(prepared.jobs) == 0
    assert prepared.report.records_read == 0


def test_machine_without_processors_is_refused() -> None:
    """A machine has at least one processor."""
    with pytest.raises(ValueError, match="machine_processors is 0; it must be at least 1"):
        prepare(log_of({}), 0)


@pytest.mark.parametrize("name", [option.name for option in fields(PreparationOptions)])
def test_choice_that_does_not_exist_is_refused(name: str) -> None:
    """A misspelt choice is named together with those there are."""
    choices = get_args(get_type_hints(PreparationOptions)[name])
    with pytest.raises(ValueError, match=f"{name} is 'perhaps'; it must be one of {choices[0]}, "):
        PreparationOptions(**{name: "perhaps"})  # type: ignore[arg-type]  # what is tested


def test_rows_are_for_people() -> None:
    """A report can be shown as rows of description, count and treatment."""
    prepared = prepare(log_of({"run_time": 150}, {"run_time": 0}, {"processors_allocated": 9}), 8)
    assert prepared.report.entries[0] == PreparationEntry(
        "run-time-zero", "run time 0 s", 1, "dropped"
    )
    assert prepared.report.rows() == [
        ("run time 0 s", 1, "dropped"),
        ("wider than the machine (8)", 1, "dropped"),
        ("run time above request, killed at the request", 1, "altered"),
    ]


def plainly(log: SwfLog, processors: int) -> list[tuple[float, int, int, float, float]]:
    """The default rules, record by record, as one would write them down."""
    jobs = []
    parts = {2, 3, 4}
    whole = {job for job, status in zip(log.job_id, log.status, strict=True) if status not in parts}
    for row in range(len(log)):
        width = int(log.processors_allocated[row])
        if width <= 0:
            width = int(log.processors_requested[row])
        run, request = float(log.run_time[row]), float(log.requested_time[row])
        if log.status[row] in parts and log.job_id[row] in whole:
            continue
        if log.submit_time[row] < 0:
            continue
        if run > 0 and request > 0 and 0 < width <= processors:
            submit = float(log.submit_time[row])
            jobs.append((submit, int(log.job_id[row]), width, min(run, request), request))
    return sorted(jobs)


records = st.fixed_dictionaries(
    {
        "submit_time": st.integers(-1, 5),
        "run_time": st.integers(-1, 4),
        "processors_allocated": st.integers(-1, 5),
        "processors_requested": st.integers(-1, 5),
        "requested_time": st.integers(-1, 4),
        "status": st.integers(-1, 5),
    }
)
options = st.builds(
    PreparationOptions,
    processors_from=st.sampled_from(["allocated", "requested"]),
    run_time_zero=st.sampled_from(["drop", "one_second"]),
    requested_time_missing=st.sampled_from(["drop", "run_time"]),
    overrun=st.sampled_from(["kill", "extend"]),
    submit_time_negative=st.sampled_from(["drop", "keep"]),
    partial_execution=st.sampled_from(["drop", "keep"]),
    job_id_repeated=st.sampled_from(["renumber", "drop"]),
)


@given(st.lists(records, max_size=12), st.permutations(range(1, 13)))
def test_default_rules_are_those_of_the_paper(
    drawn: list[dict[str, float]], numbers: list[int]
) -> None:
    """Default preparation equals a plain loop over the records, on any log."""
    numbered = [
        {**record, "job_id": job_id} for record, job_id in zip(drawn, numbers, strict=False)
    ]
    log = log_of(*numbered) if numbered else SwfLog.from_columns({})
    jobs = prepare(log, 3).jobs
    assert plainly(log, 3) == list(
        zip(
            jobs.submit_time.tolist(),
            jobs.job_id.tolist(),
            jobs.processors.tolist(),
            jobs.run_time.tolist(),
            jobs.requested_time.tolist(),
            strict=True,
        )
    )


@given(
    st.lists(st.tuples(records, st.integers(1, 6)), min_size=1, max_size=12),
    st.integers(1, 6),
    options,
)
def test_every_record_is_accounted_for(
    drawn: list[tuple[dict[str, float], int]], processors: int, chosen: PreparationOptions
) -> None:
    """Under any options, records dropped by reason and jobs prepared add up to records read."""
    log = log_of(*({**record, "job_id": job_id} for record, job_id in drawn))
    prepared = prepare(log, processors, chosen)
    dropped = sum(e.count for e in prepared.report.entries if e.treatment == "dropped")
    assert dropped + len(prepared.jobs) == len(log)
    assert prepared.report.records_dropped == dropped
    assert all(entry.count > 0 for entry in prepared.report.entries)
    assert len(set(prepared.jobs.job_id.tolist())) == len(prepared.jobs)
    assert (prepared.jobs.processors <= processors).all()
