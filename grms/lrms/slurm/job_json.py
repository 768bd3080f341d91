"""Jobs as documents of Slurm 22.05, of `squeue --json` and slurmrestd, as far as a site knows them. Pure."""

from typing import Any, Final

from grms.lrms.slurm.job_rows import Row, minutes

META: Final = {
    "plugin": {"type": "openapi/v0.0.38", "name": "Slurm OpenAPI v0.0.38"},
    "Slurm": {"version": {"major": 22, "micro": 8, "minor": 5}, "release": "22.05.8"},
}
"""What documents of that version say of themselves."""


def job_document(row: Row, user_id: int, group_id: int, group_name: str) -> dict[str, Any]:
    """Returns a job as a document; what no site knows of a job is not there.

    `user_id`, `group_id` and `group_name` are those of the job's user on this host.
    """
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
        "group_id": group_id,
        "group_name": group_name,
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
        "user_id": user_id,
        "user_name": row.user,
    }
