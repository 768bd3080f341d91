"""Users by name and by number."""

import os
import pwd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon.user_names import NUMBER_MAX, user_name, user_number

NAMELESS = next(uid for uid in range(4_000_000, 5_000_000) if user_name(uid).startswith("#"))


def test_a_user_with_a_name_has_it() -> None:
    """Both ways."""
    me = pwd.getpwuid(os.getuid())
    assert user_name(me.pw_uid) == me.pw_name
    assert user_number(me.pw_name) == me.pw_uid


def test_a_user_without_a_name_is_not_one_called_by_digits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An account may be called 4711, and is not the user of that number."""
    assert user_name(NAMELESS) == f"#{NAMELESS}"
    assert user_number(f"#{NAMELESS}") == NAMELESS
    with pytest.raises(KeyError):
        user_number(str(NAMELESS))
    digits = pwd.struct_passwd((str(NAMELESS), "x", 77, 77, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwnam", {str(NAMELESS): digits}.__getitem__)
    assert user_number(str(NAMELESS)) == 77
    assert user_number(f"#{NAMELESS}") == NAMELESS


@given(st.integers(0, 2**40))
def test_no_number_but_a_users_is_one(number: int) -> None:
    """The largest one means nobody to the kernel."""
    if number <= NUMBER_MAX:
        assert user_number(f"#{number}") == number
    else:
        with pytest.raises(KeyError):
            user_number(f"#{number}")


@pytest.mark.parametrize(
    "name", ["#", "#-1", "#01", "# 1", "#1x", "##1", "#\u0661", "#12345678901"]
)
def test_what_is_written_otherwise_is_nobody(name: str) -> None:
    """There is one way to write a number."""
    with pytest.raises(KeyError):
        user_number(name)
