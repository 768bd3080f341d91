"""A machine that may suspend jobs and run them on fewer processors, with utilities.

A job's utility falls with its completion time. `lrms_sim.machine.machine` has rigid jobs without utilities.
"""
