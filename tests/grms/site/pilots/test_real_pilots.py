"""Pilots of a site above a batch system: programs of a broker run in jobs of the site."""

from pathlib import Path

import grpc
import pytest
from grpc import aio

from grms.v1 import operator_pb2, request_pb2, reservation_pb2
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.slurm import REAL_SLURM, SlurmCluster
from tests.grms.site.pilots.piloted_site import Batch, batch, piloted
from tests.waiting import TIME_OUT_S, until

KINDS = pytest.mark.parametrize("kind", [FakeSlurm, REAL_SLURM])


@KINDS
async def test_programs_run_in_a_pilot_without_jobs_of_their_own(
    kind: type[Batch], tmp_path: Path
) -> None:
    """Closed until the pilot is there; then exit codes, signals, limits and files are told as they are."""
    async with batch(kind, tmp_path) as cluster, piloted(cluster, tmp_path) as (site, one):
        assert await one.free() == []
        with pytest.raises(aio.AioRpcError) as refused:
            await one.book("early")
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        await one.opened()
        free = (await one.free())[0]
        assert free.processors == 2
        assert 580.0 < free.window.end_s - one.now() <= 595.0
        given = await one.give("data/in", b"given\n")
        good = await one.run(
            "good",
            'cat data/in; echo "$1" "$VALUE" >out.txt; echo err >&2',
            arguments=["a b"],
            environment={"VALUE": "x'y"},
            inputs=[given],
            outputs=["out.txt", "absent"],
        )
        bad = await one.run("bad", "exit 3")
        told = await one.ended(good)
        assert (told.outcome, told.exit_code) == (request_pb2.OUTCOME_COMPLETED, 0)
        assert told.start_time_s <= told.end_time_s <= one.now()
        results = await one.results(good)
        assert results.complete
        assert [file.name for file in results.files] == ["stdout", "stderr", "out.txt", "absent"]
        assert await one.read(good, "stdout") == b"given\n"
        assert await one.read(good, "stderr") == b"err\n"
        assert await one.read(good, "out.txt") == b"a b x'y\n"
        told = await one.ended(bad)
        assert (told.outcome, told.exit_code) == (request_pb2.OUTCOME_FAILED, 3)
        slow = await one.run("slow", "echo so far; sleep 300", limit=0.5)
        shot = await one.run("shot", "kill -9 $$")
        told = await one.ended(slow)
        assert (told.outcome, told.signal) == (request_pb2.OUTCOME_TIMEOUT, 15)
        assert told.reason == "its time limit was over"
        told = await one.ended(shot)
        assert (told.outcome, told.signal) == (request_pb2.OUTCOME_FAILED, 9)
        assert await one.read(slow, "stdout") == b"so far\n"
        jobs = [job.name for job in site.core.engine.state.jobs()]
        assert jobs == ["pilot of pool"]
        said = await site.operator.Pilots(operator_pb2.PilotsRequest(), timeout=TIME_OUT_S)
        (shown,) = said.pilots
        assert (shown.resource_id, shown.state, shown.job_id) == ("pool", "open", "north-1")
        assert (shown.processors, shown.connected, shown.programs) == (2, True, 0)
        assert 0.0 <= shown.used <= shown.held


@KINDS
async def test_a_pilot_that_is_cancelled_is_told_truthfully_and_followed_by_another(
    kind: type[Batch], tmp_path: Path
) -> None:
    """What ran has failed with it, what waited is given back, and the resource is closed until another is there."""
    async with batch(kind, tmp_path) as cluster, piloted(cluster, tmp_path) as (site, one):
        await one.opened()
        runs = await one.run("runs", f"echo once >>{tmp_path}/log; sleep 30")
        waits = (await one.book("waits", begin=100.0)).reservation_id
        await one.launch(waits, f"echo never >>{tmp_path}/log")
        booked = (await one.book("booked", begin=200.0)).reservation_id
        await one.until(runs, reservation_pb2.RESERVATION_STATE_RUNNING)
        cluster.ask("scancel", cluster.ask("squeue", "-h", "-t", "all", "-o", "%i").strip())
        told = await one.ended(runs)
        # Slurm ends its processes with a signal first; the fake kills the agent, which says nothing more.
        signal = 15 if kind is SlurmCluster else 0
        assert (told.outcome, told.signal) == (request_pb2.OUTCOME_NODE_FAIL, signal)
        assert "pilot" in told.reason
        for name in (waits, booked):
            told = await one.until(name, reservation_pb2.RESERVATION_STATE_RELEASED)
            assert not told.HasField("start_time_s")
            assert "pilot" in told.reason
        await until(lambda: len(list(site.core.engine.state.jobs())) == 2)
        await one.opened()
        again = await one.run("again", "exit 4")
        assert (await one.ended(again)).exit_code == 4
        assert (tmp_path / "log").read_text() == "once\n"


@KINDS
async def test_a_daemon_that_is_away_changes_nothing_for_its_pilot(
    kind: type[Batch], tmp_path: Path
) -> None:
    """Programs go on, each has run once, and the next daemon tells how they ended."""
    script = f"echo $1 >>{tmp_path}/log; until test -e {tmp_path}/go; do sleep 0.05; done; exit $2"
    async with batch(kind, tmp_path) as cluster:
        async with piloted(cluster, tmp_path) as (_, one):
            await one.opened()
            names = [
                await one.run(f"run {number}", script, arguments=[str(number), str(number + 4)])
                for number in range(2)
            ]
            for name in names:
                await one.until(name, reservation_pb2.RESERVATION_STATE_RUNNING)
            later = (await one.book("later", begin=60.0)).reservation_id
            await one.launch(later, script, arguments=["2", "6"])
        (tmp_path / "go").touch()
        async with piloted(cluster, tmp_path) as (site, one):
            for number, name in enumerate(names):
                assert (await one.ended(name)).exit_code == number + 4
            await until(lambda: later in one.known)  # it may be told of after those that have ended
            now, found = one.now(), one.known[later]
            move = reservation_pb2.MoveRequest(reservation_id=later, old_window=found.window)
            move.new_window.begin_s, move.new_window.end_s = now, now + 30.0
            await one.stub.Move(move)
            assert (await one.ended(later)).exit_code == 6
            assert len(list(site.core.engine.state.jobs())) == 1
        assert sorted((tmp_path / "log").read_text().split()) == ["0", "1", "2"]
