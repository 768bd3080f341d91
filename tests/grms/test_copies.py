"""Copies of objects with slots."""

import gc
import weakref

import pytest

from grms._copies import Copier


class Base:
    """Has a field of its own."""

    __slots__ = ("base",)


class Thing(Base):
    """Has two more."""

    __slots__ = ("left", "right")


class Watched:
    """Can be referred to weakly."""

    __slots__ = ("__weakref__", "one")


class Open:
    """Takes any field."""


def test_a_copy_has_the_same_values_and_is_another_object() -> None:
    """Fields of the base too; what one does to its own fields the other does not see."""
    thing = Thing()
    thing.base, thing.left, thing.right = 1, [2], "3"  # type: ignore[attr-defined]  # slots
    copy = Copier(Thing)(thing)
    assert type(copy) is Thing
    assert copy is not thing
    assert (copy.base, copy.right) == (1, "3")  # type: ignore[attr-defined]  # slots
    assert copy.left is thing.left  # type: ignore[attr-defined]  # slots
    copy.right = "4"  # type: ignore[attr-defined]  # slots
    assert thing.right == "3"  # type: ignore[attr-defined]  # slots


def test_a_field_without_value_has_none_in_the_copy() -> None:
    """Nothing is made up for it."""
    copy = Copier(Thing)(Thing())
    with pytest.raises(AttributeError):
        _ = copy.left  # type: ignore[attr-defined]  # slots


def test_values_live_as_long_as_one_of_both() -> None:
    """A copy counts as an owner, also to the collector of garbage, and ends like others."""
    held = Watched()
    gone = weakref.ref(held)
    thing = Thing()
    thing.left = held  # type: ignore[attr-defined]  # slots
    copy = Copier(Thing)(thing)
    del held, thing
    gc.collect()
    assert gone() is copy.left  # type: ignore[attr-defined]  # slots
    copy.right = copy  # type: ignore[attr-defined]  # slots
    assert gc.is_tracked(copy)
    del copy
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("kind", [Watched, Open, list, int])
def test_what_has_more_than_slots_is_refused(kind: type) -> None:
    """A copy would lack something."""
    with pytest.raises(TypeError, match="more than slots"):
        Copier(kind)


def test_another_class_is_refused() -> None:
    """One that derives from it as well: it may have more fields."""
    with pytest.raises(TypeError, match="no Base but a Thing"):
        Copier(Base)(Thing())
