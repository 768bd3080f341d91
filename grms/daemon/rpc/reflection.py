"""The standard reflection service, under both names in use.

`grpcio-reflection` only serves `grpc.reflection.v1alpha`. The stable `grpc.reflection.v1` has the same messages and
method, so the same service answers both names. For tools to describe it, its descriptors are made from those of
v1alpha, in a pool of their own.
"""

from collections.abc import Iterable
from typing import Any, Final

import grpc
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import Default, DescriptorPool
from grpc import aio
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

ALPHA: Final = "grpc.reflection.v1alpha"
STABLE: Final = "grpc.reflection.v1"
STABLE_NAME: Final = f"{STABLE}.ServerReflection"
"""The service's name for current tools."""


def serve_reflection(names: Iterable[str], server: aio.Server) -> None:
    """Adds reflection of some services, known to protobuf's default pool, to a server."""
    pool = DescriptorPool()
    seen: set[str] = set()
    own = [*names, reflection.SERVICE_NAME]
    for name in own:
        _add(Default().FindFileContainingSymbol(name), pool, seen)
    pool.AddSerializedFile(_stable().SerializeToString())
    servicer = reflection.aio.ReflectionServicer([*own, STABLE_NAME], pool=_WithMethods(pool))
    add: Any = reflection_pb2_grpc.add_ServerReflectionServicer_to_server
    add(servicer, server)
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(STABLE_NAME, {"ServerReflectionInfo": handler}),)
    )


class _WithMethods:
    """Descriptors, of which methods are found by their names as well, as reflection has it."""

    def __init__(self, pool: DescriptorPool) -> None:
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptor:  # noqa: N802  # protobuf's name
        """Returns the file that declares a name; `KeyError` if there is none."""
        try:
            return self._pool.FindFileContainingSymbol(symbol)
        except KeyError:
            return self._pool.FindMethodByName(symbol).containing_service.file


def _add(file: FileDescriptor, pool: DescriptorPool, seen: set[str]) -> None:
    if file.name in seen:
        return
    seen.add(file.name)
    for needed in file.dependencies:
        _add(needed, pool, seen)
    pool.AddSerializedFile(file.serialized_pb)


def _stable() -> FileDescriptorProto:
    made = FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(made)
    made.name, made.package = made.name.replace("v1alpha", "v1"), STABLE
    fields = [field for message in made.message_type for field in message.field]
    for field in (field for field in fields if field.type_name):
        field.type_name = field.type_name.replace(f".{ALPHA}.", f".{STABLE}.")
    for method in made.service[0].method:
        method.input_type = method.input_type.replace(f".{ALPHA}.", f".{STABLE}.")
        method.output_type = method.output_type.replace(f".{ALPHA}.", f".{STABLE}.")
    return made
