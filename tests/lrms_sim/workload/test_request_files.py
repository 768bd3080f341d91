"""Files of requests: they come back as written, and mistakes name their line."""

from pathlib import Path

import psutil
import pytest
from hypothesis import given

from lrms_sim.workload.request_files import RequestFileError, read_requests, write_requests
from lrms_sim.workload.request_text import fields_of, request_of
from lrms_sim.workload.requests import Gpus, Memory, Request
from tests.node_strategies import requests

FULL = Request(
    tasks=4,
    cores_per_task=2,
    nodes_min=2,
    nodes_max=4,
    tasks_per_node=2,
    memory=Memory(100, "gpu"),
    gpus=Gpus(2, "task", "a100"),
    features=("ib", "nvme"),
    exclusive=True,
    licences=(("matlab", 2), ("ansys", 1)),
)


def test_they_come_back(tmp_path: Path) -> None:
    """Of processors alone there is no row, as a log says them."""
    path = tmp_path / "requests.csv"
    asked = [(1, FULL), (2, Request(tasks=3)), (3, None), (9, Request(memory=Memory(5, "node")))]
    assert write_requests(path, asked) == 2
    assert read_requests(path) == {1: FULL, 9: Request(memory=Memory(5, "node"))}


@given(request=requests())
def test_fields_say_all_of_a_request(request: Request) -> None:
    """Whatever it asks for."""
    assert request_of(fields_of(request)) == request


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,tasks\n1,2\n", ":1: no column job_id; columns are job_id, tasks"),
        ("job_id,memory\n1,2\n", ":1: 'memory' is no column"),
        ("job_id,tasks\n1,two\n", ":2: tasks is 'two'; a whole number is expected"),
        ("job_id,tasks\n1,2\n1,3\n", ":3: job 1 has a row before this one"),
        ("job_id,tasks\nx,2\n", ":2: job_id is 'x'; a whole number"),
        ("job_id,tasks,nodes_min\n1,2,3\n", ":2: 3 nodes for 2 tasks"),
        ("job_id,memory_mib,memory_per\n1,2,cpu\n", ":2: memory_per: 'cpu' is no word"),
        ("job_id,exclusive\n1,maybe\n", ":2: exclusive is 'maybe'; yes or no is expected"),
        ("job_id,licences\n1,matlab:x\n", ":2: licences: 'matlab:x' is not NAME:COUNT"),
        ("job_id,tasks\n1\n", ":2: 1 columns, there are 2 names"),
    ],
)
def test_mistakes_name_their_line(tmp_path: Path, text: str, words: str) -> None:
    """And say what was expected."""
    path = tmp_path / "requests.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((RequestFileError, ValueError)) as met:
        read_requests(path)
    assert f"{path}{words}" in str(met.value)
    assert not [each for each in psutil.Process().open_files() if each.path == str(path)]


def test_rows_of_people(tmp_path: Path) -> None:
    """Some columns are enough; blank cells and 0 say nothing, and a licence without a number is one."""
    path = tmp_path / "requests.csv"
    path.write_text("job_id,tasks,gpus,licences\n4,,0,matlab\n5,2,1,\n", encoding="utf-8")
    assert read_requests(path) == {
        4: Request(licences=(("matlab", 1),)),
        5: Request(tasks=2, gpus=Gpus(1)),
    }
