"""Values of which very many are made, and none is ever changed.

`@dataclass(frozen=True)` has each field of a new object set by a call that gets past the lock which the
same class puts on itself; a daemon makes dozens of them for every job. The lock of `dataclass` here is the
type checker's alone: to that it is the one of the standard library, and whoever changes a field is told.
"""

import dataclasses
from collections.abc import Callable
from enum import Enum
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(field_specifiers=(dataclasses.field,))
def dataclass(*, frozen: bool, slots: bool) -> Callable[[type[T]], type[T]]:
    """Makes a dataclass whose objects are compared, and hashed, by their fields.

    Args:
        frozen: has to be; it is what type checkers see to.
        slots: as in the standard library.
    """
    assert frozen
    return dataclasses.dataclass(slots=slots, unsafe_hash=True)


class QuickEnum(Enum):
    """An enumeration whose members are keys of tables that are looked into all the time.

    Members are compared by what they are, and here hashed by the same; `Enum` hashes their names, in Python.
    """

    __hash__ = object.__hash__
