"""Idempotency keys of what a site has forgotten: a job or reservation that is asked for again with one is not run again."""

import hashlib
from collections.abc import Iterable
from itertools import islice
from typing import Final

DIGEST_BYTES: Final = 12
"""Of a user and a key; two of a million collide once in 10¹⁷ sites."""

FORGOTTEN_KEY: Final = "idempotency_key.forgotten"
"""The field of a refusal: the job of that key is forgotten."""

KeyRow = tuple[bytes, int, float]
"""What stands for a user and a key, the number of the job or array, and when it was forgotten, seconds."""


def digest_of(user: str, key: str) -> bytes:
    """Returns what stands for the key of a user."""
    text = f"{len(user)} {user}{key}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=DIGEST_BYTES).digest()


class ForgottenKeys:
    """Numbers of forgotten jobs and arrays by their users and keys.

    A key is dropped when another comes more than `kept_s` seconds after it, or if there are `most` others.
    """

    def __init__(self, most: int, kept_s: float) -> None:
        self._most = most
        self._kept_s = kept_s
        # In the order in which they were forgotten.
        self._rows: dict[bytes, KeyRow] = {}

    def number(self, user: str, key: str) -> int:
        """Returns the number of the job or array of a key; 0 if it is of none."""
        row = self._rows.get(digest_of(user, key)) if self._rows else None
        return 0 if row is None else row[1]

    def add(self, user: str, key: str, number: int, moment: float) -> None:
        """Notes the key of a job or array that is forgotten now, at a moment in seconds."""
        self._add((digest_of(user, key), number, moment))

    def __len__(self) -> int:
        """Returns how many there are."""
        return len(self._rows)

    def rows(self) -> tuple[KeyRow, ...]:
        """Returns all, the one that was forgotten first before the others."""
        return tuple(self._rows.values())

    def restore(self, rows: Iterable[KeyRow]) -> None:
        """Notes what `rows` has told of another, before any other is noted."""
        for row in rows:
            self._add(row)

    def _add(self, row: KeyRow) -> None:
        digest, _, moment = row
        # In a journal of before, a key may be that of a later job as well.
        self._rows.pop(digest, None)
        self._rows[digest] = row
        self._drop(moment)

    def _drop(self, moment: float) -> None:
        while len(self._rows) > self._most or self._first()[2] < moment - self._kept_s:
            del self._rows[self._first()[0]]

    def _first(self) -> KeyRow:
        return next(iter(self._rows.values()))


class ForgottenReservationKeys(ForgottenKeys):
    """Numbers of forgotten reservations by their owners and keys.

    A key is dropped only when there are more than `most` and it was forgotten more than `kept_s` seconds before: what
    would need more room is refused (`has_room`), as a program runs twice whose key is dropped before its owner asks again.
    """

    def has_room(self, more: int, moment: float) -> bool:
        """Returns whether so many more keys could be noted at a moment, seconds."""
        excess = len(self._rows) + more - self._most
        if excess <= 0:
            return True
        last = next(islice(self._rows.values(), excess - 1, None), None)
        return last is not None and last[2] < moment - self._kept_s

    def _drop(self, moment: float) -> None:
        while len(self._rows) > self._most and self._first()[2] < moment - self._kept_s:
            del self._rows[self._first()[0]]
