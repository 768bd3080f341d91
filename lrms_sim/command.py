"""The process of the command `lrms-sim`: imports next to nothing, for Ctrl-C has to work from the start."""

import os

from lrms_sim.util.process_guard import run


def main() -> None:
    """Runs the command line of this process and ends it."""
    # No linear algebra is done here, and starting the threads for it takes longer than a run.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    run("lrms_sim.cli.main")
