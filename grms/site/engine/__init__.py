"""The shell around the core: one event after the other, the journal, the batch system, time."""
