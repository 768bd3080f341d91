"""Whether a job would start above Grid Engine, by what qstat 8.1 has printed of queues on hosts."""

from dataclasses import replace

import pytest

from grms.lrms.gridengine.gridengine_nodes import GridTable, read_grid_table, shown_resources
from grms.lrms.gridengine.gridengine_request import Cell, Resource
from grms.lrms.node_groups import NodeGroup
from grms.lrms.partitions import Partition
from lrms_sim.workload.requests import MEMORY_MAX, Gpus, Memory, Request

QUEUE = """    <Queue-List>
      <name>{name}</name>
      <qtype>BP</qtype>
      <slots_used>{used}</slots_used>
      <slots_resv>0</slots_resv>
      <slots_total>16</slots_total>
      <load_avg>3.05078</load_avg>
      <arch>lx-amd64</arch>
      {more}
      <resource name="matlab" type="gc">2</resource>
      <resource name="h_vmem" type="hc">{memory}</resource>
      <resource name="gpu" type="hc">{gpus}</resource>
      <resource name="gpu_type" type="hf">a100</resource>
      <resource name="skylake" type="hf">{skylake}</resource>
      <resource name="slots" type="qc">{free}</resource>
      <job_list state="running">
        <JB_job_number>2</JB_job_number>
        <JB_name>state</JB_name>
        <state>r</state>
        <slots>2</slots>
      </job_list>
    </Queue-List>
"""
FRAME = (
    "<?xml version='1.0'?>\n<job_info>\n<queue_info>\n{}</queue_info>\n<job_info>\n</job_info>\n"
)
BUSY = {"name": "main@a", "used": 2, "free": 14, "memory": "12.000G", "gpus": 2, "more": ""}
IDLE = {"name": "main@b", "used": 0, "free": 16, "memory": "16.000G", "gpus": 4, "more": ""}
CELL = Cell(
    {
        "h_vmem": Resource("MEMORY", "<=", "YES"),
        "gpu": Resource("INT", "<=", "YES"),
        "gpu_type": Resource("STRING", "==", "NO"),
        "skylake": Resource("BOOL", "==", "NO"),
        "matlab": Resource("INT", "<=", "JOB"),
        "load_avg": Resource("DOUBLE", ">=", "NO"),
        "slots": Resource("INT", "<=", "YES"),
    },
    "smp",
    "$pe_slots",
    "h_vmem",
    "gpu",
    "gpu_type",
)
MAIN = Partition("main", "open", longest_s=7200.0, widest=32)


def table(
    *queues: dict[str, object],
    cell: Cell = CELL,
    waiting: bool = False,
    most: dict[tuple[str, str], float] | None = None,
) -> GridTable:
    """Returns the table of queues on hosts."""
    text = "".join(QUEUE.format(**{"skylake": "1.000000", **queue}) for queue in queues)
    kept = {} if most is None else most
    return read_grid_table(FRAME.format(text) + "</job_info>", (MAIN,), cell, kept, waiting=waiting)


def test_queues_on_hosts_are_read() -> None:
    """A job's lines are none of theirs, and how much there is shows where nobody has any."""
    assert shown_resources(CELL) == ["gpu", "gpu_type", "h_vmem", "matlab", "skylake", "slots"]
    busy, idle = table(BUSY, IDLE).groups
    features, main = frozenset(["skylake"]), frozenset(["main"])
    assert idle == NodeGroup(
        ("main@b",), main, 16, 16_384, (("a100", 4),), features, 16, 16_384, (("a100", 4),)
    )
    assert (busy.free_cores, busy.free_memory, busy.free_gpus) == (14, 12_288, (("a100", 2),))
    assert (busy.memory, busy.idle) == (MEMORY_MAX, False)
    assert [(kind.memory, kind.gpus) for kind in table(BUSY, IDLE).kinds()] == [(0, 0), (16_384, 4)]
    most: dict[tuple[str, str], float] = {}
    table({**IDLE, "name": "main@a"}, most=most)
    (later,) = table(BUSY, most=most).groups
    assert (later.memory, later.gpus) == (16_384, (("a100", 4),))
    (plain,) = table({**IDLE, "skylake": "0.000000", "memory": "INFINITY"}).groups
    assert (plain.features, plain.memory) == (frozenset(), 0)
    with pytest.raises(ValueError, match="not a table of queues"):
        read_grid_table("error: commlib error", (MAIN,), CELL, {}, waiting=False)


@pytest.mark.parametrize(
    ("request_", "starts"),
    [
        (Request(14), True),
        (Request(15), False),
        (Request(2, memory=Memory(6144)), True),
        (Request(2, memory=Memory(6145)), False),
        (Request(2, gpus=Gpus(1, "task", "a100"), features=("skylake",)), True),
        (Request(1, gpus=Gpus(3)), False),
        (Request(1, licences=(("matlab", 2),)), True),
        (Request(1, licences=(("matlab", 3),)), False),
        (Request(1, wall_time=9000.0), False),
    ],
)
def test_a_job_starts_where_its_host_has_room(request_: Request, *, starts: bool) -> None:
    """All its slots are on one, as the parallel environment deals them out."""
    assert table(BUSY).starts_now(request_, 0.0) is starts
    assert not table(BUSY, waiting=True).starts_now(request_, 0.0)
    assert not table({**BUSY, "more": "<state>au</state>"}).starts_now(request_, 0.0)


def test_what_the_cell_has_no_words_for_never_runs() -> None:
    """Or what no host could give, as far as that is known."""
    there = table(IDLE, {**IDLE, "name": "main@c"})
    assert "one host" in there.never(Request(4, nodes_min=2))
    assert "no container image" in there.why_not(Request(image="i"))
    assert there.never(Request(17)) == "main has room for 16 of 17 tasks"
    assert there.never(Request(gpus=Gpus(1, type="v100"))) == "no node of main has v100 GPUs"
    assert not there.starts_now(Request(image="i"), 0.0)
    assert table(BUSY).never(Request(gpus=Gpus(99))) == ""
    disabled = table({**IDLE, "more": "<state>d</state>"})
    assert disabled.why_not(Request(2)) == "nodes of main that it needs are d"
    assert disabled.stays(Request(2)) == disabled.why_not(Request(2))
    assert disabled.shut(Request(2)) == ""


def test_slots_are_dealt_out_by_the_environments_number() -> None:
    """So many on each host, whatever else is free."""
    cell = replace(CELL, rule="8")
    there = table(IDLE, {**IDLE, "name": "main@c"}, cell=cell)
    assert there.starts_now(Request(4, 4, nodes_min=2, nodes_max=2), 0.0)
    assert there.starts_now(Request(16), 0.0)
    assert not there.starts_now(Request(24), 0.0)
    assert not there.starts_now(Request(16), 0.0, [Request(8), Request(8), Request(8)])
    assert not there.starts_now(Request(24, memory=Memory(10)), 0.0)


def test_nobody_comes_to_a_host_that_one_has_for_himself() -> None:
    """And who wants one for himself needs one that nobody uses."""
    cell = replace(CELL, resources={**CELL.resources, "alone": Resource("BOOL", "EXCL", "YES")})
    more = '<resource name="alone" type="hc">{}.000000</resource>'
    taken = {**BUSY, "more": more.format(0)}
    assert not table(taken, cell=cell).starts_now(Request(1), 0.0)
    asks = Request(2, exclusive=True)
    assert not table({**BUSY, "more": more.format(1)}, cell=cell).starts_now(asks, 0.0)
    assert table({**IDLE, "more": more.format(1)}, cell=cell).starts_now(asks, 0.0)
    assert "for itself" in table(IDLE).never(asks)
