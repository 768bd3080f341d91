"""What Slurm 22.05 has printed of its machine, as recorded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.batch.slurm_machine import (
    hindrance,
    read_limit,
    read_machine,
    read_partitions,
    read_scheduler,
    read_slurm_machine,
    whole_minutes,
)
from grms.lrms.partitions import Partition, Partitions


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "SchedulerTimeSlice      = 30 sec\nSchedulerType           = sched/backfill\n",
            "backfill",
        ),
        ("SchedulerType           = sched/builtin\nScronParameters = (null)", "builtin"),
        ("slurm_load_ctl_conf error: no", ""),
    ],
)
def test_the_scheduler_is_known(text: str, kind: str) -> None:
    """Of what `scontrol show config` says."""
    assert read_scheduler(text) == kind


def test_the_machine_is_read() -> None:
    """What is down counts to its size and not to what works."""
    assert read_machine("10/4/2/16\n") == (14, 16, 4)
    with pytest.raises(ValueError, match="not allocated/idle/other/total"):
        read_machine("slurm_load_partitions: error")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1:00", 60.0), ("1-00:00:00", 86400.0), ("2:30:01", 9001.0), ("infinite", None)],
)
def test_limits_are_read(text: str, seconds: float | None) -> None:
    """As sinfo prints them."""
    assert read_limit(text) == seconds


def test_no_limit_is_caught() -> None:
    """Something else is no limit of none."""
    with pytest.raises(ValueError, match="is no time limit"):
        read_limit("n/a soon")


@given(st.floats(min_value=0.1, max_value=1e7))
def test_limits_are_rounded_up(seconds: float) -> None:
    """Never is a job given less than it asked for."""
    assert seconds <= whole_minutes(seconds) * 60 < seconds + 60.1


# --- partitions ----------------------------------------------------------------------------------

PARTS = """main*|{}|1-00:00:00|1-infinite|8|2
main*|{}|1-00:00:00|1-infinite|4|1
urgent|up|infinite|1-infinite|8|3
other|up|10:00|1|8|1
"""
MAIN = Partition("main", "UP", longest_s=86_400.0, widest=20)


@pytest.mark.parametrize(
    ("word", "takes", "starts"),
    [
        ("up", True, True),
        ("down", True, False),
        ("drain", False, True),
        ("inactive", False, False),
        ("inact", False, False),
        ("later_word", True, True),
    ],
)
def test_states_say_what_is_taken_and_what_starts(word: str, *, takes: bool, starts: bool) -> None:
    """As the controller does with them."""
    (main,) = read_partitions(PARTS.format(word, word), ()).each
    assert main == Partition("main", word.upper(), takes, starts, 86_400.0, 20)


def test_the_partitions_that_are_used_are_read() -> None:
    """By their names; without any it is the default one. The widest job has so many of the largest nodes."""
    text = PARTS.format("up", "up")
    assert read_partitions(text, ()).each == (MAIN,)
    other, urgent = read_partitions(text, ("urgent", "other")).each
    assert (other.name, other.longest_s, other.widest) == ("other", 600.0, 8)
    assert (urgent.name, urgent.longest_s, urgent.widest) == ("urgent", None, 24)
    several = "main*|up|30:00|1-2|8|3\nmain*|up|30:00|1-2|16|1\n"
    assert read_partitions(several, ()).each[0].widest == 24
    assert read_partitions("urgent|up|infinite|1-infinite|8|3\n", ()) == Partitions()


@pytest.mark.parametrize(
    ("text", "names"),
    [("main*|up|1:00\n", ()), ("main*|up|1:00|1|n/a|n/a\n", ()), (PARTS, ("none",))],
)
def test_what_is_no_partition_is_no_answer(text: str, names: tuple[str, ...]) -> None:
    """Nothing is guessed of it."""
    with pytest.raises(ValueError, match="sinfo s"):
        read_partitions(text, names)


def test_only_what_takes_and_starts_jobs_is_free() -> None:
    """Nodes that another partition shares count once; those of a partition that is shut do not."""
    parts = PARTS.format("up", "up")
    machine = read_slurm_machine(parts, "up|10/4/2/16\n", ())
    assert (machine.working, machine.everything, machine.free) == (14, 16, 4)
    assert machine.partitions.each == (MAIN,)
    machine = read_slurm_machine(parts, "down|10/4/2/16\nup|3/5/0/8\n", ())
    assert (machine.working, machine.everything, machine.free) == (8, 16, 5)
    for state in ("down", "drain", "inactive"):
        machine = read_slurm_machine(parts, f"{state}|10/4/2/16\n", ())
        assert (machine.working, machine.everything, machine.free) == (0, 16, 0)
    with pytest.raises(ValueError, match="not states"):
        read_slurm_machine(parts, "", ())


DOWN = Partition("main", "DOWN", starts=False, longest_s=600.0)
LONG = Partition("long", "UP")


@pytest.mark.parametrize(
    ("reason", "each", "wanted", "why"),
    [
        ("Resources", (DOWN,), (1, 60.0), ""),
        ("BeginTime", (DOWN,), (1, 60.0), ""),
        ("PartitionDown", (DOWN,), None, "main is DOWN (Slurm says PartitionDown)"),
        ("PartitionDown", (DOWN, LONG), (1, 60.0), ""),
        ("PartitionDown", (DOWN, LONG), None, ""),
        ("PartitionDown", (LONG,), (1, 60.0), ""),
        ("PartitionDown", (), None, ""),
        (
            "PartitionTimeLimit",
            (MAIN,),
            (1, 90_000.0),
            "the longest job in main may run 1440 min (Slurm says PartitionTimeLimit)",
        ),
        ("PartitionTimeLimit", (MAIN, LONG), (1, 90_000.0), ""),
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
        ("BadConstraints", (LONG,), (1, 60.0), "Slurm says BadConstraints"),
    ],
)
def test_what_a_job_waits_for(
    reason: str, each: tuple[Partition, ...], wanted: tuple[int, float] | None, why: str
) -> None:
    """One partition's word is believed where no other could run the job; an amount that passes is no hindrance."""
    assert hindrance(reason, Partitions(each), wanted) == why
