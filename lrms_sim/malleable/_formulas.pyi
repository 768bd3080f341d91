from collections.abc import Mapping
from typing import Any

def unit_utility_of(age: float, plateau: float, zero: float, least: float, shape: int) -> float:
    """Returns the unit utility of a job of weight 1 that completes at an age, in its requests."""

def speed_of(processors: int, width: int, law: int, first: float, second: float) -> float:
    """Returns how fast a job of a width runs on so many processors, against a single one."""

def rule_weights(x1: float, x2: float, x3: float, scales: Mapping[str, Any]) -> tuple[float, ...]:
    """Returns the weights of the eight rules in a state; they sum to 1."""
