import pytest
from pydantic import Field, ValidationError

from grms.daemon.config_base import Model, wrong
from grms.daemon.config_errors import mistakes_of, must_be, path_of
from lrms_sim.util.file_errors import Mistake


class Inner(Model):
    """A table within."""

    name: str
    size: int = 1


class Outer(Model):
    """A file."""

    inner: list[Inner] = Field(default_factory=list)
    one: Inner | None = None


def found(document: object, *, by_name: bool = False) -> list[Mistake]:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(document)
    return mistakes_of(caught.value, document, Outer, by_name=by_name)


def test_places_are_said_by_number_or_by_name() -> None:
    """Names are used where each entry has one of its own."""
    rows: list[dict[str, object]] = [{"name": "a", "size": "x"}, {"name": "b", "siz": 1}]
    document = {"inner": rows, "one": {}}
    text = "is 'x'; it must be a whole number"
    unknown = "'siz' is no key here, did you mean 'size'? there are: name, size"
    assert found(document) == [
        Mistake("inner[0].size", text),
        Mistake("inner[1].siz", unknown),
        Mistake("one.name", "is missing"),
    ]
    assert [each.key for each in found(document, by_name=True)] == [
        "inner.a.size",
        "inner.b.siz",
        "one.name",
    ]
    rows[1]["name"] = "a"
    assert [each.key for each in found(document, by_name=True)][:2] == [
        "inner[0].size",
        "inner[1].siz",
    ]


def test_paths_lead_through_anything() -> None:
    """A document that is not what the path expects is no obstacle."""
    assert path_of(("a", 3, "b"), {"a": [1]}) == "a[3].b"
    assert path_of((0,), None) == "[0]"
    assert path_of((), None) == ""


def test_own_errors_are_said_as_they_are() -> None:
    """A validator's text needs no translation."""
    assert str(wrong("is {odd}").message()) == "is {odd}"
    assert must_be([1] * 99, "short").message().endswith("...; it must be short")
