"""How commands start a user's deputy, and when they do not."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from grms.cli.handing_in import start_deputy
from grms.cli.main import run_command
from grms.client.errors import SiteError
from grms.v1 import deputy_pb2
from tests.grms.cli.test_site_cli import grms
from tests.grms.site.daemons import document, running

STARTED = list[tuple[list[str], dict[str, Any]]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> STARTED:
    """Returns the list of processes that are started instead of which nothing is."""
    found: STARTED = []
    monkeypatch.setattr(subprocess, "Popen", lambda words, **how: found.append((words, how)))
    return found


def answers(patch: pytest.MonkeyPatch, answer: bytes | SiteError | None) -> None:
    """Has every site answer so."""

    def ask(_path: Path, method: str, _request: bytes, _timeout_s: float) -> bytes | None:
        assert method == "/grms.v1.DeputyService/Look"
        if isinstance(answer, SiteError):
            raise answer
        return answer

    patch.setattr("grms.client.unary.ask", ask)


@pytest.mark.parametrize(
    "answer",
    [
        None,  # an older site, or none
        b"",
        deputy_pb2.DeputyLook(wanted=True, present=True).SerializeToString(),
        deputy_pb2.DeputyLook(present=True).SerializeToString(),
        b"\xff\xff\xff",
        SiteError("PERMISSION_DENIED", "no"),
    ],
)
def test_where_none_is_wanted_none_is_started(
    monkeypatch: pytest.MonkeyPatch, started: STARTED, answer: bytes | SiteError | None
) -> None:
    """Or where one is there, or the site does not say: the job was handed in in any case."""
    answers(monkeypatch, answer)
    start_deputy(Path("s.sock"))
    assert started == []


def test_one_is_started_in_the_background(
    monkeypatch: pytest.MonkeyPatch, started: STARTED
) -> None:
    """It outlives the terminal of the command, and goes when its user has nothing more to do."""
    answers(monkeypatch, deputy_pb2.DeputyLook(wanted=True).SerializeToString())
    start_deputy(Path("s.sock"))
    ((words, how),) = started
    assert words[1:] == [
        *("-m", "grms", "deputy", "--socket", str(Path("s.sock").absolute())),
        *("--idle", "600"),
    ]
    assert how["start_new_session"]
    assert how["cwd"] == "/"
    assert {how[name] for name in ("stdin", "stdout", "stderr")} == {subprocess.DEVNULL}


@pytest.mark.parametrize("script", [None, "true"])
async def test_a_job_without_a_program_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None
) -> None:
    """So its site is not asked whether it wants one."""
    asked: list[Path] = []
    monkeypatch.setattr("grms.cli.handing_in.start_deputy", asked.append)
    (tmp_path / "job.sh").write_text("true")
    words = ["submit", "--site", str(tmp_path / "home.sock"), "-p", "1", "-t", "60"]
    words += [] if script is None else ["--script", str(tmp_path / "job.sh")]
    async with running(document(tmp_path), tmp_path):
        assert await grms(*words) == 0
    assert asked == ([] if script is None else [tmp_path / "home.sock"])


def test_what_it_is_for_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """To whoever reads the help."""
    assert run_command(["deputy", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert 'own_jobs = "by-client"' in said
    assert "and nothing else" in said
