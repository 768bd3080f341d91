"""A small log, for which the study runs in a moment."""

from pathlib import Path

import numpy as np

PROCESSORS = 16


def small_log(folder: Path, jobs: int = 60, name: str = "small.swf") -> Path:
    """Returns a log of a day of jobs, so many at a time that some wait, with requests twice the run times."""
    rng = np.random.default_rng(7)
    submit = np.sort(rng.integers(0, 86400, jobs))
    run_time = rng.integers(600, 20000, jobs)
    widths = rng.integers(1, PROCESSORS, jobs)
    lines = [f"; MaxProcs: {PROCESSORS}"]
    lines += [
        f"{n + 1} {submit[n]} -1 {run_time[n]} {widths[n]} -1 -1 {widths[n]} {2 * run_time[n]} -1 1 1 1 -1 1 -1 -1 -1"
        for n in range(jobs)
    ]
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
