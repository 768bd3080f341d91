"""The benchmark of deviating run times: its loads, its constant, its world, and what it says of them."""

import json
from pathlib import Path

import pytest

from benchmarks import deviation
from benchmarks.deviation_dispatch import Greedy, World
from benchmarks.deviation_loads import GENERATORS, NOISES, WORK, Load, Noise, draw
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow


@pytest.mark.parametrize("generator", GENERATORS)
def test_every_generator_draws_the_same_work(generator: str) -> None:
    """One seed is one load, another seed another one, and load 1.5 is half as much work again."""
    load = draw(generator, 1.0, 1)
    assert load == draw(generator, 1.0, 1)
    assert load != draw(generator, 1.0, 2)
    for factor in (1.0, 1.5):
        arrivals = draw(generator, factor, 1).arrivals
        work = sum(task.work for _, workflow in arrivals for task in workflow.tasks)
        assert work == pytest.approx(factor * WORK)
        assert [come for come, _ in arrivals] == sorted(come for come, _ in arrivals)


def test_the_greedy_dispatcher_is_worked_out_by_hand() -> None:
    """The fast resource goes to the first, the slow one to the second; the due date decides a turn."""
    anywhere = (Alternative.of("slow"), Alternative.of("fast"))
    load = Load(
        (Resource("slow", performance=1.0), Resource("fast", performance=2.0)),
        (
            (0.0, Workflow("a", (Task("x", 60.0, anywhere),), due_date=30.0)),
            (1.0, Workflow("b", (Task("x", 60.0, anywhere),), due_date=60.0)),
            (2.0, Workflow("c", (Task("x", 60.0, anywhere),), due_date=99.0)),
            (3.0, Workflow("d", (Task("x", 60.0, anywhere),), due_date=60.0)),
        ),
    )
    exact = NOISES[0]
    # a: 0 to 30 fast; b: 1 to 61 slow; then c, d: 30 to 60 fast and 60 to 90 fast, or d before c.
    fifo = Greedy(load, exact, 1, "greedy fifo").run()
    assert (fifo.on_time, fifo.mean_flow_s) == (0.5, (30 + 60 + 58 + 87) / 4)
    edf = Greedy(load, exact, 1, "greedy edf").run()
    assert (edf.on_time, edf.mean_flow_s) == (0.75, (30 + 60 + 57 + 88) / 4)


def test_a_failed_run_is_run_again_by_both() -> None:
    """With runs that fail every other time everything is completed, later."""
    load = draw("steady", 1.0, 1, share=30)
    often = Noise("often", 1.0, 1.0, failing=0.5)
    for better, worse in (
        (Greedy(load, NOISES[0], 1, "greedy fifo"), Greedy(load, often, 1, "greedy fifo")),
        (World(load, NOISES[0], 1), World(load, often, 1)),
    ):
        one, other = better.run(), worse.run()
        assert (one.open, other.open) == (0, 0)
        assert one.mean_flow_s < other.mean_flow_s


def test_a_run_is_not_cut_off_for_a_long_row_behind_it() -> None:
    """Sites move one reservation after another; what cannot be moved in time is booked anew."""

    class Longest(Noise):
        """The first task takes three times its estimate."""

        def luck(self, seed: int, task: str, run: int) -> tuple[float, bool]:
            """Returns its share."""
            share, failed = Noise.luck(self, seed, task, run)
            return (3.0 if task.endswith("/t0") else share), failed

    tasks = tuple(Task(f"t{n}", 2.0, (Alternative.of("one"),)) for n in range(40))
    load = Load((Resource("one"),), ((0.0, Workflow("row", tasks)),))
    found = World(load, Longest("longest", 1.0, 1.0), 1, extension_max=10.0).run()
    assert (found.open, found.cut) == (0, 0)


def test_the_small_load_runs_and_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It writes no figures; of one seed nothing can be said."""
    figures, page = tmp_path / "f.json", tmp_path / "p.html"
    words = ["--dry", "--generator", "steady", "--output", str(figures), "--page", str(page)]
    assert deviation.main([*words, "--load", "1"]) == 0
    told = capsys.readouterr().out
    assert "steady, load 1, exact, seed 1: broker: on time 100.0 %" in told
    assert "6 are open" in told
    assert not figures.exists()
    assert "steady, load 1: on time, percent" in page.read_text(encoding="utf-8")


def test_what_is_known_is_not_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of figures that has all is only judged; a broker that is late fails it."""
    setting = deviation.Setting("steady", 1.0, "exact")
    good = {"on_time": 1.0, "in_budget": 1.0, "mean_flow_s": 100.0}
    late = {"on_time": 0.5, "in_budget": 1.0, "mean_flow_s": 131.0}
    runs = {
        deviation.Run(setting, seed, who).key: late if who == deviation.BROKER else good
        for seed in (1, 2)
        for who in deviation.WHO
    }
    figures = tmp_path / "f.json"
    figures.write_text(json.dumps({"machine": {}, "made": deviation.MADE, "runs": runs}))
    words = ["--generator", "steady", "--load", "1", "--noise", "exact", "--seeds", "2"]
    assert deviation.main([*words, "--output", str(figures)]) == 1
    told = capsys.readouterr().out
    assert "0 of 3 statements hold, 3 do not" in told
    assert "processor time" not in told
