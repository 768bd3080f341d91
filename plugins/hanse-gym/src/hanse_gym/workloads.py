"""The workloads of the bench: logs by path or key, and models of several sizes, by one name each."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lrms_sim.cli.log_options import processors_of, read_log
from lrms_sim.util.trace_folders import located
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.lublin import generate
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.preparation_report import PreparationOptions

SUITE: Final = (
    "kth", "ctc", "sdsc05", "sdsc00", "lublin-64", "lublin-128", "lublin-512", "lublin-1024",
)  # fmt: skip
"""What `hanse-gym --suite` takes: four recorded logs, and models of four sizes that lublin_256 does not have."""

MODEL_JOBS: Final = 10_000
MODEL_LOAD: Final = 0.8

_MODEL: Final = re.compile(r"lublin-([1-9][0-9]{0,5})")


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs that are prepared for a machine.

    Attributes:
        name: of the log's file, or the model.
        jobs: in order of arrival.
        processors: size of the machine.
    """

    name: str
    jobs: JobTable
    processors: int


def workload(
    named: str, processors: int | None = None, options: PreparationOptions | None = None
) -> Workload:
    """Returns a log by its path or key, or `lublin-N`: 10,000 jobs at load 0.8 for N processors, with N as the seed.

    Args:
        named: a file takes precedence.
        processors: size of the machine; default the log's. Not for models.
        options: rules of preparation, for logs.

    Raises:
        ValueError: the log cannot be read, or a model is given another size.
        FileNotFoundError: it is the key of a log that is not on this machine.
    """
    model = None if Path(named).exists() else _MODEL.fullmatch(named)
    if model is not None:
        size = int(model[1])
        if processors not in {None, size}:
            raise ValueError(f"{named} is a model of {size} processors, not of {processors}")
        return Workload(named, generate(size, seed=size, jobs=MODEL_JOBS, load=MODEL_LOAD), size)
    path = located(Path(named))
    records = read_log(path)
    size = processors or processors_of(records)
    return Workload(path.name, prepare(records, size, options or PreparationOptions()).jobs, size)
