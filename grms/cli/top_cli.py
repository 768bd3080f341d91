"""The command `grms top`: a site in the terminal, as it is now, again and again."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from grms.cli.job_table import state_word
from grms.cli.site_connection import client_of, site_option
from grms.daemon.timeout_option import timeout_option
from lrms_sim.cli.running import open_console
from lrms_sim.util.messages import printable
from lrms_sim.util.option_fields import FloatRange

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

    from grms.client import Job
    from grms.v1 import operator_pb2

JOBS_SHOWN: Final = 200
"""Most jobs requested: those received last."""

BAR_WIDTH: Final = 40
"""Columns of the bar of processors."""

PIPE_WIDTH: Final = 80
"""Columns if the output is no terminal."""


@click.command(short_help="Show a site as it is now, until Ctrl-C.")
@site_option
@timeout_option
@click.option(
    "--every",
    "every_s",
    type=FloatRange(0.2, 3600),
    default=2.0,
    show_default=True,
    help="Seconds from one look to the next.",
)
@click.option("--once", is_flag=True, help="Show it once, and return.")
def top(socket: Path, *, timeout_s: float, every_s: float, once: bool) -> None:
    """Show a site as it is now, again and again until Ctrl-C; for operators.

    Its machine and queue, its partners, and the jobs that have not ended.
    """
    from rich.live import Live  # noqa: PLC0415  # help comes at once

    console = open_console(pipe_width=PIPE_WIDTH)
    with client_of(socket, timeout_s) as site:
        from grms.client import JobState  # noqa: PLC0415  # see `client_of`

        states = [state for state in JobState if state not in {JobState.ENDED, JobState.UNKNOWN}]

        def look() -> "Group":
            status, partners = site.status(), site.partners()
            jobs = list(site.jobs(states=states, all_users=True))
            room = console.height - 9 - len(partners) if console.is_terminal else JOBS_SHOWN
            return screen(status, partners, jobs[::-1], max(3, min(room, JOBS_SHOWN)))

        if once or not console.is_terminal:
            console.print(look())
            return
        with Live(look(), console=console, screen=True, auto_refresh=False) as live:
            while True:  # until Ctrl-C
                time.sleep(every_s)
                live.update(look(), refresh=True)


def screen(
    status: "operator_pb2.StatusResponse",
    partners: Sequence["operator_pb2.PartnerStatus"],
    jobs: Sequence["Job"],
    room: int,
) -> "Group":
    """Returns the screen, 80 columns wide at most.

    `jobs` have not ended, the last one first; `room` is the number of lines for them.
    """
    from rich.console import Group  # noqa: PLC0415  # help comes at once
    from rich.text import Text  # noqa: PLC0415  # same

    busy = status.processors - status.processors_free
    share = busy / status.processors if status.processors else 0.0
    full = round(share * BAR_WIDTH)
    head = Text(f"{status.site}  ", style="bold")
    head.append(f"{status.clock} clock at {status.now_s:,.0f} s", style="dim")
    if status.draining:
        head.append("  draining: takes no work", style="bold red")
    elif status.circuit_breaker.stops:
        head.append("  circuit breaker: takes no guests", style="bold red")
    machine = Text("█" * full + "·" * (BAR_WIDTH - full))
    machine.append(f" {busy:,} of {status.processors:,} busy, {share:.0%}")
    own = sum(number for state, number in status.jobs.items() if state != "ENDED")
    guests = sum(partner.guest_open for partner in partners)
    queue = Text(f"{status.processors_waiting:,} processors waited for, {own:,} own jobs open, ")
    queue.append(f"{guests:,} of partners here")
    parts: list[RenderableType] = [head, machine, queue, Text()]
    if partners:
        parts += [_partners(partners), Text()]
    parts.append(_jobs(jobs, room))
    if len(jobs) > room:
        parts.append(Text(f"{len(jobs) - room:,} more", style="dim"))
    return Group(*parts)


def _partners(partners: Sequence["operator_pb2.PartnerStatus"]) -> "RenderableType":
    from rich.table import Table  # noqa: PLC0415  # help comes at once
    from rich.text import Text  # noqa: PLC0415  # same

    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("partner", no_wrap=True, max_width=18)
    table.add_column("state", no_wrap=True)
    for heading in ("asked", "taken", "open", "offers", "taken", "here", "AWRT/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in partners:
        state = "faulty" if each.faulty else "lost" if each.lost else ""
        state = state or ("up" if each.reachable else "down")
        table.add_row(
            Text(printable(each.name)),
            Text(state, style="green" if state == "up" else "bold red"),
            short(each.offered),
            short(each.accepted),
            short(each.open),
            short(each.guest_offered),
            short(each.guest_accepted),
            short(each.guest_open),
            short(each.awrt_s),
        )
    return table


def short(value: float) -> str:
    """Returns a figure in at most six characters: 99999, 1235k, 12.3M; larger ones in words of e."""
    if value < 99_999.5:
        return f"{value:.0f}"
    if value < 9_999_500:
        return f"{value / 1000:.0f}k"
    return f"{value / 1e6:.1f}M" if value < 9_999.95e6 else f"{value:.0e}"


def _jobs(jobs: Sequence["Job"], room: int) -> "RenderableType":
    from rich.table import Table  # noqa: PLC0415  # help comes at once
    from rich.text import Text  # noqa: PLC0415  # same

    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("job", no_wrap=True, max_width=22)
    table.add_column("user", no_wrap=True, max_width=12)
    table.add_column("procs", justify="right", no_wrap=True)
    table.add_column("requested/s", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("where", no_wrap=True, max_width=14)
    for job in jobs[:room]:
        table.add_row(
            Text(job.job_id),
            Text(printable(job.user)),
            f"{job.processors:,}",
            f"{job.requested_time_s:,.0f}",
            state_word(job),
            Text(job.executed_on or "-"),
        )
    return table
