"""Folders for daemons: claimed, cleared, and never anybody else's."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grms.daemon.socket_folder import SocketFolder
from scenarios.live.folder import MARK, RUN, STATE, check_claim, claimed, daemons_in
from scenarios.util.errors import LiveError


def contents(folder: Path) -> dict[str, str]:
    """Returns every file below a folder with its text."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def refused(folder: Path, text: str) -> None:
    """Claims a folder, which is refused for that reason and changes nothing in it."""
    before = contents(folder)
    with pytest.raises(LiveError, match=re.escape(text)), claimed(folder, ["a"]):
        pytest.fail("the folder was given away")
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["my-grid.toml", "kth.journal", "site.log", ".netrc"])
def test_what_no_scenario_has_left_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Not even a file whose name could be a daemon's goes, however the folder is named."""
    (tmp_path / name).write_text("precious")
    refused(tmp_path, f"{tmp_path} has other files, such as {name}; name another folder")
    monkeypatch.chdir(tmp_path)
    refused(Path(), f". has other files, such as {name}; name another folder")
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_an_empty_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The present one as well."""
    monkeypatch.chdir(tmp_path)
    with claimed(Path(), ["a"]):
        assert os.listdir() == [MARK]  # noqa: PTH208  # names are all that is wanted


def test_the_next_federation_replaces_the_last(tmp_path: Path) -> None:
    """What its sites and its run have left goes, and nothing else."""
    folder = tmp_path / "new" / "one"
    with claimed(folder, ["a", "b.c"]):
        (folder / RUN).mkdir()
        (folder / "a.usage" / "partners").mkdir(parents=True)
        for name in (
            "a.toml",
            "a.usage/2026-11.jsonl",
            "a.journal.new",
            ".a.watch.json.new",
            "b.c.log",
            f"{RUN}/result.json",
        ):
            (folder / name).write_text("old")
    with claimed(folder, ["d"]):
        assert list(contents(folder)) == [MARK]
        (folder / "d.toml").write_text("new")
    (folder / "a.toml").write_text("of somebody else")
    refused(folder, "has other files, such as a.toml;")
    (folder / "a.toml").unlink()
    (folder / RUN).mkdir()
    (folder / RUN / "thesis.tex").write_text("precious")
    refused(folder, f"{RUN} has other files, such as thesis.tex;")


def test_links_are_not_followed_out_of_the_folder(tmp_path: Path) -> None:
    """A link in the place of a run, or of a site's file, costs nobody a file."""
    folder, mine = tmp_path / "ours", tmp_path / "mine"
    mine.mkdir()
    (mine / "result.json").write_text("precious")
    with claimed(folder, ["a"]):
        (folder / "a.toml").symlink_to(mine / "result.json")
        (folder / "a.usage").symlink_to(mine)
    with claimed(folder, ["a"]):
        (folder / RUN).symlink_to(mine)
    refused(folder, f"{RUN} is not the folder of a run;")
    assert contents(mine) == {"result.json": "precious"}


@pytest.mark.parametrize("text", ["{", "7", '["../mine"]', '[["a"]]', "\udcff"])
def test_a_damaged_mark_gives_nothing_away(tmp_path: Path, text: str) -> None:
    """It names no site whose files would go, and no path out of the folder."""
    folder, mine = tmp_path / "ours", tmp_path / "mine.toml"
    mine.write_text("precious")
    with claimed(folder, ["a"]):
        (folder / "a.toml").write_text("perhaps ours")
    (folder / MARK).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(LiveError, match=r"has other files, such as a\.toml;"):
        check_claim(folder)
    with pytest.raises(LiveError, match="has other files"), claimed(folder, ["a"]):
        pytest.fail("the folder was given away")
    assert mine.read_text() == "precious"
    assert (folder / "a.toml").read_text() == "perhaps ours"


def test_a_folder_is_given_to_one_at_a_time(tmp_path: Path) -> None:
    """While a scenario works there, and while a federation was left running."""
    with claimed(tmp_path, ["a"]):
        (tmp_path / "a.journal").write_text("in use")
        refused(tmp_path, f"another scenario works in {tmp_path}; name another folder")
        (tmp_path / STATE).write_text("{}")
    refused(tmp_path, f"a federation runs in {tmp_path}; end it first: scenario down {tmp_path}")


def test_what_a_dead_federation_has_left_is_cleared(tmp_path: Path) -> None:
    """One whose daemons are gone, and whose sockets nobody holds any more, is in nobody's way."""
    folder = tmp_path / "one"
    with SocketFolder() as sockets, claimed(folder, ["a"]):
        (folder / "a.journal").write_text("old")
        state = {"folder": str(folder), "sockets": str(sockets.path)}
        (folder / STATE).write_text(json.dumps(state))
        refused(folder, f"a federation runs in {folder}; end it first: scenario down {folder}")
    copy = tmp_path / "two"
    shutil.copytree(folder, copy)
    refused(copy, f"a federation runs in {copy}; end it first: scenario down {copy}")
    with claimed(folder, ["a"]):
        assert [path.name for path in folder.iterdir()] == [MARK]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """It is named as the reason, in whichever place of the path it stands."""
    (tmp_path / "file").write_text("precious")
    with pytest.raises(LiveError, match="file is a file; name a folder"):
        check_claim(tmp_path / "file")
    with (
        pytest.raises(LiveError, match=r"below is a file|below cannot be used: Not a directory"),
        claimed(tmp_path / "file" / "below", ["a"]),
    ):
        pytest.fail("the folder was given away")


def test_daemons_are_found_by_where_their_configurations_are(tmp_path: Path) -> None:
    """Through links and other spellings; a process that only names such a file is none."""
    folder = tmp_path / "folder"
    (tmp_path / "link").symlink_to(folder)
    waits = "print(flush=True); import sys; sys.stdin.read()"
    with claimed(folder, ["a"]):
        pass
    config = str(folder / "a.toml")
    for words, found in (["serve", config], True), (["edit", config], False):
        with subprocess.Popen(  # noqa: S603  # this very interpreter
            [sys.executable, "-c", waits, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            there = {"a": process.pid} if found else {}
            assert daemons_in(folder) == there
            assert daemons_in(tmp_path / "link" / ".." / "folder") == there
            assert daemons_in(tmp_path) == {}
            if found:
                refused(folder, f"the daemon of a runs in {folder}; name another folder")
            process.communicate()
    assert daemons_in(folder) == {}
