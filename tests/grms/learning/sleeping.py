"""A fitness that takes longer than any test, for tests that interrupt it."""

import os
import time
from pathlib import Path

from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import Evaluation


def sleep_long(genome: Genome, _: float) -> Evaluation:
    """Leaves a file that tells which process is at work, and sleeps."""
    Path(os.environ["SLEEPING_FOLDER"], f"worker-{os.getpid()}").touch()
    time.sleep(600)
    return Evaluation(float(len(genome.binary)), ())
