"""Which guests are ended for jobs that wait, with any jobs and nodes."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.batch.guests_to_end import PATIENCE_S, RunningGuest, WaitingJob, to_end

NODES = ("n1", "n2", "n3")
ALL = frozenset(NODES)


def waits(processors: int, *, nodes: int = 1, since: float = 0.0, **more: object) -> WaitingJob:
    """Returns a job that waits for room anywhere."""
    values: dict[str, object] = {"limit_s": 100.0, "start_time": None, "places": ALL} | more
    return WaitingJob(f"job {processors}", processors, nodes, since=since, **values)  # type: ignore[arg-type]  # of the job


def guest(key: str, processors: int, start: float, *nodes: str) -> RunningGuest:
    """Returns a guest that runs."""
    return RunningGuest(key, processors, start, nodes or ("n1",))


def ended(
    jobs: Sequence[WaitingJob],
    free: dict[str, int],
    guests: Sequence[RunningGuest],
    now: float = 0.0,
) -> list[str]:
    """Returns the guests that are ended, by name."""
    return sorted(each.key for each in to_end(jobs, free, guests, now))


def test_as_many_as_are_needed() -> None:
    """The youngest, and none that is not needed beside an older one."""
    guests = [guest("a", 1, 1.0), guest("b", 1, 2.0), guest("c", 4, 0.0)]
    assert ended([waits(1)], {"n1": 1}, guests) == []
    assert ended([waits(1)], {}, guests) == ["b"]
    assert ended([waits(2)], {"n2": 1}, guests) == ["b"]
    assert ended([waits(2)], {}, guests) == ["a", "b"]
    assert ended([waits(4)], {}, guests) == ["c"]
    assert ended([waits(1), waits(1)], {}, guests) == ["a", "b"]
    assert ended([waits(7)], {}, guests) == []
    assert ended([waits(1, places=frozenset({"n2"}))], {}, guests) == []


def test_jobs_behind_one_that_cannot_start() -> None:
    """They have guests ended if they do not delay it, which is known by its planned start alone."""
    guests = [guest("a", 1, 1.0)]
    blocked = waits(9, start_time=1000.0)
    assert ended([blocked, waits(1)], {}, guests) == ["a"]
    assert ended([blocked, waits(1, limit_s=1001.0)], {}, guests) == []
    assert ended([blocked, waits(1, limit_s=None)], {}, guests) == []
    assert ended([waits(9), waits(1)], {}, guests) == []


def test_a_job_that_needs_its_processors_together() -> None:
    """It waits although there seem to be enough: after a while a node is cleared for it, the one with the least on it."""
    guests = [guest("a", 2, 1.0, "n1"), guest("b", 1, 2.0, "n2"), guest("c", 1, 0.0, "n3")]
    free = {"n1": 2, "n2": 3, "n3": 3}
    assert ended([waits(4)], free, guests, PATIENCE_S - 1) == []
    assert ended([waits(4)], free, guests, PATIENCE_S) == ["b"]
    assert ended([waits(8, nodes=2)], free, guests, PATIENCE_S) == ["b", "c"]
    assert ended([waits(4)], {"n1": 4, "n2": 0}, guests, PATIENCE_S) == []
    assert ended([waits(5)], free, guests, PATIENCE_S) == []


def test_a_guest_on_several_nodes() -> None:
    """Its processors count where it has them."""
    wide = [guest("w", 6, 1.0, *NODES)]
    assert ended([waits(2, places=frozenset({"n1"}))], {}, wide) == ["w"]
    assert ended([waits(3, places=frozenset({"n1"}))], {}, wide) == []


@given(
    st.lists(st.integers(1, 8), max_size=5),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 9), st.sampled_from(NODES)), max_size=6),
    st.dictionaries(st.sampled_from(NODES), st.integers(0, 6)),
    st.sampled_from([0.0, PATIENCE_S]),
)
def test_no_guest_is_ended_in_vain(
    jobs: list[int], running: list[tuple[int, int, str]], free: dict[str, int], now: float
) -> None:
    """Each once; of those for the first job no one could have stayed; and none where all fit, or none does."""
    guests = [guest(str(n), size, start, node) for n, (size, start, node) in enumerate(running)]
    waiting = [waits(size) for size in jobs]
    found = to_end(waiting, free, guests, now)
    assert len({each.key for each in found}) == len(found)
    room, theirs = sum(free.values()), sum(each.processors for each in guests)
    if now == 0.0 and jobs:
        first = to_end(waiting[:1], free, guests, now)
        got = sum(each.processors for each in first)
        if room >= jobs[0] or room + theirs < jobs[0]:
            assert first == []
        else:
            assert room + got >= jobs[0]
            assert all(room + got - each.processors < jobs[0] for each in first)
    if now == 0.0 and room >= sum(jobs):
        assert found == []
