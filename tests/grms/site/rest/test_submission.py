"""Properties of slurmrestd's jobs as requests: what they mean, and what is refused by its name."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.site.rest.submission import OPTIONS, OTHERS, PropertyError, read_submission
from grms.site.wire.convert import read_request
from grms.v1 import job_pb2, request_pb2
from tests.grms.site.rest.callers import JOB, SCRIPT


def read(key: str | None = None, **changes: Any) -> job_pb2.SubmitRequest:
    """Returns the request of a job with other properties."""
    job = {name: value for name, value in (JOB | changes).items() if value is not None}
    return read_submission({"script": SCRIPT, "job": job}, key)


def test_every_property_says_what_it_says_to_slurm() -> None:
    """Sizes, names, the environment, the folder and the streams."""
    found = read(
        "key-1",
        name="all",
        tasks=4,
        cpus_per_task="2",
        nodes=[2, 4],
        tasks_per_node=2,
        time_limit=1501,
        memory_per_cpu=512,
        constraints="fast&new",
        licenses="solver:2",
        gpus_per_node="a100:1",
        signal="USR1@90",
        exclusive=True,
        requeue=False,
        partition="main",
        account="chem",
        qos="high",
        argv=["one", "two"],
        array="1-9%3",
        dependency="afterok:12",
        current_working_directory="/srv/ann",
        standard_output="out-%j",
        standard_error="err-%j",
        standard_input="/dev/null",
        open_mode="append",
        environment={"PATH": "/bin", "COUNT": 3},
    )
    request, needs, program = found.request, found.request.needs, found.request.program
    assert (found.idempotency_key, found.name, found.array) == ("key-1", "all", "1-9%3")
    assert [each.job_id for each in found.dependencies] == ["12"]
    assert (request.processors, request.requested_time_s) == (8, 1501 * 60)
    assert (needs.tasks, needs.cores_per_task, needs.tasks_per_node) == (4, 2, 2)
    assert (needs.nodes_min, needs.nodes_max, needs.exclusive, needs.requeue) == (2, 4, True, False)
    assert (needs.memory.mib, needs.memory.per) == (512, request_pb2.MEMORY_SCOPE_CORE)
    assert (needs.gpus.count, needs.gpus.type) == (1, "a100")
    assert (list(needs.features), needs.licences[0].name) == (["fast", "new"], "solver")
    assert (needs.signal, needs.signal_before_s) == ("USR1", 90)
    assert (needs.partition, needs.account, needs.qos) == ("main", "chem", "high")
    assert (program.script, list(program.arguments)) == (SCRIPT, ["one", "two"])
    assert dict(program.environment) == {"PATH": "/bin", "COUNT": "3"}
    assert (request.home.folder, len(request.home.environment)) == ("/srv/ann", 2)
    words = set(request.home.options)
    assert {"--output=out-%j", "--error=err-%j", "--open-mode=append", "--exclusive"} < words
    assert {"--partition=main", "--nodes=2-4", "--mem-per-cpu=512"} < words
    assert not {each for each in words if each.startswith(("--time", "--no-requeue"))}
    streams = request.streams
    assert (streams.output, streams.error, streams.append) == ("out-%j", "err-%j", True)
    read_request(request, "request")  # a site takes it


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"nice": 5}, "job.nice"),
        ({"begin_time": 1}, "job.begin_time"),
        ({"time_limit": None}, "job.time_limit"),
        ({"time_limit": "1:00"}, "job.time_limit"),
        ({"environment": None}, "job.environment"),
        ({"environment": {}}, "job.environment"),
        ({"environment": ["A=1"]}, "job.environment"),
        ({"environment": {"A=B": "1"}}, "job.environment"),
        ({"environment": {"A": None}}, "job.environment"),
        ({"tasks": -1}, "job.tasks"),
        ({"tasks": 0}, "job.tasks"),
        ({"nodes": [0, 2]}, "job.nodes"),
        ({"cpus_per_task": "0"}, "job.cpus_per_task"),
        ({"tasks": True}, "job.tasks"),
        ({"tasks": 2.5}, "job.tasks"),
        ({"tasks": 2**40}, "job"),
        ({"nodes": [1, 2, 3]}, "job.nodes"),
        ({"constraints": "a|b"}, "job.constraints"),
        ({"exclusive": "user"}, "job.exclusive"),
        ({"requeue": "no"}, "job.requeue"),
        ({"argv": "one"}, "job.argv"),
        ({"name": "\ud800"}, "job.name"),
        ({"name": "a\0"}, "job.name"),
        ({"standard_input": "/data"}, "job.standard_input"),
        ({"current_working_directory": "here"}, "job.current_working_directory"),
        ({"array": "x"}, "job"),
        ({"dependency": "afterok"}, "job"),
        ({"open_mode": "x"}, "job"),
    ],
)
def test_what_no_site_can_do_is_refused_by_its_name(change: dict[str, Any], field: str) -> None:
    """Never left out silently."""
    with pytest.raises(PropertyError) as error:
        read(**change)
    assert error.value.field == field


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], "body"),
        ({"script": SCRIPT, "jobs": []}, "jobs"),
        ({"script": SCRIPT, "job": JOB, "more": 1}, "more"),
        ({"script": SCRIPT}, "job"),
        ({"job": JOB}, "script"),
        ({"script": "echo", "job": JOB}, "script"),
        ({"script": SCRIPT + "\0", "job": JOB}, "script"),
        ({"script": SCRIPT.replace("\n", "\r\n"), "job": JOB}, "script"),
    ],
)
def test_a_document_of_another_form_is_refused(document: Any, field: str) -> None:
    """By the part that is wrong."""
    with pytest.raises(PropertyError) as error:
        read_submission(document, None)
    assert error.value.field == field


values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from(sorted(OPTIONS.keys() | OTHERS)), values, max_size=4))
def test_any_values_are_taken_or_refused(changes: dict[str, Any]) -> None:
    """No value makes another error."""
    try:
        found = read_submission({"script": SCRIPT, "job": JOB | changes}, None)
    except PropertyError as error:
        place = error.field
    else:
        place = "job" if found.request.processors else ""
    assert place.partition(".")[0] == "job"
