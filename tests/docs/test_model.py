"""The model of the offer protocol: as it is it holds, and each precaution that is left out is found, as in the code."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from grms.simulation.exhaustive.bounds import bound
from grms.simulation.exhaustive.search import explore
from tests.grms.simulation import test_fault_run as careless
from tests.services import need

ROOT = Path(__file__).parents[2]
CHECK: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "model" / "check.py"))
LEFT_OUT: dict[str, str] = CHECK["LEFT_OUT"]
MODEL = (ROOT / "docs" / "model" / "offer.pml").read_text(encoding="utf-8")
ROW = re.compile(r"\| `([A-Z_]{5,})` \| `(\w+)` \|$", re.MULTILINE)
PAIRS: dict[str, str] = dict(ROW.findall((ROOT / "docs" / "protocol.md").read_text("utf-8")))


def test_every_switch_of_the_model_has_its_row_and_its_careless_protocol() -> None:
    """No precaution is in one of the three places alone."""
    switches = set(re.findall(r"#ifn?def ([A-Z_]+)", MODEL)) - {"LOSSES", "DOUBLES", "DEATHS"}
    assert switches == set(LEFT_OUT) == set(PAIRS)
    assert all(hasattr(careless, name) for name in PAIRS.values())


@pytest.mark.services
@pytest.mark.parametrize("switch", ["TAKES_NOTHING_UP"])
def test_spin_finds_what_comes_of_a_precaution_left_out(switch: str) -> None:
    """With the way to it; `make model` checks all of them, and the model as it is."""
    need("spin", "spin")
    errors, states, way = CHECK["check"](switch, trail=True)
    assert errors == 1
    assert 0 < states < 10_000
    assert "proc" in way


@pytest.mark.parametrize("switch", sorted(PAIRS))
def test_the_exploration_of_the_code_finds_the_same(switch: str) -> None:
    """The code without that precaution does what the model does without it."""
    unheard = bound("unheard", loss=1, duplicate=1, early=1, busy=1)
    deaths = bound("deaths", crash_0=1, crash_1=1)
    factory = getattr(careless, PAIRS[switch])
    assert any(explore(within, factory).violation for within in (unheard, deaths))
