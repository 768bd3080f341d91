"""What every site above a real batch system needs; a real one runs the job in test_real_batch.py."""

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grms.lrms.base import Ended, LrmsEnd, LrmsJob, LrmsRefusedError, LrmsUnavailableError
from grms.lrms.batch.checks import (
    check_accounting,
    check_run,
    check_size,
    check_spool,
    check_user,
    probe_name,
)
from grms.lrms.batch.launcher import KEY, Spool
from grms.lrms.checks import Finding, FindingLevel
from grms.lrms.node_groups import NodeGroup
from grms.lrms.nodes import NodeTable
from grms.lrms.partitions import Partition
from grms.util.outcomes import Outcome

GOOD, DOUBT, MISSING = FindingLevel.GOOD, FindingLevel.DOUBT, FindingLevel.MISSING


def test_users() -> None:
    """Root is no user for partners' jobs, and one without a name none for any."""
    assert check_user(0).level is DOUBT
    assert check_user(2**31 - 7).level is MISSING
    assert check_user(1).level is GOOD


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that can be written by its owner alone, with room; no file is left in it."""
    spool = tmp_path / "spool"
    assert [finding.level for finding in check_spool(spool)] == [GOOD]
    assert [path for path in spool.rglob("*") if path.is_file()] == []
    spool.chmod(0o777)
    assert check_spool(spool)[0].level is MISSING
    spool.chmod(0o700)
    usage = SimpleNamespace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert [finding.level for finding in check_spool(spool)] == [GOOD, DOUBT]
    (tmp_path / "file").touch()
    assert check_spool(tmp_path / "file")[0].level is MISSING


def test_accounting_files(tmp_path: Path) -> None:
    """One that is not there yet comes; one whose folder is not there never does."""
    assert check_accounting(str(tmp_path / "accounting")).level is GOOD
    (tmp_path / "accounting").touch()
    assert check_accounting(str(tmp_path / "accounting")).level is GOOD
    assert check_accounting(str(tmp_path / "none/accounting")).level is MISSING
    assert check_accounting(str(tmp_path / "accounting/x")).level is MISSING


async def test_sizes() -> None:
    """What the batch system shows is compared with the site's file; nodes are told as that has them."""
    parts, gpus = frozenset(["main"]), (("a100", 2),)
    one = NodeGroup(("a", "b"), parts, 4, 4096, features=frozenset(["skylake", "avx512"]))
    other_kind = NodeGroup(("c",), parts, 8, gpus=gpus)
    nodes = NodeTable((one, other_kind), (Partition("main", "UP"),), ("main",))

    async def look() -> Any:
        return SimpleNamespace(processors=8, free=4, waiting_others=2, nodes=nodes)

    async def away() -> Any:
        raise LrmsUnavailableError("nobody answers")

    good = await check_size(SimpleNamespace(look=look), 8)
    assert good.level is GOOD
    assert good.text.split("; ") == [
        "8 processors, 4 free, 2 waited for",
        "nodes: 2 of 4 cores, 4 GiB, avx512, skylake",
        "nodes: 1 of 8 cores, 2 GPUs (a100)",
    ]
    nodes = None  # type: ignore[assignment]  # of a batch system that tells none
    assert (await check_size(SimpleNamespace(look=look), 8)).text.endswith("waited for")
    other = await check_size(SimpleNamespace(look=look), 9)
    assert (other.level, "processors = 8" in other.cure) == (DOUBT, True)
    found = await check_size(SimpleNamespace(look=away), 8)
    assert (found.level, found.text) == (MISSING, "nobody answers")


class Lrms:
    """A batch system that does with a job what a test says.

    Args:
        spool: of the jobs.
        does: with a job's folder; how it ends, None for never.
    """

    def __init__(self, spool: Path, does: Callable[[Path], LrmsEnd | None]) -> None:
        self.spool = Spool(spool)
        self.does = does
        self.tell: Any = None
        self.cancelled: list[str] = []

    def listen(self, tell: Any) -> None:
        """Takes note."""
        self.tell = tell

    async def run(self) -> None:
        """Follows nothing."""
        await asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        """Makes the folder."""
        self.spool.open()

    async def submit(self, job: LrmsJob) -> None:
        """Runs it."""
        assert job.program is not None
        end = self.does(self.spool.prepare(job.key, job.program, run=True))
        if end is not None:
            self.tell([Ended(job.key, end)])

    async def cancel(self, key: str) -> None:
        """Takes note."""
        self.cancelled.append(key)


def ran(folder: Path, outcome: Outcome = Outcome.COMPLETED, behind_s: float = 0.0) -> Any:
    """Leaves what the job leaves, and returns its end."""
    (folder / "seen").touch()
    now = os.stat(folder / "seen").st_mtime  # noqa: PTH116  # the folder's own clock
    (folder / "stdout").write_text(f"node7\n{now - behind_s:.0f}\n")
    return LrmsEnd(outcome, now, 0.0)


def refused(_folder: Path) -> None:
    """Is not taken."""
    raise LrmsRefusedError("no such partition")


@pytest.mark.parametrize(
    ("does", "expected"),
    [
        (ran, [(GOOD, "one ran on node7"), (GOOD, "as here")]),
        (
            lambda folder: ran(folder, behind_s=500.0),
            [(GOOD, "one ran on node7"), (DOUBT, "s off")],
        ),
        (
            lambda folder: ran(folder, Outcome.UNKNOWN),
            [(MISSING, "ended as unknown"), (GOOD, "as here")],
        ),
        (
            lambda _: LrmsEnd(Outcome.FAILED, 1e9, 0.0),
            [(MISSING, "nothing of it came"), (DOUBT, "s off")],
        ),
        (refused, [(MISSING, "no such partition")]),
        (lambda _: None, [(DOUBT, "has not ended within 0.2 s")]),
    ],
)
async def test_a_job_is_run(tmp_path: Path, does: Any, expected: Any) -> None:
    """What is made of it; nothing of it is left, and one that does not end is ended."""
    lrms: Any = Lrms(tmp_path, does)
    wait_s = 0.2 if "within" in expected[0][1] else 60.0
    found: list[Finding] = await check_run(lrms, tmp_path, probe_name("n" * 64), wait_s)
    for finding, (level, text) in zip(found, expected, strict=True):
        assert (finding.level, text in finding.text) == (level, True), finding
        assert bool(finding.cure) == (level is not GOOD)
    assert list(tmp_path.rglob("*")) == [tmp_path / ".marks"]
    assert len(lrms.cancelled) == (wait_s < 1)


def test_the_job_of_a_check_is_no_sites() -> None:
    """Its name is one that keys can have, and another than any that the site's jobs have."""
    for site in ("a", "n" * 64):
        assert probe_name(site) != site
        assert KEY.fullmatch(f"{probe_name(site)}/0/1")
