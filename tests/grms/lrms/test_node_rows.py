"""Nodes as rows of arrays: the same answers as group by group, and soon enough for the daemon's loop."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.node_groups import NodeGroup, NodeNeed, Promised, grouped
from grms.lrms.node_rows import FreeNodes, has_room
from grms.lrms.nodes import Licence, NodeTable
from grms.lrms.partitions import Partition
from lrms_sim.workload.requests import Gpus, Memory, Request
from tests.node_strategies import requests
from tests.oracles.plain_nodes import PlainNodes, in_order, with_job

NAMES = ("main", "gpu", "short")
MOMENTS = st.sampled_from([0.0, 10.0, 60.0, 61.0, 120.0, 600.0])


@st.composite
def partitions(draw: st.DrawFn, name: str) -> Partition:
    """Returns a partition with limits or without."""
    return Partition(
        name,
        "UP",
        takes=draw(st.sampled_from([True, True, True, False])),
        starts=draw(st.sampled_from([True, True, True, False])),
        longest_s=draw(st.sampled_from([None, None, 100.0])),
        nodes_min=draw(st.sampled_from([1, 1, 1, 2, 3])),
        nodes_max=draw(st.sampled_from([None, None, 1, 2, 4])),
        cores_max=draw(st.sampled_from([None, None, 2, 5])),
        memory_max=draw(st.sampled_from([None, None, 12])),
        core_memory_max=draw(st.sampled_from([None, None, 4])),
        default_memory=draw(st.sampled_from([None, None, Memory(3), Memory(10, "node")])),
        default_gpu_memory=draw(st.sampled_from([None, None, 5])),
        default_gpu_cores=draw(st.sampled_from([0, 0, 2, 3])),
        all_memory=draw(st.booleans()),
        whole_nodes=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> NodeGroup:
    """Returns a node, in use or not."""
    cores, memory = draw(st.sampled_from([1, 2, 4, 8])), draw(st.sampled_from([0, 16, 64]))
    gpus = draw(st.sampled_from([(), (), (("a", 2),), (("a", 1), ("b", 2)), (("", 4),)]))
    node = NodeGroup(
        (name,),
        draw(st.sampled_from([frozenset(["main"]), frozenset(["gpu", "main"]), frozenset(NAMES)])),
        cores,
        memory,
        gpus,
        draw(st.sampled_from([frozenset[str](), frozenset(["x"]), frozenset(["x", "y"])])),
        step=draw(st.sampled_from([1, 1, 2])),
        task_step=draw(st.sampled_from([1, 1, 2])),
        weight=draw(st.sampled_from([1, 1, 2, 50])),
    ).as_empty()
    if draw(st.sampled_from([True, False, False])):
        return replace(node, away=draw(st.sampled_from(["", "", "DRAIN", "DOWN"])))
    return replace(
        node,
        free_cores=draw(st.integers(0, cores)),
        free_memory=draw(st.integers(0, memory)),
        free_gpus=tuple((kind, draw(st.integers(0, count))) for kind, count in gpus),
        idle=False,
    )


@st.composite
def tables(draw: st.DrawFn) -> NodeTable:
    """Returns a table of up to ten nodes in three partitions, some of them promised to others."""
    kinds = [draw(nodes("kind")) for _ in range(draw(st.integers(1, 4)))]
    there = [
        replace(draw(st.sampled_from(kinds)), names=(f"n{number}",))
        for number in range(draw(st.integers(1, 10)))
    ]
    names = [node.names[0] for node in there]
    promised = st.builds(
        Promised,
        MOMENTS,
        MOMENTS.map(lambda end: end + 30.0),
        st.frozensets(st.sampled_from(names)),
    )
    return NodeTable(
        grouped(there),
        tuple(draw(partitions(name)) for name in NAMES),
        draw(st.sampled_from([("main",), ("main", "gpu")])),
        tuple(draw(st.lists(promised, max_size=4))),
        draw(st.sampled_from([frozenset[str](), frozenset[str](), frozenset(["main"])])),
        {"red": Licence(3, draw(st.integers(0, 3)))},
        tuple(draw(st.lists(asked(), max_size=2))),
    )


@st.composite
def asked(draw: st.DrawFn) -> Request:
    """Returns a request with a wall time, of a partition or none."""
    return replace(
        draw(requests()),
        wall_time=draw(st.sampled_from([None, 1.0, 30.0, 60.0, 540.0])),
        partition=draw(st.sampled_from(["", "", "gpu", "short", "main,short", "none"])),
    )


@given(
    tables(),
    st.lists(st.tuples(asked(), MOMENTS, st.booleans(), st.integers(0, 3)), max_size=6),
)
def test_answers_are_those_of_group_by_group(
    table: NodeTable, questions: list[tuple[Request, float, bool, int]]
) -> None:
    """Also those that rest on earlier answers: as more jobs come, others are gone, and time passes, or seems to go back."""
    plain, coming = PlainNodes(table), list[Request]()
    for request, now, comes, gone in questions:
        assert table.starts_now(request, now, coming) == plain.starts_now(request, now, coming)
        for mine, theirs in (
            (table.never, plain.never),
            (table.lacks, plain.lacks),
            (table.why_not, plain.why_not),
            (table.stays, plain.stays),
        ):
            assert mine(request) == theirs(request)
        if comes:
            coming.append(request)
        if gone == 3 and coming:
            del coming[0]


@st.composite
def machines(draw: st.DrawFn) -> tuple[NodeGroup, ...]:
    """Returns up to a dozen nodes of which most are free, alike ones several times."""
    kinds = [
        NodeGroup(
            ("kind",),
            frozenset(["main"]),
            cores,
            memory,
            draw(st.sampled_from([(), (("a", 2), ("b", 2))])),
            step=draw(st.sampled_from([1, 1, 2])),
            weight=draw(st.sampled_from([1, 1, 2])),
        ).as_empty()
        for cores, memory in draw(
            st.lists(st.tuples(st.sampled_from([2, 4, 8]), st.sampled_from([0, 64])), min_size=1)
        )
    ]
    return grouped(
        replace(draw(st.sampled_from(kinds)), names=(f"n{number}",))
        for number in range(draw(st.integers(2, 12)))
    )


@st.composite
def jobs(draw: st.DrawFn) -> Request:
    """Returns a job of few words that often goes on several nodes."""
    tasks = draw(st.integers(1, 12))
    least = draw(st.integers(1, min(tasks, 3)))
    return Request(
        tasks,
        draw(st.sampled_from([1, 1, 2])),
        nodes_min=least,
        nodes_max=draw(st.sampled_from([None, None, least, least + 1])),
        memory=draw(st.sampled_from([None, None, Memory(3), Memory(9, "node")])),
        gpus=draw(st.sampled_from([None, None, None, Gpus(1, "task"), Gpus(1, "node", "b")])),
        exclusive=draw(st.sampled_from([False] * 7 + [True])),
        wall_time=draw(st.sampled_from([30.0, 60.0, 540.0])),
    )


PLENTY = st.builds(
    Partition,
    name=st.just("main"),
    state=st.just("UP"),
    default_gpu_cores=st.sampled_from([0, 2]),
    all_memory=st.sampled_from([False, False, True]),
)


@given(machines(), PLENTY, st.lists(jobs(), min_size=1, max_size=8))
def test_jobs_take_the_nodes_that_they_take_group_by_group(
    groups: tuple[NodeGroup, ...], part: Partition, requests_: list[Request]
) -> None:
    """One behind the other, and what they leave free is taken in the same order."""
    table = NodeTable(groups, (part,), ("main",))
    plain, left = PlainNodes(table), list(groups)
    free = FreeNodes(table.index)
    for request in requests_:
        need = NodeNeed.of(request, part)
        room = free.room(need, "main", None)
        found = plain.placed(request, left, 0.0)
        assert has_room(need, room[1]) == (found is not None)
        if found is None:
            continue
        free.start(need, room)
        left = list(with_job(left, *found))
        assert _listed(free) == [
            (name, each.free_cores, each.free_memory, [n for _, n in each.free_gpus], each.idle)
            for each in in_order(left)
            for name in each.names
        ]


def _listed(free: FreeNodes) -> list[tuple[str, int, int, list[int], bool]]:
    # The nodes in the order in which they are taken, and what is free on each of them.
    rows, names = free.rows, free.index.names
    return [
        (
            names[at],
            int(rows.free_cores[at]),
            int(rows.free_memory[at]),
            # Of the types that it has.
            [
                int(each)
                for each, all_ in zip(rows.free_gpus[:, at], rows.gpus[:, at], strict=True)
                if all_
            ],
            bool(rows.idle[at]),
        )
        for at in free.order
    ]


@given(
    machines(),
    st.lists(jobs(), min_size=1, max_size=4),
    st.lists(
        st.builds(
            Promised,
            MOMENTS,
            MOMENTS.map(lambda end: end + 30.0),
            st.frozensets(st.sampled_from([f"n{number}" for number in range(12)])),
        ),
        min_size=1,
        max_size=6,
    ),
    st.lists(st.tuples(jobs(), MOMENTS), min_size=2, max_size=6),
)
def test_jobs_have_other_nodes_where_theirs_are_promised(
    groups: tuple[NodeGroup, ...],
    before: list[Request],
    promised: list[Promised],
    questions: list[tuple[Request, float]],
) -> None:
    """As time passes, a job that is to start would be over too late for other nodes than before."""
    part = Partition("main", "UP")
    table = NodeTable(groups, (part,), ("main",), promised=tuple(promised))
    plain = PlainNodes(table)
    for request, now in questions:
        assert table.starts_now(request, now, before) == plain.starts_now(request, now, before)
