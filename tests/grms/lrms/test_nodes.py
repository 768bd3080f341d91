"""Whether a job would start on nodes: against trying every way, and by what is promised to others."""

from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.node_groups import NodeGroup, Promised, grouped
from grms.lrms.nodes import BEFORE_MAX, MARGIN_S, Licence, NodeTable
from grms.lrms.partitions import Admitted, Charged, Partition
from lrms_sim.machine.node_kinds import NodeKind, NodeMachine
from lrms_sim.workload.requests import Gpus, Memory, Request
from tests.node_strategies import machines, requests
from tests.oracles.node_rooms import has_room, one_by_one

PARTITIONS = st.builds(
    Partition,
    name=st.just("main"),
    state=st.just("UP"),
    nodes_min=st.sampled_from([1, 1, 1, 2]),
    nodes_max=st.sampled_from([None, None, 1, 2]),
    cores_max=st.sampled_from([None, None, 2]),
    memory_max=st.sampled_from([None, None, 12]),
    core_memory_max=st.sampled_from([None, None, 4]),
    default_memory=st.sampled_from([None, None, Memory(3), Memory(10, "node")]),
    all_memory=st.booleans(),
    whole_nodes=st.sampled_from([False, False, True]),
)

UNLICENSED = requests().map(lambda request: replace(request, licences=()))  # a table drawn has none


@st.composite
def tables(draw: st.DrawFn) -> NodeTable:
    """Returns a table of at most four nodes, some of which are in use and some away."""
    machine: NodeMachine = draw(machines())
    nodes = [draw(used(kind, number)) for kind in machine.kinds for number in range(kind.nodes)]
    return NodeTable(grouped(nodes[:4]), (draw(PARTITIONS),), ("main",))


@st.composite
def used(draw: st.DrawFn, kind: NodeKind, number: int) -> NodeGroup:
    """Returns a node of a kind, with jobs on it or none."""
    empty = NodeGroup(
        (f"{kind.name}-{number}",),
        frozenset(["main"]),
        kind.cores,
        kind.memory,
        ((kind.gpu_type, kind.gpus),) if kind.gpus else (),
        kind.features,
        step=draw(st.sampled_from([1, 1, 2])),
        task_step=draw(st.sampled_from([1, 1, 2])),
        weight=draw(st.sampled_from([1, 1, 2])),
    )
    empty = replace(empty.as_empty(), away=draw(st.sampled_from(["", "", "", "DRAIN"])))
    if draw(st.booleans()):
        return empty
    return replace(
        empty,
        free_cores=draw(st.integers(0, kind.cores)),
        free_memory=draw(st.integers(0, kind.memory)),
        free_gpus=tuple((name, draw(st.integers(0, count))) for name, count in empty.gpus),
        idle=False,
    )


@given(tables(), UNLICENSED)
def test_a_job_starts_if_there_is_a_way_to_place_it(table: NodeTable, request_: Request) -> None:
    """And is never run if there is none while nobody uses the machine."""
    (part,) = table.partitions
    empty = [group.as_empty() for group in table.groups]
    works = [group.as_empty() for group in table.groups if not group.away]
    assert table.starts_now(request_, 0.0) == has_room(request_, table.groups, part)
    assert (table.never(request_) == "") == has_room(request_, empty, part)
    assert (table.why_not(request_) == "") == has_room(request_, works, part)


@given(tables(), UNLICENSED, UNLICENSED)
def test_what_was_submitted_before_has_its_room(
    table: NodeTable, first: Request, second: Request
) -> None:
    """The one that starts behind another starts without it, and both have what they ask for."""
    if not table.starts_now(second, 0.0, [first]):
        return
    assert table.starts_now(first, 0.0)
    assert table.starts_now(second, 0.0)
    free = sum(node.free_cores for node in one_by_one(table.groups) if not node.away)
    assert first.processors + second.processors <= free


# --- one machine by hand ---------------------------------------------------------------------------

MAIN = Partition("main", "UP", longest_s=7200.0)
GPU = Partition("gpu", "UP", nodes_max=1, longest_s=3600.0)
PLAIN = NodeGroup(("n1", "n2"), frozenset(["main"]), 8, 16_000, features=frozenset(["skylake"]))
FAST = NodeGroup(("g1",), frozenset(["gpu", "main"]), 16, 32_000, (("a100", 4),), weight=10)
TABLE = NodeTable((PLAIN.as_empty(), FAST.as_empty()), (MAIN, GPU), ("main",))


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (Request(33), "main has room for 32 of 33 tasks"),
        (Request(1, 17), "no node of main gives a task more than 16 cores"),
        (Request(4, nodes_min=4), "main has 3 nodes that will do"),
        (Request(20, nodes_max=1), "main has room for 16 of 20 tasks"),
        (Request(features=("icelake",)), "no node of main has the feature icelake"),
        (Request(gpus=Gpus(5)), "no node of main has more than 4 GPUs"),
        (Request(gpus=Gpus(1, type="v100")), "no node of main has v100 GPUs"),
        (Request(memory=Memory(64_000, "node")), "no node of main gives a job more than 32000 MiB"),
        (Request(2, nodes_min=2, partition="gpu"), "a job in gpu has at most 1 node"),
        (Request(partition="long"), "there is no partition long"),
        (Request(wall_time=7201.0), "the longest job in main may run 120 min"),
        (
            Request(wall_time=7201.0, partition="main,gpu"),
            "the longest job in main may run 120 min; the longest job in gpu may run 60 min",
        ),
        (Request(licences=(("matlab", 1),)), "there are 0 licences of matlab; it asks for 1"),
        (
            Request(features=("skylake",), gpus=Gpus(1)),
            "no node of main has GPUs",
        ),
    ],
)
def test_what_is_never_run_is_refused_with_what_is_missing(request_: Request, why: str) -> None:
    """By the greatest that there is, where it is a matter of numbers."""
    assert TABLE.never(request_) == TABLE.why_not(request_) == TABLE.stays(request_) == why
    assert not TABLE.starts_now(request_, 0.0)


def test_a_partition_takes_jobs_of_its_accounts_and_qos() -> None:
    """However the name is written; whose job it is that names none is the batch system's to say."""
    bio = Admitted(frozenset(["bio"]), barred=False)
    table = replace(
        TABLE, partitions=(replace(MAIN, accounts=bio, qos=Admitted(frozenset(["low"]))), GPU)
    )
    for request in (Request(), Request(account="Bio"), Request(account="bio", qos="high")):
        assert table.why_not(replace(request, wall_time=1.0)) == ""
        assert table.starts_now(replace(request, wall_time=1.0), 0.0)
    for request, why in (
        (Request(account="chem"), "main takes no jobs of account chem"),
        (Request(qos="LOW"), "main takes no jobs of QOS LOW"),
    ):
        assert table.why_not(request) == why
        assert not table.starts_now(request, 0.0)
        assert table.lacks(request) == ""  # for own users it waits
        assert table.why_not(replace(request, partition="main,gpu")) == ""


def test_jobs_that_name_no_account_are_of_the_one_that_they_are_submitted_under() -> None:
    """Partners' and own ones, where a partition tells accounts or QOS apart; else they stay as they are."""
    bio = Admitted(frozenset(["bio"]), barred=False)
    low = Admitted(frozenset(["low"]))
    usual = replace(TABLE, own=Charged("bio", "high"), guests=Charged("grid", "low"))
    request = Request(wall_time=1.0)
    for main, named in (
        (MAIN, request),
        (replace(MAIN, accounts=bio), replace(request, account="grid")),
        (replace(MAIN, qos=low), replace(request, qos="low")),
    ):
        table = replace(usual, partitions=(main, GPU))
        assert table.named(request, guest=True) == named
        assert table.starts_now(named, 0.0) is (named == request)
        assert table.starts_now(table.named(request, guest=False), 0.0)
    table = replace(usual, partitions=(replace(MAIN, accounts=bio), GPU))
    chem = replace(request, account="chem")
    assert table.named(chem, guest=True) == chem


def test_where_all_partitions_have_to_take_an_account_one_that_does_not_is_enough() -> None:
    """Slurm refuses such a job at once with EnforcePartLimits=ALL, and an own user is told so before."""
    main = replace(MAIN, accounts=Admitted(frozenset(["bio"]), barred=False))
    both = Request(partition="main,gpu", account="chem", wall_time=1.0)
    alone = replace(both, partition="main")
    why = "main takes no jobs of account chem"
    cases: tuple[tuple[Literal["", "any", "all"], str, str], ...]
    cases = (("", "", ""), ("any", "", why), ("all", why, why))
    for enforced, of_both, of_alone in cases:
        table = replace(TABLE, partitions=(main, GPU), enforced=enforced)
        assert (table.lacks(both), table.lacks(alone)) == (of_both, of_alone)
        assert (table.why_not(both), table.why_not(alone)) == (of_both, why)
        assert table.starts_now(both, 0.0) is (of_both == "")
        assert not table.starts_now(alone, 0.0)


def test_a_gpu_brings_its_memory() -> None:
    """Where nothing else is asked for, also beside a default of each core."""
    gpu = replace(GPU, default_gpu_memory=10_000, default_memory=Memory(1))
    table = replace(TABLE, partitions=(MAIN, gpu))
    for gpus, memory, fits in ((3, None, True), (4, None, False), (4, Memory(1), True)):
        request = Request(gpus=Gpus(gpus), memory=memory, partition="gpu", wall_time=1.0)
        assert table.starts_now(request, 0.0) is fits
    assert table.starts_now(Request(16, partition="gpu", wall_time=1.0), 0.0)


def test_a_gpu_brings_its_cores() -> None:
    """Where a job does not say how many its tasks have; the others are not more for it."""
    gpu = replace(GPU, default_gpu_cores=5)
    table = replace(TABLE, partitions=(MAIN, gpu))
    for request, starts in (
        (Request(gpus=Gpus(3)), True),
        (Request(gpus=Gpus(4)), False),
        (Request(4, gpus=Gpus(1, "task")), False),
        (Request(2, 2, gpus=Gpus(4)), True),
        (Request(16), True),
    ):
        asked = replace(request, partition="gpu", wall_time=1.0)
        assert table.starts_now(asked, 0.0) is starts


@pytest.mark.parametrize(
    ("limits", "request_"),
    [
        ({"core_memory_max": 1000}, Request(memory=Memory(8000))),
        ({"core_memory_max": 1000}, Request(memory=Memory(8000, "node"))),
        ({"memory_max": 1000}, Request(memory=Memory(8000, "node"))),
        ({"longest_s": 60.0}, Request(memory=Memory(1), wall_time=61.0)),
        ({"nodes_max": 1}, Request(2, nodes_min=2)),
    ],
)
def test_limits_keep_nobodys_own_job_from_the_batch_system(
    limits: dict[str, Any], request_: Request
) -> None:
    """It lets the job wait, or gives it more cores for its memory; a partner's is declined."""
    table = replace(TABLE, partitions=(replace(MAIN, **limits), GPU))
    assert table.never(request_)
    assert table.why_not(request_)
    assert table.lacks(request_) == ""
    assert table.lacks(Request(gpus=Gpus(5))) == "no node of main has more than 4 GPUs"


def test_behind_very_many_that_are_coming_nothing_starts() -> None:
    """A question takes no longer, however many jobs are handed in at once."""
    groups = tuple(
        replace(PLAIN.as_empty(), names=(f"n{number}",), weight=number) for number in range(200)
    )
    table, request = replace(TABLE, groups=groups), Request(1)
    assert table.starts_now(request, 0.0, [request] * BEFORE_MAX)
    assert not table.starts_now(request, 0.0, [request] * (BEFORE_MAX + 1))
    assert not table.behind([request]).starts_now(request, 0.0, [request] * BEFORE_MAX)


def test_what_is_shut_starts_nothing_although_it_could() -> None:
    """The partition, or the nodes that a job needs; what waits already only needs to be started."""
    request = Request(gpus=Gpus(1), wall_time=60.0)
    assert TABLE.starts_now(request, 0.0)
    drained = replace(TABLE, groups=(TABLE.groups[0], replace(FAST, away="DRAIN")))
    assert drained.never(request) == ""
    assert drained.why_not(request) == "nodes of main that it needs are DRAIN"
    assert not drained.starts_now(request, 0.0)
    shut = replace(TABLE, partitions=(replace(MAIN, state="DRAIN", takes=False), GPU))
    assert shut.why_not(request) == "main is DRAIN"
    assert shut.stays(request) == ""
    assert shut.why_not(replace(request, partition="gpu")) == ""
    assert not shut.starts_now(request, 0.0)
    assert shut.starts_now(replace(request, partition="main,gpu"), 0.0)
    down = replace(TABLE, partitions=(replace(MAIN, state="DOWN", starts=False), GPU))
    assert down.stays(request) == "main is DOWN"


def test_nodes_that_others_are_to_have_are_left_to_them() -> None:
    """A job that is over before may use them, and one that needs none of them."""
    promised = Promised(1000.0, 5000.0, frozenset(["g1", "n1"]))
    table = replace(TABLE, promised=(promised,))
    request = Request(gpus=Gpus(1), wall_time=1000.0 - MARGIN_S)
    assert table.starts_now(request, 0.0)
    assert not table.starts_now(request, 1.0)
    assert table.starts_now(request, 5000.0)
    assert table.starts_now(Request(8, wall_time=3600.0), 1.0)
    assert not table.starts_now(Request(9, wall_time=3600.0), 1.0)


def test_who_waits_without_a_plan_may_take_anything_in_his_partition() -> None:
    """Elsewhere it is known who is to have what."""
    table = replace(TABLE, unplanned=frozenset(["main"]))
    assert not table.starts_now(Request(), 0.0)
    assert table.starts_now(Request(partition="gpu"), 0.0)
    assert table.why_not(Request()) == ""


def test_licences_are_counted() -> None:
    """Also those of jobs that the poll does not show yet."""
    table = replace(TABLE, licences={"matlab": Licence(4, 3)})
    two = Request(licences=(("matlab", 2),))
    assert table.starts_now(two, 0.0)
    assert not table.starts_now(two, 0.0, [two])
    assert not table.starts_now(Request(licences=(("matlab", 4),)), 0.0)
    assert table.why_not(Request(licences=(("matlab", 4),))) == ""


def test_nodes_of_little_weight_are_taken_first() -> None:
    """So a job before another does not take the GPUs that the other needs, as the batch system would not either."""
    assert TABLE.starts_now(Request(16, wall_time=60.0), 0.0, [Request(16, wall_time=60.0)])
    assert TABLE.starts_now(Request(gpus=Gpus(4)), 0.0, [Request(16)])
    assert not TABLE.starts_now(Request(gpus=Gpus(4)), 0.0, [Request(16), Request(), Request(16)])
    assert not TABLE.starts_now(Request(exclusive=True, gpus=Gpus(1)), 0.0, [Request(17)])


def test_kinds_of_nodes_are_told() -> None:
    """Of the partitions that partners' jobs are handed to, whatever their state."""
    busy = replace(PLAIN, names=("n3",), free_cores=0, idle=False, away="DOWN")
    table = replace(TABLE, groups=(*TABLE.groups, busy))
    assert table.kinds() == (
        NodeKind("n1", 3, 8, 16_000, features=frozenset(["skylake"])),
        NodeKind("g1", 1, 16, 32_000, 4, "a100"),
    )
    assert replace(table, usual=("gpu",)).kinds() == (NodeKind("g1", 1, 16, 32_000, 4, "a100"),)
