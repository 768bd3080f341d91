"""What `make release` asks of a checkout."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

from lrms_sim.util.version import __version__

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("release_checks", ROOT / ".ci" / "release.py")
assert SPEC is not None
assert SPEC.loader is not None
RELEASE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(RELEASE)

FILES = {
    "lrms_sim/util/version.py": '__version__ = "1.2.0"\n',
    "CHANGELOG.md": "## [Unreleased]\n\n### Changed\n\n## [1.2.0] - 2030-01-02\n\n- It is there.\n",
    "CITATION.cff": "version: 1.2.0\ndate-released: 2030-01-02\n",
    "tests/release/1.2.0/commit": "0\n",
}


def checkout(folder: Path, files: dict[str, str]) -> None:
    """Makes a repository of some files, tagged."""

    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *words], cwd=folder, check=True)  # noqa: S603, S607  # the one there is

    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "all")
    git("tag", "v1.2.0")


def test_a_release_is_one(tmp_path: Path) -> None:
    """Clean, tagged, noted and recorded."""
    checkout(tmp_path, FILES)
    assert RELEASE.mistakes(tmp_path) == []


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        (
            {"CHANGELOG.md": FILES["CHANGELOG.md"].replace("### Changed", "### Changed\n\n- New.")},
            ["CHANGELOG.md has entries that are unreleased"],
        ),
        ({"CHANGELOG.md": "## [1.2.0]\n"}, ["CHANGELOG.md has no section [1.2.0] with a day"]),
        (
            {"CITATION.cff": "version: 1.1.0\n"},
            [
                "CITATION.cff does not have version 1.2.0",
                "CITATION.cff does not have date-released 2030-01-02, the day of CHANGELOG.md",
            ],
        ),
        (
            {"lrms_sim/util/version.py": '__version__ = "1.3.0"\n'},
            [
                "HEAD is not tagged v1.3.0, the version of lrms_sim/util/version.py",
                "CHANGELOG.md has no section [1.3.0] with a day",
                "CITATION.cff does not have version 1.3.0",
                "tests/release has no recording of 1.3.0",
            ],
        ),
    ],
)
def test_what_is_not_as_it_should_be_is_told(
    changed: dict[str, str], wrong: list[str], tmp_path: Path
) -> None:
    """All at once."""
    checkout(tmp_path, FILES | changed)
    assert RELEASE.mistakes(tmp_path) == wrong


def test_what_is_not_committed_is_told(tmp_path: Path) -> None:
    """By its name."""
    checkout(tmp_path, FILES)
    (tmp_path / "new").touch()
    assert RELEASE.mistakes(tmp_path) == ["not committed: ?? new"]


def test_the_version_is_the_same_everywhere() -> None:
    """In the changelog and in the citation too."""
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text()
