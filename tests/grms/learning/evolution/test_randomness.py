import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.learning.evolution.randomness import generator, generator_from_state, generator_state


def test_golden_stream() -> None:
    """A seed means the same numbers for ever, whatever numpy's default becomes."""
    rng = generator(7)
    assert rng.random(2).tolist() == [0.625095466604667, 0.8972138009695755]
    assert rng.integers(1000, size=3).tolist() == [578, 775, 833]
    assert rng.standard_normal() == -0.45467078517172255


@given(st.integers(0, 2**63), st.integers(0, 7), st.integers(1, 7))
def test_a_saved_generator_goes_on(seed: int, before: int, after: int) -> None:
    """Through JSON, also with half a 64-bit draw left over from one of 32 bits."""
    rng = generator(seed)
    rng.integers(10, size=before, dtype=np.int32)
    again = generator_from_state(json.loads(json.dumps(generator_state(rng))))
    for stream in ("integers", "normal"):
        draws = [
            one.integers(10, size=after, dtype=np.int32).tolist()
            if stream == "integers"
            else one.standard_normal(after).tolist()
            for one in (rng, again)
        ]
        assert draws[0] == draws[1]
    assert generator_state(rng) == generator_state(again)


def test_other_generators_are_refused() -> None:
    """A negative seed, and the states of other algorithms."""
    with pytest.raises(ValueError, match="seed is -1"):
        generator(-1)
    other = np.random.Generator(np.random.MT19937(1))
    with pytest.raises(ValueError, match="MT19937"):
        generator_state(other)
    with pytest.raises(ValueError, match="'MT19937'"):
        generator_from_state({"bit_generator": "MT19937"})
