import gzip
import io
import tempfile
import zlib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.io.documents import read_bytes, read_document
from broker.util.errors import FileError

PACKED = gzip.compress(b'{"x": 1}', mtime=0)


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"x": [1]}'),
        ("a.toml", "x = [1]"),
        ("a", ' {"x": [1]}'),
        ("a.txt", "x = [1]"),
        ("a.json", '\ufeff{"x": [1]}'),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_both_formats_are_read_plain_and_compressed(
    tmp_path: Path, name: str, text: str, compressed: bool
) -> None:
    """The name says the format, failing that the beginning; the first bytes say the compression."""
    data = gzip.compress(text.encode()) if compressed else text.encode()
    assert read_document(written(tmp_path, name, data)) == {"x": [1]}
    assert read_document(written(tmp_path, name + ".gz", data)) == {"x": [1]}


@given(st.binary(max_size=3000), st.lists(st.integers(0, 3000), max_size=3), st.booleans())
def test_compressed_content_is_that_of_the_gzip_module(
    data: bytes, cuts: list[int], padded: bool
) -> None:
    """One member or several, with or without padding, give the bytes that were compressed."""
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    stream = b"".join(gzip.compress(data[a:b]) for a, b in pairwise(edges)) + bytes(512 * padded)
    with io.BytesIO(stream) as buffer:
        assert gzip.GzipFile(fileobj=buffer).read() == data
    with tempfile.TemporaryDirectory() as folder:
        assert read_bytes(written(Path(folder), "f", stream)) == data


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.json", b'{"x": ', "no JSON: Expecting value (at line 1, column 7)"),
        ("a.toml", b"x = ", "no TOML: "),
        ("a.json", b"[1]", "the outermost value must be an object in braces"),
        ("a.json", b"\xff{}", "byte 0 is not UTF-8 text"),
        ("a.json", b"[" * 100_000, "nested too deeply"),
        ("a.toml", b"x = " + b"[" * 100_000, "nested too deeply"),
        ("a.json", b'{"x": ' + b"1" * 5000 + b"}", "no JSON: it has a whole number of more"),
        ("a.toml", b"x = 2026-13-01", "no TOML: "),
        ("a.json", PACKED[:-9], "is cut off"),
        ("a.json", PACKED[:3], "is cut off"),
        ("a.json", PACKED + b"rest", "is damaged: "),
        ("a.json", PACKED[:-8] + bytes(8), "is damaged: "),
        ("a.json", b"", "no JSON"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(
    tmp_path: Path, name: str, data: bytes, said: str
) -> None:
    """Damaged, cut off and wrong content ends in one sentence, never in another exception."""
    path = written(tmp_path, name, data)
    with pytest.raises(FileError) as caught:
        read_document(path)
    assert str(caught.value).startswith(f"{path}: {said}")


def test_a_missing_file_and_a_folder_are_said(tmp_path: Path) -> None:
    """The reason is the system's."""
    with pytest.raises(FileError, match=r"none.json: cannot be read: No such file"):
        read_document(tmp_path / "none.json")
    with pytest.raises(FileError, match="cannot be read: Is a directory"):
        read_document(tmp_path)


def test_a_file_that_unpacks_to_more_than_the_limit_is_refused(tmp_path: Path) -> None:
    """The limit counts what comes out, and no more than that is ever unpacked."""
    huge = zlib.compressobj(wbits=31)
    data = huge.compress(b"0" * 50_000_000) + huge.flush()
    for content in (data, b"0" * 1001):
        with pytest.raises(FileError, match="is larger than 1,000 bytes"):
            read_document(written(tmp_path, "a.json", content), bytes_max=1000)
    exactly = b'{"x": "' + b"0" * 991 + b'"}'
    assert read_document(written(tmp_path, "a.json", exactly), bytes_max=1000)


def test_a_key_that_comes_twice_is_refused(tmp_path: Path) -> None:
    """At any depth, in JSON as in TOML; the text names it."""
    for name, text in (("a.json", '{"x": [{"y": 1, "z": 2, "y": 1}]}'), ("a.toml", "y = 1\ny = 1")):
        with pytest.raises(FileError, match="y"):
            read_document(written(tmp_path, name, text.encode()))
    with pytest.raises(FileError, match="no JSON: the key 'y' comes twice in one object"):
        read_document(tmp_path / "a.json")
