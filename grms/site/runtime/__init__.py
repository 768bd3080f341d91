"""The shell around the scheduler: its event loop, recovery, timers, and the batch system."""
