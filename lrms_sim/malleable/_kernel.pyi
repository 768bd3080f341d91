from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

class UtilityKernel:
    """Machines around one queue, over job columns that it keeps alive."""

    jobs: int
    columns: dict[str, npt.NDArray[Any]]
    results: dict[str, npt.NDArray[Any]]

    def __init__(
        self,
        columns: dict[str, npt.NDArray[Any]],
        processors: Sequence[int],
        options: Mapping[str, Any],
        policy: Mapping[str, Any],
    ) -> None: ...
    def keep(self, *, log: bool, steps: bool) -> None:
        """Says what to note: the allocation log, the steps of learning."""

    def set_value(
        self,
        number: int,
        p: Sequence[float],
        scales: Mapping[str, Any],
        learning: Mapping[str, Any],
    ) -> None:
        """Sets a machine's value function; `learning` is empty if it is frozen."""

    def run(self, until: float, rows: int) -> int:
        """Replays what happens up to `until`, included, and at most up to arrival `rows`."""

    def settle(self, now: float) -> None:
        """Counts the processor-seconds that running jobs have held until `now`."""

    def advance(self, until: float) -> None:
        """Does everything that ends before `until`, and sets the clock to it."""

    def reach(self, now: float) -> bool:
        """Ends what ends at `now`, without a pass; says whether anything did."""

    def arrive(self, job: int) -> None:
        """Puts a job into the queue now."""

    def make_pass(self) -> None:
        """Makes the pass of this instant."""

    def rises_by(self, number: int, job: int) -> float:
        """Returns by how much a machine's value would rise if it took a job now; -inf if impossible.

        The best of what the policy may do: on free processors, squeezed, or forced.
        """

    def figures(self, number: int) -> dict[str, Any]:
        """Returns the totals of one machine."""

    def learned(self, number: int) -> dict[str, Any]:
        """Returns what a machine's learner knows."""

    def steps(self, number: int) -> npt.NDArray[np.float64]:
        """Returns time, reward, delta, rho and p of every update, shape (updates, 12)."""

    def log(self) -> npt.NDArray[Any]:
        """Returns the allocation log as a structured array."""

    @property
    def now(self) -> float: ...
    @property
    def events(self) -> int: ...
