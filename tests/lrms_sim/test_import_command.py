"""From `sacct` output to a replay in two commands."""

import gzip
from pathlib import Path

import pytest

from lrms_sim.cli import run_command
from lrms_sim.swf import read_swf
from tests.lrms_sim.test_accounting import PBS, SACCT


def test_two_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The log is written, the rules are counted, and the log runs."""
    file, log = tmp_path / "jobs.txt.gz", tmp_path / "jobs.swf"
    file.write_bytes(gzip.compress("\n".join(SACCT).encode()))
    assert run_command(["import", "sacct", str(file), "-o", str(log)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == f"4 jobs of 3 users written to {log}"
    assert "           1  steps of jobs, left out" in out
    assert run_command(["run", str(log), "--processors", "64"]) == 0
    text = log.read_text(encoding="utf-8")
    assert "zoe" not in text
    assert "phys" not in text


def test_options_and_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An anonymous log has no beginning; mistakes are one line."""
    file, log = tmp_path / "pbs", tmp_path / "jobs.swf.gz"
    file.write_text("\n".join(PBS), encoding="utf-8")
    assert run_command(["import", "pbs", str(file), "-o", str(log), "--anonymous"]) == 0
    assert "UnixStartTime" not in read_swf(log).header.fields
    capsys.readouterr()
    for arguments, found in (
        (["pbs", str(tmp_path / "none"), "-o", str(log)], "No such file"),
        (["sacct", str(file), "-o", str(log)], "pbs:1: no column"),
        (["pbs", str(file), "-o", str(log), "--time-zone", "Mars"], "Mars"),
        (["pbs", str(file), "-o", str(tmp_path / "no" / "x.swf")], "No such file"),
    ):
        assert run_command(["import", *arguments]) == 2
        error = capsys.readouterr().err
        assert error.startswith("Error: ")
        assert found in error
        assert len(error.splitlines()) == 1


def test_a_file_without_ended_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No log of no jobs is written; it says what the file had instead."""
    file, log = tmp_path / "jobs.txt", tmp_path / "jobs.swf"
    file.write_text("\n".join([SACCT[0], SACCT[2], SACCT[5]]), encoding="utf-8")
    assert run_command(["import", "sacct", str(file), "-o", str(log)]) != 0
    error = capsys.readouterr().err
    assert "has no job that has ended: 1 steps of jobs, left out; 1 jobs that had not" in error
    assert not log.exists()
