"""Files that jobs use in place: below what a site has declared, and by no way around."""

import os
from pathlib import Path

import pytest

from grms.daemon.shared_folders import (
    SCRIPT,
    NotSharedError,
    SharedFile,
    SharedFolders,
    check_shared,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A shared folder with a script, a file, and links that lead out of it; beside it a secret."""
    root = tmp_path / "shared"
    (root / "project").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "shared-not").mkdir()
    (tmp_path / "shared-not/in").touch()
    for name in ("job.sh", "in", "plain.sh"):
        (root / "project" / name).touch()
    (root / "project/job.sh").chmod(0o755)
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "out").symlink_to(tmp_path)
    (root / "inside").symlink_to(root / "project")
    (root / "nowhere").symlink_to(tmp_path / "new")
    os.mkfifo(root / "pipe")
    return root


def test_what_lies_below_a_shared_folder_is_used(root: Path) -> None:
    """A file, a script that can be run, and a file that is still to be written."""
    shared = SharedFolders([str(root.parent / "none"), str(root)])
    shared.look(SharedFile("in", f"{root}/project/in"))
    shared.look(SharedFile(SCRIPT, f"{root}/project/job.sh"))
    for name in ("in", "new"):
        shared.look(SharedFile("out", f"{root}/project/{name}", written=True))


@pytest.mark.parametrize(
    ("path", "written", "why"),
    [
        ("{root}/project/absent", False, "is not here"),
        ("{root}/project", False, "is no plain file"),
        ("{root}/pipe", False, "is no plain file"),
        ("{root}/link", False, "a link leads to it"),
        ("{root}/out/secret", False, "a link leads to it"),
        ("{root}/inside/in", False, "a link leads to it"),
        ("{root}/link", True, "a link leads to it"),
        ("{root}/nowhere", True, "a link"),
        ("{root}/nowhere", False, "a link"),
        ("{root}/out/new", True, "a link leads to it"),
        ("{root}/absent/new", True, "there is no folder"),
        ("{root}/project/../../secret", False, "no name of a file"),
        ("{root}/./project/in", False, "no name of a file"),
        ("{root}//project/in", False, "no name of a file"),
        ("{root}-not/in", False, "below no shared folder"),
        ("/etc/passwd", False, "below no shared folder"),
        ("project/in", False, "begins with /"),
        ("{root}", False, "below no shared folder"),
    ],
)
def test_nothing_else_is(root: Path, path: str, written: bool, why: str) -> None:
    """Neither what lies elsewhere, nor what a link or `..` leads to, to read or to write."""
    with pytest.raises(NotSharedError, match=why):
        SharedFolders([str(root)]).look(SharedFile("in", path.format(root=root), written))


def test_a_site_that_shares_nothing_takes_nothing(root: Path) -> None:
    """Nor does one whose shared folder is itself a link, or is away."""
    file = SharedFile("in", f"{root}/project/in")
    with pytest.raises(NotSharedError, match="below no shared folder"):
        SharedFolders().look(file)
    (root.parent / "other").symlink_to(root)
    other = SharedFile("in", f"{root.parent}/other/project/in")
    with pytest.raises(NotSharedError, match="a link leads to it"):
        SharedFolders([f"{root.parent}/other"]).look(other)
    with pytest.raises(NotSharedError, match="is not here"):
        SharedFolders(["/none/at/all"]).look(SharedFile("in", "/none/at/all/in"))


def test_a_script_that_cannot_be_run_is_said_so(root: Path) -> None:
    """With what to do about it."""
    with pytest.raises(NotSharedError, match=r"chmod \+x"):
        SharedFolders([str(root)]).look(SharedFile(SCRIPT, f"{root}/project/plain.sh"))


@pytest.mark.parametrize(
    ("name", "path", "written"),
    [
        ("../in", "/a/in", False),
        ("launch", "/a/in", False),
        ("stdout", "/a/out", True),
        (SCRIPT, "/a/job.sh", True),
        ("in", "/a/\x1b[2J", False),
        ("in", "/", False),
    ],
)
def test_names_that_are_none(name: str, path: str, written: bool) -> None:
    """No link of a job's folder takes the place of a site's own file."""
    with pytest.raises(ValueError, match=r"."):
        check_shared(SharedFile(name, path, written))
