from grms.federation.byzantine import ROGUES as WORDS
from scenarios.spec.spec import OVERLOADED
from scenarios.studies.nobody_loses.reference import (
    CENTRAL,
    MONTHS,
    POLICIES,
    ROGUES,
    SETS,
    TABLE,
)


def test_figures_are_of_what_is_measured() -> None:
    """Every policy in every window; months and rogues under words that there are."""
    assert list(TABLE) == list(POLICIES)
    assert all(list(row) == list(SETS) for row in (*TABLE.values(), *CENTRAL.values()))
    assert set(MONTHS) <= set(POLICIES)
    assert set(ROGUES) <= set(POLICIES)
    assert {rogue for row in ROGUES.values() for rogue in row} <= {"", OVERLOADED, *WORDS}
