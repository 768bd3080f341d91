"""Disciplines compared in pairs."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim import Easy, Fcfs, JobTable, compare, generate, simulate
from lrms_sim.analysis import metrics
from lrms_sim.analysis.comparison import METRICS, Comparison, Difference, Replay
from lrms_sim.analysis.counted import Counted
from lrms_sim.analysis.samples import figures
from lrms_sim.scheduling.disciplines import DISCIPLINES
from lrms_sim.util.executors import Workers

JOBS = generate(32, jobs=120, load=0.9, seed=3)

HANDMADE = JobTable.from_columns(submit_time=[0, 1, 2], processors=[2, 4, 2], run_time=[10, 10, 8])
"""On four processors: under FCFS they start at 0, 10 and 20; under EASY at 0, 10 and 2."""


class Noting:
    """FCFS that notes how many jobs have ended, and gives back what it was made with."""

    name = "noting"

    def __init__(self, extra: object = None) -> None:
        self.extra = extra
        self.ended_jobs = 0

    def ended(self, _view: object, _job: object) -> None:
        """Counts it."""
        self.ended_jobs += 1

    def decide(self, view: Any) -> None:
        """Starts heads."""
        while view.head is not None and view.head.processors <= view.processors_free:
            view.start(view.head)

    def notes(self) -> dict[str, object]:
        """Returns the count."""
        return {"ended": self.ended_jobs, "extra": self.extra}


def test_a_comparison_by_hand() -> None:
    """Without shifts of arrivals: waits are 0, 9 and 18 under FCFS, 0, 9 and 0 under EASY."""
    found = compare(
        {"by hand": (HANDMADE, 4)},
        ("fcfs", "easy"),
        metrics=("mean_wait_time", "makespan", "utilization"),
        shifts=2,
        seconds=0.0,
    )
    wait, end, use = found.differences
    assert (wait.log, wait.discipline, wait.metric, wait.unit) == ("by hand", "easy", "mean-wait-time", "s")  # fmt: skip
    assert (wait.baseline, wait.mean, wait.difference) == (9.0, 3.0, -6.0)
    assert (wait.low, wait.high, wait.verdict) == (-6.0, -6.0, "better")
    assert (wait.wins, wait.ties, wait.losses) == (2, 0, 0)
    assert wait.change.mean == pytest.approx(-2 / 3)
    assert (end.baseline, end.mean) == (28.0, 20.0)
    # 76 processor-seconds of 28 · 4, and of 20 · 4.
    assert use.difference == pytest.approx(76 / 80 - 76 / 112)
    assert (use.verdict, use.wins) == ("better", 2)


def test_rounding_is_no_difference() -> None:
    """0.1 + 0.2 is no worse than 0.3, however often it comes; a billionth is a difference."""
    values = {"a": [0.3, 0.3], "b": [0.1 + 0.2, 0.1 + 0.2], "c": [0.3 + 3e-10, 0.3 + 3e-10]}
    found = Comparison(
        baseline="a",
        disciplines=("a", "b", "c"),
        metrics=("awrt",),
        shifts=2,
        seconds=60.0,
        seed=0,
        warm_up_days=0.0,
        cool_down_days=0.0,
        sizes={"log": (3, 3, 4)},
        replays=tuple(
            Replay("log", name, shift + 1, {"awrt": values[name][shift]})
            for shift in range(2)
            for name in values
        ),
    )
    same, more = found.differences
    assert values["a"] != values["b"]
    assert (same.difference, same.verdict) == (0.0, "equal")
    assert (same.wins, same.ties, same.losses) == (0, 2, 0)
    assert (more.verdict, more.losses) == ("worse", 2)


def test_an_interval_by_hand() -> None:
    """Differences of 1, 2 and 6: mean 3, standard deviation √7, and t is 4.3027 with two degrees of freedom."""
    values = {"a": [10.0, 20.0, 30.0], "b": [11.0, 22.0, 36.0]}
    found = Comparison(
        baseline="a",
        disciplines=("a", "b"),
        metrics=("awrt",),
        shifts=3,
        seconds=60.0,
        seed=0,
        warm_up_days=0.0,
        cool_down_days=0.0,
        sizes={"log": (3, 3, 4)},
        replays=tuple(
            Replay("log", name, shift + 1, {"awrt": values[name][shift]})
            for shift in range(3)
            for name in values
        ),
    )
    (one,) = found.differences
    half = 4.302652729911275 * math.sqrt(7.0 / 3.0)
    assert (one.baseline, one.mean, one.difference) == (20.0, 23.0, 3.0)
    assert (one.low, one.high) == pytest.approx((3.0 - half, 3.0 + half))
    assert (one.wins, one.ties, one.losses, one.verdict) == (0, 0, 3, "open")
    assert one.change == pytest.approx((0.15, (3.0 - half) / 20, (3.0 + half) / 20))


def test_means_are_those_of_repetitions() -> None:
    """`lrms-sim run --repeat` and the comparison have the same shifts with the same seed."""
    found = compare({"log": (JOBS, 32)}, ("fcfs", "easy"), shifts=4, seconds=300.0, seed=7)
    for name, discipline in (("fcfs", Fcfs()), ("easy", Easy())):
        again = figures(JOBS, 32, discipline, repeat=4, seconds=300.0, seed=7)
        for metric, other in (("awrt", "awrt_s"), ("utilization", "utilization")):
            mine = [replay.figures[metric] for replay in found.replays if replay.discipline == name]
            assert sum(mine) / 4 == pytest.approx(again[other].mean, rel=1e-14)


def test_figures_do_not_depend_on_workers() -> None:
    """Threads, processes and their number; a discipline in Python is sent to other processes."""
    some: dict[str, Any] = {"easy": "easy", "noting": Noting()}
    found = [
        compare({"log": (JOBS, 32)}, some, shifts=3, workers=workers)
        for workers in (Workers(count=1), Workers(count=3), Workers("processes", 2))
    ]
    assert found[0] == found[1] == found[2]
    assert {str(each.notes) for each in found[2].replays} == {"None", "{'ended': 120, 'extra': None}"}  # fmt: skip


def test_a_second_comparison_goes_on(tmp_path: Path) -> None:
    """What is kept is not replayed again; more shifts, other metrics or another baseline need only what is new."""
    runs = tmp_path / "runs.jsonl"
    log = {"log": (JOBS, 32)}

    def done(*names: Any, **more: Any) -> tuple[int, Any]:
        before = len(runs.read_text().splitlines()) if runs.exists() else 0
        found = compare(log, names, runs=runs, **more)
        return len(runs.read_text().splitlines()) - before, found

    assert done("fcfs", "easy", shifts=2)[0] == 4
    assert done("easy", "fcfs", shifts=3, metrics=("makespan",))[0] == 2
    count, kept = done("fcfs", "easy", shifts=3)
    assert (count, kept) == (0, compare(log, ("fcfs", "easy"), shifts=3))
    # What changes a replay is another replay.
    assert done("fcfs", "easy", shifts=1, seed=1)[0] == 2
    assert done("fcfs", "easy", shifts=1, seconds=61.0)[0] == 2
    assert done("fcfs", "easy", shifts=1, warm_up_days=0.1)[0] == 2
    assert done("fcfs", Noting(1), shifts=1)[0] == 1
    assert done("fcfs", Noting(1), shifts=1)[0] == 0
    assert done("fcfs", Noting(2), shifts=1)[0] == 1
    log = {"log": (JOBS[:50], 32)}
    assert done("fcfs", "easy", shifts=1)[0] == 2


def test_what_cannot_be_recognized_is_not_kept(tmp_path: Path) -> None:
    """A function within a function has no name that another process could find."""

    def mine(view: Any) -> None:
        Noting().decide(view)

    runs = tmp_path / "runs.jsonl"
    for _ in range(2):
        compare({"log": (JOBS, 32)}, ("fcfs", mine), shifts=1, runs=runs)
    assert len(runs.read_text().splitlines()) == 1


def test_an_interrupted_comparison_keeps_what_is_done(tmp_path: Path) -> None:
    """Ctrl-C in the middle: the next one has the rest to do."""
    runs = tmp_path / "runs.jsonl"

    def stop(done: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    log = {"log": (JOBS, 32)}
    with pytest.raises(KeyboardInterrupt):
        compare(log, ("fcfs", "easy"), runs=runs, workers=Workers(count=1), progress=stop)
    assert len(runs.read_text().splitlines()) == 3
    seen: list[int] = []
    found = compare(log, ("fcfs", "easy"), runs=runs, workers=Workers(count=1), progress=seen.append)  # fmt: skip
    assert seen == list(range(4, 21))
    assert found == compare(log, ("fcfs", "easy"))


def test_warm_up_and_cool_down() -> None:
    """Jobs of the first and the last days run but do not count; what the machine does between them does."""
    day = 86400.0
    jobs = JobTable.from_columns(
        submit_time=[0.0, 1.5 * day, 3.0 * day], processors=[1, 2, 2], run_time=[day, day, 2 * day]
    )
    schedule = simulate(jobs, 2, Fcfs())
    counted = Counted(day, 2 * day)
    # Half of that day two processors are held.
    assert counted.utilization(schedule) == pytest.approx(0.5)
    chosen = counted.of(jobs)
    assert chosen is not None
    assert chosen.tolist() == [False, True, False]
    found = compare(
        {"log": (jobs, 2)},
        ("fcfs", "easy"),
        shifts=1,
        seconds=0.0,
        warm_up_days=1.0,
        cool_down_days=1.0,
        metrics=("mean-response-time", "makespan"),
    )
    assert found.sizes == {"log": (3, 1, 2)}
    assert [each.baseline for each in found.differences] == [day, 5 * day]
    assert Counted().of(jobs) is None
    assert Counted().utilization(schedule) == metrics.utilization(schedule)


def test_one_shift_has_no_interval() -> None:
    """The difference is there; what is said of it is open."""
    (one,) = compare({"log": (JOBS, 32)}, ("fcfs", "easy"), shifts=1, metrics=("awrt",)).differences
    assert math.isfinite(one.difference)
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert one.verdict == "open"
    assert one.wins + one.ties + one.losses == 1


def test_a_figure_without_a_meaning() -> None:
    """Fairness among users that nobody knows is no number, and no error."""
    found = compare({"log": (HANDMADE, 4)}, ("fcfs", "easy"), shifts=2, metrics=("user-fairness",))
    (one,) = found.differences
    assert math.isnan(one.difference)
    assert (one.verdict, one.wins, one.ties, one.losses) == ("open", 0, 0, 0)
    assert math.isnan(one.change.mean)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"disciplines": ("easy", "esay")}, r"unknown discipline 'esay'; there are: fcfs"),
        ({"disciplines": ("easy",)}, "1 discipline; at least two are needed"),
        ({"disciplines": ("easy", "easy")}, "the discipline 'easy' comes twice"),
        (
            {"baseline": "sjf"},
            "baseline: 'sjf' is no discipline compared here; there are: fcfs, easy",
        ),
        ({"metrics": ("mean-wait",)}, "'mean-wait' is no metric, did you mean"),
        ({"metrics": ()}, "no metric; there are: awrt"),
        ({"shifts": 0}, "0 shifts; from 1 to 10000"),
        ({"shifts": 10_001}, "10001 shifts"),
        ({"seconds": -1.0}, "the shift of arrivals is -1"),
        ({"warm_up_days": -1.0}, "warm-up is -1.0 days; it must be 0 or more"),
        ({"cool_down_days": math.nan}, "cool-down is nan days"),
        ({"warm_up_days": 1e6}, "no job of the log 'log' counts: it is .* days long, of which 1e"),
        ({"logs": {}}, "no log; at least one"),
        ({"logs": {"none": (JobTable.empty(), 4)}}, "the log 'none' has no job"),
        ({"logs": {"small": (HANDMADE, 3)}}, "job 2 needs 4 processors; machine 'small' has 3"),
    ],
)
def test_what_cannot_be_compared(change: dict[str, Any], said: str) -> None:
    """The error names what is wrong, before anything is replayed where that is possible."""
    given: dict[str, Any] = {"logs": {"log": (JOBS, 32)}, "disciplines": ("fcfs", "easy")} | change
    with pytest.raises(ValueError, match=said):
        compare(given.pop("logs"), given.pop("disciplines"), **given)


def test_notes_are_plain_values(tmp_path: Path) -> None:
    """As kept notes are JSON, new ones are too: tuples are lists, and what JSON lacks is an error."""
    log = {"log": (HANDMADE, 4)}
    for _ in range(2):
        found = compare(log, ("fcfs", Noting((1, 2))), shifts=1, runs=tmp_path / "runs.jsonl")
        assert found.replays[1].notes == {"ended": 3, "extra": [1, 2]}
    with pytest.raises(ValueError, match="the notes of discipline 'noting' cannot be kept"):
        compare(log, ("fcfs", Noting({1})), shifts=1)


def test_a_file_of_runs_that_cannot_be_used(tmp_path: Path) -> None:
    """It is named."""
    with pytest.raises(ValueError, match="cannot be read"):
        compare({"log": (JOBS, 32)}, ("fcfs", "easy"), runs=tmp_path)


def test_frames() -> None:
    """Those of pandas and polars have the differences with all digits."""
    found = compare({"log": (JOBS, 32)}, ("fcfs", "easy", "sjf"), shifts=2)
    pandas, polars = found.to_pandas(), found.to_polars()
    assert len(pandas) == len(polars) == len(found.differences) == 8
    assert pandas["difference"].tolist() == polars["difference"].to_list()
    assert pandas["verdict"].tolist() == [each.verdict for each in found.differences]
    assert set(found.replay_columns()) == {"log", "discipline", "shift", *found.metrics}
    assert len(found.replay_columns()["awrt"]) == 6


@given(st.sampled_from(sorted(DISCIPLINES)), st.integers(0, 2**32), st.floats(0, 600))
def test_a_discipline_does_not_differ_from_itself(name: str, seed: int, seconds: float) -> None:
    """By no metric, with any shift."""
    pair: dict[str, Any] = {"one": name, "other": name}
    found = compare({"log": (JOBS[:40], 32)}, pair, metrics=tuple(METRICS), shifts=2, seconds=seconds, seed=seed)  # fmt: skip
    for each in found.differences:
        assert (each.difference, each.wins, each.losses) == (0.0, 0, 0)
        assert each.verdict == "equal"


def test_differences_are_turned_round_with_the_baseline() -> None:
    """What one wins the other loses, by as much."""
    there, back = (
        compare({"log": (JOBS, 32)}, ("fcfs", "easy"), baseline=name, shifts=4).differences
        for name in ("fcfs", "easy")
    )
    turned: dict[str, Difference] = {each.metric: each for each in back}
    for each in there:
        other = turned[each.metric]
        assert each.difference == -other.difference
        assert (each.low, each.high) == pytest.approx((-other.high, -other.low))
        assert (each.wins, each.ties, each.losses) == (other.losses, other.ties, other.wins)


def test_every_metric_is_measured() -> None:
    """Those with a function of the same name are what it says."""
    found = compare({"log": (JOBS, 32)}, ("fcfs", "easy"), shifts=1, seconds=0.0)
    schedule = simulate(JOBS, 32, Fcfs())
    for name in METRICS:
        if name != "user-fairness":
            said = getattr(metrics, name.replace("-", "_"))(schedule)
            assert found.replays[0].figures[name] == said
    assert 0 < found.replays[0].figures["user-fairness"] <= 1
    assert json.loads(json.dumps(dict(found.replays[0].figures))) == found.replays[0].figures
