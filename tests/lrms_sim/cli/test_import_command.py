"""From `sacct` output to a replay in two commands."""

import bz2
import gzip
import lzma
import sys
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from lrms_sim.cli.main import run_command
from lrms_sim.workload.swf import read_swf
from tests.lrms_sim.workload.accounting.test_gwf import GWF
from tests.lrms_sim.workload.accounting.test_importing import PBS, SACCT


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
        (["pbs", str(file), "-o", str(tmp_path / "no" / "x.swf")], "there is no folder"),
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


def test_sites_of_a_grid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are named with their jobs; one can be taken, and must be there."""
    file, log = tmp_path / "das2.gwf", tmp_path / "fs1.swf"
    file.write_text("".join(GWF), encoding="utf-8")
    assert run_command(["import", "gwf", str(file), "-o", str(log)]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "They ran at 2 sites; --site takes those of one:",
        "           2  fs1",
        "           1  fs0",
    ]
    assert run_command(["import", "gwf", str(file), "-o", str(log), "--site", "fs1"]) == 0
    assert len(read_swf(log)) == 2
    assert run_command(["import", "gwf", str(file), "-o", str(log), "--site", "fs7"]) != 0
    assert "has no job of site fs7; it names fs1, fs0" in capsys.readouterr().err
    assert run_command(["import", "pbs", str(file), "-o", str(log), "--site", "fs1"]) == 2
    assert "--site is for gwf and table alone, not for pbs" in capsys.readouterr().err


def test_out_to_batsim_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same jobs run; what has no place there is counted, and the same log gives the same bytes."""
    file, log = tmp_path / "jobs.txt", tmp_path / "jobs.swf"
    file.write_text("\n".join(SACCT), encoding="utf-8")
    assert run_command(["import", "sacct", str(file), "-o", str(log)]) == 0
    once, twice = tmp_path / "a.json.gz", tmp_path / "b.json.gz"
    capsys.readouterr()
    for out in (once, twice):
        options = ["--processors", "64", "--requested-time-missing", "run_time"]
        assert run_command(["export", "batsim", str(log), "-o", str(out), *options]) == 0
    said = capsys.readouterr().out
    assert f"3 of 4 jobs written to {once}" in said
    assert "           4  records whose queue has no place there: not written" in said
    assert once.read_bytes() == twice.read_bytes()
    back = tmp_path / "back.swf"
    assert run_command(["import", "batsim", str(once), "-o", str(back)]) == 0
    assert read_swf(back).run_time.tolist() == [1800, 3600, 60]
    assert read_swf(back).user.tolist() == [1, 2, 3]
    assert read_swf(back).header.max_procs == 64
    assert run_command(["export", "batsim", str(log), "-o", str(out), "--processors", "1"]) == 1
    assert "no job is left" in capsys.readouterr().err


def test_packed_cut_and_piped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How a file is packed is seen from its content; a cut one is an error of one line and no interruption."""
    text = "\n".join(SACCT).encode("utf-16")
    for name, content in (
        ("a.txt", bz2.compress(text)),
        ("b.gz", text),
        ("c", lzma.compress(text)),
    ):
        (tmp_path / name).write_bytes(content)
        log = tmp_path / f"{name}.swf"
        assert run_command(["import", "sacct", str(tmp_path / name), "-o", str(log)]) == 0
        assert len(read_swf(log)) == 4
    cut = tmp_path / "cut.txt"
    cut.write_bytes(gzip.compress(text)[:-30])
    capsys.readouterr()
    assert run_command(["import", "sacct", str(cut), "-o", str(log)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"Error: {cut}: is cut off: the gzip data end after ")
    assert len(error.splitlines()) == 1
    packed = BytesIO(gzip.compress(text))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=packed))
    assert run_command(["import", "sacct", "-", "-o", str(log)]) == 0


def test_odd_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are counted with the first of a kind, and a warning comes where they are many; or they are errors."""
    file, log = tmp_path / "jobs.txt", tmp_path / "jobs.swf"
    file.write_text("\n".join([*SACCT, "12|x", "", "13|x"]), encoding="utf-8")
    assert run_command(["import", "sacct", str(file), "-o", str(log)]) == 0
    said = capsys.readouterr()
    assert (
        "           2  lines with more or fewer columns than there are names, left out "
        "(first in line 8: 2 columns, the header has 11)"
    ) in said.out
    assert "warning: 2 of 6 jobs and lines (33.3%) could not be used" in said.err
    options = ["-o", str(log), "--unreadable", "error"]
    assert run_command(["import", "sacct", str(file), *options]) == 2
    assert f"Error: {file}:8: 2 columns" in capsys.readouterr().err
    assert run_command(["import", "pbs", str(file), "-o", str(log)]) == 2
    assert "left out (first in line 1: no PBS accounting record" in capsys.readouterr().err


def test_offsets_and_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A time zone is a name or an offset; a file without its line of names says them by an option."""
    file, log = tmp_path / "jobs.txt", tmp_path / "jobs.swf"
    file.write_text("\n".join(SACCT[1:]), encoding="utf-8")
    columns = ["--format", SACCT[0].replace("|", ",")]
    for zone in ("3600", "+01:00", "Etc/GMT-1"):
        options = ["-o", str(log), "--time-zone", zone, *columns]
        assert run_command(["import", "sacct", str(file), *options]) == 0
        assert read_swf(log).header.fields["UnixStartTime"] == "1704063600"
    capsys.readouterr()
    assert run_command(["import", "pbs", str(file), "-o", str(log), *columns]) == 2
    assert "--format is for sacct and table alone, not for pbs" in capsys.readouterr().err
