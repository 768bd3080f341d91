"""Turns a site's configuration of its simulated queue into a discipline."""

from dataclasses import replace
from typing import Any, Final

from grms.lrms.base import LrmsError
from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.scheduling.disciplines import Discipline, discipline_by_name
from lrms_sim.scheduling.selection import StrategyRules, StrategyTable, with_local_time
from lrms_sim.scheduling.situations import zone_named
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.scheduling.strategy_files import load_strategy
from lrms_sim.scheduling.user_defined import UserDefinedDiscipline

UNIX_FIRST: Final = 1_577_836_800.0
UNIX_LAST: Final = 2_524_608_000.0
"""The years 2020 to 2050, for which a daemon has a calendar; later, weeks repeat."""

REPLAY_LAST: Final = 20 * 366 * 86400.0
"""The same for a clock that begins with a replay, seconds."""


def configured_queue(
    *,
    discipline: str,
    strategy: str | None,
    group_order: tuple[int, ...] | None,
    time_zone: str | float | None,
    time_origin: float,
) -> Discipline:
    """Returns the discipline of a simulated machine.

    `discipline` is FCFS if there is a strategy file; `time_origin` is the Unix time of second 0 of the site's clock.

    Raises:
        ValueError: the file cannot be used, or uses the time of day without a time zone.
    """
    if strategy is None:
        chosen = discipline_by_name(discipline)
        if isinstance(chosen, UserDefinedDiscipline):
            # Without it the batch system cannot continue, which its operator must read and fix.
            chosen = replace(chosen, fails_as=LrmsError)
        if group_order is None:
            return chosen
        groups: Any = group_order
        by_group = isinstance(chosen, Strategy) and isinstance(chosen.order, GroupOrder)
        if not by_group:
            raise ValueError(f"group_order goes with a discipline by group, not with {discipline}")
        assert isinstance(chosen, Strategy)
        return replace(chosen, order=GroupOrder(groups))
    policy = load_strategy(strategy).policy
    assert isinstance(policy, Strategy | StrategyTable | StrategyRules)
    if not policy.needs_calendar:
        return policy
    if time_zone is None:
        raise ValueError(f"{strategy} differs from situation to situation; time_zone is needed")
    first, last = (UNIX_FIRST, UNIX_LAST) if time_origin == 0 else (0.0, REPLAY_LAST)
    return with_local_time(
        policy, zone=zone_named(time_zone), unix_start=time_origin, first=first, last=last
    )
