"""What Slurm 22.05 has printed of its machine, as recorded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.batch.slurm_machine import read_limit, read_machine, read_scheduler, whole_minutes


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
