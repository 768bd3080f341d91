from grms.learning.fingerprint import first_difference, jobs_sha256
from lrms_sim.workload.jobs import JobTable

COLUMNS = {
    "submit_time": [0, 5],
    "processors": [1, 2],
    "run_time": [10, 20],
    "requested_time": [10, 30],
}


def test_a_checksum_sees_what_a_replay_sees() -> None:
    """Each column matters; job numbers and users do not. The bytes are the same everywhere."""
    jobs = JobTable.from_columns(**COLUMNS)
    checksum = jobs_sha256(jobs)
    assert checksum == "e6a5ef0f6c53fb1fde40919ae048cd39c024e19cceef025e8e8ea06d7bb209bc"
    assert jobs_sha256(JobTable.from_columns(**COLUMNS, job_id=[7, 9], user=[3, 4])) == checksum
    for column, value in (
        ("submit_time", [0, 6]),
        ("processors", [1, 1]),
        ("run_time", [10, 21]),
        ("requested_time", [10, 31]),
    ):
        assert jobs_sha256(JobTable.from_columns(**COLUMNS | {column: value})) != checksum


def test_differences_of_any_shape() -> None:
    """New keys, other lengths, other types; long values are cut."""
    assert first_difference({}, {"x": 1}) == "x was not there"
    assert first_difference({"x": [1]}, {"x": [1, 2]}) == "x had 1 entries and has 2"
    assert first_difference({"x": [1, {"y": 2}]}, {"x": [1, {"y": 3}]}) == "x[1].y was 2 and is 3"
    assert first_difference(None, {"x": "y" * 500}) == (
        "it was None and is {'x': '" + "y" * 70 + "..."
    )
    assert first_difference([1.0, "a"], [1.0, "a"]) is None
