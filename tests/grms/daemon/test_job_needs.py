"""What a job asks for, as a message: there and back, and what is not taken."""

import pytest
from hypothesis import given

from grms.daemon.job_needs import read_kinds, read_needs, write_kinds, write_needs
from grms.v1 import request_pb2
from lrms_sim.machine.node_kinds import NodeKind
from lrms_sim.workload.requests import Request, RequestError
from tests.any_requests import any_requests


@given(request=any_requests())
def test_what_is_asked_for_comes_back_as_it_was(request: Request) -> None:
    """All of it; the wall time stands beside it in the message around."""
    assert request.wall_time is not None
    assert read_needs(write_needs(request), request.wall_time) == request


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("tasks: 0", request_pb2.Needs(cores_per_task=1)),
        ("cores per task: 0", request_pb2.Needs(tasks=1)),
        ("nodes", request_pb2.Needs(tasks=1, cores_per_task=1, nodes_min=2)),
        (
            "memory is for each",
            request_pb2.Needs(tasks=1, cores_per_task=1, memory=request_pb2.Memory(mib=1)),
        ),
        (
            "GPUs are for each",
            request_pb2.Needs(tasks=1, cores_per_task=1, gpus=request_pb2.Gpus(count=1)),
        ),
        (
            "features: '--wrap=x' is no name",
            request_pb2.Needs(tasks=1, cores_per_task=1, features=["--wrap=x"]),
        ),
        ("features: 'a&b'", request_pb2.Needs(tasks=1, cores_per_task=1, features=["a&b"])),
        ("account: 'a\\\\nb'", request_pb2.Needs(tasks=1, cores_per_task=1, account="a\nb")),
        ("partition: ''", request_pb2.Needs(tasks=1, cores_per_task=1, partition="a,,b")),
        ("image: '-x'", request_pb2.Needs(tasks=1, cores_per_task=1, image="-x")),
        ("image: 'a\\\\x9b2J'", request_pb2.Needs(tasks=1, cores_per_task=1, image="a\x9b2J")),
        ("signal: 'USR1@5'", request_pb2.Needs(tasks=1, cores_per_task=1, signal="USR1@5")),
        ("signal: 'BR:USR1'", request_pb2.Needs(tasks=1, cores_per_task=1, signal="BR:USR1")),
        ("signal: '-9'", request_pb2.Needs(tasks=1, cores_per_task=1, signal="-9")),
        ("signal: 'B:SIGUSR1'", request_pb2.Needs(tasks=1, cores_per_task=1, signal="B:SIGUSR1")),
        (
            "the signal comes inf s",
            request_pb2.Needs(
                tasks=1, cores_per_task=1, signal="USR1", signal_before_s=float("inf")
            ),
        ),
        (
            "licences: one of them is there twice",
            request_pb2.Needs(
                tasks=1, cores_per_task=1, licences=[request_pb2.Licence(name="a", count=1)] * 2
            ),
        ),
        ("modules: 65 names", request_pb2.Needs(tasks=1, cores_per_task=1, modules=["a"] * 65)),
    ],
)
def test_what_no_job_can_ask_for_is_refused(words: str, message: request_pb2.Needs) -> None:
    """The text says what; no name could become an option or an expression of a batch system."""
    with pytest.raises(RequestError, match=words):
        read_needs(message, 60.0)


@pytest.mark.parametrize("where", ["needs", "memory", "gpus"])
def test_what_came_with_a_later_version_is_not_left_out(where: str) -> None:
    """A job that asks for something else would be run without it."""
    later = b"\xfa\x06\x01x"  # field 111
    message = request_pb2.Needs(tasks=1, cores_per_task=1)
    message.memory.mib, message.memory.per = 1, request_pb2.MEMORY_SCOPE_CORE
    message.gpus.count, message.gpus.per = 1, request_pb2.GPU_SCOPE_JOB
    part = message if where == "needs" else getattr(message, where)
    part.MergeFromString(later)
    with pytest.raises(RequestError, match="a later version"):
        read_needs(message, 60.0)


def test_of_nodes_numbers_are_told_and_no_names() -> None:
    """Features and types of GPUs are for the translation of the site that has them."""
    kind = NodeKind("secret", 4, 32, 128, 2, "a100", frozenset({"fast"}))
    (message,) = write_kinds((kind,))
    assert not any(word in str(message) for word in ("secret", "a100", "fast"))
    assert read_kinds([message]) == (NodeKind("1", 4, 32, 128, 2),)
    many = request_pb2.NodeKind(nodes=2**19, cores=1)
    assert read_kinds([many, many])
    with pytest.raises(ValueError, match="more than 1048576 nodes"):
        read_kinds([many, many, many])
    with pytest.raises(ValueError, match="cores is 0"):
        read_kinds([request_pb2.NodeKind(nodes=1)])
