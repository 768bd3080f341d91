"""Users over HTTP, in the paths and documents of slurmrestd."""
