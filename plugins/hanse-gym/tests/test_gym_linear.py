"""The example agent: judged as any agent, the same for the same seed, and better than what it began with."""

import numpy as np
import pytest

from hanse_gym import PickOptions, Sequences
from hanse_gym.agents import objectives
from hanse_gym.bench import Result, compared, constants, judged, result
from hanse_gym.linear import LinearAgent, train
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


def test_a_weight_on_the_request_alone_is_sjf() -> None:
    sequences = part("test")
    firsts = sequences.fixed(5, seed=1)
    agent = LinearAgent(np.array([0, -1.0, 0, 0, 0, 0, 0, 0]))
    options = PickOptions(window=60)
    (sjf,) = constants(sequences, firsts, ("sjf",))
    assert objectives(agent, sequences, firsts, options) == pytest.approx(sjf.values, rel=1e-9)
    assert judged("sjf", agent, sequences, firsts, options).values == pytest.approx(sjf.values)


def test_training_finds_what_is_better_than_the_oldest_first() -> None:
    agents = [
        train(
            part("train"), part("validation"), seed=4, generations=4, per_generation=4,
            options=OPTIONS,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert agents[0].weights.tolist() == agents[1].weights.tolist()
    sequences = part("test")
    firsts = sequences.fixed(20, seed=1)
    fcfs = constants(sequences, firsts, ("fcfs",))
    learned = result("linear", objectives(agents[0], sequences, firsts, OPTIONS).tolist())
    assert compared(learned, fcfs).sentence.startswith("linear beats fcfs, the best constant: -")


def test_only_a_whole_interval_below_0_beats() -> None:
    def of(name: str, *values: float) -> Result:
        return result(name, values)

    worse, best = of("worse", 9, 9, 9, 9), of("best", 3, 4, 5, 6)
    assert compared(of("a", 2, 3, 4, 5), (worse, best)).sentence == (
        "a beats best, the best constant: -1.00 (-1.00 to -1.00)"
    )
    mixed = compared(of("b", 1, 5, 4, 7), (worse, best))
    assert mixed.difference == pytest.approx(-0.25)
    assert mixed.low < 0 < mixed.high
    assert mixed.sentence.startswith("b does not beat best, the best constant: -0.25 (")
