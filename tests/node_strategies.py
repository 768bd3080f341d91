"""Machines of nodes and what jobs ask of them, drawn by Hypothesis."""

from hypothesis import strategies as st

from lrms_sim.machine.node_kinds import Placement
from lrms_sim.machine.nodes import NodeKind, NodeMachine
from lrms_sim.workload.requests import Gpus, Memory, Request, RequestError

KINDS = st.builds(
    NodeKind,
    name=st.just("kind"),
    nodes=st.integers(1, 4),
    cores=st.sampled_from([1, 2, 4, 8]),
    memory=st.sampled_from([0, 16, 64]),
    gpus=st.sampled_from([0, 0, 2, 4]),
    gpu_type=st.sampled_from(["a", "b"]),
    features=st.frozensets(st.sampled_from(["x", "y"])),
)


@st.composite
def machines(draw: st.DrawFn) -> NodeMachine:
    """Returns a small machine of one to three kinds."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=3))
    named = [
        NodeKind(f"k{i}", k.nodes, k.cores, k.memory, k.gpus, k.gpu_type, k.features)
        for i, k in enumerate(kinds)
    ]
    licences = draw(st.sampled_from([(), (("red", 2),), (("red", 3), ("blue", 1))]))
    placement: Placement = draw(st.sampled_from(["best-fit", "first-fit"]))
    return NodeMachine(tuple(named), placement, licences=licences)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Returns a request, of processors alone as often as not."""
    tasks = draw(st.sampled_from([1, 1, 2, 3, 4, 6, 8]))
    if draw(st.booleans()):
        return Request.of_processors(tasks)
    nodes_min = draw(st.integers(1, min(tasks, 2)))
    try:
        return Request(
            tasks=tasks,
            cores_per_task=draw(st.sampled_from([1, 1, 1, 2, 3])),
            nodes_min=nodes_min,
            nodes_max=draw(st.sampled_from([None, nodes_min, nodes_min + 1])),
            tasks_per_node=draw(st.sampled_from([None, None, 1, 2])),
            memory=draw(
                st.none() | st.builds(Memory, st.integers(1, 20), st.sampled_from(["core", "node"]))
            ),
            gpus=draw(
                st.none()
                | st.builds(
                    Gpus,
                    st.integers(1, 2),
                    st.sampled_from(["job", "task", "node"]),
                    st.sampled_from(["", "a"]),
                )
            ),
            features=draw(st.sampled_from([(), (), ("x",)])),
            exclusive=draw(st.sampled_from([False, False, False, True])),
            licences=draw(
                st.sampled_from(
                    [(), (), (("red", 1),), (("red", 2),), (("red", 1), ("blue", 1), ("red", 1))]
                )
            ),
        )
    except RequestError:
        return Request.of_processors(tasks)
