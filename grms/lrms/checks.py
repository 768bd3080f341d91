"""Results of checking a batch system, for a site's operator."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum


class FindingLevel(StrEnum):
    """Severity of a finding.

    DOUBT: jobs run; something is unknown, or will be missed some day.
    MISSING: jobs cannot run, or not as promised.
    """

    GOOD = "ok"
    DOUBT = "note"
    MISSING = "NO"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check.

    Attributes:
        what: was checked, in a word or two.
        text: what was found, for people.
        cure: what to do about it; empty if nothing.
    """

    what: str
    level: FindingLevel
    text: str
    cure: str = ""


def named_partitions(there: Collection[str], named: Iterable[str], word: str) -> list[Finding]:
    """Returns which partitions that tables of names name there are not.

    `word` is the batch system's for a partition.
    """
    found = []
    for name in dict.fromkeys(named):
        if name not in there:
            cure = f"name some of: {', '.join(sorted(there)) or 'none'}; partners' jobs with that name are declined"
            found.append(missing("guests.translate", f"there is no {word} {name!r}", cure))
    return found


def good(what: str, text: str) -> Finding:
    """Returns that something is as it should be."""
    return Finding(what, FindingLevel.GOOD, text)


def doubt(what: str, text: str, cure: str) -> Finding:
    """Returns that something could be better."""
    return Finding(what, FindingLevel.DOUBT, text, cure)


def missing(what: str, text: str, cure: str) -> Finding:
    """Returns that something is missing."""
    return Finding(what, FindingLevel.MISSING, text, cure)
