"""The shell around the scheduler: its event loop, records on disk, searches in a thread."""
