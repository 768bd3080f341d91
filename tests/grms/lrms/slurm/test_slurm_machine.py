"""Slurm's words for limits, lists of nodes, and why a job waits, as 22.05 prints them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.partitions import Partition, Partitions
from grms.lrms.slurm.slurm_limits import read_limit, whole_minutes
from grms.lrms.slurm.slurm_machine import hindrance, node_names
from lrms_sim.workload.requests import Request


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1:00", 60.0), ("1-00:00:00", 86400.0), ("2:30:01", 9001.0), ("infinite", None)],
)
def test_limits_are_read(text: str, seconds: float | None) -> None:
    """As Slurm prints them."""
    assert read_limit(text) == seconds


def test_no_limit_is_caught() -> None:
    """Something else is no limit of none."""
    with pytest.raises(ValueError, match="is no time limit"):
        read_limit("n/a soon")


@given(st.floats(min_value=0.1, max_value=1e7))
def test_limits_are_rounded_up(seconds: float) -> None:
    """Never is a job given less than it asked for."""
    assert seconds <= whole_minutes(seconds) * 60 < seconds + 60.1


# --- nodes ---------------------------------------------------------------------------------------


def test_lists_of_nodes_are_read() -> None:
    """With leading zeros, and with brackets in several places."""
    assert node_names("n1") == ("n1",)
    assert node_names("n[1-3,7],m") == ("n1", "n2", "n3", "n7", "m")
    assert node_names("r[1-2]n[08-10]x") == tuple(
        f"r{rack}n{number}x" for rack in (1, 2) for number in ("08", "09", "10")
    )
    for text in ("n[a-b]", "n[1-9999999]", "n[1-2000]m[1-2000]", "n[]"):
        with pytest.raises(ValueError, match="nodes"):
            node_names(text)


# --- what a job waits for ------------------------------------------------------------------------

MAIN = Partition("main", "UP", longest_s=86_400.0, widest=20)
DOWN = Partition("main", "DOWN", starts=False, longest_s=600.0)
LONG = Partition("long", "UP")


@pytest.mark.parametrize(
    ("reason", "each", "request_", "why"),
    [
        ("Resources", (DOWN,), Request(1, wall_time=60.0), ""),
        ("Licenses", (DOWN,), Request(1, wall_time=60.0), ""),
        (
            "BeginTime",
            (DOWN,),
            Request(1, wall_time=60.0),
            "its start was put off in the batch system (Slurm says BeginTime)",
        ),
        (
            "Dependency",
            (MAIN,),
            None,
            "it was told in the batch system to wait for another job (Slurm says Dependency)",
        ),
        ("PartitionDown", (DOWN,), None, "main is DOWN (Slurm says PartitionDown)"),
        ("PartitionDown", (DOWN, LONG), Request(1, wall_time=60.0), ""),
        ("PartitionDown", (DOWN, LONG), None, ""),
        ("PartitionDown", (LONG,), Request(1, wall_time=60.0), ""),
        ("PartitionDown", (), None, ""),
        (
            "PartitionTimeLimit",
            (MAIN,),
            Request(1, wall_time=90_000.0),
            "the longest job in main may run 1440 min (Slurm says PartitionTimeLimit)",
        ),
        ("PartitionTimeLimit", (MAIN, LONG), Request(1, wall_time=90_000.0), ""),
        ("PartitionTimeLimit", (MAIN, LONG), None, ""),
        (
            "PartitionTimeLimit",
            (MAIN,),
            None,
            "main runs no such job (Slurm says PartitionTimeLimit)",
        ),
        (
            "(QOSMaxWallDurationPerJobLimit)",
            (MAIN,),
            None,
            "Slurm says QOSMaxWallDurationPerJobLimit",
        ),
        ("AssocMaxCpuPerJobLimit", (MAIN,), None, "Slurm says AssocMaxCpuPerJobLimit"),
        ("QOSMaxJobsPerUserLimit", (MAIN,), None, ""),
        ("BadConstraints", (LONG,), Request(1, wall_time=60.0), "Slurm says BadConstraints"),
        (
            "launch failed requeued held",
            (MAIN, LONG),
            Request(1, wall_time=60.0),
            "its node could not be prepared for it, and it is held (Slurm says launch failed requeued held)",
        ),
    ],
)
def test_what_a_job_waits_for(
    reason: str, each: tuple[Partition, ...], request_: Request | None, why: str
) -> None:
    """One partition's word is believed where no other could run the job; an amount that passes is no hindrance."""
    assert hindrance(reason, Partitions(each), request_) == why


def test_who_a_partition_does_not_take_is_told_in_slurms_words() -> None:
    """As recorded; of several partitions another may run the job."""
    main, gpu = Partition("main", "UP"), Partition("gpu", "UP")
    for reason in (
        "Job's account not known, so it can't use this partition (main allows bio)",
        "Job's account not permitted to use this partition (main allows bio not chem)",
        "Job's QOS not permitted to use this partition (main denies low including low)",
    ):
        assert hindrance(reason, Partitions((main,)), None) == f"Slurm says: {reason}"
        assert hindrance(reason, Partitions((main, gpu)), None) == ""
