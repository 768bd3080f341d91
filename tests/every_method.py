"""Calls of every method that a server has registered, with messages that nobody sends on purpose.

The methods, and which of them stream, are those of the servers themselves: a service that is added is
tried without a word here.
"""

import asyncio
import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

DEPTH_MAX = 4
SILENT_S = 3.0
"""A call that streams may have nothing to say; so long it is listened to, seconds."""

FORBIDDEN = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}

_WHOLE = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1, 0, 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1, 0, 1),
    FieldDescriptor.TYPE_UINT32: (2**32 - 1, 0, 1),
    FieldDescriptor.TYPE_UINT64: (2**64 - 1, 0, 1),
    FieldDescriptor.TYPE_FIXED64: (2**64 - 1, 0, 1),
    FieldDescriptor.TYPE_ENUM: (99, -1, 1, 2**31 - 1),
    FieldDescriptor.TYPE_BOOL: (True, False),
    FieldDescriptor.TYPE_BYTES: (b"\xff\x00", b"", b"x" * 5_000),
    FieldDescriptor.TYPE_STRING: ("ä/\0\n../..", "", "x" * 5_000, "away", "1"),
    FieldDescriptor.TYPE_DOUBLE: (math.nan, math.inf, -1.0, 1e300, 0.0),
}
"""Odd values of each type of field."""

CUT_OFF = "Internal error from Core"
"""What gRPC's client itself says where a call was ended while it was still sending."""

UNKNOWN_FIELD = b"\xfa\xff\xff\xff\x0f\x03new"
"""A field of the largest number there is, which no message of ours has."""

GARBAGE = b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
"""Bytes that are no message at all."""


@dataclass
class Served:
    """What one server has registered.

    Attributes:
        methods: their handlers, by name as gRPC writes it.
        addresses: where it listens.
    """

    methods: dict[str, Any] = field(default_factory=dict)
    addresses: list[str] = field(default_factory=list)


def recorded(patch: pytest.MonkeyPatch) -> list[Served]:
    """Returns the list to which every server that is made from now on is added."""
    servers: dict[int, Served] = {}
    found: list[Served] = []
    kind: Any = sys.modules["grpc.aio._server"].Server  # `aio.Server` is what it is derived of
    add_handlers, add_port = kind.add_generic_rpc_handlers, kind.add_insecure_port

    def of(server: Any) -> Served:
        if id(server) not in servers:
            servers[id(server)] = Served()
            found.append(servers[id(server)])
        return servers[id(server)]

    def handlers(server: Any, added: Any) -> None:
        for each in added:
            of(server).methods.update(getattr(each, "_method_handlers", {}))
        add_handlers(server, added)

    def port(server: Any, address: str) -> int:
        of(server).addresses.append(address)
        number: int = add_port(server, address)
        return number

    patch.setattr(kind, "add_generic_rpc_handlers", handlers)
    patch.setattr(kind, "add_insecure_port", port)
    return found


def odd_messages(method: str) -> list[bytes]:
    """Returns what a method is sent: nothing, garbage, odd values in every field, and fields of tomorrow.

    Args:
        method: as gRPC writes it.
    """
    service, name = method[1:].rsplit("/", 1)
    # The stable reflection's descriptors are in a pool of its own; its messages are the same.
    known = service.replace("reflection.v1.", "reflection.v1alpha.")
    kind = GetMessageClass(Default().FindServiceByName(known).methods_by_name[name].input_type)
    made = [kind(), *(_filled(kind.DESCRIPTOR, turn, DEPTH_MAX) for turn in range(6))]
    return [*(message.SerializeToString() + UNKNOWN_FIELD for message in made), b"", GARBAGE]


def _filled(descriptor: Any, turn: int, depth: int) -> Message:
    message = GetMessageClass(descriptor)()
    oneofs = {each.name: each.fields[turn % len(each.fields)].name for each in descriptor.oneofs}
    for each, shift in zip(descriptor.fields, cycle(range(7)), strict=False):
        chosen = each.containing_oneof
        if chosen is not None and oneofs[chosen.name] != each.name:
            continue
        _fill(message, each, turn + shift, depth)
    return message


def _fill(message: Message, each: FieldDescriptor, turn: int, depth: int) -> None:
    there: Any = getattr(message, each.name)
    if each.message_type is not None:
        if depth == 0:
            return
        if each.message_type.GetOptions().map_entry:
            return
        inner = _filled(each.message_type, turn, depth - 1)
        if each.is_repeated:
            there.extend([inner, inner])
        else:
            there.CopyFrom(inner)
        return
    values = _WHOLE[each.type]
    if each.is_repeated:
        there.extend(values)
    else:
        setattr(message, each.name, values[turn % len(values)])


async def answers_of_every_method(
    channel: aio.Channel, served: Served
) -> dict[str, set[grpc.StatusCode]]:
    """Calls every method with every odd message, and returns with which statuses they answered.

    Args:
        channel: to the port.
        served: what the server behind it has registered.
    """
    calls = [(method, message) for method in served.methods for message in odd_messages(method)]
    found: dict[str, set[grpc.StatusCode]] = {method: set() for method in served.methods}
    room = asyncio.Semaphore(20)

    async def ask(method: str, messages: list[bytes]) -> None:
        async with room:
            found[method].add(await _status(channel, method, served.methods[method], messages))

    async with asyncio.TaskGroup() as group:
        for method, message in calls:
            group.create_task(ask(method, [message]))
        for method, handler in served.methods.items():
            if handler.request_streaming:
                group.create_task(ask(method, []))
                group.create_task(ask(method, odd_messages(method)))
    return found


async def _status(
    channel: aio.Channel, method: str, handler: Any, messages: list[bytes]
) -> grpc.StatusCode:
    kinds = {
        (False, False): channel.unary_unary,
        (False, True): channel.unary_stream,
        (True, False): channel.stream_unary,
        (True, True): channel.stream_stream,
    }
    make: Any = kinds[handler.request_streaming, handler.response_streaming]
    given: Any = iter(messages) if handler.request_streaming else messages[0]
    call = make(method)(given, timeout=300)
    try:
        if not handler.response_streaming:
            await call
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(SILENT_S):
                    async for _ in call:
                        # Where our side is ended, so is the call as soon as all was answered.
                        if not handler.request_streaming:
                            break
            if not call.done():
                call.cancel()
                return grpc.StatusCode.OK
            return grpc.StatusCode(await call.code())
    except aio.AioRpcError as error:
        if CUT_OFF in (error.details() or ""):
            return grpc.StatusCode.CANCELLED
        return error.code()
    return grpc.StatusCode.OK


def wrong(found: dict[str, set[grpc.StatusCode]]) -> Iterator[tuple[str, grpc.StatusCode]]:
    """Yields the methods that answered as a program does that is wrong itself, and with what."""
    for method, statuses in found.items():
        for status in sorted(statuses & FORBIDDEN, key=str):
            yield method, status
