"""What starts a job: what the batch system sees of its end, and what the job's folder says of it."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from grms.lrms.launched import LAUNCH, ScriptEnd, ended_itself, read_runs, read_script_end, true_end
from grms.lrms.port import LrmsEnd, LrmsOutcome
from tests.waiting import TIME_OUT_S

SHELLS = [shell for shell in ("/bin/sh", "/bin/bash") if os.access(shell, os.X_OK)]


def launched(folder: Path, shell: str, script: str) -> tuple[int, str, str]:
    """Runs a script as a batch system does, and returns its status and what it has printed."""
    (folder / "values").write_text("umask 027\nexport VALUE='x y'\nset -- \"$1/program\" 'a b' c\n")
    for name, text in (("launch", LAUNCH), ("program", f"#!/bin/sh\n{script}\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o700)
    done = subprocess.run(  # noqa: S603  # a script of the test's
        [shell, str(folder / "launch")],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=TIME_OUT_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("exit 0", 0, 0),
        ("exit 3", 3, 3),
        ("exit 139", 139, 139),
        ("kill -SEGV $$", -11, None),
        ("kill -KILL $$", -9, None),
        ("kill -TERM 0", -15, None),
        ("trap 'exit 5' TERM; kill -TERM 0; exit 6", 5, 5),
        ("kill -KILL 0", -9, None),
    ],
)
def test_the_end_is_the_scripts(
    tmp_path: Path, shell: str, script: str, status: int, said: int | None
) -> None:
    """Exit code or signal, whoever sends it; only an end of its own is written down."""
    assert launched(tmp_path, shell, script)[0] == status
    text = (tmp_path / "begun").read_text()
    end = read_script_end(text)
    assert (end.code if end is not None else None) == said
    assert read_runs(text) == ["0"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_has_what_it_is_given(tmp_path: Path, shell: str) -> None:
    """Arguments, variables, and the streams; nobody else sees its variables, and it has no other files open."""
    script = (
        'echo "$1|$2|$#|$VALUE"; echo wrong >&2; umask; test -e /proc/$$/fd/3 || echo closed; trap'
    )
    status, out, error = launched(tmp_path, shell, script)
    assert (status, error) == (0, "wrong\n")
    first, mask, third, *traps = out.splitlines()
    assert (first, mask, traps) == ("a b|c|2|x y", "0027", [])
    assert third == "closed"
    (tmp_path / "values").unlink()
    done = subprocess.run(  # noqa: S603  # same
        [shell, "launch"], cwd=tmp_path, capture_output=True, check=False, timeout=TIME_OUT_S
    )
    assert done.returncode != 0


def test_what_folders_say() -> None:
    """Also those of an older version, and those into which the job has written."""
    assert read_runs("0\n1\n0\n") == ["0", "1", "0"]
    assert read_runs("0 1000\nended 3 1020\n1 1030\n") == ["0", "1"]
    assert read_script_end("0 1000\nended 3 1020\n") == ScriptEnd(3, 20.0)
    assert read_script_end("0\nended 3 1020\n") == ScriptEnd(3, None)
    assert read_script_end("ended 3 1020\n") == ScriptEnd(3, None)
    assert read_script_end("0 1030\nended 3 1020\n") == ScriptEnd(3, None)  # a clock went back
    for text in (
        "",
        "0 1000\n",
        "0 1000\nended 3 1020\n1 1030\n",
        "0 1000\nended 3 10",
        "ended 256 1020\n",
        "ended x 1020\n",
        "ended 3 +%s\n",
        "\0" * 20,
    ):
        assert read_script_end(text) is None


TIMEOUT = LrmsEnd(LrmsOutcome.TIMEOUT, 1100.0, 100.0, reason="TimeLimit")


def test_an_end_at_the_limit_is_looked_at() -> None:
    """A script that ended before its time was over was not ended for that."""
    found = true_end(TIMEOUT, ScriptEnd(0, 20.0), 60.0)
    assert (found.outcome, found.exit_code, found.run_time) == (LrmsOutcome.COMPLETED, 0, 20.0)
    assert found.end_time == 1020.0
    assert "its script had ended before" in found.reason
    assert true_end(TIMEOUT, ScriptEnd(3, 20.0), 60.0).outcome is LrmsOutcome.FAILED
    for script in (None, ScriptEnd(0, None), ScriptEnd(0, 60.0), ScriptEnd(0, 59.5)):
        assert true_end(TIMEOUT, script, 60.0) is TIMEOUT
    assert true_end(TIMEOUT, ScriptEnd(0, 20.0), 0.0) is TIMEOUT  # nobody knows its limit


def test_other_ends() -> None:
    """A script that has ended was there to the end, whatever became of its node; a cancel stays one."""
    failed = replace(TIMEOUT, outcome=LrmsOutcome.NODE_FAIL)
    assert true_end(failed, ScriptEnd(0, 90.0), 60.0).outcome is LrmsOutcome.COMPLETED
    found = true_end(failed, ScriptEnd(2, None), 60.0)
    assert (found.exit_code, found.run_time, found.end_time) == (2, 100.0, 1100.0)
    assert true_end(failed, ScriptEnd(0, 500.0), 0.0).run_time == 100.0
    for code in (137, 143):  # its command was killed a moment before it
        assert true_end(failed, ScriptEnd(code, 100.0), 60.0) is failed
    for outcome in set(LrmsOutcome) - {LrmsOutcome.NODE_FAIL, LrmsOutcome.TIMEOUT}:
        end = replace(TIMEOUT, outcome=outcome)
        assert true_end(end, ScriptEnd(0, 1.0), 60.0) is end
    found = ended_itself(ScriptEnd(4, 7.0), 50.0)
    assert (found.outcome, found.exit_code, found.run_time) == (LrmsOutcome.FAILED, 4, 7.0)
