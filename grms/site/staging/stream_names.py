"""What users have called the streams of their jobs, for `grms fetch`.

The names are patterns of Slurm's (sbatch(1), "filename pattern"), expanded by the job's home site: `%j` is the number in the
job's name there, wherever it ran. What leads out of the folder in which files are brought keeps its last part.
"""

import re
from pathlib import PurePosixPath
from typing import Final

from grms.daemon.job_files import STDERR, STDOUT, check_name
from grms.site.model.jobs import HomeJob
from grms.util.job_arrays import element_in
from grms.v1 import request_pb2

UNWANTED: Final = "/dev/null"
"""Written for a stream that its user does not want."""

_FIELD: Final = re.compile(r"%(?:(%)|(\d{0,2})([AaJjNnstux]))")


def stream_names(job: HomeJob, executed_on: str) -> tuple[dict[str, str], bool]:
    """Returns the names of a job's streams that have another one, and whether they are added to files that are there."""
    message = request_pb2.JobRequest.FromString(job.program)
    written, program = message.streams, message.program
    number = job.job_id.partition("_")[0].rpartition("-")[2]
    array, index = element_in(program.environment) or (number, "")
    values = {
        "A": array,
        "a": index,
        "J": number,
        "j": number,
        "N": executed_on,
        "n": "0",
        "s": "batch",
        "t": "0",
        "u": job.user,
        "x": program.name.replace("/", "_"),
    }
    names = {}
    for stream, pattern in ((STDOUT, written.output), (STDERR, written.error)):
        if name := _name(pattern, values):
            names[stream] = name
    if program.merged:
        names[STDERR] = UNWANTED  # nothing goes there
    return names, written.append


def _name(pattern: str, values: dict[str, str]) -> str:
    def put(found: re.Match[str]) -> str:
        if found[1]:
            return "%"
        value = values[found[3]]
        return value.zfill(min(int(found[2] or 0), 10)) if value.isdecimal() else value

    if pattern == UNWANTED:
        return UNWANTED
    # A backslash says that nothing in the name stands for anything else.
    name = pattern.replace("\\", "") if "\\" in pattern else _FIELD.sub(put, pattern)
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        path = PurePosixPath(path.name)
    try:
        return check_name(str(path)) if path.parts else ""
    except ValueError:
        return ""  # it goes by its own
