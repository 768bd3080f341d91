"""A learning bench over the compiled machine of `lrms_sim`: environments, sequences, and what is to be beaten."""

from hanse_gym.environment import PickJobEnv
from hanse_gym.options import PickOptions
from hanse_gym.sequences import SPLITS, Sequences
from hanse_gym.vector import PickJobVectorEnv

__all__ = ["SPLITS", "PickJobEnv", "PickJobVectorEnv", "PickOptions", "Sequences"]
