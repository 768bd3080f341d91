"""The commands of `grms` on how exchange affected a site's own users, from its journal.

The daemon may be running. Heavy modules are imported by the commands that need them, so that help
and errors come at once.
"""

import math
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrms_sim.cli.running import SEED_MAX
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.messages import NOTHING, WIDTH, change, moment, printable, seconds, shorten

if TYPE_CHECKING:
    from grms.policy.transfer import TransferPolicy
    from grms.site.accounting.counterfactual import Compared, ExchangeReport
    from grms.site.accounting.policy_advice import Advised
    from grms.site.config.schema import SiteConfig

NAME_WIDTH = 13
"""In columns."""

_RUNS = "{:<13} {:>8} {:>10} {:>8} {:>8} {:>9} {:>9} {:>7}"
_ADVICE = "{:<18} {:>6} {:>6} {:>9} {:>9} {:>7} {:>18}"
_TRADE = "{:<13} {:>8} {:>10} {:>8} {:>10} {:>14}"


def _span(_: click.Context, __: click.Parameter, value: str) -> float:
    from pydantic_core import PydanticCustomError  # noqa: PLC0415  # see the module's docstring

    from grms.policy.constraints import span  # noqa: PLC0415  # same

    try:
        seconds = span(value)
    except PydanticCustomError as error:
        raise click.BadParameter(str(error)) from error
    if not seconds:
        raise click.BadParameter(f"{value!r} is no time at all; it must be more than 0")
    return seconds


def _discipline(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    from lrms_sim.scheduling.disciplines import discipline_by_name  # noqa: PLC0415  # same

    if value is not None:
        try:
            discipline_by_name(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    return value


since_option = click.option(
    "--since",
    "since_s",
    callback=_span,
    default="7d",
    show_default=True,
    metavar="TIME",
    help="Jobs that have ended in so long before the last record, as 7d, 12h.",
)
discipline_option = click.option(
    "--discipline",
    callback=_discipline,
    metavar="NAME",
    help="Of the machine alone.  [default: the simulated queue's; easy for a real batch system]",
)


@click.command(short_help="Say what exchange has brought the site's own users.")
@click.argument("config", type=click.Path(path_type=Path))
@since_option
@discipline_option
@click.option(
    "--chart", is_flag=True, help="Draw the last 30 days of the account that the site keeps."
)
@json_option("grms-exchange", "grms.cli.output_models:ExchangeOutput")
def exchange(
    config: Path, *, since_s: float, discipline: str | None, chart: bool, as_json: bool
) -> None:
    """Say what exchange has brought the site's own users, in all and with each partner.

    CONFIG is the site's configuration. Its journal is read; the daemon may run meanwhile. Own users'
    jobs that have ended are replayed on the site's own machine as if there were no partners, and the
    result is compared with what was: mean wait and AWRT (mean response time, weighted by processors × run time).

    Of a site with strict-exchange also the account that it keeps of itself: whether it is in credit, and why.

    docs/how-to/what-exchange-brings.md explains every figure and what it cannot say.
    """
    from grms.cli.account_chart import chart_lines  # noqa: PLC0415  # see the module's docstring
    from grms.cli.accounting_output import account_lines, circuit_breaker_words, exchange_document  # noqa: PLC0415  # same
    from grms.site.accounting.own_account import account_of_site  # noqa: PLC0415  # same
    from grms.site.accounting.report import exchange_of_site, own_gain  # noqa: PLC0415  # same
    from grms.site.assembly import site_settings  # noqa: PLC0415  # same
    from grms.site.config.circuit_breaker_table import circuit_breaker_of  # noqa: PLC0415  # same
    from grms.site.config.load import load_config  # noqa: PLC0415  # same

    settings = load_config(config)
    circuit_breaker = circuit_breaker_of(settings.circuit_breaker)
    found, word = exchange_of_site(settings, since_s, discipline)
    seen = None if circuit_breaker is None else own_gain(settings, circuit_breaker)
    kept = site_settings(settings, 1, str(config))
    account = account_of_site(Path(settings.journal.path), kept)
    if chart and account is None:
        text = "the site keeps no account of itself, so there is nothing to draw; its constraints are not strict-exchange"
        raise click.UsageError(f"{config}: {text}")
    if as_json:
        print_json("grms-exchange", exchange_document(found, settings, word, seen, account))
        return
    notes = [circuit_breaker_words(circuit_breaker, seen)]
    if account is not None:
        notes += account_lines(account, wall=settings.clock.kind == "wall")
    click.echo("\n".join(_lines(found, settings, word, notes)))
    if chart and account is not None:
        click.echo(
            "\n".join(["", *chart_lines(account.history, wall=settings.clock.kind == "wall")])
        )


def _lines(
    found: "ExchangeReport", settings: "SiteConfig", word: str, more: Sequence[str]
) -> Iterator[str]:
    wall = settings.clock.kind == "wall"
    if math.isnan(found.end):
        yield f"Site {printable(settings.name)}: its journal has no jobs yet"
        return
    yield (
        f"Site {printable(settings.name)}, {moment(found.begin, wall=wall)} to "
        f"{moment(found.end, wall=wall)}"
    )
    yield ""
    yield "Own users' jobs that have ended, as it was and alone"
    yield ""
    yield _RUNS.format(
        "RAN AT", "JOBS", "PROC-H", "WAIT/s", "ALONE/s", "AWRT/s", "ALONE/s", "BETTER"
    )
    for row in found.places:
        yield _run_line(shorten(printable(row.place or "home"), NAME_WIDTH), row)
    yield _run_line("all", found.total)
    if found.partners:
        yield ""
        yield _TRADE.format("PARTNER", "GIVEN", "PROC-H", "TAKEN", "PROC-H", "TAKEN - GIVEN")
        for trade in found.partners:
            given, taken = trade.given_work / 3600, trade.taken_work / 3600
            yield _TRADE.format(
                shorten(printable(trade.partner), NAME_WIDTH),
                trade.given,
                f"{given:,.1f}",
                trade.taken,
                f"{taken:,.1f}",
                f"{taken - given:+,.1f}",
            )
    yield ""
    for note in (*_notes(found, settings, word), *more):
        yield from textwrap.wrap(printable(note), WIDTH, break_on_hyphens=False)


def _run_line(name: str, row: "Compared") -> str:
    return _RUNS.format(
        name,
        row.jobs,
        f"{row.work / 3600:,.1f}",
        seconds(row.mean_wait, 0),
        seconds(row.mean_wait_alone, 0),
        seconds(row.awrt, 0),
        seconds(row.awrt_alone, 0),
        change(row.improvement),
    )


def _notes(found: "ExchangeReport", settings: "SiteConfig", word: str) -> Iterator[str]:
    left_out = found.left_out
    yield (
        f"Alone: the same jobs on {settings.processors} processors with {word}, as if there were no "
        "partners."
    )
    if left_out.open:
        yield (
            f"{_jobs(left_out.open)} not ended and cannot be replayed; without them the machine alone "
            "is a little too empty, and looks a little too good."
        )
    out = [
        f"{count} {text}"
        for count, text in (
            (left_out.never_ran, "never ran"),
            (left_out.disbelieved, "with reports that cannot be true"),
            (left_out.too_wide, "wider than this machine"),
        )
        if count
    ]
    if out:
        yield f"Not compared: {', '.join(out)}."
    home = next((row for row in found.places if not row.place), None)
    if home is not None and math.isfinite(found.home_awrt_replayed):
        off = found.home_awrt_replayed / home.awrt - 1.0 if home.awrt else math.nan
        yield (
            f"How well the simulator does: of what ran here it makes an AWRT of "
            f"{seconds(found.home_awrt_replayed, 0)} s for own jobs at home ({change(off)})."
        )
    if any(row.place for row in found.places):
        yield "Run times at partners are what these have reported."
    wall = settings.clock.kind == "wall"
    if found.known_since > found.begin:
        yield (
            f"The journal was shortened: it knows of own jobs' ends since "
            f"{moment(found.known_since, wall=wall)} ([limits] ended_jobs keeps more)."
        )
    if found.guests_known_since > found.begin:
        yield (
            "Of partners' jobs that ended before "
            f"{moment(found.guests_known_since, wall=wall)} some or all are gone."
        )


def _jobs(count: int) -> str:
    return "1 own job has" if count == 1 else f"{count:,} own jobs have"


@click.command(short_help="Say what other transfer policies would bring own users.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--policy",
    "words",
    multiple=True,
    metavar="POLICY",
    help="A transfer policy for all partners: a word, or a rule base file; as often as wanted.  "
    "[default: the words for constraints]",
)
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A site file as it may become: its policies and constraints, with all numbers.",
)
@since_option
@discipline_option
@click.option("--seed", type=click.IntRange(0, SEED_MAX), default=1, show_default=True)
@json_option("grms-advise", "grms.cli.output_models:AdviceOutput")
def advise(  # an option each
    config: Path,
    *,
    words: tuple[str, ...],
    candidates: tuple[Path, ...],
    since_s: float,
    discipline: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Say what other transfer policies would bring own users, before one is changed.

    CONFIG is the site's configuration; its daemon may run meanwhile. What its journal knows is replayed
    with each policy: own users' jobs, and the partners' jobs that were taken. What partners would say to
    offers is a model of what they have said; under strict-exchange guests are sent home. Each policy is compared with being alone (all jobs are kept),
    with what was, and with awf (accept when fit), with a 95 % interval.

    docs/how-to/what-exchange-brings.md explains every figure, and the model.
    """
    from grms.cli.advice_words import recommendation, words_to_advise  # noqa: PLC0415  # see the module's docstring
    from grms.federation.own_account import accountable  # noqa: PLC0415  # same
    from grms.policy.registry import PolicyShelf  # noqa: PLC0415  # same
    from grms.policy.transfer import without_constraints  # noqa: PLC0415  # same
    from grms.site.accounting.report import advice_for_site, queue_alone  # noqa: PLC0415  # same
    from grms.site.accounting.strict_policy_site import account_rules  # noqa: PLC0415  # same
    from grms.site.config.load import load_config, load_policies  # noqa: PLC0415  # same

    settings = load_config(config)
    policies: dict[str, Mapping[str, TransferPolicy]] = {
        "now": load_policies(settings, str(config))
    }
    partners = tuple(policies["now"])
    if not partners:
        raise click.UsageError(f"{config}: the site exchanges jobs with no partner")
    shelf = PolicyShelf()
    queue, queue_word = queue_alone(settings, discipline)
    ends_no_guests = settings.lrms.ends_no_guests
    said = words_to_advise(queue, may_preempt=not ends_no_guests)
    for word in ("awf", *(words or said)):
        policy = said.get(word) or shelf.policy_by_name(word)
        if why := without_constraints(policy):
            text = f"{word}: {why}; or put it into a copy of the site's file and name that with --candidate"
            raise click.UsageError(text)
        policies[word] = dict.fromkeys(partners, policy)
    asked: dict[str, int | None] = dict.fromkeys(policies, settings.partners_asked)
    for candidate in candidates:
        if candidate.name in policies:
            raise click.UsageError(
                f"--candidate {candidate.name} comes twice; name files differently"
            )
        changed = load_config(candidate)
        found = load_policies(changed, str(candidate))
        asked[candidate.name] = changed.partners_asked
        policies[candidate.name] = {name: found[name] for name in partners if name in found}
    for word, each in policies.items():
        if account_rules(each) is not None and not accountable(queue):
            text = f"{word}: strict-exchange keeps an account, which {queue_word} cannot; there are fcfs, list and easy (--discipline)"
            raise click.UsageError(text)
    rows = advice_for_site(
        settings,
        policies,
        since=since_s,
        discipline=discipline,
        seed=seed,
        partners_asked=asked,
        progress=_told,
    )
    _told("", 0)
    recommended = recommendation(rows, ends_no_guests)
    if as_json:
        found_all = {"site": settings.name, "seed": seed, "policies": rows}
        print_json("grms-advise", found_all | {"recommendation": recommended})
    else:
        click.echo("\n".join(_advice_lines(rows, settings, recommended)))


def _told(word: str, jobs: int) -> None:
    # A line that goes away, for who looks on.
    if sys.stderr.isatty():
        text = f"{word}: {jobs:,} jobs" if word else ""
        click.echo(f"\r{shorten(printable(text), WIDTH):<{WIDTH}}\r", err=True, nl=False)


def _advice_lines(
    rows: "Sequence[Advised]", settings: "SiteConfig", recommended: str
) -> Iterator[str]:
    yield f"Site {printable(settings.name)}: own users' jobs under other policies"
    yield ""
    yield _ADVICE.format("POLICY", "GIVEN", "TAKEN", "WAIT/s", "AWRT/s", "BETTER", "95 %")
    for row in rows:
        interval = f"{change(row.low)} to {change(row.high)}" if math.isfinite(row.low) else NOTHING
        line = _ADVICE.format(
            shorten(printable(row.policy), 18),
            row.given,
            row.taken,
            seconds(row.mean_wait, 0),
            seconds(row.awrt, 0),
            change(row.improvement),
            interval if row.policy != rows[0].policy else "",
        )
        yield line.rstrip()
    yield ""
    yield from textwrap.wrap(
        "What partners say to offers that were never made is drawn from what they have said to jobs of "
        "the same size. Jobs of partners that were declined are not known: a policy that would take more "
        "is judged by those that were taken. Where the policy was not changed, now beside as it was says "
        "how well the model does. Two policies whose intervals overlap may be equally good.",
        WIDTH,
        break_on_hyphens=False,
    )
    if recommended:
        yield ""
        yield from textwrap.wrap(recommended, WIDTH, break_on_hyphens=False)
