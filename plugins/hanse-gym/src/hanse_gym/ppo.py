"""An example that learns by PPO: a small network scores each waiting job, and picks are drawn by their scores.

J. Schulman, F. Wolski, P. Dhariwal, A. Radford, O. Klimov, *Proximal Policy Optimization Algorithms*, 2017: the
clipped objective, equation 7, with an entropy bonus, by Adam (Kingma, Ba 2015). There is no network for values:
each sequence is played by several machines, and what a run is worth is how it compares with the others of its
sequence. Every job goes through the same network, as in RLScheduler's kernel network (Zhang et al., SC 2020). NumPy alone.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hanse_gym.agents import Array, objectives
from hanse_gym.options import PickOptions
from hanse_gym.sequences import Sequences
from lrms_sim.machine.picks import FEATURES, step_all

SIZES: Final = (6, 32, 16, 1)
"""Numbers of a job that go in, hidden units, and the score that comes out."""

CLIP: Final = 0.2
ENTROPY: Final = 0.003
LEARNING_RATE: Final = 3e-3
BATCH: Final = 1024
"""Steps of one gradient."""

BATCHES: Final = 8
"""Gradients of an update at most; steps that are left over are not used."""

HELD_EVERY: Final = 5
"""Updates from one look at the validation part to the next."""

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class _Passed(NamedTuple):
    inputs: list[Floats]
    score: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PpoAgent:
    """Picks the filled place with the largest score.

    Attributes:
        weights: of each layer, a matrix with the constant terms as its last row.
    """

    weights: tuple[Floats, ...]

    def __call__(self, seen: Array) -> int:
        """Returns the place to pick of one observation."""
        return int(self.places(seen[None])[0])

    def places(self, seen: Array) -> Ints:
        """Returns the places to pick of many observations, shape (machines, window, 6)."""
        filled = seen[:, :, 0] > 0
        score = np.full(filled.shape, -np.inf, np.float32)
        score[filled] = self.passed(inputs_of(seen[filled])).score
        found: Ints = np.argmax(score, 1)
        return found

    def passed(self, rows: Floats) -> _Passed:
        """Returns what goes into each layer and the scores of jobs, shape (n,)."""
        inputs, value = [], rows
        for number, weight in enumerate(self.weights):
            inputs.append(value)
            value = value @ weight[:-1] + weight[-1]
            if number < len(self.weights) - 1:
                value = np.tanh(value)
        return _Passed(inputs, value[:, 0])

    def gradients(self, passed: _Passed, of_score: Floats) -> list[Floats]:
        """Returns the gradient by each layer's weights, given that by the scores."""
        found: list[Floats] = []
        back = of_score[:, None]
        for number in reversed(range(len(self.weights))):
            value, weight = passed.inputs[number], self.weights[number]
            found.append(np.vstack((value.T @ back, back.sum(0))))
            if number:
                back = (back @ weight[:-1].T) * (1.0 - value**2)
        return found[::-1]


def inputs_of(rows: Array) -> Floats:
    """Returns what the network is given of jobs, shape (n, 6), from their rows of an observation."""
    _, wait, request, width, fits, free = np.asarray(rows, np.float32).T
    return np.stack(
        (wait, request, width, fits, free, np.log(width + np.float32(1e-3)) / np.float32(7.0)), 1
    )


def probabilities(score: Floats, starts: Ints) -> Floats:
    """Returns the probability of each job among those of its step, whose first rows are `starts`."""
    counts = np.diff(np.append(starts, len(score)))
    weight = np.exp(score - np.repeat(np.maximum.reduceat(score, starts), counts))
    found: Floats = weight / np.repeat(np.add.reduceat(weight, starts), counts)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Steps that were played: of each the jobs that waited, one after the other.

    Attributes:
        rows: what the network is given of these jobs, shape (n, 6).
        counts: how many waited at each step, shape (s,).
        picked: which of them was picked, shape (s,).
        chance: the probability with which it was.
        advantage: what the run of the step is worth, in standard deviations of the runs of its sequence.
    """

    rows: Floats
    counts: Ints
    picked: Ints
    chance: Floats
    advantage: Floats

    def batch(self, chosen: Ints) -> "Steps":
        """Returns some of the steps."""
        starts = np.cumsum(self.counts) - self.counts
        counts = self.counts[chosen]
        inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = self.rows[np.repeat(starts[chosen], counts) + inside]
        return Steps(rows, counts, self.picked[chosen], self.chance[chosen], self.advantage[chosen])


def by_weights(agent: PpoAgent, steps: Steps) -> tuple[float, list[Floats]]:
    """Returns the clipped objective with its entropy bonus, to be made large, and its gradient by the weights."""
    starts = np.cumsum(steps.counts) - steps.counts
    passed = agent.passed(steps.rows)
    chance = probabilities(passed.score, starts)
    picked = starts + steps.picked
    ratio = chance[picked] / steps.chance
    clipped = np.clip(ratio, 1.0 - CLIP, 1.0 + CLIP)
    gain = np.minimum(ratio * steps.advantage, clipped * steps.advantage)
    logarithm = np.log(np.maximum(chance, 1e-30))
    entropy = -np.add.reduceat(chance * logarithm, starts)
    # The ratio has no gradient where the clipped term is the lesser one.
    inner = np.where(ratio * steps.advantage <= clipped * steps.advantage, ratio, 0.0)
    by_score = -np.repeat(inner * steps.advantage, steps.counts) * chance
    by_score[picked] += inner * steps.advantage
    by_score -= ENTROPY * chance * (logarithm + np.repeat(entropy, steps.counts))
    size = len(steps.counts)
    return (
        float((gain + ENTROPY * entropy).mean()),
        agent.gradients(passed, by_score / np.float32(size)),
    )


def play(
    agent: PpoAgent,
    sequences: Sequences,
    firsts: Ints,
    copies: int,
    *,
    options: PickOptions,
    random: np.random.Generator,
) -> Steps:
    """Plays each sequence on `copies` machines; picks are drawn by their probabilities."""
    machines = [options.machine(sequences) for _ in range(len(firsts) * copies)]
    seen = np.empty((len(machines), options.window, FEATURES), np.float32)
    for machine, first, each in zip(
        machines, np.repeat(firsts, copies).tolist(), seen, strict=True
    ):
        machine.reset(first, sequences.length)
        machine.observe(each)
    total, rewards = np.zeros(len(machines)), np.zeros(len(machines))
    ended = np.zeros(len(machines), np.uint8)
    rows, counts, picks, chances, numbers = [], [], [], [], []
    while not ended.all():
        running = np.flatnonzero(ended == 0)
        filled = seen[running][:, :, 0] > 0
        inputs = inputs_of(seen[running][filled])
        waiting = filled.sum(1)
        starts = np.cumsum(waiting) - waiting
        chance = probabilities(agent.passed(inputs).score, starts)
        # The job at which the sum of the probabilities passes a number drawn from 0 to 1.
        sums = np.cumsum(chance, dtype=np.float64)
        sought = sums[starts] - chance[starts] + random.random(len(running))
        picked = np.clip(np.searchsorted(sums, sought) - starts, 0, waiting - 1)
        places = np.zeros(len(machines), np.int64)
        places[running] = picked
        rows.append(inputs)
        counts.append(waiting)
        picks.append(picked)
        chances.append(chance[starts + picked])
        numbers.append(running)
        rewards[:] = 0.0
        step_all(machines, places, seen, rewards, ended)
        total -= rewards
    # Few sequences have most of the sum of objectives; logarithms let each count the same.
    worth = -np.log1p(total).reshape(len(firsts), copies)
    spread = np.maximum(worth.std(1, keepdims=True), 1e-8)
    advantage = ((worth - worth.mean(1, keepdims=True)) / spread).ravel().astype(np.float32)
    return Steps(
        np.concatenate(rows),
        np.concatenate(counts),
        np.concatenate(picks),
        np.concatenate(chances),
        advantage[np.concatenate(numbers)],
    )


class _Adam:
    def __init__(self, weights: tuple[Floats, ...]) -> None:
        self.first = [np.zeros_like(weight) for weight in weights]
        self.second = [np.zeros_like(weight) for weight in weights]
        self.count = 0

    def better(self, agent: PpoAgent, gradients: list[Floats]) -> PpoAgent:
        """Returns the agent after one step uphill."""
        self.count += 1
        weights = []
        for number, (weight, gradient) in enumerate(zip(agent.weights, gradients, strict=True)):
            self.first[number] = 0.9 * self.first[number] + 0.1 * gradient
            self.second[number] = 0.999 * self.second[number] + 0.001 * gradient**2
            mean = self.first[number] / (1.0 - 0.9**self.count)
            square = self.second[number] / (1.0 - 0.999**self.count)
            weights.append(weight + LEARNING_RATE * mean / (np.sqrt(square) + 1e-8))
        return PpoAgent(tuple(weights))


def untrained(random: np.random.Generator) -> PpoAgent:
    """Returns an agent with weights by chance, which scores all jobs about the same."""
    weights = []
    for inputs, outputs in pairwise(SIZES):
        weight = random.normal(0.0, inputs**-0.5, (inputs + 1, outputs)).astype(np.float32)
        weight[-1] = 0.0
        weights.append(weight)
    weights[-1] *= np.float32(0.1)
    return PpoAgent(tuple(weights))


def train(
    sequences: Sequences,
    validation: Sequences,
    *,
    seed: int,
    updates: int = 60,
    per_update: int = 4,
    copies: int = 8,
    options: PickOptions | None = None,
) -> PpoAgent:
    """Returns the agent, of those after every fifth update, that has the least objective on 32 sequences of validation.

    Args:
        sequences: of training.
        validation: sequences to choose the agent on.
        seed: of weights, sequences and picks.
        updates: how often sequences are played and the network is changed.
        per_update: sequences that are played for an update.
        copies: machines that play each, at least 2.
        options: the rules; default `PickOptions()`.

    Raises:
        ValueError: there would be nothing to compare a run with.
    """
    if copies < 2:
        raise ValueError(f"copies is {copies}; a run is compared with others, so at least 2")
    rules = options or PickOptions()
    random = np.random.default_rng(seed)
    agent = best = untrained(random)
    climb = _Adam(agent.weights)
    held = validation.fixed(32, seed)
    least = float(objectives(agent, validation, held, rules).mean())
    for update in range(1, updates + 1):
        firsts = np.array([sequences.draw(random) for _ in range(per_update)], np.int64)
        steps = play(agent, sequences, firsts, copies, options=rules, random=random)
        order = random.permutation(len(steps.counts))[: BATCH * BATCHES]
        for start in range(0, len(order), BATCH):
            _, gradients = by_weights(agent, steps.batch(order[start : start + BATCH]))
            agent = climb.better(agent, gradients)
        if update % HELD_EVERY and update < updates:
            continue
        reached = float(objectives(agent, validation, held, rules).mean())
        if reached < least:
            best, least = agent, reached
    return best
