import shutil
from pathlib import Path

import pytest

import lrms_sim
from lrms_sim.util.provenance import source_commit
from tests.programs import run_program


def test_the_commit_is_that_of_the_source(tmp_path: Path) -> None:
    """With a mark where files have been changed since; nothing outside of a repository."""
    assert source_commit(tmp_path) is None
    git = shutil.which("git")
    if git is None:
        return
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")

    def run(*arguments: str) -> str:
        done = run_program([git, *identity, *arguments], cwd=tmp_path, check=True)
        return done.stdout.strip()

    run("init", "--quiet")
    (tmp_path / "file").write_text("one")
    run("add", "file")
    run("commit", "--quiet", "--message", "one")
    commit = run("rev-parse", "HEAD")
    assert source_commit(tmp_path) == commit
    (tmp_path / "file").write_text("two")
    assert source_commit(tmp_path) == f"{commit}-dirty"


def test_without_git_the_commit_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to have git to train."""
    (tmp_path / ".git").mkdir()
    assert source_commit(tmp_path) is None  # an empty folder is no repository
    monkeypatch.setenv("PATH", str(tmp_path))
    assert source_commit() is None


def test_the_commit_of_this_very_source_is_found() -> None:
    """Where the package was loaded from a repository, its commit is known."""
    root = Path(lrms_sim.__file__).resolve().parents[1]
    commit = source_commit()
    assert (commit is not None) == ((root / ".git").exists() and shutil.which("git") is not None)
