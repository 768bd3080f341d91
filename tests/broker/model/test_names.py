"""Names can be shown to people."""

import pytest

from broker.model.names import NAME_LENGTH_MAX, check_name


def test_a_name_can_be_read_in_a_table() -> None:
    """Any script goes, and spaces; nothing that moves a cursor or breaks a line."""
    check_name("task", "Müller & Söhne, 日本 #7")
    check_name("task", "x" * NAME_LENGTH_MAX)
    for name, words in (
        ("", r"^a task has no name$"),
        ("x" * (NAME_LENGTH_MAX + 1), r"^the name of a task has 4097 characters; at most 4096$"),
        ("a\nb", "control characters"),
        ("\x1b[2J", "control characters"),
        ("\x85", "control characters"),
    ):
        with pytest.raises(ValueError, match=words):
            check_name("task", name)
