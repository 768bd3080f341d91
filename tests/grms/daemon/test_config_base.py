"""What models of configuration files have in common."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from grms.daemon.config_base import Count, FilePath, Model, Seconds


class Table(Model):
    """A table."""

    path: FilePath = "x"
    wait_s: Seconds = 1.0
    most: Count = 1


def test_a_path_is_relative_to_the_file() -> None:
    """An absolute one stays."""
    context = {"folder": Path("/etc/hanse")}
    assert Table.model_validate({"path": "a/b"}, context=context).path == "/etc/hanse/a/b"
    assert Table.model_validate({"path": "/a/b"}, context=context).path == "/a/b"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"path": ""}, "must be the path of a file"),
        ({"path": "a\0b"}, "must be the path of a file"),
        ({"wait_s": 0.0}, "greater than 0"),
        ({"wait_s": float("inf")}, "finite"),
        ({"most": "1"}, "valid integer"),
        ({"least": 1}, "Extra inputs"),
    ],
)
def test_what_is_wrong_is_refused(values: dict[str, object], text: str) -> None:
    """Other types, other keys, and values out of their bounds."""
    with pytest.raises(ValidationError, match=text):
        Table.model_validate(values)
