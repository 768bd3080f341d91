"""Idempotency keys of jobs that a site has forgotten: a job that is handed in again with one is not run again."""

import hashlib
from collections.abc import Iterable
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
        while len(self._rows) > self._most or self._first()[2] < moment - self._kept_s:
            del self._rows[self._first()[0]]

    def _first(self) -> KeyRow:
        return next(iter(self._rows.values()))
