"""Which files a job's declarations stand for."""

import fnmatch
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon import job_files as module
from grms.daemon.job_files import FILES_MAX, check_wanted, find_words, matching, word_of
from tests.programs import run_program

FILES = [
    *("a.csv", "b.txt", ".hidden", "out/a.csv", "out/b.h5", "out/.tmp/c.csv", "out/deep/er/d.csv"),
    *("A.csv", "out2/a.csv", "run-1/x", "run-2/x", "stdout", "launch", "odd;name/a b.csv"),
]


def filled(folder: Path) -> Path:
    """Returns a folder with the files."""
    for name in FILES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


CASES = {
    "*.csv": ["A.csv", "a.csv"],
    "?.csv": ["A.csv", "a.csv"],
    "[a-b].*": ["a.csv", "b.txt"],
    "[!a].csv": ["A.csv"],
    "[^a].csv": ["A.csv"],
    "[a.csv": [],
    ".h*": [".hidden"],
    "out/": ["out/.tmp/c.csv", "out/a.csv", "out/b.h5", "out/deep/er/d.csv"],
    "out*/": ["out/.tmp/c.csv", "out/a.csv", "out/b.h5", "out/deep/er/d.csv", "out2/a.csv"],
    "out/*": ["out/a.csv", "out/b.h5"],
    "**/*.csv": [
        *("A.csv", "a.csv", "odd;name/a b.csv", "out/a.csv", "out/deep/er/d.csv", "out2/a.csv"),
    ],
    "out/**": ["out/a.csv", "out/b.h5", "out/deep/er/d.csv"],
    "out/**/er/*": ["out/deep/er/d.csv"],
    "run-[12]/x": ["run-1/x", "run-2/x"],
    "odd[;]name/*": ["odd;name/a b.csv"],
    "nothing/*": [],
    "l*": [],
    "./": sorted(set(FILES) - {"stdout", "launch"}),
}


@pytest.mark.parametrize("pattern", CASES)
def test_a_pattern_stands_for_files(tmp_path: Path, pattern: str) -> None:
    """As in a shell; the walk and the look at one name agree, and the site's own files are nobody's results."""
    wanted = check_wanted([pattern])
    found = matching(filled(tmp_path), wanted, {})
    assert found.names == CASES[pattern]
    assert [name for name in sorted(FILES) if wanted.matches(name)] == CASES[pattern]
    is_met = bool(CASES[pattern]) or pattern == "./"
    assert found.unmatched == (() if is_met else (pattern,))


@pytest.mark.parametrize("pattern", CASES)
def test_a_shell_finds_the_same(tmp_path: Path, pattern: str) -> None:
    """With `find`, which finds more only where something stands behind `**`; the site's own names are left to others."""
    words = f"find {find_words(pattern)} 2>/dev/null"
    told = run_program(["/bin/sh", "-c", words], cwd=filled(tmp_path))
    found = {line.removeprefix("./") for line in told.stdout.splitlines()} - {"stdout", "launch"}
    if pattern == "out/**/er/*":
        assert found >= set(CASES[pattern])
    else:
        assert sorted(found) == CASES[pattern]


@given(
    name=st.lists(st.text("ab.", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join),
    pattern=st.lists(
        st.sampled_from(["*", "**", "?", "a", "b*", "*a", "[ab]?", ".*"]), min_size=1, max_size=4
    ).map("/".join),
)
def test_it_is_what_the_language_says(name: str, pattern: str) -> None:
    """Compared with the plain reading: each `**` for each number of folders, each part by itself."""
    parts = name.split("/")
    if {".", ".."} & set(parts) or "*" not in pattern:
        return
    said = pattern.split("/")
    said = [*said, "*"] if said[-1] == "**" else said
    deep = [part == "**" for part in said]
    lengths = [range(len(parts)) if each else (1,) for each in deep]

    def fits(counts: tuple[int, ...]) -> bool:
        if sum(counts) != len(parts):
            return False
        at = 0
        for part, count, is_deep in zip(said, counts, deep, strict=True):
            for each in parts[at : at + count]:
                if each.startswith(".") and not part.startswith("."):
                    return False
                if not is_deep and not fnmatch.fnmatchcase(each, part):
                    return False
            at += count
        return True

    assert bool(check_wanted([pattern]).matches(name)) == any(
        map(fits, itertools.product(*lengths))
    )


def test_what_a_job_was_given_is_no_result_until_it_changes(tmp_path: Path) -> None:
    """A name that is declared by itself is one in any case."""
    filled(tmp_path)
    given_files = {name: word_of((tmp_path / name).stat()) for name in ("a.csv", "out/a.csv")}
    wanted = check_wanted(["*.csv", "out/"])
    assert "a.csv" not in matching(tmp_path, wanted, given_files).names
    (tmp_path / "a.csv").write_text("changed")
    assert matching(tmp_path, wanted, given_files).names == [
        *("A.csv", "a.csv", "out/.tmp/c.csv", "out/b.h5", "out/deep/er/d.csv"),
    ]
    found = matching(tmp_path, check_wanted(["out/a.csv", "out/*.csv"]), {})
    assert (found.names, found.unmatched) == ([], ())


def test_what_is_hostile_is_not_followed(tmp_path: Path) -> None:
    """Links to files are named, and not served; linked folders, pipes and names that mean something lead nowhere."""
    folder = tmp_path / "job"
    (folder / "out").mkdir(parents=True)
    (tmp_path / "secret").write_text("key")
    (folder / "out/link").symlink_to(tmp_path / "secret")
    (folder / "out/away").symlink_to(tmp_path)
    os.mkfifo(folder / "out/pipe")
    for name in (b"line\nfeed", b"not\xffutf8", b"back\\slash", b"\x1b[2J"):
        Path(os.fsdecode(bytes(folder / "out") + b"/" + name)).touch()
    (folder / "out/closed").mkdir(mode=0)
    deep = folder
    for _ in range(20):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    found = matching(folder, check_wanted(["./"]), {})
    assert found.names == ["out/away", "out/link", "out/pipe"]
    assert found.left_out >= 5
    (folder / "out/closed").chmod(0o700)


def test_many_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their number, by the bytes of their names, and by how many are looked at; the rest is counted."""
    for number in range(30):
        (tmp_path / f"{number:02}").touch()
    wanted = check_wanted(["./"])
    monkeypatch.setattr(module, "RESULTS_MAX", 10)
    found = matching(tmp_path, wanted, {})
    assert (found.names, found.left_out) == ([f"{number:02}" for number in range(10)], 20)
    monkeypatch.setattr(module, "RESULT_NAMES_BYTES", 8)
    assert len(matching(tmp_path, wanted, {}).names) == 4
    monkeypatch.setattr(module, "ENTRIES_MAX", 2)
    found = matching(tmp_path, wanted, {})
    assert (len(found.names), found.left_out) == (2, 1)


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (["../*"], "no name of a file"),
        (["/etc/*"], "no name of a file"),
        (["out//"], "no name of a file"),
        (["/"], "1 to"),
        (["out/../*/"], "no name of a file"),
        (["a\n*"], "character"),
        (["launch"], "the site itself"),
        (["environ/"], "the site itself"),
        (["*", "*"], "comes twice"),
        (["~/state"], "begins with ~"),
        (["~"], "begins with ~"),
        (["~alice/out/*"], "begins with ~"),
        ([f"{number}*" for number in range(FILES_MAX + 1)], "or a folder"),
    ],
)
def test_what_leads_elsewhere_is_refused(declared: list[str], text: str) -> None:
    """Upwards, absolute, empty parts, a site's own, twice, too many."""
    with pytest.raises(ValueError, match=text):
        check_wanted(declared)
