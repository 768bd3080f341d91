"""The environment: one machine, one agent that picks which waiting job starts next."""

from typing import Any, SupportsInt

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from hanse_gym.options import PickOptions
from hanse_gym.sequences import Sequences
from lrms_sim.machine.picks import FEATURES

Observation = npt.NDArray[np.float32]


def observed(window: int) -> spaces.Space[Observation]:
    """Returns the space of observations of one machine, shape (window, 6), in 0..1."""
    box: spaces.Space[Any] = spaces.Box(0.0, 1.0, (window, FEATURES), np.float32)
    return box


class PickJobEnv(gymnasium.Env[Observation, SupportsInt]):
    """Picks jobs of sequences of a log, drawn by the seed of `reset`.

    An episode is one sequence on a machine that is empty at first, and ends when all its jobs have run. Observations
    are those of `lrms_sim.machine.picks.PickMachine.observe`; an action is a place in the window. `info` has
    `jobs`, the number of jobs in the window: only the places below it are filled.

    Args:
        sequences: the jobs and their machine.
        options: the rules; default `PickOptions()`.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # Gymnasium's own form

    def __init__(self, sequences: Sequences, options: PickOptions | None = None) -> None:
        self.sequences = sequences
        self.options = options or PickOptions()
        self.machine = self.options.machine(sequences)
        self.observation_space = observed(self.options.window)
        self.action_space = spaces.Discrete(self.options.window)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins a sequence: a random one, or the one from row `options["first"]` on.

        Raises:
            ValueError: there is no such sequence in the log.
        """
        super().reset(seed=seed)
        chosen = (options or {}).get("first")
        first = self.sequences.draw(self.np_random) if chosen is None else int(chosen)
        self.machine.reset(first, self.sequences.length)
        return self._look(), {"jobs": self.machine.jobs_seen, "first": first}

    def step(self, action: SupportsInt) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Picks the job in a place of the window, the first job if nobody stands there.

        Raises:
            ValueError: the place is outside the window.
            RuntimeError: the sequence is over.
        """
        reward, ended = self.machine.step(int(action))
        return self._look(), reward, ended, False, {"jobs": self.machine.jobs_seen}

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Returns which places of the window are filled, shape (window,); the name is that of sb3-contrib."""
        return np.arange(self.options.window) < self.machine.jobs_seen

    def _look(self) -> Observation:
        seen = np.empty((self.options.window, FEATURES), np.float32)
        self.machine.observe(seen)
        return seen
