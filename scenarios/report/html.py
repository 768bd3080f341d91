"""The report as one HTML page that needs nothing else: no network and no other file."""

import re
from collections import Counter
from os import PathLike
from pathlib import Path

from lrms_sim.report import series
from lrms_sim.report.parts import Card, Figure, Group, Html, Page, Section, Words, made
from lrms_sim.report.templates import resource
from scenarios.report import tables, time_machine, wording, workflows
from scenarios.report.selection import DETAIL_MAX, FLOWS_CSV, ROWS_MAX, important, left_out
from scenarios.run.results import ScenarioResult, SiteResult

_AGAINST = "Each site against itself alone, with the same jobs and the same queue discipline."


def write_html(result: ScenarioResult, path: str | PathLike[str]) -> None:
    """Writes the report to a file, in UTF-8; `OSError` if the file cannot be written."""
    Path(path).write_text(render_html(result), encoding="utf-8")


def render_html(result: ScenarioResult) -> str:
    """Returns the report as an HTML document; equal results give equal documents."""
    parts: list[Words] = [workflows.section(result), tables.summary(result)]
    if result.jobs_exchanged:
        parts.append(Section("Who gained", [_gains(result)], about=_AGAINST))
    if len(result.sites) > 1 and result.jobs:
        parts.append(_exchange(result))
    machine = time_machine.section(result)
    if result.jobs:
        parts += [machine, _site_by_site(result)]
    explained = Html(resource("scenarios.report", "explained.html"))
    parts += [
        tables.waits(result),
        tables.workloads(result),
        Section("How to read the figures", [explained]),
        _made(result),
    ]
    chosen = important(result, DETAIL_MAX)
    # A blank line parts paragraphs; other line breaks are those of the scenario's file.
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", result.description)]
    page = Page(
        result.title or result.name,
        f"scenario {result.name}",
        parts,
        headline=wording.headline(result),
        notes=[wording.exchange_sentence(result), left_out(result, len(chosen))],
        about=[part for part in paragraphs if part],
        cards=[
            _card(index, result.sites[index], partners=len(result.sites) > 1) for index in chosen
        ],
        cards_of="Key figures of each site",
        script=time_machine.script() if machine else "",
    )
    return str(page)


def _card(index: int, site: SiteResult, *, partners: bool) -> Card:
    """Returns the key figures of a site.

    `partners` says whether there is any other site.
    """
    rows = [("Own jobs", wording.count(site.jobs))]
    if partners:
        value, meaning = _verdict(site)
        rows = [
            ("Alone", wording.duration(site.awrt_alone)),
            ("Federated", wording.duration(site.awrt)),
            *rows,
            ("Given", wording.count(site.jobs_given)),
            ("Taken", wording.count(site.jobs_taken)),
        ]
    else:
        value, meaning = wording.duration(site.awrt), "average weighted response time"
        rows.append(("Utilization", wording.share(site.utilization)))
    machine = f"{wording.count(site.processors)} processors · {site.discipline.upper()}"
    return Card(
        value, meaning, site.name, machine, wording.tone(site.awrt_improvement), index, rows
    )


def _verdict(site: SiteResult) -> tuple[str, str]:
    if not site.jobs:
        return wording.NOTHING, "no own jobs"
    tone = wording.tone(site.awrt_improvement)
    if not tone:
        return "±0%", "average weighted response time is the same"
    arrow, word = ("▼", "shorter") if tone == "gain" else ("▲", "longer")
    size = abs(site.awrt_improvement)
    # A card has no room for the decimal of more than 1,000 %.
    share = f"{100 * size:,.0f}%" if size >= 10 else wording.share(size)
    return f"{arrow} {share}", f"{word} average weighted response time"


def _gains(result: ScenarioResult) -> Figure:
    if len(result.sites) > DETAIL_MAX:
        from scenarios.report import heat_map  # noqa: PLC0415  # matplotlib is slow to import

        return Figure(
            heat_map.improvement_spread(result),
            "Improvement of AWRT of every site with jobs of its own; a dot is a site. What is worse "
            "than −100% stands at the lower edge.",
        )
    from scenarios.report import figures  # noqa: PLC0415  # same

    return Figure(
        figures.improvement_bars(result) + figures.area_bars(result),
        "The improvement says how much shorter the site's own users wait, ΔSA how much more work its "
        "machine did than they brought. Helping others and being served sooner do not exclude "
        "each other.",
        "pair",
    )


def _exchange(result: ScenarioResult) -> Section:
    parts: list[Words] = []
    many = len(result.sites) > DETAIL_MAX
    if result.jobs_exchanged and many:
        from scenarios.report import heat_map  # noqa: PLC0415  # matplotlib is slow to import

        parts += [
            Figure(
                heat_map.flow_map(result),
                f"Exchanged jobs only. Every pair of sites with its jobs is in {FLOWS_CSV}.",
            ),
            tables.flows(result),
        ]
    elif result.jobs_exchanged:
        from scenarios.report import ribbons  # noqa: PLC0415  # matplotlib is slow to import

        parts.append(
            Figure(
                ribbons.flow_ribbons(result, by_area=False)
                + ribbons.flow_ribbons(result, by_area=True),
                "Exchanged jobs only, in the colour of the site that gave them: by number, and by "
                "the processor hours (ph) in them.",
                "pair",
            )
        )
    else:
        parts.append("No job left its home site.")
    if not many:
        parts.append(tables.matrix(result))
    return Section("Who gave work to whom", parts)


def _site_by_site(result: ScenarioResult) -> Section:
    from scenarios.report import figures  # noqa: PLC0415  # matplotlib is slow to import

    bins = series.width_in_words(series.bin_edges(*figures.time_span(result)))
    about = (
        f"Queue and utilization are means per {bins}. A waiting job counts in the queue of the "
        "machine that will run it; response times are those of the site's own jobs, wherever "
        "they ran."
    )
    chosen = important(result, DETAIL_MAX)
    parts: list[Words] = [left_out(result, len(chosen))]
    for index in chosen:
        site = result.sites[index]
        drawn = [Figure(figures.site_over_time(result, index))]
        if site.jobs:
            drawn.append(Figure(figures.response_times(result, index)))
        parts.append(Group(site.name, drawn, f"{wording.count(site.processors)} processors", index))
    return Section("Site by site", parts, about=about)


def _made(result: ScenarioResult) -> Section:
    if len(result.sites) > ROWS_MAX:
        counted = Counter(site.discipline for site in result.sites)
        disciplines = "; ".join(
            f"{name}: {wording.count(number)} sites" for name, number in sorted(counted.items())
        )
    else:
        disciplines = "; ".join(f"{site.name}: {site.discipline}" for site in result.sites)
    rows = (
        ("Scenario", result.name),
        ("Seed", str(result.seed)),
        ("Sites and disciplines", disciplines),
        ("Runs", "the same jobs twice: every site alone, then federated, on one shared clock"),
        ("Wall-clock time", f"{wording.duration(result.elapsed_s)} for both runs"),
    )
    return made(rows, result.version, result.acknowledgements)
