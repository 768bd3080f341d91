"""Stage-in and stage-out: input files, results, and how long they are kept."""
