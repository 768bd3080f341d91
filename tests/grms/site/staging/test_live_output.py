"""What a job prints can be followed while it runs, at home and at a partner."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from grms.client import Client, OutputPiece
from grms.daemon.ports import free_port
from grms.site.model.jobs import OfferId
from grms.site.staging import live_output as module
from grms.site.wire.convert import write_offer
from grms.v1 import job_pb2, partner_pb2
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.slurm import SlurmCluster, need_slurm
from tests.grms.site.daemons import Running, document, running
from tests.grms.site.peers.partner import full, listening
from tests.grms.site.staging.test_patterns_travel import CPUS, submitted, two_batch_sites
from tests.grms.site.staging.test_stage_out import Leaving
from tests.grms.site.test_real_batch import free_at, full_and_half
from tests.waiting import TIME_OUT_S, until

STEPS = """#!/bin/sh
for step in 1 2 3; do
	until test -e {folder}/step$step; do sleep 0.05; done
	echo said $step; echo warned $step >&2
done
"""


class Follower:
    """Follows a job of north's, and keeps what it is sent."""

    def __init__(self, folder: Path, job_id: str, *, error: bool = False) -> None:
        self.pieces: list[OutputPiece] = []
        self._task = asyncio.create_task(self._run(folder / "north.sock", job_id, error=error))

    async def _run(self, socket: Path, job_id: str, *, error: bool) -> None:
        async with Client(socket, timeout_s=TIME_OUT_S) as user:
            async for piece in user.follow(job_id, error=error):
                self.pieces.append(piece)

    @property
    def seen(self) -> bytes:
        """What was printed, as it has come."""
        return b"".join(piece.content for piece in self.pieces)

    async def ended(self) -> bytes:
        """Waits for the end of the job, and returns all."""
        await self._task
        return self.seen


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("north", FakeSlurm),
        ("south", FakeSlurm),
        pytest.param("south", SlurmCluster, marks=pytest.mark.services),
    ],
)
async def test_output_is_seen_as_it_comes(
    tmp_path: Path, where: str, kind: type[SlurmCluster] | type[FakeSlurm]
) -> None:
    """By one who begins before the job does, line by line, to the last; both streams, nothing twice."""
    if kind is SlurmCluster:
        need_slurm()
    async with two_batch_sites(tmp_path, kind) as (north, south, _):
        size = CPUS // 2
        if where == "north":
            (tmp_path / "gate").touch()
            await until(lambda: free_at(north) == CPUS)
            size = CPUS
        job_id = await submitted(north, STEPS.format(folder=tmp_path), size)
        out, error = Follower(tmp_path, job_id), Follower(tmp_path, job_id, error=True)
        said = b""
        for step in range(1, 4):
            (tmp_path / f"step{step}").touch()
            said += b"said %d\n" % step
            await until(_has(out, said))
        assert await out.ended() == said
        assert await error.ended() == said.replace(b"said", b"warned")
        assert (await north.ended(job_id)).executed_on == where
        assert not any(piece.anew for piece in out.pieces)
        async with Client(tmp_path / "north.sock", timeout_s=TIME_OUT_S) as user:
            again = [piece async for piece in user.follow(job_id)]
        assert b"".join(piece.content for piece in again) == said
        if where == "south":
            await _nothing_is_said_of_the_ended(north, south, job_id)


def _has(follower: Follower, said: bytes) -> Callable[[], bool]:
    return lambda: follower.seen == said


async def _nothing_is_said_of_the_ended(north: Running, south: Running, job_id: str) -> None:
    job = north.core.engine.state.job(job_id)
    assert job is not None
    for offer in (job.offer, OfferId(1, 77)):
        request = partner_pb2.ReadGuestOutputRequest(site="north", offer=write_offer(offer))
        with pytest.raises(aio.AioRpcError) as told:
            await south.partner.ReadGuestOutput(request, timeout=TIME_OUT_S)
        assert told.value.code() is grpc.StatusCode.NOT_FOUND


async def test_what_is_there_by_now_is_shown(tmp_path: Path) -> None:
    """Of a job that runs at a partner, in pieces, however much that is; more than is handed out ends."""
    script = f"#!/bin/sh\nhead -c 300000 /dev/zero\nuntil test -e {tmp_path}/step1; do sleep 0.05; done\n"
    async with two_batch_sites(tmp_path, results={"file_bytes": 200_000}) as (north, south, _):
        job_id = await submitted(north, script, CPUS // 2)
        await until(lambda: full_and_half(north, south))
        (folder,) = (tmp_path / "spool-south").glob("north+*")
        printed = folder / "stdout"
        await until(lambda: printed.exists() and printed.stat().st_size == 300_000)
        async with Client(tmp_path / "north.sock", timeout_s=TIME_OUT_S) as user:
            pieces = [piece async for piece in user.follow(job_id, once=True)]
        assert max(len(piece.content) for piece in pieces) <= module.PIECE_BYTES
        assert b"".join(piece.content for piece in pieces) == bytes(200_000)
        assert "does not say" in pieces[-1].notice
        (tmp_path / "step1").touch()
        await north.ended(job_id)


async def test_a_partner_may_keep_it_to_itself(tmp_path: Path) -> None:
    """The user is told once, and sees all after the end."""
    async with two_batch_sites(tmp_path, results={"tell_output": False}) as (north, south, _):
        job_id = await submitted(north, STEPS.format(folder=tmp_path), CPUS // 2)
        await until(lambda: full_and_half(north, south))
        out = Follower(tmp_path, job_id)
        await until(lambda: bool(out.pieces))
        for step in range(1, 4):
            (tmp_path / f"step{step}").touch()
        assert await out.ended() == b"said 1\nsaid 2\nsaid 3\n"
        notices = [piece.notice for piece in out.pieces if piece.notice]
        assert notices[0] == "south does not say what it prints; it comes after its end"
        assert len(set(notices)) == len(notices)


async def test_a_partner_that_asks_too_often_waits(tmp_path: Path) -> None:
    """It is told so, and gets the next piece later."""
    limits = {"output_reads_per_s": 0.1}
    async with two_batch_sites(tmp_path, limits=limits) as (north, south, _):
        job_id = await submitted(north, STEPS.format(folder=tmp_path), CPUS // 2)
        await until(lambda: full_and_half(north, south))
        job = north.core.engine.state.job(job_id)
        assert job is not None
        request = partner_pb2.ReadGuestOutputRequest(site="north", offer=write_offer(job.offer))
        await south.partner.ReadGuestOutput(request, timeout=TIME_OUT_S)
        with pytest.raises(aio.AioRpcError) as told:
            await south.partner.ReadGuestOutput(request, timeout=TIME_OUT_S)
        assert told.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        for step in range(1, 4):
            (tmp_path / f"step{step}").touch()
        await north.ended(job_id)


class Printing(Leaving):
    """A partner that says of its jobs' output what it is told to, and then nothing more."""

    def __init__(self) -> None:
        super().__init__()
        self.says: list[tuple[int, bytes]] = []
        self.asked_from: list[int] = []

    async def ReadGuestOutput(  # noqa: N802  # gRPC's
        self, request: partner_pb2.ReadGuestOutputRequest, context: Any
    ) -> partner_pb2.ReadGuestOutputResponse:
        """Says the next piece."""
        self.asked_from.append(request.offset_bytes)
        if not self.says:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "as it was told")
        begin, content = self.says.pop(0)
        return partner_pb2.ReadGuestOutputResponse(offset_bytes=begin, content=content)


async def test_what_a_partner_says_is_held_to_what_was_asked(tmp_path: Path) -> None:
    """More than a piece, or one from elsewhere, is nothing; one that begins anew is said to."""
    partner, port, own = Printing(), free_port(), free_port()
    configuration = document(tmp_path, partners={"away": port}, port=own)
    partner.says = [
        *(
            (0, b"abc"),
            (3, bytes(module.PIECE_BYTES + 1)),
            (7, b"elsewhere"),
            (3, b"d"),
            (0, b"new"),
        ),
    ]
    async with (
        listening(partner, port),
        running(configuration, tmp_path) as site,
        Client(tmp_path / "home.sock", timeout_s=TIME_OUT_S) as user,
    ):
        await site.linked()
        await full(site)
        request = job_pb2.SubmitRequest(idempotency_key="follow")
        request.request.processors, request.request.requested_time_s = 1, 600.0
        request.request.program.script = "#!/bin/sh\n"
        job_id = (await site.jobs.Submit(request, timeout=TIME_OUT_S)).job_id
        pieces: list[OutputPiece] = []
        async for piece in user.follow(job_id):
            pieces.append(piece)
            if "as it was told" in piece.notice:
                break
        assert [piece for piece in pieces if piece.content] == [
            *(OutputPiece(b"abc"), OutputPiece(b"d"), OutputPiece(b"new", anew=True)),
        ]
        assert sum("answers with something else" in piece.notice for piece in pieces) == 1
        assert partner.asked_from[:6] == [0, 3, 3, 3, 4, 3]


async def test_nobody_follows_what_is_not_theirs(tmp_path: Path) -> None:
    """Another's job is none, and a job without a script leaves no output."""
    async with two_batch_sites(tmp_path) as (north, _, _):
        with pytest.raises(aio.AioRpcError) as told:
            async for _ in north.jobs.FollowOutput(job_pb2.FollowOutputRequest(job_id="north-99")):
                pass
        assert told.value.code() is grpc.StatusCode.NOT_FOUND
