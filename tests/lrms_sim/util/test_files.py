import json
import math
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.util.files import (
    check_written,
    parse_toml,
    read_bytes,
    read_json,
    replacing,
    to_toml,
    write_durable,
    write_json,
    write_text,
)

# TOML is UTF-8, which has no lone surrogates.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = TEXTS | NUMBERS | st.booleans()


def tables(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(TEXTS, values, max_size=4)


LISTS = st.lists(PLAIN | st.lists(PLAIN | tables(PLAIN), max_size=2), max_size=4)
DOCUMENTS = tables(
    st.recursive(
        PLAIN | LISTS,
        lambda inner: tables(inner) | st.lists(tables(inner), min_size=1, max_size=3),
        max_leaves=12,
    )
)


@given(DOCUMENTS)
def test_what_is_written_is_read_back_the_same(document: dict[str, Any]) -> None:
    """Every document survives, to the last bit of its numbers."""
    assert repr(tomllib.loads(to_toml(document))) == repr(_sorted_as_written(document))


def _sorted_as_written(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the document with plain values before tables, as TOML needs them."""

    def is_table(value: object) -> bool:
        rows = value if isinstance(value, list) and value else [value]
        return all(isinstance(row, dict) for row in rows)

    def walked(value: Any) -> Any:
        if isinstance(value, dict):
            return _sorted_as_written(value)
        return [walked(item) for item in value] if isinstance(value, list) else value

    order = sorted(document, key=lambda key: is_table(document[key]))
    return {key: walked(document[key]) for key in order}


def test_tables_are_written_for_people() -> None:
    """Sub-tables and lists of tables get headers instead of braces."""
    document = {"a": 1, "t": {"x": 1.5, "u": {"y": True}}, "l": [{"n": "1"}, {"n": "2"}]}
    assert to_toml(document) == (
        'a = 1\n\n[t]\nx = 1.5\n\n[t.u]\ny = true\n\n[[l]]\nn = "1"\n\n[[l]]\nn = "2"\n'
    )


def test_tables_among_other_values_are_written_in_braces() -> None:
    """A list that is not all tables has no header to give them."""
    assert to_toml({"a": ["x", {"y": 1, "z": "w"}, {}]}) == 'a = ["x", { y = 1, z = "w" }, {}]\n'


@pytest.mark.parametrize(("value", "error"), [(2**63, ValueError), (float("inf"), ValueError)])
def test_numbers_that_toml_cannot_say_are_refused(value: float, error: type[Exception]) -> None:
    """Nothing is written that would not be read."""
    with pytest.raises(error, match=r"64 bits|not finite"):
        to_toml({"x": value})


def test_other_types_are_refused() -> None:
    """None has no word in TOML."""
    with pytest.raises(TypeError, match="None cannot be written"):
        to_toml({"x": None})


def test_replacing_follows_links(tmp_path: Path) -> None:
    """A link stays a link, and what it points at is replaced."""
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with replacing(tmp_path / "link") as temporary:
        temporary.write_text("new")
        assert (tmp_path / "real").read_text() == "old"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_links_in_a_circle_are_not_replaced(tmp_path: Path) -> None:
    """Every Python says so: later ones would take one of the links for the file."""
    (tmp_path / "a.txt").symlink_to("b.txt")
    (tmp_path / "b.txt").symlink_to("a.txt")
    with pytest.raises(OSError, match=r"symbolic links.*a\.txt"):
        write_text(tmp_path / "a.txt", "text")
    assert (tmp_path / "b.txt").is_symlink()


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """What was there stays where the new one cannot be written."""
    path = tmp_path / "page.html"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert path.read_text() == "old"
    write_text(path, "new")
    assert path.read_text() == "new"


def test_what_is_written_durably_is_there_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File, then folder; a file that was there stays where the new one cannot be put in its place."""
    path = tmp_path / "list.json"
    synced: list[os.stat_result] = []
    sync = os.fsync

    def seen(number: int) -> None:
        synced.append(os.fstat(number))
        sync(number)

    monkeypatch.setattr(os, "fsync", seen)
    write_durable(path, {"files": [1, None]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"files": [1, None]}
    assert [stat.S_ISDIR(each.st_mode) for each in synced] == [False, True]
    assert synced[0].st_ino == path.stat().st_ino
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(TypeError):
        write_durable(path, {"files": [object()]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"files": [1, None]}


def test_numbers_come_back_to_the_last_bit(tmp_path: Path) -> None:
    """What JSON cannot say is refused, and nothing of it is written."""
    path = tmp_path / "a.json"
    write_json(path, {"x": [0.1, 5e-324, -(2**60)], "ä": None})
    assert read_json(path, 100, AssertionError) == {"x": [0.1, 5e-324, -(2**60)], "ä": None}
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"x": math.nan})
    with pytest.raises(TypeError, match="JSON"):
        write_json(path, {"x": object()})
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


class NoneOfOursError(Exception):
    """What a caller promises to raise."""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff", r"a\.json: byte 0 is not UTF-8 text"),
        (b'{\n "a": }', r"a\.json:2:7: no JSON: Expecting value"),
        (b"[-Infinity]", r"a\.json: no JSON: -Infinity is no number"),
        (b'{"x": [{"a": 1, "b": 2, "a": 3}]}', r"a\.json: no JSON: the key 'a' comes twice in one"),
        (b"9" * 5000, r"a\.json: no JSON: "),
        (b"[" * 100_000, r"a\.json: (nested too deeply|no JSON)"),
        (b" " * 200_001, r"a\.json: is larger than 200,000 bytes"),
    ],
)
def test_what_is_wrong_with_json_is_the_callers_error(
    tmp_path: Path, content: bytes, words: str
) -> None:
    """It names the file, and the place in it where there is one."""
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(NoneOfOursError, match=words):
        read_json(path, 200_000, NoneOfOursError)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a = '\xff'", "here: byte 5 is not UTF-8 text"),
        (b"a = 1\nb = =", r"here: no TOML: .*line 2"),
        (b"a = " + b"9" * 5000, "here: no TOML: "),
        (b"a = " + b"[" * 100_000, "here: (nested too deeply|no TOML)"),
    ],
)
def test_what_is_wrong_with_toml_is_the_callers_error(content: bytes, words: str) -> None:
    """It names the file as the caller calls it."""
    with pytest.raises(NoneOfOursError, match=words):
        parse_toml(content, "here", NoneOfOursError)


def test_a_file_that_is_not_there_is_the_callers_error(tmp_path: Path) -> None:
    """As is a folder."""
    for path, words in ((tmp_path / "no", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(NoneOfOursError, match=f"{path}: cannot be read: {words}"):
            read_bytes(path, 10, NoneOfOursError)


def test_what_is_read_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whatever name: another path, a symbolic link, a hard link; nor two outputs in one file."""
    monkeypatch.chdir(tmp_path)
    log = Path("log.swf")
    log.write_text("x")
    Path("soft").symlink_to(log)
    os.link(log, "hard")
    Path("circle").symlink_to("circle")
    for same in (log, Path("./log.swf"), tmp_path / "log.swf", Path("soft"), Path("hard")):
        with pytest.raises(ValueError, match="is read here, and would be overwritten"):
            check_written([None, same], [None, Path("-"), log], ValueError)
    Path("later").symlink_to("new")
    for pair in (("new", "./new"), ("later", "new"), ("soft", "hard")):
        with pytest.raises(ValueError, match=r"(new|hard): two outputs"):
            check_written([*map(Path, pair)], [], ValueError)
    fine = [Path("a"), Path("b"), Path("circle"), Path("/dev/null"), Path("/dev/null"), Path("-")]
    check_written(fine, [log, Path("none"), Path("/dev/null"), Path("log.swf/x")], ValueError)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    """At the beginning of TOML and JSON, as some editors write it; elsewhere it is."""
    assert parse_toml(b"\xef\xbb\xbfa = 1\r\n", "x.toml", ValueError) == {"a": 1}
    file = tmp_path / "x.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(file, 100, ValueError) == {"a": 1}
    with pytest.raises(ValueError, match="no TOML"):
        parse_toml(b"a = 1\n\xef\xbb\xbf", "x.toml", ValueError)
