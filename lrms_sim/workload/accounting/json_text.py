"""JSON as batch systems print it: objects in a list, one after the other, or a file that ends within one."""

import json
import re
from collections.abc import Iterator
from typing import Any

from lrms_sim.workload.accounting.records import Reading, Unreadable

_BETWEEN = re.compile(r"[\[\], \t\r\n]*")
_NEXT_LINE = re.compile(r"\n\s*\{")


def objects_in(text: str, reading: Reading, key: str | None = None) -> Iterator[tuple[int, Any]]:
    """Yields JSON values, concatenated or in lists, each with its last line number.

    Unreadable text is counted and skipped up to the next line that begins an object, so a truncated
    file gives what it has. With `key`, only values in lists under this key, at any depth, are
    yielded.

    Raises:
        AccountingError: something cannot be read, and that is an error.
    """
    if key is None:
        yield from _sequence(text, 0, reading)
        return
    place = 0
    begin = re.compile(rf'"{re.escape(key)}"\s*:\s*\[')
    while found := begin.search(text, place):
        place = found.end()
        end = _Place(place)
        yield from _sequence(text, place, reading, end)
        place = end.at


class _Place:
    # Where a sequence has ended.
    def __init__(self, at: int) -> None:
        self.at = at


def _sequence(
    text: str, place: int, reading: Reading, end: _Place | None = None
) -> Iterator[tuple[int, Any]]:
    """Yields values from a position on; with `end`, only to the end of the enclosing list."""
    decoder = json.JSONDecoder()
    line = text.count("\n", 0, place) + 1
    while True:
        begin = place
        between = _BETWEEN.match(text, place)
        assert between is not None
        place = between.end()
        if end is not None:
            end.at = place
            if "]" in text[begin:place]:
                return
        if place == len(text):
            if end is not None:
                reading.leave_out(line, Unreadable("no JSON: the file ends within a list"))
            return
        line += text.count("\n", begin, place)
        try:
            found, after = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:  # numbers of thousands of digits too
            at = text.count("\n", 0, getattr(error, "pos", place)) + 1
            why = "too deep" if isinstance(error, RecursionError) else error
            reading.leave_out(at, Unreadable(f"no JSON: {getattr(error, 'msg', why)}"))
            following = _NEXT_LINE.search(text, max(place + 1, getattr(error, "pos", 0)))
            if following is None:
                if end is not None:
                    end.at = len(text)
                return
            line += text.count("\n", place, following.start())
            place = following.start()
            continue
        line += text.count("\n", place, after)
        place = after
        yield line, found
