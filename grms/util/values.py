"""Immutable values of which very many are made.

`@dataclass(frozen=True)` sets each field of a new object through a call that bypasses the class's
own lock, and a daemon makes dozens of objects for every job. The lock of `dataclass` here is
enforced only by the type checker, to which it is the standard library's.
"""

import dataclasses
from collections.abc import Callable
from enum import Enum
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(field_specifiers=(dataclasses.field,))
def dataclass(*, frozen: bool, slots: bool) -> Callable[[type[T]], type[T]]:
    """Makes a dataclass whose objects are compared, and hashed, by their fields.

    `frozen` is required and enforced by type checkers; `slots` is as in the standard library.
    """
    assert frozen
    return dataclasses.dataclass(slots=slots, unsafe_hash=True)


class QuickEnum(Enum):
    """An enumeration whose members are keys of tables that are looked into all the time.

    Members are compared by what they are, and here hashed by the same; `Enum` hashes their names, in Python.
    """

    __hash__ = object.__hash__
