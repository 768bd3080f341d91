from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from broker.planner._worker import Worker

Parts: TypeAlias = tuple[npt.NDArray[np.int32], list[int], int]

class GleamCore:
    steps: list[list[int]]
    assigned: bool
    progress: tuple[int, int]
    def __init__(
        self,
        tasks: int,
        size: int,
        radius: int,
        seed: int,
        groups: list[tuple[float, float, float]],
        strategies: int = 3,
        assigned: bool = False,
    ) -> None: ...
    def set_improvement(
        self,
        searchers: int,
        trials: int,
        iterations: int,
        best_only: bool,
        probability: tuple[float, ...],
        level: tuple[float, ...],
    ) -> None: ...
    def set_individual(
        self,
        row: int,
        chromosome: tuple[Any, Sequence[int], int],
        fitness: float,
        choices: npt.NDArray[np.int32] | None = None,
    ) -> None: ...
    def choices(self, row: int) -> npt.NDArray[np.int32] | None: ...
    def individual(self, row: int) -> tuple[Parts, float]: ...
    @property
    def values(self) -> npt.NDArray[np.float64]: ...
    def cut(self, number: int) -> list[int]: ...
    def shuffle(self, number: int) -> npt.NDArray[np.int32]: ...
    def shares(self, number: int) -> npt.NDArray[np.float64]: ...
    def begin_step(self, most: int | None = None) -> int: ...
    def ask(
        self, worker: Worker
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], list[int]]: ...
    def tell(self, fitness: npt.NDArray[np.float64]) -> None: ...
    def breed(self, worker: Worker) -> None: ...
    def abandon(
        self,
    ) -> tuple[
        int, tuple[npt.NDArray[np.int32], int, float, npt.NDArray[np.int32] | None] | None
    ]: ...
    def commit(self) -> list[tuple[int, float, int, int]]: ...
