"""What docs/how-to/published-tables.md says of published tables works on tables with their columns."""

import json
import re
import tomllib
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lrms_sim.cli.import_command import PUBLISHED
from lrms_sim.cli.main import run_command
from lrms_sim.workload.swf import read_swf

PAGE = (Path(__file__).parents[2] / "docs/how-to/published-tables.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    lrms-sim (import .*)", PAGE, flags=re.MULTILINE)

HOUR = timedelta(hours=1)
BEGIN = datetime(2021, 5, 1, 12)  # noqa: DTZ001  # as the tables have it

FILES: dict[str, str | dict[str, list[object]]] = {
    "jobs.csv": "submitted,began,ended,cores\n2024-01-01,2024-01-01 01:00,2024-01-01 02:00,4\n",
    "21_04.parquet": {
        # Every time is a text, and whatever a job had not is missing.
        "jid": ["j1", "j2", "j3"], "usr": ["u1", "u2", None], "jnam": ["a", "b", "c"],
        "cnumr": [96, 48, 48], "cnumat": [96, 48, 0], "cnumut": [96, 48, 0], "nnumr": [2, 1, 1],
        "adt": ["2021-04-01 00:00:00", "2021-04-01 00:00:10", "2021-04-01 00:00:20"],
        "qdt": [None, None, None], "schedsdt": [None, None, None], "deldt": [None, None, None], "ec": [0, 1, 0],
        "elpl": [7200.0, None, 60.0],
        "sdt": ["2021-04-01 01:00:00", "2021-04-01 02:00:00", None],
        "edt": ["2021-04-01 02:00:00", "2021-04-01 02:00:30", "2021-04-01 02:00:00"],
        "nnuma": [2, 1, 0], "exit state": ["completed", "failed", "failed"], "mszl": [28.0, None, None],
        "duration": [3600.0, 30.0, None],
    },
    "job_table.parquet": {
        "submit_time": [BEGIN, BEGIN], "start_time": [BEGIN + HOUR, BEGIN + HOUR],
        "end_time": [BEGIN + 2 * HOUR, BEGIN + HOUR], "num_cores_alloc": [256, 4], "num_nodes_alloc": [2, 1],
        "mem_alloc": [474, 8], "num_gpus_alloc": [8, 0], "time_limit": [90, None], "user_id": [3, 4],
        "group_id": [1, 1], "partition": ["1", None], "job_state": ["COMPLETED", "CANCELLED"], "job_id": [7, 8],
    },
    "eagle_data.parquet": {
        "job_id": [1, 2], "user": ["user1", None], "account": ["a", "b"], "partition": ["short", "gpu"],
        "submit_time": [BEGIN, BEGIN], "start_time": [BEGIN + HOUR, None], "end_time": [BEGIN + 2 * HOUR, BEGIN + HOUR],
        "processors_req": [72, 36], "nodes_req": [2, 1], "gpus_req": [0, 2], "wallclock_req": [7200, 60],
        "state": ["TIMEOUT", "CANCELLED"], "mem_req": ["180000M", "5Gc"],
    },
    "frontier-2024.swf": (
        "; UnixStartTime: 1704067200\n"
        "1 0 60 3600 2 -1 -1 2 7200 -1 1 5 2 -1 -1 -1 -1 -1 16 -1 frontier:excl:2x112\n"
        "2 5 -1 -1 448 -1 -1 448 60 -1 5 6 2 -1 -1 -1 -1 -1 -1 -1 frontier:shared:4x112\n"
        "3 9 1 2 1 -1 -1 1 60 -1 1 6 2 -1 -1 -1 -1 -1 -1 -1 somewhere\n"
    ),
    "cluster_job_log": json.dumps([
        {"status": "Pass", "vc": "vc1", "jobid": "a1", "user": "u1", "submitted_time": "2017-10-09 07:00:00",
         "attempts": [
             {"start_time": "2017-10-09 07:10:00", "end_time": "2017-10-09 07:20:00",
              "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0", "gpu1"]}]},
             {"start_time": "2017-10-09 07:30:00", "end_time": "2017-10-09 08:10:00",
              "detail": [{"ip": "m3", "gpus": ["gpu0", "gpu1", "gpu2", "gpu3"]}]},
         ]},
        {"status": "Killed", "vc": "vc1", "jobid": "a2", "user": "u2", "submitted_time": "2017-10-09 07:00:01",
         "attempts": []},
        {"status": "Failed", "vc": "vc2", "jobid": "a3", "user": "u2", "submitted_time": "2017-10-09 07:00:02",
         "attempts": [{"start_time": "2017-10-09 07:10:00", "end_time": "None", "detail": []}]},
        {"status": "Failed", "vc": "vc2", "jobid": "a4", "user": "None", "submitted_time": "None", "attempts": []},
    ]),
    "cluster_log.csv": (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
        "7,ua,vc1,8,64,1,COMPLETED,2020-04-01 00:00:07,2020-04-01 00:01:07,2020-04-01 01:01:07,3600,60\n"
        "8,ub,vc1,0,4,1,CANCELLED,2020-04-01 00:00:08,2020-04-01 00:00:08,2020-04-01 00:00:09,1,0\n"
    ),
    "batch_task.csv": (
        "M1,2,j_1,1,Terminated,86400,90000,150.0,0.39\nM2_1,1,j_1,1,Waiting,90000,,50,0.2\n"
        "R3_2,1,j_1,1,Failed,90000,90060,100.00,0.2\n"
    ),
    "pai_task_table.csv": (
        "j1,worker,2,Terminated,100.0,3700.0,600.0,29.3,50.0,T4\nj2,ps,1,Failed,200.0,,600.0,29.3,,\n"
        "j3,worker,1,Running,300.0,400.0,600.0,29.3,,CPU\n"
    ),
    "openb_pod_list_default.csv": (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        "p0,3152,16384,1,460,,LS,Running,0,7200,0\np1,4000,8192,0,0,,BE,Pending,10,7200,\n"
    ),
    "disaggregated_DLRM_trace.csv": (
        "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,"
        "memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n"
        "i1,HN,app_0,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,,,\n"
        "i2,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,1435629.0,1435629.0,1435760.0\n"
        "i3,HN,app_0,12,12,1,1,25,25,0.5,0.5,1.0,1.0,8,1435630.0,1435640.0,1435700.0\n"
    ),
}  # fmt: skip
"""Small tables with the columns of each, and with what may be missing."""

JOBS: dict[str, tuple[list[int], list[float]]] = {
    "jobs.csv": ([4], [3600]),
    "21_04.parquet": ([96, 48], [3600, 30]),
    "job_table.parquet": ([4, 256], [0, 3600]),
    "eagle_data.parquet": ([-1, 72], [-1, 3600]),
    "frontier-2024.swf": ([224, -1], [3600, -1]),
    "cluster_job_log": ([4], [3600]),
    "cluster_log.csv": ([64, 4], [3600, 1]),
    "batch_task.csv": ([3, 1], [3600, 60]),
    "pai_task_table.csv": ([1], [3600]),
    "openb_pod_list_default.csv": ([4, -1], [7200, -1]),
    "disaggregated_DLRM_trace.csv": ([64, 12], [131, 60]),
}
"""Widths and run times that are in their logs."""

REQUESTS = {
    "21_04.parquet": ["96,,2,2,", "48,,,1,"],
    "job_table.parquet": ["4,,,1,,8192,node", "256,,2,2,,242688,node,8,job"],
    "eagle_data.parquet": ["36,,,,,,,2,job", "72,,2,"],
    "frontier-2024.swf": ["224,,2,2,,,,16,job,,,yes", "448,,4,4,"],
    "cluster_job_log": ["4,,2,2,,,,4,job"],
    "cluster_log.csv": ["64,,,1,,,,8,job", "4,,,1,"],
    "openb_pod_list_default.csv": ["4,,,1,,16384,node,1,job", "4,,,1,,8192,node"],
    "disaggregated_DLRM_trace.csv": ["64,,,1,,327680,node", "12,,,1,,512,node,1,job"],
}
"""What jobs ask of nodes, as the file of requests begins behind the number of the job."""


def test_every_command_has_a_table() -> None:
    """And every table its command."""
    assert [command.split()[2] for command in COMMANDS] == list(FILES) == list(JOBS)
    assert {command.split()[2] for command in COMMANDS if "--requests" in command} == set(REQUESTS)


def test_every_name_is_on_the_page() -> None:
    tables = files("lrms_sim.workload.accounting") / "published.toml"
    assert tuple(tomllib.loads(tables.read_text(encoding="utf-8"))) == PUBLISHED
    named = set(re.findall(r"^\| `([\w-]+)` \|", PAGE.split("## Traces by name")[1], re.MULTILINE))
    assert named == {*PUBLISHED, "philly", "frontier"}


def make(name: str) -> None:
    content = FILES[name]
    if isinstance(content, str):
        Path(name).write_text(content, encoding="utf-8")
    else:
        pq.write_table(pa.table(content), name)


@pytest.mark.parametrize("command", COMMANDS, ids=list(FILES))
def test_commands(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each makes a log of its table, and of what its jobs ask for."""
    monkeypatch.chdir(tmp_path)
    words = command.split()
    make(words[2])
    assert run_command(words) == 0
    log = read_swf(words[4])
    assert (log.processors_allocated.tolist(), log.run_time.tolist()) == JOBS[words[2]]
    if words[2] in REQUESTS:
        rows = Path(words[words.index("--requests") + 1]).read_text(encoding="utf-8").splitlines()
        found = [row.split(",", 1)[1] for row in rows[1:]]
        assert len(found) == len(REQUESTS[words[2]])
        for row, begin in zip(found, REQUESTS[words[2]], strict=True):
            assert row.startswith(begin), rows


def test_what_cannot_be_used_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make("cluster_job_log")
    assert run_command(["import", "philly", "cluster_job_log", "-o", "log.swf"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"1  jobs with a time that is none, left out", shown)
    assert re.search(r"1  jobs without a number of processors, left out", shown)
    assert re.search(r"1  jobs that had not ended", shown)


def test_an_early_version_is_read_by_its_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a missing column is said with those that there are."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(
        pa.table({
            "submit_time": [BEGIN], "start_time": [BEGIN], "end_time": [BEGIN + HOUR],
            "num_cpus_alloc": [8], "time_limit": [60],
        }),
        "early.parquet",
    )  # fmt: skip
    words = ["import", "pm100", "early.parquet", "-o", "log.swf"]
    assert run_command(words) == 2
    assert "no column 'num_cores_alloc' for processors; there are: submit_time" in (
        capsys.readouterr().err
    )
    assert run_command([*words, "--column", "processors=num_cpus_alloc"]) == 0
    assert read_swf("log.swf").requested_time.tolist() == [3600]


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("philly", "{]", "no JSON"),
        ("philly", "[3]", "int where a job is expected"),
        ("philly", '[{"submitted_time": "soon"}]', "submitted_time is 'soon'"),
        ("frontier", "1 2 3", "3 columns; logs of Frontier have 21"),
        ("frontier", " ".join([*"1" * 20, "frontier:excl:0x0"]), "without a number of processors"),
        ("frontier", " ".join(["1", "-1", *"1" * 18, "f:e:1x1"]), "nothing says when"),
        ("frontier", " ".join(["1", "x", *"1" * 18, "f:e:1x1"]), "'x'; a number or -1 is expected"),
        ("frontier", " ".join(["1", "nan", *"1" * 18, "f:e:1x1"]), "'nan'; a number"),
        ("helios", "job_id,cpu_num\n1,2\n", "no column 'submit_time'"),
    ],
)
def test_what_is_no_such_file_says_why(
    kind: str, text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text(text, encoding="utf-8")
    assert run_command(["import", kind, str(file), "-o", str(tmp_path / "log.swf")]) == 2
    assert said in capsys.readouterr().err
