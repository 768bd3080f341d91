"""Entries in an order, of which the next one whose value is within a bound is found in logarithmic time.

It is a treap (Seidel and Aragon 1996): a search tree by keys that is a heap by priorities. Each subtree knows its least
value, so whole subtrees whose values are all beyond the bound are passed over. Priorities are scattered by
multiplication in place of chance, so that nothing here depends on a generator.
"""

import math
from typing import Final, Generic, TypeVar

Entry = TypeVar("Entry")

Key = tuple[float, int]
"""By which entries are ordered; no two have the same."""

_SCATTER: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1


class _Node(Generic[Entry]):
    __slots__ = ("entry", "key", "least", "left", "priority", "right", "value")

    def __init__(self, key: Key, value: float, entry: Entry, priority: int) -> None:
        self.key = key
        self.value = self.least = value
        self.entry = entry
        self.priority = priority
        self.left: _Node[Entry] | None = None
        self.right: _Node[Entry] | None = None


class BoundedOrder(Generic[Entry]):
    """The entries; adding, removing and finding one takes time that grows with the logarithm of their number."""

    def __init__(self) -> None:
        self._root: _Node[Entry] | None = None
        self._added = 0

    def __bool__(self) -> bool:
        return self._root is not None

    def add(self, key: Key, value: float, entry: Entry) -> None:
        """Adds an entry; its key must be new."""
        self._added += 1
        scattered = self._added * _SCATTER & _MASK
        node = _Node(key, value, entry, scattered ^ scattered >> 29)
        before, after = _split(self._root, key)
        self._root = _joined(_joined(before, node), after)

    def remove(self, key: Key) -> None:
        """Removes the entry of a key if there is one."""
        before, rest = _split(self._root, key)
        _, after = _split(rest, (key[0], key[1] + 1))
        self._root = _joined(before, after)

    def after(self, key: Key, bound: float) -> tuple[Key, Entry] | None:
        """Returns the first entry behind a key whose value is at most the bound; `None` for none."""
        found = _after(self._root, key, bound)
        return None if found is None else (found.key, found.entry)


def _after(node: _Node[Entry] | None, key: Key, bound: float) -> _Node[Entry] | None:
    if node is None or node.least > bound:
        return None
    if node.key > key:
        found = _after(node.left, key, bound)
        if found is not None:
            return found
        if node.value <= bound:
            return node
    return _after(node.right, key, bound)


def _split(node: _Node[Entry] | None, key: Key) -> tuple[_Node[Entry] | None, _Node[Entry] | None]:
    # What comes before a key, and the rest.
    if node is None:
        return None, None
    if node.key < key:
        node.right, rest = _split(node.right, key)
        _settle(node)
        return node, rest
    before, node.left = _split(node.left, key)
    _settle(node)
    return before, node


def _joined(before: _Node[Entry] | None, after: _Node[Entry] | None) -> _Node[Entry] | None:
    if before is None or after is None:
        return before or after
    if before.priority > after.priority:
        before.right = _joined(before.right, after)
        _settle(before)
        return before
    after.left = _joined(before, after.left)
    _settle(after)
    return after


def _settle(node: _Node[Entry]) -> None:
    left = math.inf if node.left is None else node.left.least
    right = math.inf if node.right is None else node.right.least
    node.least = min(node.value, left, right)
