"""A sitting of a training run: folder, limits, workers, going on."""

import io
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from grms.learning.checkpoint import CheckpointError
from grms.learning.evolution.evaluation import Evaluation
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.strategies import EvolutionStrategy, StrategySettings
from grms.learning.evolution.termination import GenerationRecord
from grms.learning.limits import GENERATIONS, Limits
from grms.learning.session import Session, check_folder, command_to_resume
from lrms_sim.util.executors import ProcessExecutor, ThreadExecutor
from lrms_sim.util.workers import Workers
from tests.training_grids import rule_space, same_genome, sphere


def test_the_papers_150_generations_are_the_default() -> None:
    """Unless any other limit is set."""
    assert Limits().generations_max == GENERATIONS == 150
    assert Limits(generations=7).generations_max == 7
    for limit in ({"evaluations": 1}, {"seconds": 1}, {"stagnation": 1}, {"target": 0.0}):
        assert Limits(**limit).generations_max is None


def test_the_first_limit_that_is_reached_counts() -> None:
    """All of them are in force; a target that is reached is the reason that matters."""
    history = [GenerationRecord(3, 100, 5.0, 6.0, 1.0, 10.0)]
    assert Limits(3, 100, 10.0, 1, 5.0).termination().reason(history) == "the target 5 is reached"
    reason = Limits(3, 100, 10.0, 1).termination().reason(history)
    assert reason == "generation 3 of 3 is done"
    assert Limits(4, 101, 10.5, 1, 4.9).termination().reason(history) is None


def test_the_command_to_go_on() -> None:
    """What was typed, and --resume once."""
    assert command_to_resume(["train", "x"]) == ["train", "x", "--resume"]
    assert command_to_resume(["train", "x", "--resume"]) == ["train", "x", "--resume"]


def test_every_kind_of_worker_has_its_word() -> None:
    """The right executor for each; a cluster has a test of its own."""
    with Workers("processes", 1).started() as executor:
        assert isinstance(executor, ProcessExecutor)
    with Workers(count=1).started() as executor:
        assert isinstance(executor, ThreadExecutor)
    with pytest.raises(ValueError, match="0 workers"):
        Workers(count=0)


class _Judge:
    """Values a genome by its distance from 3, and notes the bounds it is given."""

    def __init__(self) -> None:
        self.bounds: list[float] = []

    def __call__(self, genome: Genome, bound: float) -> Evaluation:
        self.bounds.append(bound)
        return sphere(genome)


def session(folder: Path, generations: int, *, resume: bool = False) -> Session:
    return Session(folder, {"x": 1}, Limits(generations), Workers(count=1), resume)


def new() -> EvolutionStrategy:
    return EvolutionStrategy(rule_space(1), StrategySettings(parents=2, offspring=4), generator(1))


def test_a_session_trains_whatever_judges(tmp_path: Path) -> None:
    """Any strategy with any fitness; the folder is made, and the run can go on from there."""
    console = Console(file=io.StringIO())
    folder = tmp_path / "new" / "folder"
    whole = session(tmp_path / "whole", 6).run(new(), _Judge(), console)
    first = session(folder, 3).run(new(), _Judge(), console)
    assert first.reason == "generation 3 of 3 is done"
    again = session(folder, 6, resume=True).run(new(), _Judge(), console)
    assert same_genome(again.best.genome, whole.best.genome)
    assert [one.best for one in again.history] == [one.best for one in whole.history]


def test_a_generation_is_judged_with_the_bound_it_was_asked_with(tmp_path: Path) -> None:
    """Infinite for founders, then the worst parent's value, the same for the whole generation."""
    judge = _Judge()
    result = session(tmp_path, 2).run(new(), judge, Console(file=io.StringIO()))
    assert judge.bounds[:2] == [math.inf] * 2
    assert len(set(judge.bounds[2:6])) == len(set(judge.bounds[6:])) == 1
    assert math.inf > judge.bounds[2] >= judge.bounds[6] >= result.best.evaluation.value


@pytest.mark.parametrize(
    ("make", "resume", "complaint"),
    [
        (lambda folder: folder.write_text("x"), False, "is a file"),
        (Path.mkdir, True, "nothing to resume"),
        (Path.exists, True, "nothing to resume"),
    ],
)
def test_folders_in_which_nothing_can_begin(
    tmp_path: Path, make: Callable[[Path], object], complaint: str, *, resume: bool
) -> None:
    """A file in the way, or nothing to go on from."""
    folder = tmp_path / "run"
    make(folder)
    with pytest.raises(CheckpointError, match=complaint):
        check_folder(folder, resume=resume)
