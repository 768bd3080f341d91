"""What users have called the streams of their jobs."""

import pytest

from grms.site.model.jobs import HomeJob, Request
from grms.site.staging.stream_names import stream_names
from grms.v1 import request_pb2


def job(output: str, error: str = "", job_id: str = "kth-17", **variables: str) -> HomeJob:
    """Returns a job with such names."""
    message = request_pb2.JobRequest()
    message.program.script, message.program.name = "#!/bin/sh\n", "my/job"
    message.program.environment.update(variables)
    message.streams.output, message.streams.error = output, error
    return HomeJob(
        job=17,
        job_id=job_id,
        lrms_key="kth/1/17",
        user="ann",
        idempotency_key="k",
        name="my/job",
        submit_time=0.0,
        request=Request(1, 60.0),
        payload=message.SerializeToString(),
    )


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("run.out", "run.out"),
        ("logs/%x-%j.out", "logs/my_job-17.out"),
        ("%5j|%N|%u|%t", "00017|south|ann|0"),
        ("%A_%a", "17_"),
        ("100%%", "100%"),
        ("%q", "%q"),
        ("a%j\\b", "a%jb"),
        ("./x", "x"),
        ("/scratch/ann/%j.out", "17.out"),
        ("../up/x.out", "x.out"),
        ("/dev/null", "/dev/null"),
        ("", ""),
        ("..", ""),
        ("a\nb", ""),
        ("x" * 300, ""),
    ],
)
def test_a_name_is_as_it_was_written(written: str, name: str) -> None:
    """Expanded as by Slurm; what leads elsewhere keeps its last part, and what is no name is none."""
    expected = {"stdout": name} if name else {}
    assert stream_names(job(written), "south") == (expected, False)


def test_an_element_has_the_number_of_its_array() -> None:
    """And its index, as at home."""
    variables = {"HANSE_ARRAY_JOB_ID": "kth-12", "HANSE_ARRAY_TASK_ID": "7"}
    element = job("%A_%3a.out", "%j.err", "kth-12_7", **variables)
    assert stream_names(element, "")[0] == {"stdout": "12_007.out", "stderr": "12.err"}
