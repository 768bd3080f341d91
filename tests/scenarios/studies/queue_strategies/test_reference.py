import pytest

from scenarios.studies.queue_strategies.reference import (
    TABLE_3,
    TABLE_4,
    printed,
    table_iii_gains,
)


def test_table_iii_is_the_figure_that_the_paper_draws() -> None:
    """9.498 % of the objective, and the bars of Figure 1."""
    gains = table_iii_gains()
    assert gains[0] == pytest.approx(9.498, abs=0.001)
    assert [round(gain, 2) for gain in gains[1:]] == [11.60, 4.66, -11.84, -17.12, -10.14]


@pytest.mark.parametrize(("log", "weight"), [("ctc", 0.696), ("kth", 0.673), ("sdsc00", 0.727)])
def test_the_objective_of_both_tables_is_one_mean_of_the_first_groups(
    log: str, weight: float
) -> None:
    """With one weight for each trace; so the sign of KTH's AWRT1 in Table 3 is -, not +."""
    for table in (TABLE_3, TABLE_4):
        gains = table[log]
        assert gains[0] == pytest.approx(weight * gains[1] + (1 - weight) * gains[2], abs=0.2)


def test_only_what_is_printed_is_shown() -> None:
    """The paper on criteria has numbers for CTC and one method alone."""
    assert printed("f2", "ctc") == table_iii_gains()
    assert printed("f2", "kth") is None
    assert printed("f1", "ctc") is None
    assert printed("iterative-group", "ctc") is None
    assert printed("symbiotic", "sdsc00") == TABLE_4["sdsc00"]
