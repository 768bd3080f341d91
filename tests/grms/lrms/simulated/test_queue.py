from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from grms.lrms.simulated.queue import configured_queue
from grms.lrms.simulated.simulated import SimulatedSettings
from lrms_sim.scheduling.criteria import Criterion, CriterionOrder, GroupOrder
from lrms_sim.scheduling.disciplines import Easy
from lrms_sim.scheduling.selection import StrategyTable
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.scheduling.strategy_files import StrategyFile, save_strategy

ZEROS = (0.0,) * 5
BY_DAY = Strategy(
    "fcfs",
    CriterionOrder(tuple(Criterion("f2", (w,) * 5, ZEROS, 1.0, w) for w in (1.0, 0.5, 0.2))),
)


def queue(**changes: Any) -> Any:
    """Returns the discipline of a configuration."""
    values: dict[str, Any] = {
        "discipline": "fcfs",
        "strategy": None,
        "group_order": None,
        "time_zone": None,
        "time_origin": 0.0,
    }
    return configured_queue(**(values | changes))


def test_names_and_orders_are_disciplines() -> None:
    """Without a file the discipline is that of the name, with the groups in the order given."""
    assert queue(discipline="easy") == Easy()
    assert queue(discipline="easy-group", group_order=(2, 1, 3, 4, 5)) == Strategy(
        "easy", GroupOrder((2, 1, 3, 4, 5))
    )


def test_a_file_knows_the_local_time_of_the_daemon(tmp_path: Path) -> None:
    """On a wall clock seconds are those since 1970; in a replay, those since its second 0."""
    path = str(tmp_path / "by-day.json")
    save_strategy(StrategyFile(BY_DAY), path)
    noon_on_tuesday = 1_704_193_200.0  # 2 January 2024, 11 h UTC
    wall = queue(strategy=path, time_zone="Europe/Berlin")
    assert wall.order.calendar.at(noon_on_tuesday) == 1
    assert wall.order.calendar.at(noon_on_tuesday + 12 * 3600) == 2
    replayed = queue(strategy=path, time_zone="Europe/Berlin", time_origin=noon_on_tuesday)
    assert replayed.order.calendar.at(0.0) == 1
    assert replayed.order.calendar.at(12 * 3600.0) == 2


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"strategy": "missing.json"}, "missing.json: cannot be read"),
        ({"strategy": "by-day.json"}, "time_zone is needed"),
        ({"strategy": "by-day.json", "time_zone": "Atlantis"}, "'Atlantis' is not known"),
        ({"strategy": "table.json", "discipline": "easy"}, "exclude each other"),
        ({"discipline": "easy", "group_order": [1, 2, 3, 4, 5]}, "goes with a discipline by group"),
        ({"discipline": "easy-group", "group_order": [1, 2]}, "each of 1 to 5 is needed once"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(
    values: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """A daemon says so before it starts."""
    save_strategy(StrategyFile(BY_DAY), tmp_path / "by-day.json")
    save_strategy(StrategyFile(StrategyTable((0,) * 192)), tmp_path / "table.json")
    with pytest.raises(ValidationError, match=said):
        SimulatedSettings.model_validate(values, context={"folder": tmp_path})
