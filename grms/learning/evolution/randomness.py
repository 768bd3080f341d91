"""The state of a random generator as plain values, so that a saved strategy goes on bit for bit."""

from collections.abc import Mapping
from typing import Any

import numpy as np

BIT_GENERATOR = "PCG64"
"""What numpy's `default_rng` uses, by name, so that no later default changes what a seed means."""


def generator(seed: int) -> np.random.Generator:
    """Returns a new generator with the same numbers on every machine; the seed is 0 or more."""
    if seed < 0:
        raise ValueError(f"the seed is {seed}; it must be at least 0")
    return np.random.Generator(np.random.PCG64(seed))


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """Returns the state of a `generator` as values that JSON keeps exactly."""
    state = dict(rng.bit_generator.state)
    if state["bit_generator"] != BIT_GENERATOR:
        raise ValueError(f"the generator is {state['bit_generator']}; {BIT_GENERATOR} can be saved")
    return state


def generator_from_state(state: Mapping[str, Any]) -> np.random.Generator:
    """Returns the generator that `generator_state` described."""
    if state.get("bit_generator") != BIT_GENERATOR:
        raise ValueError(
            f"the state is of {state.get('bit_generator')!r}; {BIT_GENERATOR} is expected"
        )
    rng = generator(0)
    rng.bit_generator.state = dict(state)
    return rng
