"""A job is known by what names it for ever, whatever its user calls it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.job_names import WORD_MAX, shown_name, tag_of

TAGS = [("hanse:A:B/1/2", "hanse:A:", "@"), ("hanse+A+B+1+2", "hanse+A+", "+")]


@pytest.mark.parametrize(("tag", "prefix", "mark"), TAGS)
@given(word=st.text(max_size=100) | st.sampled_from(["hanse", "hanse+A+x", "hanse:A:B/1/3@"]))
def test_whatever_a_job_is_called_it_is_found(tag: str, prefix: str, mark: str, word: str) -> None:
    """And what is shown has nothing by which a table or a log could be read wrongly."""
    name = shown_name(word, tag, mark)
    assert tag_of(name, prefix, mark) == tag
    assert name.endswith(tag)
    assert len(name) <= WORD_MAX + 2 + len(tag)
    shown = name.removesuffix(tag)
    assert not set(shown) & set(" |=\n/:*")
    assert not shown.startswith("-")


@pytest.mark.parametrize(("tag", "prefix", "mark"), TAGS)
def test_another_sites_job_is_none(tag: str, prefix: str, mark: str) -> None:
    """Nor is one that has no tag, or has it elsewhere."""
    other = prefix.replace("A", "B")
    for name in ("", "job", f"job{mark}x", f"x{tag}", f"a{mark}b{mark}{tag}"):
        assert tag_of(name, prefix, mark) == ""
    assert tag_of(shown_name("job", tag, mark), other, mark) == ""


def test_a_name_is_still_read() -> None:
    """Letters, digits, dots and lines stay."""
    assert shown_name("my-job_2.sh", "hanse:A:B/1/2", "@") == "my-job_2.sh@hanse:A:B/1/2"
    assert shown_name("größe 2", "hanse:A:B/1/2", "@") == "gr__e_2@hanse:A:B/1/2"
    assert shown_name("2nd", "hanse+A+B+1+2", "+") == "_2nd+hanse+A+B+1+2"
    assert shown_name("", "hanse:A:B/1/2", "@") == "hanse:A:B/1/2"
