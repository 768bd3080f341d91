"""What a look at a batch system has found out for the operator of a site: data, no rule."""

from dataclasses import dataclass
from enum import Enum


class FindingLevel(Enum):
    """How something is.

    GOOD: as it should be.
    DOUBT: jobs run; something is not known, or will be missed some day.
    MISSING: jobs cannot run, or not as promised.
    """

    GOOD = "ok"
    DOUBT = "note"
    MISSING = "NO"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: it is, in a word or two.
        level: how it is.
        text: what was seen, for a person.
        cure: what to do about it; empty where nothing is to be done.
    """

    what: str
    level: FindingLevel
    text: str
    cure: str = ""


def good(what: str, text: str) -> Finding:
    """Returns that something is as it should be."""
    return Finding(what, FindingLevel.GOOD, text)


def doubt(what: str, text: str, cure: str) -> Finding:
    """Returns that something could be better."""
    return Finding(what, FindingLevel.DOUBT, text, cure)


def missing(what: str, text: str, cure: str) -> Finding:
    """Returns that something is missing."""
    return Finding(what, FindingLevel.MISSING, text, cure)
