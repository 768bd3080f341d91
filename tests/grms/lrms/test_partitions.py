import pytest

from grms.lrms.partitions import NO_PARTITIONS, Partition, Partitions

MAIN = Partition("main", "UP", longest_s=600.0, widest=8)
LONG = Partition("long", "UP", widest=4)


@pytest.mark.parametrize(
    ("each", "job", "reason"),
    [
        ((MAIN,), (8, 600.0), ""),
        ((MAIN,), (8, 600.1), "the longest job in main may run 10 min"),
        ((MAIN,), (9, 600.0), "the widest job in main may have 8 processors"),
        ((MAIN, LONG), (4, 86_400.0), ""),
        ((MAIN, LONG), (8, 60.0), ""),
        (
            (MAIN, LONG),
            (5, 601.0),
            "the longest job in main may run 10 min; the widest job in long may have 4 processors",
        ),
        ((), (10_000, 1e9), ""),
    ],
)
def test_what_no_part_ever_runs(
    each: tuple[Partition, ...], job: tuple[int, float], reason: str
) -> None:
    """A job is taken where any part runs such ones; else each says why not."""
    assert Partitions(each).never(*job) == reason
    assert Partitions(each).why_not(*job) == reason
    assert Partitions(each).shut(*job) == ""


@pytest.mark.parametrize(
    ("states", "shut", "why_not", "still"),
    [
        ([(True, True), (False, False)], "", "", ""),
        ([(True, False), (False, True)], "", "p0 is S0, p1 is S1", ""),
        ([(False, True)], "p0 is S0", "p0 is S0", ""),
        ([(True, False)], "", "p0 is S0", "p0 is S0"),
        ([(False, False), (True, False)], "", "p0 is S0, p1 is S1", "p0 is S0, p1 is S1"),
        ([], "", "", ""),
    ],
)
def test_what_is_shut_now(
    states: list[tuple[bool, bool]], shut: str, why_not: str, still: str
) -> None:
    """One part must both take a job and start it; what waits starts where any part starts something."""
    parts = Partitions(
        tuple(
            Partition(f"p{number}", f"S{number}", takes=takes, starts=starts)
            for number, (takes, starts) in enumerate(states)
        )
    )
    assert (parts.shut(1, 60.0), parts.why_not(1, 60.0), parts.still) == (shut, why_not, still)


def test_only_parts_that_run_such_jobs_count() -> None:
    """A long job is not taken because the partition for short ones is open."""
    closed = Partition("long", "DRAIN", takes=False)
    parts = Partitions((MAIN, closed))
    assert parts.shut(1, 3600.0) == parts.why_not(1, 3600.0) == "long is DRAIN"
    assert parts.why_not(1, 60.0) == ""
    assert NO_PARTITIONS.why_not(1, 60.0) == ""
