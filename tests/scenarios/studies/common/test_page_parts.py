"""How verdicts are shown."""

from scenarios.studies.common.page_parts import judgement, mark
from scenarios.studies.common.verdicts import Statement


def test_verdicts_are_coloured() -> None:
    """What is open has no colour."""
    assert [str(mark(each, "w")) for each in (True, False, None)] == [
        '<strong class="gain">w</strong>',
        '<strong class="loss">w</strong>',
        "<strong>w</strong>",
    ]


def test_what_was_measured_stands_below_the_verdict() -> None:
    """What was not measured says so."""
    found = Statement("claim", "1 < 2", holds=True)
    assert str(judgement(found)) == '<strong class="gain">yes</strong><br>1 &lt; 2'
    assert str(judgement(Statement.not_run("claim"))) == "<strong>not run</strong><br>"
