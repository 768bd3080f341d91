"""Names of files that travel."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon.job_files import INPUTS_MAX, NAME_BYTES_MAX, PARTS_MAX, check_inputs, check_name


@pytest.mark.parametrize("name", ["out", "a/b/c.txt", ".hidden", "ä ö.csv", "..a/b..", "x" * 255])
def test_a_name_is_taken(name: str) -> None:
    """As it is."""
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", "/", "/etc/passwd", ".", "..", "../x", "a/../b", "a/..", "a/./b", "a//b", "a/"),
        *("a\0b", "a\nb", "\x1b[2J", "a\\b", "\u202egpj.exe", "\udcff"),
        *("x" * 256, "a/" * 300 + "b", "x/" * PARTS_MAX + "x", "ä" * NAME_BYTES_MAX),
    ],
)
def test_what_leads_elsewhere_or_means_something_is_none(name: str) -> None:
    """Absolute, upwards, empty, too long, with control characters or ones that turn the text."""
    with pytest.raises(ValueError, match=r"name|parts|part"):
        check_name(name)


@given(name=st.text(st.sampled_from("ab./\\\n\0"), max_size=8))
def test_a_name_that_is_taken_stays_beneath_its_folder(name: str) -> None:
    """Whatever its parts are, none of them leads up or to the root."""
    try:
        check_name(name)
    except ValueError:
        return
    assert not name.startswith("/")
    assert not {"", ".", ".."} & set(name.split("/"))


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a", "b", "a"], "comes twice"),
        (["stdout"], "the site itself"),
        (["outputs.json"], "the site itself"),
        (["../a"], "no name of a file"),
        ([f"f{number}" for number in range(INPUTS_MAX + 1)], "at most"),
    ],
)
def test_what_cannot_be_declared(names: list[str], text: str) -> None:
    """A file twice, a site's own, one outside, too many."""
    with pytest.raises(ValueError, match=text):
        check_inputs(names)
    assert check_inputs(["a", "b/stdout"]) == ("a", "b/stdout")
