"""The command `grms usage`: what jobs have used, as sums and as records.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.messages import printable, shorten

if TYPE_CHECKING:
    from grms.site.accounting.usage import Usage, UsageSum
    from grms.site.config.schema import SiteConfig
    from grms.site.model.usage import Weights

_COLUMNS: Final = "{:<13} {:<10} {:<10} {:>5} {:>9} {:>9} {:>7} {:>9}"

_COMPARED: Final = "{:<16} {:>8} {:>12} {:>12} {:>12} {:>12}"


def _month(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", value):
        raise click.BadParameter(f"{value!r} is no month, as 2026-11", param=parameter)
    return value


@click.command(short_help="Show what jobs have used; export it as CSV or JSON.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--month",
    callback=_month,
    metavar="YYYY-MM",
    help="Jobs that have ended in this month of UTC.  [default: the present one]",
)
@click.option("--since", "first", callback=_month, metavar="YYYY-MM", help="From this month on.")
@click.option("--until", "last", callback=_month, metavar="YYYY-MM", help="Up to this month.")
@click.option("--user", help="Only this user's; of a partner's user the pseudonym.")
@click.option("--account", help="Only this account's.")
@click.option("--site", "at", help="Only jobs that this site has run.")
@click.option("--home", help="Only jobs of this site's users.")
@click.option(
    "--told",
    is_flag=True,
    help="Records that partners keep of own users' jobs, in place of the site's own.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print every record as CSV, a line each.")
@json_option("grms-usage", "grms.cli.output_models:UsageOutput", lines=True)
def usage(
    config: Path,
    *,
    month: str | None,
    first: str | None,
    last: str | None,
    user: str | None,
    account: str | None,
    at: str | None,
    home: str | None,
    told: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Show what jobs have used: own users' jobs, wherever they ran, and partners' jobs here.

    CONFIG is the site's configuration; its daemon may run meanwhile. Each job that has ended has one
    record: who, which account, what it had (processors, memory, GPUs), for how long, at which site, and
    how it ended. The table has the sums of a month; --csv and --json print the records, with --since and
    --until of many months.

    \b
      grms usage site.toml --month 2026-10
      grms usage site.toml --since 2026-01 --until 2026-12 --csv > usage-2026.csv
      grms usage site.toml --json | jq -r 'select(.site == "south") | .user'
      grms usage site.toml --told --site south --csv

    Partners are asked every 10 minutes what own users' jobs have used there. The last table compares that
    with the site's own records; --told prints it.

    A job belongs to the month of UTC in which it ended, by the clock of the site that ran it. Costs are
    weighted by `usage.weights` of CONFIG. docs/how-to/accounting.md explains every field, with its names in
    OGF's Usage Record and in sacct.
    """  # noqa: D301  # click's mark of a paragraph to be left as it is
    from grms.site.accounting.usage import told_in, usage_in  # noqa: PLC0415  # see the module's docstring
    from grms.site.config.load import load_config, weights_of  # noqa: PLC0415  # same
    from grms.site.runtime.usage_log import usage_folder  # noqa: PLC0415  # same

    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")
    if month is not None and (first or last):
        raise click.UsageError("--month excludes --since and --until")
    settings = load_config(config)
    if not (first or last):
        first = last = month or _present()
    weights = weights_of(settings)
    where = usage_folder(Path(settings.journal.path), settings.name), settings.name, weights
    months = first or "", last or ""

    def is_wanted(record: "Usage") -> bool:
        return (
            user in {None, record.user}
            and account in {None, record.account}
            and at in {None, record.site}
            and home in {None, record.home}
        )

    own = filter(is_wanted, usage_in(*where, *months))
    theirs = filter(is_wanted, told_in(*where, *months, pseudonym=_pseudonyms(settings)))
    found = theirs if told else own
    if as_json:
        for record in found:
            print_json("grms-usage", record, line=True)
    elif as_csv:
        _print_csv(found)
    else:
        shown = str(first if first == last else f"{first or 'the first month'} to {last or 'now'}")
        click.echo("\n".join(_lines(list(found), settings.name, shown, weights)))
        if not told:
            mine = filter(is_wanted, usage_in(*where, *months))
            for line in _comparison(mine, theirs, settings.name):
                click.echo(line)


def _pseudonyms(settings: "SiteConfig") -> "Callable[[str, str], str]":
    from grms.site.config.schema import PSEUDONYMS_END  # noqa: PLC0415  # same
    from grms.site.peers.pseudonyms import Pseudonyms, read_key  # noqa: PLC0415  # same

    path = Path(settings.journal.path).with_name(f"{settings.name}{PSEUDONYMS_END}")
    try:
        # One is not made here: then nobody has a pseudonym.
        return Pseudonyms(read_key(path)).of if path.exists() else lambda _partner, _user: ""
    except (OSError, ValueError):
        return lambda _partner, _user: ""


def _present() -> str:
    import time  # noqa: PLC0415  # same

    from grms.site.model.usage import month_of  # noqa: PLC0415  # same

    return month_of(time.time())


def _print_csv(found: "Iterator[Usage]") -> None:
    import csv  # noqa: PLC0415  # same
    import sys  # noqa: PLC0415  # same
    from dataclasses import astuple, fields  # noqa: PLC0415  # same
    from datetime import datetime  # noqa: PLC0415  # same

    from grms.site.accounting.usage import Usage  # noqa: PLC0415  # same

    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow([each.name for each in fields(Usage)])
    for record in found:
        out.writerow(
            [
                value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
                for value in astuple(record)
            ]
        )


def _lines(found: "Sequence[Usage]", site: str, months: str, weights: "Weights") -> Iterator[str]:
    from grms.site.accounting.usage import sums_of  # noqa: PLC0415  # same

    sums = sums_of(found)
    yield f"Site {printable(site)}, jobs that have ended in {months}"
    own = [row for row in sums if row.home == site]
    guests = [row for row in sums if row.home != site]
    for title, who, where, rows in (
        ("Own users' jobs, wherever they ran", "USER", "RAN AT", own),
        ("Partners' jobs that ran here", "USER THERE", "HOME", guests),
    ):
        if rows:
            yield ""
            yield title
            yield ""
            yield _COLUMNS.format(
                who, "ACCOUNT", where, "JOBS", "PROC-H", "GIB-H", "GPU-H", "COST-H"
            )
            yield from (_line(row, weights, where == "HOME") for row in rows)
            yield _all(rows, weights)
    if not sums:
        yield ""
        yield "No job that has run."
    never = sum(record.run_time_s <= 0 for record in found)
    if never:
        count = "1 job has" if never == 1 else f"{never:,} jobs have"
        yield ""
        yield f"{count} ended without having run; --csv and --json have them."


def _comparison(own: "Iterator[Usage]", told: "Iterator[Usage]", site: str) -> Iterator[str]:
    from grms.site.accounting.usage import compared  # noqa: PLC0415  # same

    rows = compared(own, told, site)
    if rows:
        yield ""
        yield "Own users' jobs at partners, by own records and by the partner's"
        yield ""
        yield _COMPARED.format("PARTNER", "JOBS", "PROC-H", "JOBS THERE", "PROC-H", "DIFFERENCE")
    for row in rows:
        hours, theirs = row.own.processor_s / 3600, row.told.processor_s / 3600
        yield _COMPARED.format(
            shorten(printable(row.partner), 16),
            row.own.jobs,
            f"{hours:,.1f}",
            row.told.jobs,
            f"{theirs:,.1f}",
            _difference(theirs - hours),
        )


def _difference(hours: float) -> str:
    text = f"{hours:+,.1f}"
    return "0.0" if text in {"+0.0", "-0.0"} else text


def _line(row: "UsageSum", weights: "Weights", guests: bool) -> str:  # a column
    return _figures(
        shorten(printable(row.user) or "unknown", 13),
        shorten(printable(row.account) or "-", 10),
        shorten(printable(row.home if guests else row.site), 10),
        row,
        weights,
    )


def _figures(user: str, account: str, where: str, row: "UsageSum", weights: "Weights") -> str:
    used = row.used
    return _COLUMNS.format(
        user,
        account,
        where,
        used.jobs,
        f"{used.processor_s / 3600:,.1f}",
        f"{used.memory_mib_s / 1024 / 3600:,.1f}",
        f"{used.gpu_s / 3600:,.1f}",
        f"{used.cost(weights) / 3600:,.1f}",
    )


def _all(rows: "Sequence[UsageSum]", weights: "Weights") -> str:
    from dataclasses import replace  # noqa: PLC0415  # same

    from grms.site.model.usage import NOTHING_USED  # noqa: PLC0415  # same

    used = NOTHING_USED
    for row in rows:
        used = used.and_(row.used)
    return _figures("all", "", "", replace(rows[0], used=used), weights)
