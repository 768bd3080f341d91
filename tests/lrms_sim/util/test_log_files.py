"""What users keep logs in is told by its content; what is cut off or of another kind says so."""

import bz2
import gzip
import io
import lzma
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.util import log_files
from lrms_sim.util.log_files import lines_of, parquet_file, pieces_of, rows_of, shown_name

TEXT = "".join(f"line {number} of a log, é\n" for number in range(3000))


def zipped(content: bytes, *names: str) -> bytes:
    """Returns a zip archive in which the content has each of some names."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names or ("log.txt",):
            archive.writestr(name, content)
    return out.getvalue()


PACKS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zip": zipped,
}


def read(content: bytes) -> str:
    """Returns the text of a file."""
    return b"".join(pieces_of(io.BytesIO(content), ValueError)).decode()


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("size", [1, 1000, 1 << 21])
def test_packed_and_plain_are_one(
    pack: str, encoding: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However a file is packed and in whatever letters: the same text, where its pieces end does not matter."""
    text = TEXT[:700] if size == 1 else TEXT
    monkeypatch.setattr(log_files, "BLOCK_BYTES", size)
    monkeypatch.setattr(log_files, "PACKED_BYTES", size)
    assert read(PACKS[pack](text.encode(encoding))) == text


@pytest.mark.parametrize("pack", ["gzip", "bzip2", "xz"])
def test_several_packed_files_in_one(pack: str) -> None:
    """One after the other, with zeros behind them, they are one text."""
    content = PACKS[pack](b"one\n") + PACKS[pack](b"two\n") + b"\0" * 512
    assert read(content) == "one\ntwo\n"


@pytest.mark.parametrize("pack", ["gzip", "bzip2", "xz", "zip"])
def test_a_cut_file_is_an_error_wherever_it_ends(pack: str) -> None:
    """No beginning of a packed file passes for the file, and the text says how far it could be read."""
    packed = PACKS[pack](TEXT.encode())
    for size in [*range(12, 40), *range(40, len(packed), 97), *range(len(packed) - 8, len(packed))]:
        with pytest.raises(ValueError, match=r"cut off.*bytes"):
            read(packed[:size])


@pytest.mark.parametrize("pack", ["gzip", "bzip2", "xz", "zip"])
def test_a_damaged_file_is_an_error(pack: str) -> None:
    """A byte that was changed is noticed."""
    packed = bytearray(PACKS[pack](TEXT.encode()))
    packed[len(packed) // 2] ^= 255
    with pytest.raises(ValueError, match="damaged"):
        read(bytes(packed))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"(\xb5/\xfd....", "is a zstd file; unpack it"),
        (b"PAR1....", "is a Parquet file, a table of columns: lrms-sim import table reads it"),
        (b"SQLite format 3\0", "is an SQLite database"),
        (
            gzip.compress(b"a" * 257 + b"ustar\0" + b"0" * 400),
            "holds a tar archive; unpack it: tar",
        ),
        (gzip.compress(gzip.compress(b"text")), "is packed twice"),
        (zipped(b"text", "a.txt", "b.txt"), r"is a zip archive of 2 files \(a.txt, b.txt\)"),
        (b"\xff\xfea\0b", "is no text in UTF-16"),
    ],
    ids=["zstd", "parquet", "sqlite", "tar", "twice", "many", "half a letter"],
)
def test_other_kinds_are_named(content: bytes, words: str) -> None:
    """What is read in no way is called by its name, with what to do."""
    with pytest.raises(ValueError, match=words):
        read(content)


def test_lines() -> None:
    """Their ends are of Unix or Windows, the last may lack one; bytes that are no text are marked."""
    content = b"one\r\ntwo\n\n\xe9\nlast"
    found = lines_of(io.BytesIO(content), ValueError)
    assert list(found) == ["one", "two", "", "\ufffd", "last"]
    assert list(lines_of(io.BytesIO(b""), ValueError)) == []


@given(text=st.text(st.sampled_from("ab\n\r \x0c\u2028é")), size=st.integers(1, 5))
def test_lines_are_those_of_line_feeds(text: str, size: int) -> None:
    """Nothing else ends a line, wherever the pieces of a file end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_files, "BLOCK_BYTES", size)
        patch.setattr(log_files, "PACKED_BYTES", size)
        found = list(lines_of(io.BytesIO(text.encode()), ValueError))
    wanted = [line.removesuffix("\r") for line in text.split("\n")]
    assert found == (wanted[:-1] if not text or text.endswith("\n") else wanted)


def test_an_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without line ends is refused before it fills the memory."""
    monkeypatch.setattr(log_files, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(log_files, "PACKED_BYTES", 1000)
    monkeypatch.setattr(log_files, "LINE_BYTES_MAX", 5000)
    file = io.BytesIO(b"1" * 100_000)
    with pytest.raises(ValueError, match="has a line of more than 5,000 bytes"):
        list(lines_of(file, ValueError))
    assert file.tell() < 20_000


def test_rows_keep_their_ends() -> None:
    """A field of a CSV may have line ends; what is no text is an error here."""
    content = gzip.compress(b'a,"b\r\nc"\nlast')
    assert list(rows_of(io.BytesIO(content), ValueError)) == ['a,"b\r\n', 'c"\n', "last"]
    with pytest.raises(UnicodeDecodeError):
        list(rows_of(io.BytesIO(b"\xe9\n"), ValueError))


def test_parquet_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are told from others by their first bytes, and what a pipe holds of another kind stays in it."""
    (tmp_path / "a").write_bytes(b"PAR1....")
    (tmp_path / "b").write_bytes(b"text\n")
    file = parquet_file(tmp_path / "a")
    assert file is not None
    with file:
        assert file.read() == b"PAR1...."
    assert parquet_file(tmp_path / "b") is None
    for content in (b"PAR1....", b"text\n"):
        pipe = io.BufferedReader(io.BytesIO(content))  # as a pipe is
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe))
        found = parquet_file("-")
        assert (found.read() if found else pipe.read()) == content
        assert (found is None) == content.startswith(b"text")


def test_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is read under the name of a dash, packed or not."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(gzip.compress(b"text\n"))))
    assert list(lines_of("-", ValueError)) == ["text"]
    assert [shown_name(source) for source in ("-", Path("a.txt"), io.BytesIO())] == [
        "<stdin>", "a.txt", "<stream>"
    ]  # fmt: skip
    with pytest.raises(FileNotFoundError):
        list(pieces_of(tmp_path / "none", ValueError))
