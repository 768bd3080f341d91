"""What `lrms-sim` knows of strategies: its options, and the command `lrms-sim strategy`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrms_sim.util.messages import printable
from lrms_sim.util.option_fields import option

if TYPE_CHECKING:
    from lrms_sim.scheduling.disciplines import Discipline
    from lrms_sim.workload.jobs import JobTable

_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, slots=True)
class StrategyOptions:
    """In which order jobs are started.

    Attributes:
        discipline: a name; `None` for FCFS, or with a strategy.
        strategy: a strategy file.
        group_order: of a discipline by group.
        time_zone: overrides the log's header.
    """

    discipline: str | None = option(
        "Queue discipline; `lrms-sim disciplines` lists them.  [default: fcfs]",
        default=None,
        metavar="NAME",
    )
    strategy: Path | None = option(
        "A strategy file (*.json) instead of a discipline; docs/strategies.md.",
        default=None,
        metavar="FILE",
    )
    group_order: str | None = option(
        "For disciplines by group: the groups, the first served first, as 2,1,3,4,5.",
        default=None,
        metavar="LIST",
    )
    time_zone: str | None = option(
        "The site's time zone, for strategies that ask what time it is: a name as "
        "Europe/Stockholm, or seconds east of UTC.  [default: the log's header]",
        default=None,
        metavar="NAME",
    )


def chosen_discipline(options: StrategyOptions) -> "Discipline":
    """Returns the discipline that the options name.

    Raises:
        ValueError: a name or a file cannot be used, or the options contradict each other.
    """
    from lrms_sim.scheduling.criteria import GroupOrder  # noqa: PLC0415  # help and errors come at once
    from lrms_sim.scheduling.disciplines import discipline_by_name  # noqa: PLC0415  # same
    from lrms_sim.scheduling.strategies import Strategy  # noqa: PLC0415  # same
    from lrms_sim.scheduling.strategy_files import load_strategy  # noqa: PLC0415  # same

    group_order = options.group_order
    if options.strategy is not None:
        for name, value in (("--discipline", options.discipline), ("--group-order", group_order)):
            if value is not None:
                raise click.UsageError(f"--strategy and {name} exclude each other")
        return load_strategy(options.strategy).policy
    chosen = discipline_by_name("fcfs" if options.discipline is None else options.discipline)
    if group_order is None:
        return chosen
    by_group = isinstance(chosen, Strategy) and isinstance(chosen.order, GroupOrder)
    if not by_group:
        raise ValueError(f"--group-order goes with a discipline by group, not with {chosen.name!r}")
    assert isinstance(chosen, Strategy)
    words = group_order.split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise ValueError(
            f"--group-order is {group_order!r}; the five groups are needed, as 2,1,3,4,5"
        )
    groups: Any = tuple(int(word) for word in words)
    return replace(chosen, order=GroupOrder(groups))


def at_local_time(
    discipline: "Discipline",
    fields: Mapping[str, str],
    time_zone: str | None,
    jobs: "JobTable",
    origin: float,
) -> "Discipline":
    """Returns a discipline that knows the local time of its site.

    One that ignores time is returned unchanged, with a warning if there is a `time_zone`. `fields` are those of the log's header, `time_zone`
    overrides them, and `origin` is the time in the log, in seconds, of second 0 of the jobs.

    Raises:
        ValueError: the time cannot be determined; the text says what is missing.
    """
    from lrms_sim.scheduling.selection import Policy, with_local_time  # noqa: PLC0415  # same
    from lrms_sim.scheduling.situations import header_start, zone_named, zone_of_header  # noqa: PLC0415  # see above

    if not (isinstance(discipline, Policy) and discipline.needs_calendar):
        if time_zone is not None:
            zone_named(time_zone)  # a slip is one whether or not anybody asks
            text = f"--time-zone changes nothing: {discipline.name} does not ask what time it is"
            click.echo(f"warning: {printable(text)}", err=True)
        return discipline
    unix_start = header_start(fields)  # no option says that
    try:
        zone = zone_of_header(fields)[0] if time_zone is None else zone_named(time_zone)
    except ValueError as error:
        hint = "" if time_zone is not None else "; --time-zone names one"
        raise ValueError(f"{error}{hint}") from error
    return with_local_time(
        discipline,
        zone=zone,
        unix_start=unix_start + origin,
        first=float(jobs.submit_time[0]) if len(jobs) else 0.0,
        last=float(jobs.submit_time[-1]) if len(jobs) else 0.0,
    )


@click.group("strategy")
def strategy_group() -> None:
    """Look at strategy files."""


@strategy_group.command("show")
@click.argument("file", type=_FILE)
def show(file: Path) -> None:
    """Print what a strategy file holds.

    \b
    Example:
      lrms-sim strategy show f3.json
    """  # noqa: D301  # \b keeps the lines of the example as they are
    from rich.console import Console  # noqa: PLC0415  # help and errors come at once

    from lrms_sim.report.strategy_view import print_strategy  # noqa: PLC0415  # same
    from lrms_sim.scheduling.strategy_files import StrategyFileError, load_strategy  # noqa: PLC0415  # same

    try:
        loaded = load_strategy(file)
    except StrategyFileError as error:
        raise click.ClickException(str(error)) from error
    print_strategy(Console(), loaded)
