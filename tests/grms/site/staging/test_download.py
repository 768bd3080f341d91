"""What partners are told of files that a slow or absent disk has."""

import asyncio
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from grms.daemon.file_store import ResultStore
from grms.daemon.job_files import FileLimits
from grms.lrms.base import Program
from grms.lrms.batch.launcher import Spool
from grms.site.model.jobs import OfferId
from grms.site.model.lifecycle import JobState
from grms.site.staging import download as module
from grms.site.staging.digests import Digests
from grms.site.staging.download import NoResultsError, ResultServer
from grms.v1 import request_pb2
from tests.waiting import TIME_OUT_S, until

OFFER = OfferId(1, 1)

SCRIPT = request_pb2.JobRequest(
    program=request_pb2.Program(script="#!/bin/sh\n")
).SerializeToString()


def server(folder: Path, digests: Digests) -> tuple[ResultServer, Path]:
    """Returns the desk of a site whose partner `home` has had a job here, and that job's folder."""
    spool = Spool(folder / "jobs")
    spool.open()
    place = spool.prepare("home/1/1", Program("#!/bin/sh\n"), run=True)
    (place / "stdout").write_text("said")
    book = SimpleNamespace(answer_to=lambda _: None)
    engine: Any = SimpleNamespace(state=SimpleNamespace(partners={"home": book}))
    made = ResultServer(
        engine,
        spool,
        ResultStore(folder / "results"),
        FileLimits(100, 100),
        keep_s=50.0,
        log=structlog.get_logger(),
        digests=digests,
    )
    return made, place


async def test_a_partner_that_asks_for_what_is_being_read_may_ask_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told so at once, nothing is read twice, and what it has then goes; another file stays."""
    monkeypatch.setattr(module, "DIGESTS_S", 0.001)
    gate, read = threading.Event(), list[int]()

    def slow(descriptor: int, most: int) -> bytes:
        read.append(most)
        assert gate.wait(TIME_OUT_S)
        return os.read(descriptor, most)

    results, place = server(tmp_path, Digests(slow))
    for _ in range(3):
        with pytest.raises(NoResultsError, match="0 of 4 bytes") as caught:
            await results.of_guest("home", OFFER)
        assert caught.value.later
    gate.set()
    await until(lambda: len(asyncio.all_tasks()) == 1)
    found = await results.of_guest("home", OFFER)
    assert [(file.name, file.size) for file in found.files] == [("stdout", 4), ("stderr", 0)]
    assert read == [4]
    assert found.place is not None
    assert found.place.folder == str(place)
    assert found.place.until == (place / "stdout").lstat().st_mtime + 50.0
    pieces = [some async for some in results.read_guest("home", OFFER, "stdout", 1)]
    assert pieces == [b"aid"]
    assert read == [4]
    await results.drop_guest("home", OFFER, [("stdout", bytes(32))])
    assert (place / "stdout").read_text() == "said"
    await results.drop_guest("home", OFFER, [("stdout", found.files[0].sha256)])
    assert not list(place.iterdir())
    with pytest.raises(NoResultsError) as gone:
        await results.of_guest("home", OFFER)
    assert not gone.value.later


async def test_a_file_is_handed_out_while_digests_are_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To a partner and to a user: whoever wants one file does not wait for what all of them are."""
    monkeypatch.setattr(module, "DIGESTS_S", 0.001)
    gate = threading.Event()

    def slow(descriptor: int, most: int) -> bytes:
        assert gate.wait(TIME_OUT_S)
        return os.read(descriptor, most)

    results, _ = server(tmp_path, Digests(slow))
    job: Any = SimpleNamespace(
        state=JobState.ENDED, partner="", payload=SCRIPT, lrms_key="home/1/1", job_id="home-1"
    )
    try:
        with pytest.raises(NoResultsError, match="0 of 4 bytes"):
            await results.of_guest("home", OFFER)
        assert "0 of 4 bytes" in (await results.of_job(job)).problem
        for pieces in (
            results.read_guest("home", OFFER, "stdout", 1),
            results.read_job(job, "stdout", 1),
        ):
            assert [some async for some in pieces] == [b"aid"]
    finally:
        gate.set()
    await until(lambda: len(asyncio.all_tasks()) == 1)
    found = await results.of_job(job)
    assert found.complete
    assert found.files[0].sha256


async def test_a_disk_that_is_away_has_not_lost_anything(tmp_path: Path) -> None:
    """The partner asks again, and does not note that there are no files."""
    results, place = server(tmp_path, Digests())
    place.parent.rename(tmp_path / "away")
    with pytest.raises(NoResultsError, match="not mounted") as caught:
        await results.of_guest("home", OFFER)
    assert caught.value.later
    (tmp_path / "away").rename(place.parent)
    assert (await results.of_guest("home", OFFER)).complete
