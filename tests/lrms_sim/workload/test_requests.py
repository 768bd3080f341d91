from collections.abc import Callable

import pytest

from lrms_sim.workload.requests import (
    Gpus,
    Memory,
    Request,
    RequestError,
    gpus_of,
    licence_of,
    memory_of,
    mib_of,
    nodes_of,
    size_text,
)


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("tasks: 0 is not from 1", lambda: Request(tasks=0)),
        ("cores per task: -1", lambda: Request(cores_per_task=-1)),
        ("3 nodes for 2 tasks; every", lambda: Request(tasks=2, nodes_min=3)),
        ("from 3 to 2 is no range", lambda: Request(tasks=4, nodes_min=3, nodes_max=2)),
        (
            "8 tasks do not go on 2 nodes with 3 each",
            lambda: Request(tasks=8, nodes_max=2, tasks_per_node=3),
        ),
        ("memory per GPU, and no GPU", lambda: Request(memory=Memory(1, "gpu"))),
        ("memory is 0 MiB", lambda: Memory(0)),
        ("GPUs: 0", lambda: Gpus(0)),
        ("the wall time is 0", lambda: Request(wall_time=0)),
        ("the wall time is nan", lambda: Request(wall_time=float("nan"))),
        ("licences of matlab: 0", lambda: Request(licences=(("matlab", 0),))),
        ("more than 2147483647 cores", lambda: Request(tasks=2**20, cores_per_task=2**20)),
    ],
)
def test_contradictions_are_refused(words: str, make: object) -> None:
    """The text says which."""
    assert callable(make)
    with pytest.raises(RequestError, match=words):
        make()


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (Request.of_processors(8), "8 processors"),
        (
            Request(tasks=4, cores_per_task=2, memory=Memory(8192, "node")),
            "4 tasks of 2 cores, 8 GiB a node",
        ),
        (
            Request(
                tasks=2, nodes_min=2, nodes_max=2, gpus=Gpus(4, "node", "a100"), exclusive=True
            ),
            "2 tasks, 2 nodes, 4 GPUs (a100) a node, exclusive",
        ),
        (Request(features=("avx512",), licences=(("matlab", 2),)), "1 task, avx512, 2 × matlab"),
        (
            Request(tasks=4, nodes_min=2, nodes_max=4, tasks_per_node=2),
            "4 tasks, 2 to 4 nodes, at most 2 tasks a node",
        ),
        (
            Request(tasks=2, partition="batch", account="proj", qos="long", modules=("gcc/12",)),
            "2 processors, partition batch, account proj, QOS long, module gcc/12",
        ),
    ],
)
def test_requests_are_shown_as_people_write_them(request_: Request, text: str) -> None:
    """In one line."""
    assert str(request_) == text


def test_gpus_of_a_job_are_dealt_out_evenly() -> None:
    """To tasks, else to a fixed number of nodes, else all on one node."""
    assert Request(tasks=2, gpus=Gpus(4)).node_gpus() == Gpus(2, "task")
    fixed = Request(tasks=3, nodes_min=2, nodes_max=2, gpus=Gpus(4))
    assert fixed.node_gpus() == Gpus(2, "node")
    assert not fixed.on_one_node
    odd = Request(tasks=3, gpus=Gpus(4, type="a100"))
    assert odd.node_gpus() == Gpus(4, "node", "a100")
    assert odd.on_one_node


def test_sizes_are_whole_in_their_unit() -> None:
    """Nothing is rounded."""
    assert [size_text(mib) for mib in (1, 1024, 1536, 1024**2, 3 * 1024**3)] == [
        "1 MiB",
        "1 GiB",
        "1536 MiB",
        "1 TiB",
        "3 PiB",
    ]


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("4 GiB", 4096), ("4G", 4096), ("4096M", 4096), ("4096", 4096), ("1.5 TiB", 1536 * 1024),
        ("1K", 1), ("1025 KiB", 2), ("4GB", 4096), ("0", 0), ("4 X", None), ("", None), ("-1G", None),
        ("GiB", None),
    ],
)  # fmt: skip
def test_amounts_of_memory(text: str, mib: int | None) -> None:
    """Units are powers of 1024, MiB where there is none; parts round up."""
    assert mib_of(text) == mib


def test_the_least_that_a_request_takes() -> None:
    """On as few nodes as it allows."""
    node = Request(tasks=8, nodes_min=2, memory=Memory(100, "node"), gpus=Gpus(2, "node"))
    assert (node.memory_least, node.gpus_least) == (200, 4)
    task = Request(tasks=8, cores_per_task=2, memory=Memory(10), gpus=Gpus(1, "task"))
    assert (task.memory_least, task.gpus_least) == (160, 8)
    job = Request(tasks=8, memory=Memory(10, "gpu"), gpus=Gpus(3))
    assert (job.memory_least, job.gpus_least) == (30, 3)
    assert (Request().memory_least, Request().gpus_least) == (0, 0)


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (nodes_of, "2", (2, 2)),
        (nodes_of, "2-4", (2, 4)),
        (memory_of, "4G", Memory(4096, "core")),
        (memory_of, "64GiB/node", Memory(65536, "node")),
        (memory_of, "1t/gpu", Memory(1 << 20, "gpu")),
        (gpus_of, "2", Gpus(2)),
        (gpus_of, "a100:2/node", Gpus(2, "node", "a100")),
        (licence_of, "matlab", ("matlab", 1)),
        (licence_of, "matlab@host:2", ("matlab@host", 2)),
    ],
)
def test_words_are_read(read: Callable[[str], object], text: str, value: object) -> None:
    """With what they leave out."""
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (nodes_of, "x"),
        (nodes_of, "2-"),
        (nodes_of, "9" * 16),
        (memory_of, "4"),
        (memory_of, "4G/rack"),
        (memory_of, "0G"),
        (gpus_of, "a100:"),
        (gpus_of, "1/rack"),
        (licence_of, "a b"),
    ],
)
def test_other_words_are_refused(read: Callable[[str], object], text: str) -> None:
    """With the text."""
    with pytest.raises(RequestError):
        read(text)
