"""A fitness that takes longer than any test, for tests that interrupt it."""

import os
import time
from pathlib import Path

from grms.learning.encoding import Genome
from grms.learning.fitness import Evaluation


def sleep_long(genome: Genome) -> Evaluation:
    """Leaves a file that tells which process is at work, and sleeps."""
    Path(os.environ["SLEEPING_FOLDER"], f"worker-{os.getpid()}").touch()
    time.sleep(600)
    return Evaluation(float(genome.rules), ())
