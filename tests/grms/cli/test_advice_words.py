"""Whether `grms advise` recommends strict exchange, and in which words."""

import pytest

from grms.cli.advice_words import GUESTS_RUN, recommendation, words_to_advise
from grms.policy.constraints import CONSTRAINTS
from grms.policy.transfer import rails_of
from grms.site.accounting.policy_advice import Advised
from lrms_sim.scheduling.disciplines import Conservative, Easy


def row(policy: str, improvement: float, off: float = 0.05, jobs: int = 500) -> Advised:
    """Returns what a policy brings, by so much more or less."""
    return Advised(policy, 1.0, 1.0, improvement, improvement - off, improvement + off, 1, 1, jobs)


def rows(strict: float = 0.2, fair: float = 0.15, jobs: int = 500) -> list[Advised]:
    """Returns what both rules bring."""
    return [row("fair-exchange", fair), row("strict-exchange", strict, jobs=jobs)]


def test_it_is_recommended_with_margins_where_guests_can_be_sent_home() -> None:
    assert recommendation(rows(), "") == (
        "Recommended: strict-exchange: guests go home when own jobs need their processors, unless exchange has paid for "
        "them. By this log it brings +20.0% (+15.0% to +25.0%); fair-exchange +15.0% (+10.0% to +20.0%)."
    )
    more = recommendation(rows(fair=0.4), "")
    assert more.endswith(
        "fair-exchange brings more here, and has lost more in the worst half years that were simulated."
    )


def test_where_they_cannot_it_says_what_to_do_until_then() -> None:
    said = recommendation([*rows(), row(GUESTS_RUN, 0.1)], "there is no [lrms.preemption]")
    assert said.startswith(
        "Recommended: strict-exchange, once the batch system can send guests home (there is no [lrms.preemption]; "
        "`grms lrms preemption` prints the lines where there are any)"
    )
    assert said.endswith(
        'Until then there is rails = {rules = "strict-exchange", guests = "run"}, which brings +10.0% (+5.0% to +15.0%).'
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (rows(jobs=99), "Recommended: nothing yet. 99 own jobs of the window have ended"),
        (rows(strict=-0.2), "Recommended: no exchange with these partners."),
        ([row("fair-exchange", 0.1)], ""),
    ],
    ids=["too early", "worse than alone", "not looked at"],
)
def test_it_is_not_recommended_on_other_grounds(found: list[Advised], said: str) -> None:
    assert recommendation(found, "")[: len(said) or 1] == said


def test_what_is_looked_at_is_what_the_site_could_have() -> None:
    """With another row where guests cannot be sent home; without strict exchange where no account can be kept."""
    assert list(words_to_advise(Easy(), may_preempt=True)) == list(CONSTRAINTS)
    words = words_to_advise(Easy(), may_preempt=False)
    assert list(words) == [*CONSTRAINTS, GUESTS_RUN]
    rails = rails_of(words[GUESTS_RUN])
    assert rails is not None
    assert rails.account is not None
    assert rails.account.guests == "run"
    assert "strict-exchange" not in words_to_advise(Conservative(), may_preempt=True)
