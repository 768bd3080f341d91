import itertools
import math

import pytest

from lrms_sim.malleable._formulas import speed_of
from lrms_sim.malleable.options import MachineOptions, Speedup


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"grow": "later"}, "grow is 'later'; it must be one of never, first, last"),
        ({"leave": ""}, "leave is ''; it must be one of never, worthless, zero"),
        ({"suspension": "kill"}, "suspension is 'kill'; it must be one of suspend, requeue"),
        ({"step": -1.0}, "step is -1.0"),
        ({"step": math.nan}, "step is nan"),
        ({"suspension_cost": -1.0}, "suspension_cost is -1.0"),
        ({"resize_cost": math.inf}, "resize_cost is inf"),
        ({"checkpoint": -2.0}, "checkpoint is -2.0"),
        ({"exempt": math.nan}, "exempt is nan"),
        ({"suspensions_max": -1}, "suspensions_max is -1; it must be from 0"),
        ({"suspended_max": -0.5}, "suspended_max is -0.5; it must be at least 0"),
    ],
)
def test_an_option_out_of_bounds_is_refused(arguments: dict[str, object], words: str) -> None:
    """The option, its value and its bound are named."""
    with pytest.raises(ValueError, match=words):
        MachineOptions(**arguments)  # type: ignore[arg-type]  # that is the matter


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"law": "moore"}, "speedup is 'moore'; it must be one of linear, amdahl, downey"),
        ({"law": "amdahl", "serial": 1.5}, "serial share is 1.5; it must be from 0 to 1"),
        ({"law": "downey", "parallelism": 0.0}, "parallelism is 0.0"),
        ({"law": "downey", "variance": math.nan}, "variance is nan"),
    ],
)
def test_a_speedup_out_of_bounds_is_refused(arguments: dict[str, object], words: str) -> None:
    """The number and its bound are named."""
    with pytest.raises(ValueError, match=words):
        Speedup(**arguments)  # type: ignore[arg-type]  # that is the matter


def test_speeds_are_those_of_the_laws() -> None:
    """Linear: n; Amdahl: 1 / (s + (1-s)/n); Downey: his equations 1 and 2, worked out by hand."""
    assert [speed_of(n, 8, 0, 0.0, 0.0) for n in (1, 4, 8)] == [1.0, 4.0, 8.0]
    assert speed_of(4, 8, 1, 0.2, 0.0) == pytest.approx(1 / (0.2 + 0.8 / 4))
    # A = 8, σ = 0.5: 8·4 / (8 + 0.25·3) up to A, 8·12 / (0.5·7.5 + 12·0.75) up to 2A-1, then A.
    assert speed_of(4, 8, 2, 1.0, 0.5) == pytest.approx(32 / 8.75)
    assert speed_of(12, 8, 2, 1.0, 0.5) == pytest.approx(96 / 12.75)
    assert speed_of(16, 8, 2, 1.0, 0.5) == 8.0
    # A = 4, σ = 2: 4·4·3 / (2·(4+4-1) + 4) up to A + Aσ - σ = 10, then A.
    assert speed_of(4, 8, 2, 0.5, 2.0) == pytest.approx(48 / 18)
    assert speed_of(11, 8, 2, 0.5, 2.0) == 4.0


@pytest.mark.parametrize("law", [(0, 0.0, 0.0), (1, 0.3, 0.0), (2, 1.2, 0.7), (2, 0.6, 1.8)])
def test_more_processors_are_never_slower(law: tuple[int, float, float]) -> None:
    """No law makes a job slower by giving it more, and one processor has speed 1."""
    speeds = [speed_of(n, 16, *law) for n in range(1, 17)]
    assert speeds[0] == pytest.approx(1.0)
    assert all(after >= before for before, after in itertools.pairwise(speeds))
