"""What Snakemake knows of a job that is submitted."""

from dataclasses import dataclass
from typing import Any


@dataclass
class SubmittedJobInfo:
    """A job that is submitted."""

    job: Any
    external_jobid: str | None = None
    aux: dict[Any, Any] | None = None
