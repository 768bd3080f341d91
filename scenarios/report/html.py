"""The report as one HTML page that needs nothing else: no network and no other file."""

import re
from collections import Counter
from html import escape
from os import PathLike
from pathlib import Path

from lrms_sim.pages import series
from lrms_sim.pages.markup import brand, document, figure, heading, resource
from scenarios.report import tables, time_machine, words, workflows
from scenarios.report.selection import DETAIL_MAX, FLOWS_CSV, ROWS_MAX, important, left_out
from scenarios.run.results import ScenarioResult, SiteResult


def write_html(result: ScenarioResult, path: str | PathLike[str]) -> None:
    """Writes the report to a file, in UTF-8.

    Raises:
        OSError: the file cannot be written.
    """
    Path(path).write_text(render_html(result), encoding="utf-8")


def render_html(result: ScenarioResult) -> str:
    """Returns the report as an HTML document; equal results give equal documents."""
    parts = [_head(result), workflows.section(result), tables.summary(result)]
    if result.jobs_exchanged:
        parts.append(_improvements(result))
    if len(result.sites) > 1 and result.jobs:
        parts.append(_exchange(result))
    machine = time_machine.section(result)
    if result.jobs:
        parts += [machine, _site_by_site(result)]
    parts += [tables.waits(result), tables.workloads(result), _explained(), _made(result)]
    script = time_machine.script() if machine else ""
    return document(result.title or result.name, parts, script)


def _head(result: ScenarioResult) -> str:
    # A blank line parts paragraphs; other line breaks are those of the scenario's file.
    paragraphs = [part for part in re.split(r"\n\s*\n", result.description) if part.strip()]
    about = "".join(f'<p class="about">{escape(part.strip())}</p>' for part in paragraphs)
    chosen = important(result, DETAIL_MAX)
    cards = "".join(
        _card(index, result.sites[index], partners=len(result.sites) > 1) for index in chosen
    )
    which = left_out(result, len(chosen))
    which = f'<p class="exchange">{escape(which)}</p>\n' if which else ""
    return (
        f"<header>\n{brand(f'scenario {result.name}')}\n"
        f"<h1>{escape(result.title or result.name)}</h1>\n"
        f'<p class="headline">{escape(words.headline(result))}</p>\n'
        f'<p class="exchange">{escape(words.exchange_sentence(result))}</p>\n{about}\n{which}'
        f'<ul class="cards" aria-label="Key figures of each site">{cards}</ul>\n</header>'
    )


def _card(index: int, site: SiteResult, *, partners: bool) -> str:
    """Returns the key figures of a site.

    Args:
        index: of the site.
        site: its result.
        partners: whether there is any other site.
    """
    rows = [("Own jobs", words.count(site.jobs))]
    if partners:
        figure_, meaning = _verdict(site)
        rows = [
            ("Alone", words.duration(site.awrt_alone)),
            ("Federated", words.duration(site.awrt)),
            *rows,
            ("Given", words.count(site.jobs_given)),
            ("Taken", words.count(site.jobs_taken)),
        ]
    else:
        figure_, meaning = words.duration(site.awrt), "average weighted response time"
        rows.append(("Utilization", words.share(site.utilization)))
    figures = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)
    machine = f"{words.count(site.processors)} processors · {escape(site.discipline.upper())}"
    return (
        f'<li class="card" style="--site:var(--site-{index % 8})"><h2>{escape(site.name)}</h2>'
        f'<p class="machine">{machine}</p><p class="figure {tables.tone(site)}">{figure_}</p>'
        f'<p class="meaning">{meaning}</p><dl>{figures}</dl></li>\n'
    )


def _verdict(site: SiteResult) -> tuple[str, str]:
    """Returns how a site's response time changed: a figure, and what it means."""
    if not site.jobs:
        return words.NOTHING, "no own jobs"
    tone = tables.tone(site)
    if not tone:
        return "±0%", "average weighted response time is the same"
    arrow, word = ("▼", "shorter") if tone == "gain" else ("▲", "longer")
    size = abs(site.awrt_improvement)
    # A card has no room for the decimal of more than 1,000 %.
    share = f"{100 * size:,.0f}%" if size >= 10 else words.share(size)
    return f"{arrow} {share}", f"{word} average weighted response time"


def _improvements(result: ScenarioResult) -> str:
    if len(result.sites) > DETAIL_MAX:
        return _spread(result)
    from scenarios.report import figures  # noqa: PLC0415  # matplotlib is slow to import

    return (
        f"<section>\n{heading('Who gained')}\n"
        "<p>Each site against itself alone, with the same jobs and the same queue discipline.</p>\n"
        + figure(
            figures.improvement_bars(result) + figures.area_bars(result),
            "The improvement says how much shorter the site's own users wait, ΔSA how much more work its "
            "machine did than they brought. Helping others and being served sooner do not exclude "
            "each other.",
            "pair",
        )
        + "</section>"
    )


def _spread(result: ScenarioResult) -> str:
    from scenarios.report import heat_map  # noqa: PLC0415  # matplotlib is slow to import

    return (
        f"<section>\n{heading('Who gained')}\n"
        "<p>Each site against itself alone, with the same jobs and the same queue discipline.</p>\n"
        + figure(
            heat_map.improvement_spread(result),
            "Improvement of AWRT of every site with jobs of its own; a dot is a site. What is worse "
            "than −100% stands at the lower edge.",
            "wide",
        )
        + "</section>"
    )


def _exchange(result: ScenarioResult) -> str:
    parts = [f"<section>\n{heading('Who gave work to whom')}\n"]
    many = len(result.sites) > DETAIL_MAX
    if result.jobs_exchanged and many:
        from scenarios.report import heat_map  # noqa: PLC0415  # matplotlib is slow to import

        parts.append(
            figure(
                heat_map.flow_map(result),
                f"Exchanged jobs only. Every pair of sites with its jobs is in {FLOWS_CSV}.",
                "wide",
            )
        )
        parts.append(tables.flows(result))
    elif result.jobs_exchanged:
        from scenarios.report import ribbons  # noqa: PLC0415  # matplotlib is slow to import

        parts.append(
            figure(
                ribbons.flow_ribbons(result, by_area=False)
                + ribbons.flow_ribbons(result, by_area=True),
                "Exchanged jobs only, in the colour of the site that gave them: by number, and by "
                "the processor hours (ph) in them.",
                "pair",
            )
        )
    else:
        parts.append("<p>No job left its home site.</p>\n")
    if not many:
        parts.append(tables.matrix(result))
    parts.append("</section>")
    return "".join(parts)


def _site_by_site(result: ScenarioResult) -> str:
    from scenarios.report import figures  # noqa: PLC0415  # matplotlib is slow to import

    bins = series.width_in_words(series.bin_edges(*figures.time_span(result)))
    about = (
        f"Queue and utilization are means per {bins}. A waiting job counts in the queue of the "
        "machine that will run it; response times are those of the site's own jobs, wherever "
        "they ran."
    )
    chosen = important(result, DETAIL_MAX)
    which = left_out(result, len(chosen))
    which = f"<p>{escape(which)}</p>\n" if which else ""
    parts = [f"<section>\n{heading('Site by site')}\n<p>{about}</p>\n{which}"]
    for index in chosen:
        site = result.sites[index]
        parts.append(
            f'<div class="site"><h3><span class="dot" style="--site:var(--site-{index % 8})"></span>'
            f"{escape(site.name)} <small>{words.count(site.processors)} processors</small></h3>\n"
        )
        parts.append(figure(figures.site_over_time(result, index), "", "wide"))
        if site.jobs:
            parts.append(figure(figures.response_times(result, index), "", "wide"))
        parts.append("</div>\n")
    parts.append("</section>")
    return "".join(parts)


def _explained() -> str:
    text = resource("scenarios.report", "explained.html")
    return f"<section>\n{heading('How to read the figures')}\n{text}</section>"


def _made(result: ScenarioResult) -> str:
    if len(result.sites) > ROWS_MAX:
        counted = Counter(site.discipline for site in result.sites)
        disciplines = "; ".join(
            f"{name}: {words.count(number)} sites" for name, number in sorted(counted.items())
        )
    else:
        disciplines = "; ".join(f"{site.name}: {site.discipline}" for site in result.sites)
    rows = (
        ("Scenario", result.name),
        ("Seed", str(result.seed)),
        ("Sites and disciplines", disciplines),
        ("Runs", "the same jobs twice: every site alone, then federated, on one shared clock"),
        ("Wall-clock time", f"{words.duration(result.elapsed_s)} for both runs"),
        ("Program", f"Hanse {result.version}"),
    )
    facts = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in rows)
    thanks = "".join(f"<p>{escape(line)}</p>" for line in result.acknowledgements)
    return (
        f"<section>\n{heading('How it was made')}\n"
        f'<dl class="made">{facts}</dl>\n'
        + (f'<div class="thanks">{thanks}</div>\n' if thanks else "")
        + "</section>"
    )
