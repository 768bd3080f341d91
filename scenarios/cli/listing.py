"""Scenarios and logs as tables in the terminal: what `scenario list` and `scenario show` print."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from grms.policy.registry import TRANSFER_DEFAULT
from lrms_sim.util.messages import printable
from scenarios.spec.spec import LublinWorkload, ScenarioSpec, SiteSpec, TraceWorkload
from scenarios.spec.traces import TRACES, find_trace


def print_list(
    console: Console, specs: Sequence[ScenarioSpec], environment: Mapping[str, str]
) -> None:
    """Prints a line for each scenario, and how to get the logs that are not here."""
    table = _table("scenario", "sites", "logs", "title")
    missing = [key for key in TRACES if find_trace(key, environment) is None]
    for spec in specs:
        words = [f"{key}*" if key in missing else key for key in spec.traces]
        table.add_row(
            Text(spec.name, "bold"),
            Text(str(len(spec.sites))),
            Text(" ".join(words) or "none"),
            Text(printable(spec.title)),
        )
    console.print(table)
    needed = [key for key in missing if any(key in spec.traces for spec in specs)]
    if needed:
        console.print(Text(f"* needs a download: scenario fetch {' '.join(needed)}"))


def print_scenario(
    console: Console, spec: ScenarioSpec, path: Path, environment: Mapping[str, str]
) -> None:
    """Prints what a scenario is about."""
    console.print(Text(printable(spec.title or spec.name), "bold"))
    if spec.description:
        console.print(Text(printable(" ".join(spec.description.split()))))
    console.print()
    table = _table("site", "processors", "discipline", "workload", "asks", "transfer")
    for site in spec.sites:
        table.add_row(
            Text(site.name, "bold"),
            Text(f"{site.processors:,}", justify="right"),
            *(Text(printable(words)) for words in site_words(site)),
        )
    console.print(table)
    if spec.broker is not None:
        workflows = spec.broker.workflows
        console.print(
            Text(
                f"A broker plans {workflows.tasks} tasks of workflows of class "
                f"{workflows.benchmark} onto {_reservable(spec)}."
            )
        )
    file = printable(str(path))
    console.print(Text(f"Name {spec.name}, seed {spec.seed}, file {file}"), soft_wrap=True)
    missing = [key for key in spec.traces if find_trace(key, environment) is None]
    if missing:
        console.print(Text(f"Needs a download: scenario fetch {' '.join(missing)}"))


def site_words(site: SiteSpec) -> tuple[str, str, str, str]:
    """Returns a site's discipline, its workload, whom it asks, and how it decides."""
    asks = site.location if isinstance(site.location, str) else ", ".join(site.location)
    return site.queue_name, _workload(site), asks, _transfer(site)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in {"scenario", "site"})
    return table


def _reservable(spec: ScenarioSpec) -> str:
    return ", ".join(
        f"{site.name}-{each.resource_id} ({each.processors:,})"
        for site in spec.sites
        for each in site.reservable or ()
    )


def _workload(site: SiteSpec) -> str:
    workload = site.workload
    if isinstance(workload, LublinWorkload):
        size = f"{workload.jobs:,} jobs" if workload.days is None else f"{workload.days:g} days"
        load = "" if workload.load is None else f", load {workload.load:g}"
        return f"Lublin-Feitelson model, {size}{load}"
    log = workload.trace if isinstance(workload, TraceWorkload) else Path(workload.swf).name
    return f"{log}, {workload.window.words}"


def _transfer(site: SiteSpec) -> str:
    transfer = site.transfer
    rogue = "" if site.rogue is None else f"; Byzantine partner: {site.rogue}"
    words = [f"{partner}: {_policy(policy)}" for partner, policy in transfer.partners.items()]
    if transfer.pool is not None:
        sizes = ", ".join(f"{e.processors}: {_policy(e.policy)}" for e in transfer.pool)
        words.append(f"others by nearest size ({sizes})")
    else:
        rest = transfer.default or TRANSFER_DEFAULT
        words.append(f"others: {_policy(rest)}" if words else _policy(rest))
    return "; ".join(words) + rogue


def _policy(text: str) -> str:
    return Path(text).name if text.endswith(".json") else text
