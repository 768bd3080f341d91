"""A study's verdict on a statement: yes, no, or open if its figures scatter too much.

A statement compares two figures, or one with a bound, in pairs if possible: the same event, draw or
seed under both. The mean of the differences has an interval; if that is on one side of the bound
the statement holds or does not, and if it includes the bound it is open. A greater mean alone is no
verdict.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lrms_sim.analysis.samples import mean_interval
from lrms_sim.report.text_tables import markdown

LEVEL: Final = 0.95
"""Of the interval of a mean difference."""

YES: Final = "yes"
NO: Final = "no"
OPEN: Final = "open"


@dataclass(frozen=True, slots=True)
class Margin:
    """A mean of paired differences, or of a sample that is held against a bound.

    Attributes:
        low: lower end of its interval; no number where there is one value alone.
        high: upper end; same.
    """

    mean: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Margin":
        """Returns the margin of values, by Student's t at `LEVEL`.

        Raises:
            ValueError: there is no value.
        """
        found = list(values)
        mean, low, high = mean_interval(found, LEVEL)
        return cls(mean, low, high, len(found))

    @classmethod
    def between(cls, left: Iterable[float], right: Iterable[float]) -> "Margin":
        """Returns the margin of left − right, pair by pair.

        Raises:
            ValueError: there is no pair, or somebody has no partner.
        """
        return cls.of(one - other for one, other in zip(left, right, strict=True))

    @classmethod
    def exact(cls, value: float) -> "Margin":
        """Returns the margin of a value in which there is no chance."""
        return cls(value, value, value, 1)

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return self.high - self.mean

    def above(self, bound: float = 0.0) -> bool | None:
        """Returns whether the mean is more than a bound; `None` if that is open."""
        if self.low > bound:
            return True
        return False if self.high <= bound else None

    def below(self, bound: float = 0.0) -> bool | None:
        """Returns whether the mean is less than a bound; `None` if that is open."""
        if self.high < bound:
            return True
        return False if self.low >= bound else None

    def at_most(self, bound: float) -> bool | None:
        """Returns whether the mean is a bound or less; `None` if that is open."""
        return _turned(self.above(bound))

    def at_least(self, bound: float) -> bool | None:
        """Returns whether the mean is a bound or more; `None` if that is open."""
        return _turned(self.below(bound))

    def within(self, low: float, high: float) -> bool | None:
        """Returns whether the mean is between two bounds or on one of them; `None` if that is open."""
        return every((self.at_least(low), self.at_most(high)))

    def words(self, digits: int = 2) -> str:
        """Returns the mean with its interval, signed."""
        if math.isnan(self.low):
            return f"{self.mean:+.{digits}f} (one value)"
        if self.low == self.high:
            return f"{self.mean:+.{digits}f}"
        return f"{self.mean:+.{digits}f} ({self.low:+.{digits}f} … {self.high:+.{digits}f})"


def _turned(verdict: bool | None) -> bool | None:
    return None if verdict is None else not verdict


def every(verdicts: Iterable[bool | None]) -> bool | None:
    """Returns whether all hold: no if one does not, else open if one is."""
    found = list(verdicts)
    return False if False in found else None if None in found else True


def some(verdicts: Iterable[bool | None]) -> bool | None:
    """Returns whether one holds: yes if one does, else open if one is."""
    found = list(verdicts)
    return True if True in found else None if None in found else False


def word(verdict: bool | None) -> str:
    """Returns a verdict as it is shown."""
    return {True: YES, False: NO, None: OPEN}[verdict]


def tone(verdict: bool | None) -> str:
    """Returns the class in which a page shows a verdict."""
    return {True: "gain", False: "loss", None: ""}[verdict]


def counted(verdicts: Sequence[bool | None], whose: str = "") -> str:
    """Returns how many of some statements hold, do not, and are open, in words.

    `whose` names the subject of the statements; it may be empty.
    """
    yes, no = verdicts.count(True), verdicts.count(False)
    left = len(verdicts) - yes - no
    behind = f" {whose}" if whose else ""
    words = (
        f"{yes} of {len(verdicts)} statements{behind} hold, {no} {'does' if no == 1 else 'do'} not"
    )
    return f"{words}, {left} {'is' if left == 1 else 'are'} open"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, a paper's or ours, and what was found.

    Attributes:
        measured: the figures it is judged by.
        holds: whether they agree; `None` if that is open, or nothing was measured.
        rule: what has to be found for the statement to hold, with what is tolerated; empty if it
            needs no words.
        run: whether anything was measured for it.
    """

    claim: str
    measured: str
    holds: bool | None
    rule: str = ""
    run: bool = True

    @classmethod
    def not_run(cls, claim: str, rule: str = "") -> "Statement":
        """Returns a statement for which nothing was measured."""
        return cls(claim, "", None, rule, run=False)

    @property
    def word(self) -> str:
        """The verdict as it is shown; empty if nothing was measured."""
        return word(self.holds) if self.run else ""


Found = tuple[str, bool | None]
"""The figures that a statement is judged by, in words, and whether it holds; `None` if that is
open."""


def judged(claim: str, found: Found | None, rule: str = "") -> Statement:
    """Returns a statement with what was found; `None` if nothing was measured."""
    return Statement.not_run(claim, rule) if found is None else Statement(claim, *found, rule)


def statements_markdown(head: str, statements: Iterable[Statement]) -> str:
    """Returns the statements that were measured, as a table in Markdown; `head` says whose they are."""
    rows = [(each.claim, each.measured, each.word) for each in statements if each.run]
    return markdown((head, "here", "holds"), rows)
