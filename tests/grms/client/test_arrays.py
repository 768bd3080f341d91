"""Arrays and dependencies, as programs that use a site have them."""

from pathlib import Path

import pytest

from grms.client import ArrayCounts, Client, JobState, Outcome, SiteError
from grms.site.wire.convert import element_part
from grms.util.job_arrays import ArraySpec
from grms.v1 import request_pb2
from tests.grms.site.daemons import document, running, two_sites


async def test_a_diamond_with_an_array_over_two_sites(tmp_path: Path) -> None:
    """One submission of many jobs, one more that waits for them; in order, and some of them at the partner."""
    async with two_sites(tmp_path), Client(tmp_path / "home.sock") as site:
        top = await site.submit(processors=4, requested_time_s=9, run_time_s=0.2)
        # Home is full: what is released is decided anew each time.
        array = await site.submit(
            processors=2,
            requested_time_s=9,
            run_time_s=0.1,
            array="0-9%4",
            dependency=f"afterok:{top.job_id}",
            name="sides",
        )
        assert array.job_id == "home-2"
        assert array.array == ArrayCounts("0-9%4", 10, 10, 0, 0, 0)
        assert array.state is JobState.HELD
        held = await site.get("home-2_7")
        assert (held.array_id, held.array_index) == ("home-2", 7)
        assert held.state is JobState.HELD
        assert held.reason == f"waits for afterok:{top.job_id}"
        assert held.dependencies == (f"afterok:{top.job_id}",)
        bottom = await site.submit(
            processors=1,
            requested_time_s=9,
            run_time_s=0.1,
            dependency=f"afterok:{array.job_id},afterany:{top.job_id}",
        )
        never = await site.submit(
            processors=1,
            requested_time_s=9,
            run_time_s=0.1,
            dependency=f"afternotok:{array.job_id}",
        )
        last = await site.wait(bottom.job_id)
        assert last.outcome is Outcome.COMPLETED
        whole = await site.wait(array.job_id)
        assert whole.array == ArrayCounts("0-9%4", 10, 0, 0, 10, 0)
        assert whole.outcome is Outcome.COMPLETED
        first = await site.get(top.job_id)
        elements = [job async for job in site.jobs() if job.array_id]
        assert [job.array_index for job in elements] == list(range(10))
        begins = [job.start_time_s or 0.0 for job in elements]
        ends = [job.end_time_s or 0.0 for job in elements]
        assert (first.end_time_s or 0.0) <= min(begins)
        assert max(ends) <= (last.start_time_s or 0.0)
        changes = sorted([(time, 1) for time in begins] + [(time, -1) for time in ends])
        at_once = [sum(step for _, step in changes[: n + 1]) for n in range(len(changes))]
        assert max(at_once) <= 4
        gone = await site.wait(never.job_id)
        assert gone.outcome is Outcome.CANCELLED
        assert "afternotok:home-2 cannot be met" in gone.reason
        assert {job.executed_on for job in elements} == {"home", "away"}


async def test_an_array_is_cancelled(tmp_path: Path) -> None:
    """A range of it, and then all; who watches it sees the end."""
    async with running(document(tmp_path), tmp_path), Client(tmp_path / "home.sock") as site:
        array = await site.submit(processors=4, requested_time_s=99, run_time_s=60.0, array="1-6")
        some = await site.cancel(f"{array.job_id}_[2-3,9]")
        assert (some.job_id, some.cancel_requested) == (array.job_id, False)
        for index in (2, 3):
            assert (await site.wait(f"home-1_{index}")).outcome is Outcome.CANCELLED
        assert not (await site.get("home-1_4")).cancel_requested
        assert (await site.cancel(array.job_id)).cancel_requested
        ended = await site.wait(array.job_id)
        assert ended.array == ArrayCounts("1-6", 6, 0, 0, 0, 6)
        assert ended.outcome is Outcome.CANCELLED
        assert ended.reason == "6 of 6 elements have not completed"


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"array": "5-1"}, "has no elements"),
        ({"dependency": "after:home-1"}, "is none that a site knows"),
    ],
)
async def test_what_no_site_could_take(tmp_path: Path, wanted: dict[str, str], says: str) -> None:
    """It is said before anything is sent."""
    async with Client(tmp_path / "home.sock") as site:
        with pytest.raises(ValueError, match=says):
            await site.submit(processors=1, requested_time_s=9, run_time_s=1.0, **wanted)  # type: ignore[arg-type]  # texts alone


async def test_an_unknown_job_is_not_waited_for(tmp_path: Path) -> None:
    """The message says of whom it is none; an array that is none cannot be watched."""
    async with running(document(tmp_path), tmp_path), Client(tmp_path / "home.sock") as site:
        with pytest.raises(SiteError, match="no job 'home-7' of") as caught:
            await site.submit(processors=1, requested_time_s=9, run_time_s=1.0, dependency="home-7")
        assert (caught.value.code, caught.value.field) == ("INVALID_ARGUMENT", "dependencies")
        with pytest.raises(SiteError, match="no job 'home-1'"):
            await site.wait("home-1")


def test_an_elements_program_is_that_of_its_array_and_more() -> None:
    """Its user's variables and script stay as they are."""
    program = request_pb2.Program(script="x", environment={"A": "1"}, arguments=["b"])
    payload = request_pb2.JobRequest(program=program).SerializeToString()
    spec = ArraySpec.parse("2-8:3")
    whole = request_pb2.JobRequest.FromString(payload + element_part(spec, "home-4", 5)).program
    assert (whole.script, list(whole.arguments)) == ("x", ["b"])
    assert dict(whole.environment) == {
        "A": "1",
        "HANSE_ARRAY_JOB_ID": "home-4",
        "HANSE_ARRAY_TASK_ID": "5",
        "HANSE_ARRAY_TASK_COUNT": "3",
        "HANSE_ARRAY_TASK_MIN": "2",
        "HANSE_ARRAY_TASK_MAX": "8",
        "HANSE_ARRAY_TASK_STEP": "3",
    }
