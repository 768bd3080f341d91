"""Results of jobs, and their way home."""
