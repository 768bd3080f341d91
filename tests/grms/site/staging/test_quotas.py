"""How much is kept for one user, and for one partner."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from grms.cli.main import run_command
from grms.client import Client, SiteError
from grms.daemon import file_store
from grms.daemon.file_store import Manifest, ResultStore
from grms.lrms.base import Program
from grms.lrms.batch.launcher import Spool
from grms.site.staging import quotas as module
from grms.site.staging.quotas import NoRoomError, PartnerQuota, UserQuota, inputs_of
from tests.grms.site.staging.test_patterns_travel import CPUS, left, submitted, two_batch_sites
from tests.grms.site.test_real_batch import full_and_half
from tests.waiting import TIME_OUT_S, until

OWNERS = {"n-1": "ann", "n-2": "ann", "n-3": "bob"}


def filled(store: ResultStore, job_id: str, size: int) -> None:
    """Lets a job have so many bytes."""
    store.finish(job_id, Manifest())
    store.append(job_id, 0, bytes(size))


async def test_each_user_has_room_of_their_own(tmp_path: Path) -> None:
    """What is coming counts, too; what goes makes room; what nobody knows any more is nobody's."""
    store = ResultStore(tmp_path / "results")
    quota = UserQuota(store, 100, OWNERS.get)
    await quota.check("n-1", "ann", 100)
    filled(store, "n-1", 60)
    filled(store, "n-9", 1000)
    with pytest.raises(NoRoomError, match=r"its 41 bytes wait there, as 60 of ann's 100 bytes"):
        await quota.check("n-2", "ann", 41)
    await quota.check("n-2", "ann", 40)
    await quota.check("n-1", "ann", 100)
    await quota.check("n-3", "bob", 100)
    with quota.kept_free("n-1", 80), pytest.raises(NoRoomError):
        await quota.check("n-2", "ann", 40)
    store.append("n-1", 0, bytes(30))
    with pytest.raises(NoRoomError, match="as 90 of"):
        await quota.check("n-2", "ann", 40)
    store.empty("n-1", Manifest(problem="removed"))
    await quota.check("n-2", "ann", 100)
    store.remove("n-9")
    assert store.sizes() == {"n-1": 0}


async def test_each_partner_has_room_for_its_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs and folders, as far as they occupy the disk; links count for nothing, others' jobs are others'."""
    spool = Spool(tmp_path / "spool")
    spool.open()
    place = spool.prepare("south/1/1", Program("#!/bin/sh\n"), run=True)
    spool.prepare("southern/1/1", Program("#!/bin/sh\n"), run=True)
    before = spool.held("south/")
    (place / "deep").mkdir()
    (place / "deep/out").write_bytes(os.urandom(100_000))
    (place / "link").symlink_to("/etc/passwd")
    with (place / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 40)
    assert 100_000 <= spool.held("south/") - before < 120_000
    assert spool.held("southern/") > 0
    store = ResultStore(tmp_path / "inputs")
    filled(store, "guest-south+1+2", 50_000)
    quota = PartnerQuota(spool, store, 200_000)
    async with quota.room("south", "south/1/3", 10_000) as problem:
        assert problem == ""
    async with quota.room("south", "south/1/4", 60_000) as told:
        assert "at most 200000 are kept for a partner" in told
    (place / "deep/out").unlink()
    async with quota.room("south", "south/1/4", 60_000) as problem:
        assert problem == told
    monkeypatch.setattr(module, "FULL_S", 0.0)
    async with quota.room("other", "other/1/4", 200_000) as problem:
        assert problem == ""
    quota = PartnerQuota(spool, store, 200_000)
    async with quota.room("south", "south/1/4", 60_000) as problem:
        assert problem == ""


async def test_jobs_that_ask_at_one_time_share_the_room(tmp_path: Path) -> None:
    """Each finds the same bytes on the disk; all together get no more than there is, and what fails gives its room back."""
    store = ResultStore(tmp_path / "inputs")
    filled(store, "guest-south+1+99", 10)
    quota = PartnerQuota(None, store, 100)
    taken, go = list[str](), asyncio.Event()

    async def job(number: int, *, fails: bool) -> None:
        key = f"south/1/{number}"
        async with quota.room("south", key, 30) as problem:
            if problem:
                return
            taken.append(key)
            filled(store, inputs_of(key), 20)
            await go.wait()
            if fails:
                store.remove(inputs_of(key))
                raise ConnectionError
            store.append(inputs_of(key), 0, bytes(10))

    async def together(first: int, *, fails: bool) -> list[str]:
        go.clear()
        taken.clear()
        tasks = [asyncio.create_task(job(first + n, fails=fails)) for n in range(20)]
        await until(lambda: sum(task.done() for task in tasks) + len(taken) == len(tasks))
        go.set()
        await asyncio.wait(tasks)
        assert sum(store.sizes().values()) <= 100
        assert {type(task.exception()) for task in tasks if task.exception()} <= {ConnectionError}
        return list(taken)

    assert len(await together(100, fails=True)) == 3
    assert len(await together(200, fails=False)) == 3
    assert await together(300, fails=False) == []
    assert store.sizes()["guest-south+1+99"] == 10


async def test_what_has_come_of_a_job_counts_once(tmp_path: Path) -> None:
    """And not for another one, whose number begins as its own does."""
    store = ResultStore(tmp_path / "inputs")
    filled(store, inputs_of("south/1/1"), 30)
    filled(store, inputs_of("south/1/10"), 40)
    quota = PartnerQuota(None, store, 100)
    async with quota.room("south", "south/1/1", 61) as problem:
        assert "70 bytes here" in problem
    async with quota.room("south", "south/1/1", 60) as problem:
        assert problem == ""
        async with quota.room("south", "south/1/2", 1) as other:
            assert "100 bytes here" in other


def test_what_is_counted_while_it_changes_is_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was complete while all were counted had the size of before for ever."""
    store = ResultStore(tmp_path)
    filled(store, "n-1", 10)
    looked, go = threading.Event(), threading.Event()
    size = file_store._size

    def slow(place: Path) -> int:
        found = size(place)
        looked.set()
        assert go.wait(TIME_OUT_S)
        return found

    monkeypatch.setattr(file_store, "_size", slow)
    counts = threading.Thread(target=store.sizes)
    counts.start()
    assert looked.wait(TIME_OUT_S)
    adds = threading.Thread(target=store.append, args=("n-1", 0, bytes(5)))
    adds.start()
    while (tmp_path / "n-1/content-0").stat().st_size < 15:
        adds.join(0.01)
    go.set()
    counts.join()
    adds.join()
    assert store.sizes() == {"n-1": 15}


async def test_what_has_no_room_waits_and_comes_when_there_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The user is told why, and makes room by fetching; what was removed is not brought again."""
    script = "#!/bin/sh\nhead -c 60000 /dev/urandom >out.bin\n"
    async with two_batch_sites(tmp_path, results={"user_bytes": 100_000}) as (north, south, _):
        first = await submitted(north, script, CPUS // 2, ("*.bin",))
        await until(lambda: full_and_half(north, south))
        await north.ended(first)
        assert (await left(tmp_path, first)).problem == ""
        second = await submitted(north, script + "\n", CPUS // 2, ("*.bin",))
        assert (await north.ended(second)).executed_on == "south"
        async with Client(tmp_path / "north.sock", timeout_s=TIME_OUT_S) as user:
            with pytest.raises(SiteError, match="on the way from south"):
                await user.remove_results(second)
            said = ""
            while "as 60000 of" not in said:
                said = (await user.results(second)).problem
                await asyncio.sleep(0.01)
            assert "grms fetch --remove makes room" in said
            words = ["fetch", first, "--remove", "--socket", str(tmp_path / "north.sock")]
            words += ["--output", str(tmp_path / "came")]
            assert await asyncio.to_thread(run_command, words) == 0
            assert (tmp_path / "came/out.bin").stat().st_size == 60_000
            assert (await user.results(second, wait=True)).problem == ""
            assert "removed, as their user has asked" in (await user.results(first)).problem
            await user.remove_results(first)
    capfd.readouterr()
