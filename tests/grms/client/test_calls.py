"""Methods of a site's services over one channel."""

from pathlib import Path
from typing import Any

import pytest

from grms.client.calls import Calls
from grms.v1 import deputy_pb2, deputy_pb2_grpc, job_pb2, job_pb2_grpc, operator_pb2
from grms.v1 import operator_pb2_grpc as operators


@pytest.mark.parametrize(
    ("name", "messages", "stub"),
    [
        ("jobs", job_pb2, job_pb2_grpc.JobServiceStub),
        ("operator", operator_pb2, operators.OperatorServiceStub),
        ("deputies", deputy_pb2, deputy_pb2_grpc.DeputyServiceStub),
    ],
)
async def test_methods_are_those_of_the_generated_stub(name: str, messages: Any, stub: Any) -> None:
    """Of the same kind, with the same paths and answers, and each is made once."""

    class Channel:
        def __getattr__(self, kind: str) -> Any:
            def make(path: str, **how: Any) -> Any:
                answer = how["response_deserializer"](b"")
                return kind, path, type(answer)

            return make

    generated = vars(stub(Channel()))
    calls = Calls(Path("s.sock"), 1.0)
    calls._channel = Channel()  # type: ignore[assignment]  # in place of gRPC's
    methods = getattr(calls, name)
    assert {each: getattr(methods, each) for each in generated} == generated
    assert set(generated) == {
        method.name
        for service in messages.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    assert getattr(methods, min(generated)) is getattr(methods, min(generated))
    with pytest.raises(AttributeError, match="has no method Nothing"):
        _ = methods.Nothing
