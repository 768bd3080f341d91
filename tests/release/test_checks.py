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


def git(folder: Path, *words: str) -> None:
    """Runs git for somebody."""
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)  # noqa: S603, S607  # the one there is


def key(folder: Path, name: str) -> Path:
    """Makes a key to sign with, of SSH."""
    place = folder.with_name(name)
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place)]
    subprocess.run(words, check=True)  # noqa: S603  # a key for this test
    return place


def sign(folder: Path, signer: Path) -> None:
    """Tags the commit with a signature, in place of a tag that is there."""
    with_key = ["-c", "gpg.format=ssh", "-c", f"user.signingkey={signer}"]
    git(folder, *with_key, "tag", "--force", "--sign", "--message", "1.2.0", "v1.2.0")


def checkout(folder: Path, files: dict[str, str]) -> None:
    """Makes a repository of some files, with a tag that is signed by who may."""
    folder.mkdir()
    signer = key(folder, "signer")
    public = signer.with_suffix(".pub").read_text()
    for name, text in (files | {RELEASE.SIGNERS: f"a@b {public}"}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "all")
    sign(folder, signer)


def test_a_release_is_one(tmp_path: Path) -> None:
    """Clean, tagged and signed, noted and recorded."""
    checkout(tmp_path / "r", FILES)
    assert RELEASE.mistakes(tmp_path / "r") == []


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
    checkout(tmp_path / "r", FILES | changed)
    assert RELEASE.mistakes(tmp_path / "r") == wrong


def test_a_tag_without_a_signature_of_who_releases_is_refused(tmp_path: Path) -> None:
    """No signature, that of somebody else, and one that was signed and then changed."""
    folder = tmp_path / "r"
    checkout(folder, FILES)
    body = subprocess.check_output(["git", "cat-file", "tag", "v1.2.0"], cwd=folder)  # noqa: S607  # the one there is
    begins = "the signature of v1.2.0 is not good ("
    git(folder, "tag", "--force", "v1.2.0")
    (wrong,) = RELEASE.mistakes(folder)
    assert wrong.startswith(begins)
    assert "git tag --sign v1.2.0" in wrong
    sign(folder, key(folder, "stranger"))
    (wrong,) = RELEASE.mistakes(folder)
    assert wrong.startswith(begins)
    words = ["git", "hash-object", "-t", "tag", "-w", "--stdin"]
    for changed, said in ((body, []), (body.replace(b"\n1.2.0\n", b"\n1.2.9\n"), [begins])):
        made = subprocess.run(words, cwd=folder, input=changed, capture_output=True, check=True)  # noqa: S603  # same
        git(folder, "update-ref", "refs/tags/v1.2.0", made.stdout.decode().strip())
        assert [wrong[: len(begins)] for wrong in RELEASE.mistakes(folder)] == said


def test_what_is_not_committed_is_told(tmp_path: Path) -> None:
    """By its name."""
    checkout(tmp_path / "r", FILES)
    (tmp_path / "r" / "new").touch()
    assert RELEASE.mistakes(tmp_path / "r") == ["not committed: ?? new"]


def test_the_version_is_the_same_everywhere() -> None:
    """In the changelog and in the citation too."""
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text()
