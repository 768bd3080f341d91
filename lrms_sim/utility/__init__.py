"""A machine that may suspend jobs and run them on fewer processors, and what that is worth.

Jobs have a utility that falls with the time of their completion. `lrms_sim.machine` is about rigid
jobs without utilities, and knows nothing of this package.
"""
