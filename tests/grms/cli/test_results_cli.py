"""The commands for what jobs leave."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import pytest

from grms.cli.main import run_command
from grms.client import OutputPiece, ResultFile, Results, SiteError

OUT = b"said\n\xff"


def file(name: str, content: bytes = OUT, problem: str = "") -> ResultFile:
    """Returns what a site says of a file."""
    return ResultFile(name, len(content), hashlib.sha256(content).digest(), problem)


ALL = (file("stdout"), file("stderr", b""), file("a/b"), file("x", problem="missing"))


class Site:
    """A site in the place of a client.

    Attributes:
        results_now: what it says.
        content: that every file has but an empty one.
        asked: which files were asked for, and from where on.
        breaks: files of which only a part comes.
    """

    results_now = Results(ALL, True, "")
    content = OUT
    asked: ClassVar[list[tuple[str, int]]] = []
    breaks: ClassVar[list[str]] = []

    def __init__(self, socket: Path, *, timeout_s: float) -> None:
        assert (socket, timeout_s) == (Path("sock"), 10.0)

    def __enter__(self) -> Self:
        """Connects."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hangs up."""

    def get(self, job_id: str) -> Any:
        """Returns a job; there is one."""
        if job_id != "home-1":
            raise SiteError("NOT_FOUND", f"there is no job {job_id!r}", "job_id")
        return SimpleNamespace(has_ended=self.results_now.complete, executed_on="south")

    def results(self, _job_id: str, *, wait: bool) -> Results:
        """Returns what it says."""
        assert wait == self.results_now.complete
        return self.results_now

    def follow(self, _job_id: str, *, error: bool, once: bool) -> Iterator[OutputPiece]:
        """Yields what it prints."""
        assert not error
        yield OutputPiece(OUT)
        if not once:
            yield OutputPiece(notice="a moment")
            yield OutputPiece(b"again", anew=True)

    def fetch(self, _job_id: str, name: str, offset_bytes: int = 0) -> Iterator[bytes]:
        """Yields a file in pieces, and then breaks if it is told to."""
        self.asked.append((name, offset_bytes))
        if name != "stderr":
            content = self.content[offset_bytes:]
            yield content[:2]
            if name in self.breaks:
                self.breaks.remove(name)
                raise SiteError("UNAVAILABLE", "it has gone")
            yield content[2:]


@pytest.fixture(name="site")
def _site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Site]:
    class Own(Site):
        asked: ClassVar[list[tuple[str, int]]] = []
        breaks: ClassVar[list[str]] = []

    monkeypatch.setattr("grms.client.SyncClient", Own)
    monkeypatch.setenv("HANSE_SOCKET", "sock")
    monkeypatch.chdir(tmp_path)
    Path("sock").touch()
    return Own


def test_logs_are_shown_as_they_are(
    site: type[Site], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Byte for byte, also of a job that still runs; an empty one is empty."""
    assert run_command(["logs", "home-1"]) == 0
    assert capfdbinary.readouterr().out == OUT
    assert run_command(["logs", "home-1", "--stderr"]) == 0
    assert capfdbinary.readouterr().out == b""
    site.results_now = Results(ALL, False, "")
    assert run_command(["logs", "home-1"]) == 0
    assert capfdbinary.readouterr().out == OUT
    assert run_command(["logs", "-f", "home-1"]) == 0
    told = capfdbinary.readouterr()
    assert told.out == OUT + b"again"
    assert (
        told.err.decode().splitlines()
        == [
            *("it runs anew; what was printed before is of an earlier run", "a moment"),
        ][::-1]
    )


@pytest.mark.parametrize(
    ("results", "words", "text"),
    [
        (Results((), False, "on the way"), ["fetch", "home-1"], "home-1: on the way"),
        (Results((), True, "gone"), ["fetch", "home-1"], "home-1: gone"),
        (Results(ALL, False, ""), ["fetch", "home-1"], "home-1 has not ended"),
        (
            Results((file("stdout", problem="too_large"),), True, ""),
            ["logs", "home-1"],
            "stdout: it is larger than",
        ),
        (Results(ALL, True, ""), ["logs", "home-2"], "there is no job 'home-2'"),
    ],
)
def test_what_is_not_here_is_said(
    site: type[Site], capsys: pytest.CaptureFixture[str], results: Any, words: Any, text: str
) -> None:
    """In a sentence, and with a status."""
    site.results_now = results
    assert run_command(words) != 0
    captured = capsys.readouterr()
    assert text in captured.err
    assert "Traceback" not in captured.err


def test_files_are_brought(site: type[Site], capsys: pytest.CaptureFixture[str]) -> None:
    """Into a folder named as the job; nothing that is there is replaced unless it is wanted."""
    assert run_command(["fetch", "home-1"]) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "home-1/stdout: 6 bytes",
        "home-1/stderr: 0 bytes",
        "home-1/a/b: 6 bytes",
    ]
    assert captured.err == "home-1/x: the job has left no such file\n"
    assert Path("home-1/a/b").read_bytes() == OUT
    assert Path("home-1/stdout").stat().st_mode & 0o777 == 0o644
    Path("home-1/stdout").write_text("mine")
    assert run_command(["fetch", "home-1"]) == 1
    assert "home-1/stdout: it is there already" in capsys.readouterr().err
    assert Path("home-1/stdout").read_text() == "mine"
    site.results_now = Results(ALL[:3], True, "")
    assert run_command(["fetch", "home-1", "--force", "--output", "home-1"]) == 0
    assert Path("home-1/stdout").read_bytes() == OUT


def test_what_comes_otherwise_than_was_said_is_not_passed_over(
    site: type[Site], capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong content, a name that leads elsewhere, a link in the way."""
    site.content = b"other"
    site.results_now = Results((file("stdout"), file("../x"), file("l/y")), True, "")
    Path("away").mkdir()
    Path("home-1").mkdir()
    Path("home-1/l").symlink_to("../away")
    assert run_command(["fetch", "home-1"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert "its content is not what" in lines[0]
    assert "no name of a file" in lines[1]
    assert "no file" in lines[2]
    assert not Path("x").exists()
    assert list(Path("away").iterdir()) == []


def test_a_file_that_was_cut_off_goes_on_where_it_stopped(site: type[Site]) -> None:
    """Nothing is seen half; what is here already is not asked for again, and a part that was spoilt begins anew."""
    site.results_now = Results(ALL[:3], True, "")
    site.breaks[:] = ["a/b"]
    assert run_command(["fetch", "home-1"]) != 0
    assert not Path("home-1/a/b").exists()
    site.asked.clear()
    assert run_command(["fetch", "home-1"]) == 0
    assert site.asked == [("a/b", 2)]
    assert Path("home-1/a/b").read_bytes() == OUT

    Path("home-1/a/b").unlink()
    site.breaks[:] = ["a/b"]
    assert run_command(["fetch", "home-1"]) != 0
    (part,) = Path("home-1").glob(".*.part")
    part.write_bytes(b"xx")
    site.asked.clear()
    assert run_command(["fetch", "home-1"]) == 0
    assert site.asked == [("a/b", 2), ("a/b", 0)]
    assert Path("home-1/a/b").read_bytes() == OUT
    assert sorted(path.name for path in Path("home-1").iterdir()) == ["a", "stderr", "stdout"]


def test_a_file_keeps_its_permissions_as_far_as_the_umask_allows(site: type[Site]) -> None:
    """A program stays one, and a key stays private."""
    files = tuple(replace(file(name), mode=mode) for name, mode in (("run", 0o777), ("key", 0o600)))
    site.results_now = Results(files, True, "")
    assert run_command(["fetch", "home-1"]) == 0
    modes = [Path("home-1", name).stat().st_mode & 0o7777 for name in ("run", "key")]
    assert modes == [0o755, 0o600]


def test_streams_have_the_names_that_their_user_has_written(
    site: type[Site], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is not wanted is not brought; a name of a partner's that leads out is none."""
    out = replace(file("stdout"), written_as="logs/run-1.out")
    error = replace(file("stderr", b""), written_as="/dev/null")
    site.results_now = Results((out, error, file("a")), True, "")
    assert run_command(["fetch", "home-1", "--output", "."]) == 0
    assert Path("logs/run-1.out").read_bytes() == OUT
    assert sorted(path.name for path in Path().iterdir()) == ["a", "logs", "sock"]
    assert "logs/run-1.out: 6 bytes" in capsys.readouterr().out
    site.results_now = Results((replace(out, written_as="../x"),), True, "")
    assert run_command(["fetch", "home-1", "--output", "."]) == 1
    assert "no name of a file" in capsys.readouterr().err


def test_streams_are_added_where_their_user_wants_that(site: type[Site]) -> None:
    """Once, however often they are fetched; other files are never added to anything."""
    out = replace(file("stdout"), written_as="log")
    site.results_now = Results((out, file("a")), True, "", append=True)
    Path("log").write_text("before\n")
    Path("a").write_text("mine")
    for _ in range(2):
        assert run_command(["fetch", "home-1", "--output", "."]) == 1
        assert Path("log").read_bytes() == b"before\n" + OUT
        assert Path("a").read_text() == "mine"
    assert not list(Path().glob(".*.part"))


def test_two_files_that_are_one_here_do_not_replace_each_other(
    site: type[Site], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with --force either: where upper and lower case are the same the second is said to be in the way."""
    real = Path.lstat

    def lower(path: Path) -> os.stat_result:
        return real(path.with_name(path.name.lower()))

    monkeypatch.setattr(Path, "lstat", lower)
    monkeypatch.setattr(os.path, "lexists", lambda path: Path(str(path).lower()).exists())
    site.results_now = Results((file("data"), file("DATA")), True, "")
    assert run_command(["fetch", "home-1", "--force"]) == 1
    assert "takes it for data, which is another" in capsys.readouterr().err
    assert [path.name for path in Path("home-1").iterdir()] == ["data"]


def test_what_no_list_can_have_is_said(
    site: type[Site], capsys: pytest.CaptureFixture[str]
) -> None:
    """With where it stays; the status says that not all has come."""
    site.results_now = Results(ALL[:2], True, "", "/spool/job", 1e9, 7, 100, left_out=5)
    assert run_command(["fetch", "home-1"]) == 1
    told = capsys.readouterr().err
    assert "7 files (100 bytes) at south in /spool/job" in told
    assert "2 of them the job has not declared; at least 5 are too many or have names" in told
