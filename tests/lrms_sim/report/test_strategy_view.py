import io

import pytest
from rich.console import Console

from lrms_sim.report.strategy_view import print_strategy, table_lines
from lrms_sim.scheduling.selection import StrategyTable
from lrms_sim.scheduling.strategy_files import StrategyFile
from tests.lrms_sim.scheduling.test_strategy_files import POLICIES


@pytest.mark.parametrize("name", POLICIES)
def test_every_kind_of_file_can_be_looked_at(name: str) -> None:
    """Names are not taken for markup, lines keep to the width, every strategy is there."""
    out = io.StringIO()
    policy = POLICIES[name]
    print_strategy(Console(file=out, width=80), StrategyFile(policy, {"seed": "[red]3"}))
    text = out.getvalue()
    assert text.startswith(policy.name)
    assert "seed: [red]3" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    for strategy in getattr(policy, "strategies", ()):
        assert strategy.name in text


def test_a_table_is_a_map_of_its_classes() -> None:
    """Six lines of 32 letters, PRCWQ of group 5 changing fastest."""
    lines = table_lines(StrategyTable(tuple(number % 13 for number in range(192))))
    assert len(lines) == 7
    assert lines[1] == "SD ≤ 2, U ≤ 75 abcdefghijklmabcdefghijklmabcdef"
    assert lines[6].startswith("SD > 2, U > 85 ")
    assert [line[15:] for line in lines[1:]] == [
        "".join("abcdefghijklm"[n % 13] for n in range(first, first + 32))
        for first in range(0, 192, 32)
    ]
