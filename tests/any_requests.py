"""Requests drawn at random, for tests of all that carries them."""

from hypothesis import strategies as st

from lrms_sim.workload.requests import Gpus, Memory, Request, RequestError

NAMES = st.from_regex(r"\A[A-Za-z0-9_][A-Za-z0-9_.+=-]{0,12}\Z")


@st.composite
def any_requests(draw: st.DrawFn) -> Request:
    """Returns a request with a wall time, as rich as it comes."""
    tasks = draw(st.integers(1, 64))
    least = draw(st.integers(1, tasks))
    text = st.just("") | NAMES
    signal = draw(st.sampled_from(["", "USR1", "B:TERM", "40"]))
    try:
        return Request(
            tasks=tasks,
            cores_per_task=draw(st.integers(1, 16)),
            nodes_min=least,
            nodes_max=draw(st.none() | st.integers(least, 80)),
            tasks_per_node=draw(st.none() | st.integers(1, 64)),
            memory=draw(
                st.none()
                | st.builds(Memory, st.integers(1, 2**30), st.sampled_from(["node", "core", "gpu"]))
            ),
            gpus=draw(
                st.none()
                | st.builds(
                    Gpus, st.integers(1, 16), st.sampled_from(["node", "task", "job"]), text
                )
            ),
            features=tuple(draw(st.lists(NAMES, max_size=3))),
            exclusive=draw(st.booleans()),
            licences=tuple(draw(st.lists(st.tuples(NAMES, st.integers(1, 9)), max_size=2))),
            wall_time=draw(st.floats(1e-3, 1e9)),
            image=draw(st.sampled_from(["", "docker://debian:12", "/images/a.sif"])),
            signal=signal,
            signal_before=draw(st.floats(0, 65535)) if signal else 60.0,
            requeue=draw(st.none() | st.booleans()),
            partition=draw(text | st.just("one,two")),
            account=draw(text),
            qos=draw(text),
            modules=tuple(draw(st.lists(NAMES, max_size=2))),
        )
    except RequestError:
        return Request(tasks=tasks, wall_time=60.0)
