"""ClassAds as HTCondor writes them: lines `Name = value`, JSON, and XML.

Attribute names are case-insensitive (HTCondor manual, "ClassAds"). Expressions are not evaluated,
and lists are dropped.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final
from xml.parsers import expat

from lrms_sim.workload.accounting.json_text import objects_in
from lrms_sim.workload.accounting.records import AccountingError, Reading, Unreadable
from lrms_sim.workload.jobs import TIME_MAX

Ad = dict[str, Any]
"""Values by the names of attributes, in lower case."""

_DEPTH_MAX: Final = 100
"""Deepest element of XML; HTCondor nests an ad within an ad at most."""

_PROLOGUE: Final = re.compile(r"(?:\s*(?:<\?xml [^>]*\?>|<!DOCTYPE classads [^>\[]*>))+")
"""What stands before the first element of a file; it cannot declare anything."""


def read_ads(lines: Iterable[str], reading: Reading) -> Iterator[tuple[int, Ad]]:
    """Yields the ads of a file in any of the formats, each with its last line number.

    Raises:
        AccountingError: a line cannot be read, and that is an error; or the XML is broken.
    """
    rest = iter(lines)
    first: list[str] = []
    for line in rest:
        first.append(line)
        if line.strip():
            break
    begin = first[-1].lstrip()[:1] if first else ""
    everything = chain(first, rest)
    if begin and begin in "[{":
        yield from _of_json("\n".join(everything), reading)
    elif begin == "<":
        yield from _of_xml(everything, reading.name)
    else:
        yield from _of_lines(everything, reading)


def within(ad: Ad, key: str) -> Ad:
    """Returns an attribute that is an ad; an empty ad if it is none."""
    value = ad.get(key.lower())
    return value if isinstance(value, dict) else {}


def number(ad: Ad, key: str) -> float | None:
    """Returns an attribute that is a number; None for any other, and beyond what a time can be."""
    value = ad.get(key.lower())
    return float(value) if isinstance(value, (int, float)) and abs(value) <= TIME_MAX else None


def whole(ad: Ad, key: str) -> int | None:
    """Returns an attribute as a whole number, as `number` does."""
    value = number(ad, key)
    return None if value is None else int(value)


def first_positive(ad: Ad, *keys: str) -> float | None:
    """Returns the first of some attributes that is a number of more than 0."""
    values = (number(ad, key) for key in keys)
    return next((value for value in values if value is not None and value > 0), None)


def text(ad: Ad, *keys: str) -> str:
    """Returns the first of some attributes that is a text; an empty one where none is."""
    values = (ad.get(key.lower()) for key in keys)
    return next((value for value in values if isinstance(value, str)), "")


def value_of(spelled: str) -> Any:
    """Returns a string, boolean or number; `None` if undefined or an expression."""
    if spelled.startswith('"') and spelled.endswith('"') and len(spelled) > 1:
        return spelled[1:-1].replace('\\"', '"')
    lower = spelled.lower()
    if lower in {"true", "false"}:
        return lower == "true"
    for kind in (int, float):
        try:
            return kind(spelled)
        except ValueError:
            pass
    return None


def _of_lines(lines: Iterable[str], reading: Reading) -> Iterator[tuple[int, Ad]]:
    ad: Ad = {}
    count = 0
    for count, line in enumerate(lines, start=1):
        stripped = line.strip()
        # A history file ends each job with a line of stars, -long with an empty one.
        if not stripped or stripped.startswith("***"):
            if ad:
                yield count, ad
            ad = {}
        elif not stripped.startswith("--"):  # the heading of condor_q
            key, found, value = stripped.partition("=")
            if not found or not key.strip().isidentifier():
                fault = Unreadable("no line Name = value, as condor_history -long writes")
                reading.leave_out(count, fault)
            else:
                ad[key.strip().lower()] = value_of(value.strip())
    if ad:
        yield count, ad


def _of_json(text: str, reading: Reading) -> Iterator[tuple[int, Ad]]:
    for line, found in objects_in(text, reading):
        if isinstance(found, dict):
            yield line, _lowered(found)
        else:
            reading.leave_out(line, Unreadable(f"{found!r:.40} is no job"))


def _lowered(found: dict[str, Any]) -> Ad:
    return {
        key.lower(): _named(value) if isinstance(value, dict) else value
        for key, value in found.items()
    }


def _named(found: dict[str, Any]) -> Ad:
    return {key.lower(): value for key, value in found.items()}


class _XmlAds:
    """Builds ads from XML: `<c>` is an ad, `<a n="Name">` one of its attributes."""

    def __init__(self) -> None:
        self.found: list[Ad] = []
        self._path: list[str] = []
        self._ad: Ad = {}
        self._name = ""
        self._inner = ""
        self._words: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._path) >= _DEPTH_MAX:
            raise ValueError(f"elements within elements, more than {_DEPTH_MAX}")
        self._path.append(tag)
        depth = self._depth()
        if depth == 1:
            self._ad = {}
        elif depth == 2:
            self._name = attributes.get("n", "").lower()
        elif depth == 4:
            self._inner = attributes.get("n", "").lower()
        elif depth in {3, 5}:
            self._words = []
            if tag == "b":
                self._put(depth, attributes.get("v") in {"t", "true"})

    def _put(self, depth: int, value: Any) -> None:
        if depth == 3:
            self._ad[self._name] = value
        elif self._path[self._path.index("c") + 2] != "c":
            return  # in a list
        elif isinstance(inner := self._ad.setdefault(self._name, {}), dict):
            inner[self._inner] = value

    def words(self, words: str) -> None:
        if self._depth() in {3, 5}:
            self._words.append(words)

    def end(self, tag: str) -> None:
        depth = self._depth()
        if depth == 1:
            self.found.append(self._ad)
        elif depth in {3, 5} and tag in {"s", "i", "r"}:
            said = "".join(self._words)
            self._put(depth, said if tag == "s" else value_of(said.strip()))
        self._path.pop()

    def _depth(self) -> int:
        """Returns 1 in an ad, 2 in an attribute, 3 in its value, 4 and 5 in a nested ad; 0 outside."""
        return len(self._path) - self._path.index("c") if "c" in self._path else 0


def _of_xml(lines: Iterable[str], name: str) -> Iterator[tuple[int, Ad]]:
    # An event log has no outermost element, and files are put together: all is within one of ours.
    # A document type within it is an error, so nobody can declare entities.
    ads = _XmlAds()
    parser = expat.ParserCreate()
    parser.StartElementHandler = ads.start
    parser.CharacterDataHandler = ads.words
    parser.EndElementHandler = ads.end
    count = 0
    try:
        parser.Parse("<log>", False)
        for count, line in enumerate(lines, start=1):
            begin = _PROLOGUE.match(line)
            parser.Parse((line[begin.end() :] if begin else line) + "\n", False)
            for ad in ads.found:
                yield count, ad
            ads.found.clear()
        parser.Parse("</log>", True)
    except (expat.ExpatError, ValueError) as error:
        reason = expat.ErrorString(error.code) if isinstance(error, expat.ExpatError) else error
        raise AccountingError(f"{name}:{count}: no XML of ClassAds: {reason}") from error
