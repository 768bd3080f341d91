"""Tools find out what a server serves, by both names of the service that tells them."""

from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc import aio
from grpc_health.v1 import health
from grpc_reflection.v1alpha import reflection, reflection_pb2

from grms.daemon.rpc.reflection import ALPHA, STABLE, STABLE_NAME, serve_reflection
from grms.v1 import job_pb2, operator_pb2
from tests.grms.daemon.reached import reached

SERVICES = (
    job_pb2.DESCRIPTOR.services_by_name["JobService"].full_name,
    operator_pb2.DESCRIPTOR.services_by_name["OperatorService"].full_name,
    health.SERVICE_NAME,
)


async def asked(channel: aio.Channel, package: str, **question: str) -> Any:
    """Returns the answer to one question, as a tool asks it that knows one name of the service."""
    call: Any = channel.stream_stream(
        f"/{package}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    wanted: Any = reflection_pb2.ServerReflectionRequest
    (answer,) = [answer async for answer in call(iter([wanted(**question)]))]
    return answer


@pytest.mark.parametrize("package", [ALPHA, STABLE])
async def test_services_are_listed_and_described(package: str) -> None:
    """By the stable name and by the one before: all services, with all files they are made of."""
    server = aio.server()
    serve_reflection(SERVICES, server)
    async with reached(server) as channel:
        listed = await asked(channel, package, list_services="")
        names = [service.name for service in listed.list_services_response.service]
        assert names == sorted([*SERVICES, reflection.SERVICE_NAME, STABLE_NAME])
        for name in names:
            answer = await asked(channel, package, file_containing_symbol=name)
            found = answer.file_descriptor_response.file_descriptor_proto
            files = [FileDescriptorProto.FromString(each) for each in found]
            own = [f"{file.package}.{s.name}" for file in files for s in file.service]
            assert name in own
            needed = {other for file in files for other in file.dependency}
            assert needed <= {file.name for file in files}
            method = next(s for file in files for s in file.service if s.name in name).method[0]
            by_method = await asked(
                channel, package, file_containing_symbol=f"{name}.{method.name}"
            )
            # As `grpcurl describe SERVICE.METHOD` asks.
            assert list(by_method.file_descriptor_response.file_descriptor_proto) == list(found)
            gone = await asked(channel, package, file_containing_symbol=f"{name}.Nothing")
            assert gone.error_response.error_code == 5
        gone = await asked(channel, package, file_containing_symbol="grms.v1.Nothing")
        assert gone.error_response.error_code == 5


async def test_the_stable_service_speaks_of_itself_alone() -> None:
    """Its descriptors name no message of the package before."""
    server = aio.server()
    serve_reflection(SERVICES, server)
    async with reached(server) as channel:
        answer = await asked(channel, STABLE, file_containing_symbol=STABLE_NAME)
        found = answer.file_descriptor_response.file_descriptor_proto
        assert [b"v1alpha" in content for content in found] == [False]
