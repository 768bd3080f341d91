"""What an agent that learned is, and how many sequences are played with it at once."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from hanse_gym.options import PickOptions
from hanse_gym.sequences import Sequences
from lrms_sim.machine.picks import FEATURES, step_all

Array = npt.NDArray[np.floating]


class Agent(Protocol):
    """Picks places for many machines together."""

    def places(self, seen: Array) -> npt.NDArray[np.int64]:
        """Returns the places to pick of many observations, shape (machines, window, 6)."""


def objectives(
    agent: Agent, sequences: Sequences, firsts: npt.NDArray[np.int64], options: PickOptions
) -> Array:
    """Returns the objective that an agent reaches on each of some sequences, all stepped together."""
    machines = [options.machine(sequences) for _ in firsts]
    seen = np.empty((len(machines), options.window, FEATURES), np.float32)
    for machine, first, each in zip(machines, firsts.tolist(), seen, strict=True):
        machine.reset(first, sequences.length)
        machine.observe(each)
    total = np.zeros(len(machines))
    rewards = np.zeros(len(machines))
    ended = np.zeros(len(machines), np.uint8)
    while not ended.all():
        rewards[:] = 0.0
        step_all(machines, agent.places(seen), seen, rewards, ended)
        total -= rewards
    return total
