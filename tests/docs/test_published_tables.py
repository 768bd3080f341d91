"""What docs/how-to/published-tables.md says of published tables works on tables with their columns."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lrms_sim.cli.main import run_command
from lrms_sim.workload.swf import read_swf

PAGE = (Path(__file__).parents[2] / "docs/how-to/published-tables.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    lrms-sim (import .*)", PAGE, flags=re.MULTILINE)

HOUR = timedelta(hours=1)
BEGIN = datetime(2021, 5, 1, 12)  # noqa: DTZ001  # as the tables have it

FILES: dict[str, str | dict[str, list[object]]] = {
    "jobs.csv": "submitted,began,ended,cores\n2024-01-01,2024-01-01 01:00,2024-01-01 02:00,4\n",
    "batch_task.csv": (
        "M1,2,j_1,1,Terminated,86400,90000,150.0,0.39\nM2_1,1,j_1,1,Waiting,90000,,50,0.2\n"
        "R3_2,1,j_1,1,Failed,90000,90060,100.00,0.2\n"
    ),
    "pai_task_table.csv": (
        "j1,worker,2,Terminated,100.0,3700.0,600.0,29.3,50.0,T4\nj2,ps,1,Failed,200.0,,600.0,29.3,,\n"
        "j3,worker,1,Running,300.0,400.0,600.0,29.3,,CPU\n"
    ),
    "cluster_log.csv": (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
        "7,ua,vc1,8,64,1,COMPLETED,2020-04-01 00:00:07,2020-04-01 00:01:07,2020-04-01 01:01:07,3600,60\n"
        "8,ub,vc1,0,4,1,CANCELLED,2020-04-01 00:00:08,2020-04-01 00:00:08,2020-04-01 00:00:09,1,0\n"
    ),
    "openb_pod_list_default.csv": (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        "p0,3152,16384,1,460,,LS,Running,0,7200,0\np1,4000,8192,0,0,,BE,Pending,10,7200,\n"
    ),
    "job_table.parquet": {
        "submit_time": [BEGIN], "start_time": [BEGIN + HOUR], "end_time": [BEGIN + 2 * HOUR],
        "num_cores_alloc": [128], "time_limit": [90], "user_id": [3], "partition": ["1"], "job_state": ["COMPLETED"],
    },
    "eagle_data.parquet": {
        "submit_time": [BEGIN], "start_time": [BEGIN + HOUR], "end_time": [BEGIN + 2 * HOUR],
        "processors_req": [36], "wallclock_req": [7200], "user": ["user1"], "partition": ["short"], "state": ["TIMEOUT"],
    },
}  # fmt: skip
"""Small tables with the columns of each."""

JOBS = {
    "jobs.csv": ([4], [3600]),
    "batch_task.csv": ([3, 1], [3600, 60]),
    "pai_task_table.csv": ([1], [3600]),
    "cluster_log.csv": ([8], [3600]),
    "openb_pod_list_default.csv": ([4, -1], [7200, -1]),
    "job_table.parquet": ([128], [3600]),
    "eagle_data.parquet": ([36], [3600]),
}
"""Widths and run times that are in their logs."""


def test_every_command_has_a_table() -> None:
    """And every table its command."""
    assert [command.split()[2] for command in COMMANDS] == list(FILES) == list(JOBS)


@pytest.mark.parametrize("command", COMMANDS, ids=list(FILES))
def test_commands(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each makes a log of its table."""
    monkeypatch.chdir(tmp_path)
    name = command.split()[2]
    content = FILES[name]
    if isinstance(content, str):
        Path(name).write_text(content, encoding="utf-8")
    else:
        pq.write_table(pa.table(content), name)
    assert run_command(command.split()) == 0
    log = read_swf(command.split()[4])
    assert (log.processors_allocated.tolist(), log.run_time.tolist()) == JOBS[name]
