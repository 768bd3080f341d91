from collections.abc import Sequence
from typing import TypeAlias

Parts: TypeAlias = tuple[Sequence[int], Sequence[int], int]

OPERATORS: tuple[str, ...]

def apply_operator(
    name: str, first: Parts, second: Parts, seed: int, points: int = 3
) -> tuple[list[int], list[int], int]: ...
