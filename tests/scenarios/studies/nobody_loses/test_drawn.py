"""Federations by chance: their names say what they are, and the seed says which they are."""

import pytest

from scenarios.studies.nobody_loses.drawn import (
    DAYS,
    HALF_YEAR,
    SITES,
    drawn_federation,
    drawn_jobs,
    is_drawn,
    log_of,
    processors_of,
)


def test_the_seed_says_which_federations_these_are() -> None:
    """Each has sites that differ, a discipline for each, and windows within their logs."""
    drawn = [drawn_federation(7, number) for number in range(60)]
    assert drawn == [drawn_federation(7, number) for number in range(60)]
    assert drawn != [drawn_federation(8, number) for number in range(60)]
    assert {len(sites) for sites, _ in drawn} == set(range(SITES[0], SITES[1] + 1))
    for sites, queues in drawn:
        assert len(set(sites)) == len(sites) == len(queues.split(","))
        assert set(queues.split(",")) <= {"fcfs", "easy"}
        for name in sites:
            assert is_drawn(name)
            assert processors_of(name) >= 32
            if log := log_of(name):
                first = int(name.partition("@")[2].partition("+")[0])
                assert first + HALF_YEAR <= DAYS[log]
    names = [name for sites, _ in drawn for name in sites]
    assert any(log_of(name) for name in names)
    assert any(not log_of(name) for name in names)


@pytest.mark.parametrize(
    ("name", "log", "processors"),
    [("kth-6", "kth", 100), ("ctc@5+165", "ctc", 430), ("lublin64x80s7+165", "", 64)],
)
def test_a_name_says_log_and_size(name: str, log: str, processors: int) -> None:
    """Of a synthetic workload there is no log."""
    assert (log_of(name), processors_of(name)) == (log, processors)


def test_a_synthetic_workload_has_the_load_and_length_of_its_name() -> None:
    """The same name, the same jobs."""
    jobs = drawn_jobs("lublin64x80s7+30", None)
    again = drawn_jobs("lublin64x80s7+30", None)
    assert jobs.submit_time.tolist() == again.submit_time.tolist()
    work = float((jobs.run_time * jobs.processors).sum())
    assert work / (64 * float(jobs.submit_time[-1])) == pytest.approx(0.8, rel=0.05)
    assert float(jobs.submit_time[-1]) / 86400 == pytest.approx(30, rel=0.1)
