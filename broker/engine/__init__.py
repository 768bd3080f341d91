"""The shell around the core: one event after the other, records on disk, searches in a thread."""
