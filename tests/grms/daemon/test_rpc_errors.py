"""An error of this program's own does not reach a caller as a traceback."""

from typing import Any

import grpc
import pytest
import structlog
from google.protobuf.duration_pb2 import Duration
from grpc import aio
from structlog.testing import capture_logs

from grms.daemon.rpc.requests import TEXT, Unexpected, carried, refuse
from tests.grms.daemon.reached import reached


@pytest.mark.parametrize("letter", ["a", "ß", " ", "💥"])
async def test_a_reason_of_any_length_arrives(letter: str) -> None:
    """Callers' own words are in it; beyond what gRPC carries a client reads that there is too much metadata."""

    async def refusing(_: bytes, context: Any) -> bytes:
        text = letter * 500_000
        await refuse(context, grpc.StatusCode.NOT_FOUND, f"no {text}", field="x", retry_s=1)

    server = aio.server()
    methods: dict[str, Any] = {"Get": grpc.unary_unary_rpc_method_handler(refusing)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", methods),))
    async with reached(server) as channel:
        call: Any = channel.unary_unary("/t.T/Get")
        with pytest.raises(aio.AioRpcError) as error:
            await call(b"")
        assert error.value.code() is grpc.StatusCode.NOT_FOUND
        assert (error.value.details() or "").startswith(f"no {letter}")
    assert carried("short") == "short"


async def test_an_unexpected_error_is_internal_and_logged() -> None:
    """The caller learns that, not what; the log has it; refusals pass as they are."""

    async def single(request: bytes, context: Any) -> bytes:
        if request == b"refuse":
            await context.abort(grpc.StatusCode.NOT_FOUND, "nothing there")
        raise ZeroDivisionError(request)

    async def stream(request: bytes, context: Any) -> Any:
        yield request
        await single(request, context)

    server = aio.server(interceptors=[Unexpected(structlog.get_logger())])
    methods: dict[str, Any] = {
        "Single": grpc.unary_unary_rpc_method_handler(single),
        "Stream": grpc.unary_stream_rpc_method_handler(stream),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", methods),))
    async with reached(server) as channel:
        for request, code in (
            (b"x", grpc.StatusCode.INTERNAL),
            (b"refuse", grpc.StatusCode.NOT_FOUND),
        ):
            with capture_logs() as logs:
                unary: Any = channel.unary_unary("/t.T/Single")
                with pytest.raises(aio.AioRpcError) as error:
                    await unary(request)
                assert error.value.code() is code
                stream_call: Any = channel.unary_stream("/t.T/Stream")
                with pytest.raises(aio.AioRpcError) as error:
                    _ = [part async for part in stream_call(request)]
                assert error.value.code() is code
            if code is grpc.StatusCode.INTERNAL:
                assert error.value.details() == TEXT
                assert [entry["method"] for entry in logs] == ["/t.T/Single", "/t.T/Stream"]
            else:
                assert not logs
        nowhere: Any = channel.unary_unary("/t.T/Nowhere")
        with pytest.raises(aio.AioRpcError) as error:
            await nowhere(b"")
        assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("parts", [1, 2])
async def test_a_caller_that_is_gone_is_no_error(parts: int) -> None:
    """What is written to it fails before its call is known to be over; an error beside that is told."""
    errors = [aio.InternalError('Failed "execute_batch"'), ZeroDivisionError()][:parts]

    async def writes(_request: bytes, _context: Any) -> bytes:
        raise ExceptionGroup("in a task group", errors)

    server = aio.server(interceptors=[Unexpected(structlog.get_logger())])
    methods: dict[str, Any] = {"Writes": grpc.unary_unary_rpc_method_handler(writes)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", methods),))
    with capture_logs() as logs:
        async with reached(server) as channel:
            call: Any = channel.unary_unary("/t.T/Writes")
            with pytest.raises(aio.AioRpcError) as error:
                await call(b"x")
            assert error.value.code() is grpc.StatusCode.INTERNAL
    told = {1: ("info", "caller_gone"), 2: ("error", "unexpected_error")}
    assert [(entry["log_level"], entry["event"]) for entry in logs] == [told[parts]]


async def test_an_error_that_comes_again_and_again_does_not_fill_the_log() -> None:
    """Whatever kind of call causes it: one entry of each kind and method, and later one that counts the rest."""

    async def single(request: bytes, _context: Any) -> bytes:
        raise ZeroDivisionError(request)

    async def writes(request: bytes, context: Any) -> None:
        await context.write(request)
        raise ZeroDivisionError(request)

    async def yields(request: bytes, _context: Any) -> Any:
        yield request
        raise ZeroDivisionError(request)

    server = aio.server(interceptors=[Unexpected(structlog.get_logger())])
    methods: dict[str, Any] = {
        "Single": grpc.unary_unary_rpc_method_handler(single),
        "Writes": grpc.unary_stream_rpc_method_handler(writes),
        "Yields": grpc.unary_stream_rpc_method_handler(yields),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", methods),))
    with capture_logs() as logs:
        async with reached(server) as channel:
            for name in methods:
                for _ in range(50):
                    call: Any = channel.unary_stream(f"/t.T/{name}")
                    with pytest.raises(aio.AioRpcError) as error:
                        _ = [part async for part in call(b"x")]
                    assert error.value.code() is grpc.StatusCode.INTERNAL
    # A slow machine may take longer than the ten seconds after which the next is told.
    told = [entry["method"] for entry in logs]
    assert set(told) == {f"/t.T/{name}" for name in methods}
    assert len(told) < 10


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("answers", ["returns", "yields"])
async def test_bytes_that_are_no_message_are_the_callers_fault_in_every_kind_of_call(
    streams: bool, answers: str
) -> None:
    """Also as the second of a stream, whose first was read."""
    read: list[Any] = []

    async def take(requests: Any) -> None:
        if streams:
            async for request in requests:
                read.append(request)  # noqa: PERF401  # what was read before it ends is wanted
        else:
            read.append(requests)

    async def returns(requests: Any, _context: Any) -> bytes:
        await take(requests)
        return b""

    async def yields(requests: Any, _context: Any) -> Any:
        await take(requests)
        yield b""

    kinds: dict[tuple[bool, str], Any] = {
        (False, "returns"): grpc.unary_unary_rpc_method_handler,
        (False, "yields"): grpc.unary_stream_rpc_method_handler,
        (True, "returns"): grpc.stream_unary_rpc_method_handler,
        (True, "yields"): grpc.stream_stream_rpc_method_handler,
    }
    inner: Any = returns if answers == "returns" else yields
    good, bad = Duration(seconds=1).SerializeToString(), b"\x08"
    garbled: list[None] = []
    unexpected = Unexpected(structlog.get_logger(), lambda: garbled.append(None))
    server = aio.server(interceptors=[unexpected])
    methods = {"Go": kinds[streams, answers](inner, Duration.FromString)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", methods),))
    async with reached(server) as channel:
        make: Any = channel.stream_stream if streams else channel.unary_stream
        with pytest.raises(aio.AioRpcError) as error:
            _ = [part async for part in make("/t.T/Go")(iter([good, bad]) if streams else bad)]
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert len(garbled) == 1
    assert read == ([Duration(seconds=1)] if streams else [])
