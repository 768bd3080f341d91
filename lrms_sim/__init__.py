"""One batch machine, simulated: jobs, queue disciplines, schedules, metrics.

Knows nothing of a grid: no module here imports anything of `grms`, `broker` or `scenarios`.
"""

from lrms_sim.version import __version__

__all__ = ["__version__"]
