"""The shell around the core: one event after the other, records on disk, the batch system, time."""
