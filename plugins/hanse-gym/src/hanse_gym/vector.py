"""Many machines that are stepped together, in one call of the compiled code."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from hanse_gym.environment import observed
from hanse_gym.options import PickOptions
from hanse_gym.sequences import Sequences
from lrms_sim.machine.picks import FEATURES, step_all

Observations = npt.NDArray[np.float32]
Places = npt.NDArray[np.integer]
Results = npt.NDArray[np.float64] | npt.NDArray[np.bool_]


class PickJobVectorEnv(VectorEnv[Observations, Places, Results]):
    """`count` environments like `PickJobEnv` with the same sequences and options.

    A machine whose sequence has ended begins another with the next step, which ignores its action and has reward 0
    (`AutoresetMode.NEXT_STEP`). `info["jobs"]` has the number of jobs in each window.

    Args:
        sequences: the jobs and their machine.
        count: how many machines.
        options: the rules; default `PickOptions()`.
    """

    def __init__(
        self, sequences: Sequences, count: int, options: PickOptions | None = None
    ) -> None:
        if count < 1:
            raise ValueError(f"count is {count}; at least 1 machine is needed")
        self.options = options or PickOptions()
        self.sequences = sequences
        self.machines = [self.options.machine(sequences) for _ in range(count)]
        self.num_envs = count
        self.metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = observed(self.options.window)
        self.single_action_space = spaces.Discrete(self.options.window)
        self.observation_space = batch_space(self.single_observation_space, count)
        self.action_space = batch_space(self.single_action_space, count)
        self._randoms = list(np.random.default_rng().spawn(count))
        self._ended = np.ones(count, np.uint8)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begins a random sequence on every machine; machine i has seed + i, as in Gymnasium's own vectors."""
        del options
        if seed is not None:
            seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed
            if len(seeds) != self.num_envs:
                raise ValueError(f"{len(seeds)} seeds for {self.num_envs} machines")
            for i, one in enumerate(seeds):
                if one is not None:
                    self._randoms[i] = np.random.default_rng(one)
        seen = np.empty((self.num_envs, self.options.window, FEATURES), np.float32)
        for i in range(self.num_envs):
            self._begin(i, seen)
        return seen, self._info()

    def step(
        self, actions: Places
    ) -> tuple[Observations, Results, Results, Results, dict[str, Any]]:
        """Makes one step of every machine.

        Raises:
            ValueError: there are too many or too few actions, or one is outside the window.
            RuntimeError: `reset` was never called.
        """
        places = np.ascontiguousarray(actions, np.int64)
        if places.shape != (self.num_envs,):
            raise ValueError(f"actions have shape {places.shape}, not ({self.num_envs},)")
        before = self._ended.copy()
        seen = np.empty((self.num_envs, self.options.window, FEATURES), np.float32)
        rewards = np.zeros(self.num_envs)
        step_all(self.machines, places, seen, rewards, self._ended)
        for i in np.flatnonzero(before):
            self._begin(int(i), seen)
        ended = self._ended.astype(np.bool_)
        return seen, rewards, ended, np.zeros(self.num_envs, np.bool_), self._info()

    def _begin(self, number: int, seen: Observations) -> None:
        first = self.sequences.draw(self._randoms[number])
        self.machines[number].reset(first, self.sequences.length)
        self.machines[number].observe(seen[number])
        self._ended[number] = 0

    def _info(self) -> dict[str, Any]:
        return {"jobs": np.array([machine.jobs_seen for machine in self.machines])}
