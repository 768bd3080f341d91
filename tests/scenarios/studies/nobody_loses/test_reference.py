from grms.federation.sites import BYZANTINE_PARTNERS as WORDS
from scenarios.spec.spec import OVERLOADED
from scenarios.studies.nobody_loses.reference import (
    BYZANTINE_PARTNERS,
    CENTRAL,
    MONTHS,
    POLICIES,
    SETS,
    TABLE,
)


def test_figures_are_of_what_is_measured() -> None:
    """Every policy in every window; months and Byzantine partners under words that there are."""
    assert list(TABLE) == list(POLICIES)
    assert all(list(row) == list(SETS) for row in (*TABLE.values(), *CENTRAL.values()))
    assert set(MONTHS) <= set(POLICIES)
    assert set(BYZANTINE_PARTNERS) <= set(POLICIES)
    assert {rogue for row in BYZANTINE_PARTNERS.values() for rogue in row} <= {
        "",
        OVERLOADED,
        *WORDS,
    }
