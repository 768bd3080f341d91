"""The file with a token: for its user alone, and the same token for good."""

import stat
from pathlib import Path

import pytest

from grms.kit.web.access import TOKEN_LENGTH_MIN, read_access, write_access


def test_the_file_is_for_its_user_alone_and_says_how_to_get_in(tmp_path: Path) -> None:
    """The address has the token in it; nobody else can read the file."""
    path = tmp_path / "home.dashboard.json"
    token = write_access(path, "http://127.0.0.1:9480/")
    assert len(token) >= TOKEN_LENGTH_MIN
    assert read_access(path) == f"http://127.0.0.1:9480/?token={token}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_the_token_stays(tmp_path: Path) -> None:
    """A proxy can be given it; one that is too short, or a file that is none, is replaced."""
    path = tmp_path / "access"
    token = write_access(path, "http://127.0.0.1:1/")
    assert write_access(path, "http://127.0.0.1:2/") == token
    for text in ('{"token": "short"}', "no json", "{}"):
        path.write_text(text)
        assert write_access(path, "http://127.0.0.1:2/") not in {token, "short"}


@pytest.mark.parametrize("text", ["[]", "{}", "no json"])
def test_another_file_is_none(tmp_path: Path, text: str) -> None:
    """What is not such a file is an error, not an address."""
    path = tmp_path / "access"
    path.write_text(text)
    with pytest.raises(ValueError, match="does not say where"):
        read_access(path)
