"""Jobs as `squeue --json` of Slurm 22.05 has them, as far as a site knows them."""

import json
from collections.abc import Sequence

from grms.lrms.slurm.job_rows import META, Row, job_document
from hanse_slurm.users import group_of, uid_of


def as_json(rows: Sequence[Row]) -> str:
    """Returns a document with all jobs; what no site knows of a job is not there."""
    jobs = [job_document(row, int(uid_of(row.user)), *_group(row.user)) for row in rows]
    return json.dumps({"meta": META, "errors": [], "jobs": jobs}, indent=2)


def _group(user: str) -> tuple[int, str]:
    name, number = group_of(user)
    return int(number), name
