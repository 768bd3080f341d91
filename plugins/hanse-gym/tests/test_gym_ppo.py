"""The second example that learns: its gradient, its draws, and that it gets better."""

import numpy as np
import pytest

from hanse_gym import PickOptions, Sequences
from hanse_gym.agents import objectives
from hanse_gym.ppo import CLIP, PpoAgent, Steps, by_weights, play, probabilities, train, untrained
from lrms_sim.workload.jobs import JobTable

OPTIONS = PickOptions(window=16)


def part(split: str) -> Sequences:
    random = np.random.default_rng(3)
    run_time = np.ceil(random.lognormal(4.0, 2.0, 600))
    jobs = JobTable.from_columns(
        submit_time=np.floor(np.cumsum(random.exponential(60.0, 600))),
        processors=random.integers(1, 33, 600),
        run_time=run_time,
    )
    return Sequences(jobs, 64, 60, split)  # type: ignore[arg-type]  # one of the words


def test_probabilities_are_a_softmax_of_each_step() -> None:
    score = np.log(np.array([1.0, 3.0, 5.0, 2.0, 2.0, 1.0], np.float32))
    found = probabilities(score, np.array([0, 2, 3]))
    assert found == pytest.approx([0.25, 0.75, 1.0, 0.4, 0.4, 0.2])


@pytest.mark.parametrize("of_old", [0.95, 1 + 2 * CLIP, 1 - 2 * CLIP])
def test_the_gradient_is_that_of_the_objective(of_old: float) -> None:
    """By differences, where the ratio lies within the clip and where it lies outside, for better and worse runs."""
    random = np.random.default_rng(1)
    agent = PpoAgent(tuple(weight.astype(np.float64) for weight in untrained(random).weights))
    counts = np.array([3, 1, 5, 2])
    rows = random.uniform(size=(11, 6))
    picked = np.array([2, 0, 1, 1])
    starts = np.cumsum(counts) - counts
    chance = probabilities(agent.passed(rows).score, starts)[starts + picked] / of_old  # type: ignore[arg-type]  # doubles here
    steps = Steps(rows, counts, picked, chance, np.array([1.0, 0.5, -1.0, 2.0]))  # type: ignore[arg-type]  # same
    _, gradients = by_weights(agent, steps)
    for number, weight in enumerate(agent.weights):
        for place in ((0, 0), (weight.shape[0] - 1, weight.shape[1] - 1)):
            values = []
            for change in (-1e-5, 1e-5):
                weights = [each.copy() for each in agent.weights]
                weights[number][place] += change
                values.append(by_weights(PpoAgent(tuple(weights)), steps)[0])
            expected = (values[1] - values[0]) / 2e-5
            assert gradients[number][place] == pytest.approx(expected, rel=1e-4, abs=1e-7)


def test_runs_of_a_sequence_are_compared_with_each_other() -> None:
    steps = play(
        untrained(np.random.default_rng(2)),
        part("train"),
        np.array([0, 100]),
        3,
        options=OPTIONS,
        random=np.random.default_rng(5),
    )
    assert (steps.picked < steps.counts).all()
    assert steps.counts.max() <= OPTIONS.window
    assert len(steps.rows) == steps.counts.sum()
    assert len(np.unique(steps.advantage)) == 6
    chosen = np.array([7, 3])
    some = steps.batch(chosen)
    first = steps.counts[:7].sum()
    assert some.rows[: some.counts[0]] == pytest.approx(steps.rows[first : first + steps.counts[7]])
    assert some.picked.tolist() == steps.picked[chosen].tolist()


def test_training_makes_it_better_and_is_the_same_for_a_seed() -> None:
    agents = [
        train(part("train"), part("validation"), seed=4, updates=5, options=OPTIONS)
        for _ in range(2)
    ]
    for one, other in zip(agents[0].weights, agents[1].weights, strict=True):
        assert one.tolist() == other.tolist()
    test = part("test")
    firsts = test.fixed(20, seed=1)
    before = objectives(untrained(np.random.default_rng(4)), test, firsts, OPTIONS)
    after = objectives(agents[0], test, firsts, OPTIONS)
    assert after.mean() < before.mean()
    seen = np.zeros((16, 6), np.float32)
    seen[:3, 0] = 1
    assert 0 <= agents[0](seen) < 3


def test_a_run_needs_others_to_be_compared_with() -> None:
    with pytest.raises(ValueError, match="copies is 1"):
        train(part("train"), part("validation"), seed=0, copies=1)
