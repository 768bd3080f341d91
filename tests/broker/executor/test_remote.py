"""What the broker says to a site's daemon about programs, and what it makes of the answers."""

import hashlib
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from broker.executor.base import (
    GivenFile,
    Order,
    ProgramRefused,
    ReservationRefused,
    ReservationState,
    SiteUnavailable,
    Wish,
)
from broker.executor.remote import RemoteSite
from broker.model.program import Program
from grms.client.uploading import PUT_BYTES
from grms.util.outcomes import Outcome
from grms.v1 import request_pb2, reservation_pb2
from lrms_sim.workload.requests import Request
from tests.broker.fake_site import FakeSite

PROGRAM = Program("flow/a", "#!/bin/sh\n", ("x",), request=Request(wall_time=60.0))


def order(**more: Any) -> Order:
    """Returns what is to run."""
    return replace(Order("k", 1, 20.0, 20.0, "flow/a", PROGRAM), **more)


@asynccontextmanager
async def site(folder: Path, **more: Any) -> AsyncIterator[tuple[FakeSite, RemoteSite, str]]:
    """Runs a site, and reserves there."""
    fake, path = FakeSite(), folder / "site.sock"
    await fake.start(path)
    async with aio.insecure_channel(f"unix:{path}") as channel:
        remote = RemoteSite(channel, **more)
        known = await remote.book(Wish("w", "pool", 1, 0.0, 100.0))
        yield fake, remote, known.reservation_id
    await fake.stop()


async def test_files_are_handed_over_before_their_program(tmp_path: Path) -> None:
    """In pieces, and not again where they are."""
    content = bytes(range(256)) * (PUT_BYTES // 256) + b"and more"
    (tmp_path / "content").write_bytes(content)
    digest = hashlib.sha256(content).digest()
    given = GivenFile("data/in", len(content), digest, tmp_path / "content")
    async with site(tmp_path) as (fake, remote, name):
        await remote.launch(name, order(inputs=(given,)))
        assert fake.given == {digest: content}
        assert fake.calls == ["book", "put", "put", "put", "launch"]
        job = fake.launches[name]
        assert (job.requested_time_s, job.processors) == (60.0, 1)
        assert [(each.name, each.size_bytes, each.sha256) for each in job.program.inputs] == [
            ("data/in", len(content), digest)
        ]
        await remote.launch(name, order(inputs=(given,)))
        assert fake.calls[5:] == ["put", "launch"]


@pytest.mark.parametrize("size", [-1, 1])
async def test_a_file_that_has_changed_refuses_the_program(size: int, tmp_path: Path) -> None:
    """It would not be what was handed in; one that is gone is none, either."""
    path = tmp_path / "content"
    if size > 0:
        path.write_bytes(b"12")
    given = GivenFile("in", 1, hashlib.sha256(b"1").digest(), path)
    async with site(tmp_path) as (fake, remote, name):
        with pytest.raises(ProgramRefused, match="cannot be read"):
            await remote.launch(name, order(inputs=(given,)))
        assert "launch" not in fake.calls


@pytest.mark.parametrize(
    ("code", "field", "error"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, "job", ProgramRefused),
        (grpc.StatusCode.INVALID_ARGUMENT, "job.program", ProgramRefused),
        (grpc.StatusCode.INVALID_ARGUMENT, "idempotency_key", ReservationRefused),
        (grpc.StatusCode.FAILED_PRECONDITION, "", ReservationRefused),
        (grpc.StatusCode.FAILED_PRECONDITION, "inputs", SiteUnavailable),
        (grpc.StatusCode.UNAVAILABLE, "", SiteUnavailable),
    ],
)
async def test_a_refusal_says_whether_another_place_would_do(
    code: grpc.StatusCode, field: str, error: type[Exception], tmp_path: Path
) -> None:
    """A program that a site never runs, a reservation that is not to be had, or neither."""
    async with site(tmp_path) as (fake, remote, name):
        fake.refusal = (code, field)
        with pytest.raises(error, match="the site says so"):
            await remote.launch(name, order())


async def test_how_a_program_has_ended_is_told(tmp_path: Path) -> None:
    """Exit code, signal, outcome and reason; none where there is none."""
    async with site(tmp_path) as (fake, remote, name):
        known = await remote.launch(name, order())
        assert (known.exit_code, known.signal, known.outcome) == (None, None, None)
        fake.change(
            name,
            state=reservation_pb2.RESERVATION_STATE_ENDED,
            outcome=request_pb2.OUTCOME_NODE_FAIL,
            exit_code=0,
            signal=9,
            reason="gone",
        )
        ended = await remote.release(name)
        assert ended is not None
        assert ended.state is ReservationState.ENDED
        assert (ended.exit_code, ended.signal, ended.outcome) == (0, 9, Outcome.NODE_FAIL)
        assert ended.reason == "gone"
        fake.change(name, start_time_s=math.nan, end_time_s=math.inf)
        odd = await remote.release(name)
        assert odd is not None
        assert (odd.start_time, odd.end_time) == (None, None)


async def test_what_a_program_has_left_is_read(tmp_path: Path) -> None:
    """Listed and fetched by the reservation; what is not there is refused."""
    async with site(tmp_path) as (fake, remote, name):
        await remote.launch(name, order())
        fake.left[name, "stdout"] = b"said"
        found = await remote.files(name, "")
        assert [(file.name, file.size_bytes) for file in found.files] == [("stdout", 4)]
        assert not found.complete
        fake.finish(name)
        assert (await remote.files(name, "")).complete
        assert b"".join([some async for some in remote.read(name, "", "stdout", 1)]) == b"aid"
        with pytest.raises(ReservationRefused, match="there is no other"):
            async for _ in remote.read(name, "", "other"):
                pass
        with pytest.raises(ReservationRefused):
            await remote.files("unknown", "")


@pytest.mark.parametrize("has_work", [False, True])
async def test_a_site_is_told_whether_there_is_work(has_work: bool, tmp_path: Path) -> None:
    """With each question for its offers: it obtains pilots then."""
    async with site(tmp_path, has_work=lambda: has_work) as (fake, remote, _):
        await remote.offer(0.0, 10.0)
        assert fake.wanted == [has_work]
