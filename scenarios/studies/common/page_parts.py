"""How the studies' pages show verdicts."""

from lrms_sim.report.parts import Html, Strong, Together
from scenarios.studies.common.verdicts import Statement, tone


def mark(holds: bool | None, word: str) -> Strong:
    """Returns the word of a verdict in the verdict's colour."""
    return Strong(word, tone(holds))


def judgement(found: Statement) -> Together:
    """Returns the verdict on a statement, and below it what was measured."""
    return Together((mark(found.holds, found.word or "not run"), Html("<br>"), found.measured))
