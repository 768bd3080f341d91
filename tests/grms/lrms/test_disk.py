"""What is said of a disk that does not do its work; what then becomes of jobs is in `test_full_disk`."""

import errno
import os
from pathlib import Path

import pytest
import structlog

from grms.lrms.batch.launcher import Spool
from grms.lrms.disk import Disk


def _full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_the_log_names_each_error_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alike ones are counted meanwhile."""
    monkeypatch.setattr("grms.lrms.disk.ALIKE_LOGGED_S", 1e9)
    disk = Disk(Spool(tmp_path).probe)
    with structlog.testing.capture_logs() as log:
        for _ in range(3):
            assert await disk.tried(_full) is None
        monkeypatch.setattr("grms.lrms.disk.ALIKE_LOGGED_S", 0.0)
        assert await disk.tried(_full) is None
    assert [each.get("left_out") for each in log] == [None, 2]
    assert disk.problem == ""


async def test_one_folder_that_cannot_be_read_is_no_problem_of_all(tmp_path: Path) -> None:
    """It is found out whether others can be written, and nothing is left of that."""
    spool = Spool(tmp_path)
    fails = [False, True, True, False]

    def probe() -> None:
        if fails.pop(0):
            _full()
        spool.probe()

    disk = Disk(probe)
    await disk.tried(_full)
    assert disk.problem == ""
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    await disk.tried(_full)
    assert "No space left" in disk.problem
    await disk.look()
    assert "No space left" in disk.problem
    await disk.look()
    assert disk.problem == ""
