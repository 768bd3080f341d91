"""What is old goes; what lives stays."""

import errno
import hashlib
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import structlog
from structlog.testing import capture_logs

from grms.daemon.file_store import Manifest, ResultStore
from grms.daemon.job_files import JobFile
from grms.daemon.uploads import user_input
from grms.lrms.job_directories import JobFolder, Remains
from grms.site.model.jobs import GuestRef, OfferId, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import GuestAccepted, JobEnded, JobKept, JobReceived
from grms.site.model.state_tables import StateTables
from grms.site.peers.pseudonyms import GuestOwners
from grms.site.staging.quotas import inputs_of
from grms.site.staging.retention import Retention, living
from grms.v1 import request_pb2
from tests.grms.site.conversation import settings


class Folders:
    """Folders that are all old."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = list(keys)

    def left(self, key: str) -> JobFolder | None:
        """Returns nothing."""
        raise AssertionError(key)

    def others(self, key: str, listed: Collection[str]) -> Remains:
        """Is not called."""
        raise AssertionError(key, listed)

    def changed(self, key: str) -> float:
        """Is not called."""
        raise AssertionError(key)

    def clear(self, key: str, copied: Collection[str], *, rest: bool = False) -> Remains:
        """Is not called."""
        raise AssertionError(key, copied, rest)

    def held(self, prefix: str) -> int:
        """Is not called."""
        raise AssertionError(prefix)

    def remove(self, key: str) -> None:
        """Deletes one."""
        self.keys.remove(key)

    def stale(self, before: float) -> list[str]:
        """Returns all."""
        assert before == 900.0
        return list(self.keys)


def lived() -> StateTables:
    """Returns a memory of a home job here that lives and one that ended, and the same of guests."""
    memory, request = StateTables(settings()), Request(1, 10.0)
    for number in (1, 2):
        memory.apply(JobReceived(1.0, number, "ann", f"k{number}", "", request, b""))
        memory.apply(GuestAccepted(1.0, GuestRef("b", OfferId(1, number)), 1, request, b""))
    memory.apply(JobKept(1.0, 2))
    memory.apply(JobEnded(2.0, 2, Outcome.COMPLETED, 2.0, 1.0, ""))
    memory.apply(JobEnded(2.0, GuestRef("b", OfferId(1, 2)), Outcome.COMPLETED, 2.0, 1.0, ""))
    return memory


def test_a_job_lives_until_its_end_is_known() -> None:
    """Also one that was not handed over yet: it may have been, by an older journal."""
    memory = lived()
    name = memory.settings.name
    keys = [f"{name}/1/1", f"{name}/1/2", f"{name}/1/3", "b/1/1", "b/1/2", "b/1/3"]
    assert [living(memory, key) for key in keys] == [True, False, False, True, False, False]
    # One that the batch system has let go has a name of one part more when it gets it again.
    assert [living(memory, f"{name}/1/{number}/2") for number in (1, 2)] == [True, False]


async def test_old_folders_go(tmp_path: Path) -> None:
    """Of the batch system's jobs and of what came home; once, and those of living jobs never."""
    memory = lived()
    folders, store = Folders(["b/1/1", "b/1/2"]), ResultStore(tmp_path / "results")
    store.finish("a-2", Manifest())
    engine: Any = SimpleNamespace(state=SimpleNamespace(memory=memory))
    log = structlog.get_logger()
    inputs, owners = ResultStore(tmp_path / "inputs"), GuestOwners(tmp_path / "owners")
    for key in ("b/1/1", "b/1/2"):
        await owners.take("b", key, "0" * 32)
    sweeper = Retention(
        engine, folders, store, inputs, owners, keep_s=100.0, log=log, clock=lambda: 1000.0
    )
    assert await sweeper.sweep() == 1
    assert folders.keys == ["b/1/1"]
    assert [GuestOwners(tmp_path / "owners").of(key) for key in ("b/1/1", "b/1/2")] == [
        "0" * 32,
        "",
    ]
    assert store.manifest("a-2") == Manifest()
    later = Retention(engine, None, store, inputs, owners, keep_s=-1.0, log=log, clock=lambda: 1e12)
    assert await later.sweep() == 1
    assert store.manifest("a-2") is None


async def test_what_cannot_be_deleted_keeps_nothing_else(tmp_path: Path) -> None:
    """One folder, or all of one kind: the log says so, and the rest goes."""

    class Failing(Folders):
        """Folders of which one cannot be deleted."""

        def remove(self, key: str) -> None:
            """Deletes the others."""
            if key == "b/1/7":
                raise OSError(errno.EROFS, "Read-only file system")
            super().remove(key)

        def stale(self, before: float) -> list[str]:
            """Fails where there are none."""
            if not self.keys:
                raise OSError(errno.ESTALE, "Stale file handle")
            return super().stale(before)

    engine: Any = SimpleNamespace(state=SimpleNamespace(memory=lived()))
    for keys, left in ((["b/1/7", "b/1/8"], ["b/1/7"]), ([], [])):
        folders, store = Failing(keys), ResultStore(tmp_path / "results")
        store.finish("a-2", Manifest())
        owners = GuestOwners(tmp_path / "owners")
        with capture_logs() as log:
            sweeper = Retention(
                engine,
                folders,
                store,
                ResultStore(tmp_path / "inputs"),
                owners,
                keep_s=100.0,
                log=structlog.get_logger(),
                clock=lambda: 1000.0,
            )
            os.utime(tmp_path / "results/a-2", (0, 0))
            assert await sweeper.sweep() == len(keys) - len(left) + 1
        assert folders.keys == left
        assert store.manifest("a-2") is None
        assert [each["event"] for each in log] == ["results_not_cleaned", "results_cleaned"]


async def test_what_jobs_are_given_stays_as_long_as_they_live(tmp_path: Path) -> None:
    """A user's file for any job of theirs that has not ended, a partner's by its job; then it goes."""
    file = JobFile("in", 0, hashlib.sha256(b"").digest())
    program = request_pb2.JobRequest()
    program.program.inputs.add(name="in", sha256=file.sha256)
    memory = lived()
    memory.jobs[1].payload = program.SerializeToString()
    inputs, owners = ResultStore(tmp_path), GuestOwners(tmp_path / "owners")
    names = [user_input("ann", file), user_input("bob", file)]
    names += [inputs_of("b/1/1"), inputs_of("b/1/2")]
    for name in names:
        inputs.finish(name, Manifest((file,)))
    engine: Any = SimpleNamespace(state=SimpleNamespace(memory=memory))
    log, store = structlog.get_logger(), ResultStore(tmp_path / "results")
    times = {"keep_s": 1e12, "log": log}
    assert await Retention(engine, None, store, inputs, owners, **times).sweep() == 0
    sweeper = Retention(engine, None, store, inputs, owners, clock=lambda: 1e12, **times)
    assert await sweeper.sweep() == 2
    assert [inputs.manifest(name) is not None for name in names] == [True, False, True, False]


async def test_inputs_that_cannot_be_looked_at_are_one_problem(tmp_path: Path) -> None:
    """They are not looked at a second time, and what open jobs are given is not read for that."""

    class Unreadable(ResultStore):
        """Files whose folder cannot be read."""

        def stale(self, before: float) -> list[str]:
            """Fails."""
            raise OSError(errno.ESTALE, f"Stale file handle at {before}")

    engine: Any = SimpleNamespace(state=SimpleNamespace(memory=lived()))
    store, inputs = ResultStore(tmp_path / "results"), Unreadable(tmp_path / "inputs")
    owners = GuestOwners(tmp_path / "owners")
    with capture_logs() as log:
        sweeper = Retention(
            engine, None, store, inputs, owners, keep_s=100.0, log=structlog.get_logger()
        )
        assert await sweeper.sweep() == 0
    assert [(each["event"], each["more"]) for each in log] == [("results_not_cleaned", 0)]
