"""Files beneath a folder in which anybody may have left anything."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from grms.daemon.job_files import (
    CHUNK_BYTES,
    FileLimits,
    FileProblem,
    FileProblemError,
    chunks,
    created,
    opened,
    remove_below,
)

LARGE = FileLimits(10**9, 10**9)


def bound(path: Path) -> None:
    """Leaves a socket."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


TRAPS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "link": ("x", lambda folder: (folder / "x").symlink_to("/etc/passwd")),
    "link to nothing": ("x", lambda folder: (folder / "x").symlink_to("nowhere")),
    "link to itself": ("x", lambda folder: (folder / "x").symlink_to("x")),
    "link within": ("x", lambda folder: (folder / "x").symlink_to(folder / "real")),
    "folder that is a link": ("x/passwd", lambda folder: (folder / "x").symlink_to("/etc")),
    "folder": ("x", lambda folder: (folder / "x").mkdir()),
    "file for a folder": ("real/y", lambda _: None),
    "pipe": ("x", lambda folder: os.mkfifo(folder / "x")),
    "socket": ("x", lambda folder: bound(folder / "x")),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_what_is_no_plain_file_is_not_read(trap: str, tmp_path: Path) -> None:
    """And whoever tries is not held up."""
    (tmp_path / "real").write_text("mine")
    name, lay = TRAPS[trap]
    lay(tmp_path)
    with pytest.raises(FileProblemError) as caught:
        opened(tmp_path, name)
    assert caught.value.problem is FileProblem.NO_FILE


def test_a_second_name_of_an_own_file_is_not_read(tmp_path: Path) -> None:
    """Where others create files too (sticky), one of them may have linked it; in a private folder this process has."""
    (tmp_path / "journal").write_text("precious")
    folder = tmp_path / "job"
    folder.mkdir()
    os.link(tmp_path / "journal", folder / "stdout")
    (folder / "stderr").write_text("said")
    assert b"".join(chunks(folder, "stdout", 0)) == b"precious"
    folder.chmod(0o1770)
    with pytest.raises(FileProblemError, match="no file"):
        opened(folder, "stdout")
    assert b"".join(chunks(folder, "stderr", 0)) == b"said"


def test_the_folder_itself_is_no_link(tmp_path: Path) -> None:
    """Somebody has put another in its place."""
    (tmp_path / "folder").symlink_to("/etc")
    with pytest.raises(FileProblemError):
        opened(tmp_path / "folder", "passwd")


def test_files_are_looked_at_and_read(tmp_path: Path) -> None:
    """In pieces, from wherever one likes."""
    content = bytes(range(256)) * 600
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a").write_bytes(content)
    pieces = list(chunks(tmp_path, "sub/a", 0))
    assert max(map(len, pieces)) == CHUNK_BYTES
    assert b"".join(pieces) == content
    assert b"".join(chunks(tmp_path, "sub/a", 100, 70_000)) == content[100:70_000]
    assert list(chunks(tmp_path, "sub/a", len(content) + 5)) == []


def test_a_file_is_deleted_beneath_its_folder(tmp_path: Path) -> None:
    """Of a link the link; one on the way is not followed, and what is not there is no error."""
    beyond, folder = tmp_path / "beyond", tmp_path / "folder"
    for path in (beyond, folder, folder / "sub"):
        path.mkdir()
    for path in (beyond / "x", folder / "sub/x"):
        path.touch()
    (folder / "link").symlink_to(beyond)
    (folder / "file").symlink_to(beyond / "x")
    for name in ("sub/x", "sub/none", "none/x", "link/x", "file", "sub"):
        remove_below(folder, name)
    assert (beyond / "x").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["link", "sub"]
    assert not list((folder / "sub").iterdir())
    with pytest.raises(ValueError, match="no name"):
        remove_below(folder, "../beyond/x")


def test_a_file_is_made_beneath_its_folder(tmp_path: Path) -> None:
    """Folders on the way are made; a link that is there is replaced or refused, never followed."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    target = tmp_path / "target"
    target.mkdir()
    (target / "x").symlink_to(victim)
    (target / "out").symlink_to(tmp_path)
    for name in ("a/b/c", "x"):
        with os.fdopen(created(target, name), "wb") as file:
            file.write(b"new")
        assert (target / name).read_bytes() == b"new"
    with pytest.raises(FileProblemError):
        created(target, "out/victim")
    with pytest.raises(ValueError, match="no name"):
        created(target, "../victim")
    assert victim.read_text() == "mine"
