from collections.abc import Sequence
from typing import Any

def checked(chromosome: tuple[Any, Sequence[int], int]) -> tuple[Any, list[int], int]: ...
