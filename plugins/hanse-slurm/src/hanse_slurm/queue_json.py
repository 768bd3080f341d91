"""Jobs as `squeue --json` of Slurm 22.05 has them, as far as a site knows them."""

import json
from collections.abc import Sequence
from typing import Any

from hanse_slurm.rows import Row
from hanse_slurm.times import minutes
from hanse_slurm.users import group_of, uid_of


def as_json(rows: Sequence[Row]) -> str:
    """Returns a document with all jobs; what no site knows of a job is not there."""
    meta = {
        "plugin": {"type": "openapi/v0.0.38", "name": "Slurm OpenAPI v0.0.38"},
        "Slurm": {"version": {"major": 22, "micro": 8, "minor": 5}, "release": "22.05.8"},
    }
    document = {"meta": meta, "errors": [], "jobs": [_job(row) for row in rows]}
    return json.dumps(document, indent=2)


def _job(row: Row) -> dict[str, Any]:
    has_index = row.index.isdecimal()
    return {
        "account": row.account,
        "array_job_id": int(row.array) if row.index else 0,
        "array_task_id": int(row.index) if has_index else None,
        "array_task_string": "" if has_index else row.index,
        "cluster": row.site,
        "cpus": row.cpus,
        "dependency": row.dependency,
        "end_time": int(row.end_s or 0),
        "exit_code": row.code << 8 | row.signal,
        "features": row.features,
        "group_id": int(group_of(row.user)[1]),
        "group_name": group_of(row.user)[0],
        "job_id": int(row.array),
        "job_state": row.state.word,
        "licenses": row.licences,
        "name": row.name,
        "node_count": row.nodes,
        "nodes": row.ran_at,
        "partition": row.partition,
        "qos": row.qos,
        "start_time": int(row.start_s or 0),
        "state_description": row.said,
        "state_reason": row.reason,
        "submit_time": int(row.submit_s),
        "tasks": row.tasks,
        "time_limit": minutes(row.limit_s),
        "user_id": int(uid_of(row.user)),
        "user_name": row.user,
    }
