"""Measures the broker where run times are not what was thought, beside a greedy dispatcher.

    python -m benchmarks.deviation                     all settings, 20 seeds, to figures-deviation.json
    python -m benchmarks.deviation --seeds 30          more seeds; what is known already is kept
    python -m benchmarks.deviation --share 1           all workflows of an hour in place of a third
    python -m benchmarks.deviation --load 1 --page p.html
    python -m benchmarks.deviation --dry               a small load, two noises, one seed; writes nothing

Four generators of load, five noises and two loads (`deviation_loads`). On each of them work, with the
same luck for each run: a greedy dispatcher, first come first served and by due date; the broker; and
the broker with `early = false`, whose tasks wait for their time in the plan. All in virtual time
(`deviation_dispatch`); a search takes 30 s of it. The figures of a setting are means over the seeds,
with intervals of Student's t at 95 %, and each is held against bounds. Interrupted, it goes on.
"""

import argparse
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from benchmarks.deviation_dispatch import (
    EVALUATIONS,
    POPULATION,
    RULES,
    SEARCH_S,
    STABILITY,
    Greedy,
    World,
)
from benchmarks.deviation_loads import GENERATORS, NOISES, draw
from benchmarks.frame import machine, options_of
from lrms_sim.report.parts import Facts, Figure, Page, Section, Table
from lrms_sim.report.text_tables import markdown
from lrms_sim.util.version import __version__
from scenarios.studies.common.charts import Line, line_chart
from scenarios.studies.common.page_parts import mark
from scenarios.studies.common.verdicts import Margin, Statement, counted

FIGURES: Final = Path(__file__).with_name("figures-deviation.json")
LOADS: Final = (1.0, 1.5)
BROKER: Final = "broker"
WAITING: Final = "broker, early = false"
JUDGED: Final = (*RULES, BROKER)
WHO: Final = (*JUDGED, WAITING)
WAITING_SEEDS: Final = 3
"""`early = false` is judged by nothing and takes as long as all others: it has fewer seeds."""

SHARE: Final = 3
"""Only so manieth part of the workflows of an hour comes, as dense as all."""

MADE: Final = {
    "share": SHARE,
    "search_s": SEARCH_S,
    "evaluations": EVALUATIONS,
    "population": POPULATION,
    "stability": STABILITY,
}

ON_TIME_LESS: Final = 0.01
"""The share on time may be so much less than that of the better greedy dispatcher."""

LEAST_ON_TIME: Final = {"exact": 0.98, "±5 %": 0.98, "±10 %": 0.98, "0.7–1.25, 5 % fail": 0.97}
"""At load 1, by noise."""

FLOW_MORE: Final = 1.3
"""The mean flow may be so many times that of the quicker greedy dispatcher."""


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """What is measured; `noise` is a name among `NOISES`."""

    generator: str
    load: float
    noise: str

    def __str__(self) -> str:
        return f"{self.generator}, load {self.load:g}, {self.noise}"


@dataclass(frozen=True, slots=True)
class Run:
    """One seed of a setting, by one dispatcher."""

    setting: Setting
    seed: int
    who: str

    @property
    def key(self) -> str:
        """Its name among the figures."""
        return f"{self.setting}, seed {self.seed}: {self.who}"


def measure(run: Run, share: int) -> dict[str, Any]:
    """Returns the figures of a run; with `share` only so manieth part of the workflows comes."""
    setting = run.setting
    load = draw(setting.generator, setting.load, run.seed, share)
    noise = next(each for each in NOISES if each.name == setting.noise)
    if run.who in RULES:
        return Greedy(load, noise, run.seed, run.who).run().as_json()
    return World(load, noise, run.seed, early=run.who == BROKER).run().as_json()


# --- verdicts ------------------------------------------------------------------------------------


class Result:
    """The figures of one setting, over the seeds that all dispatchers have done."""

    def __init__(self, setting: Setting, known: dict[str, dict[str, Any]], seeds: int) -> None:
        self.setting = setting
        rows = (_row(setting, seed, known) for seed in range(1, seeds + 1))
        self.rows = [row for row in rows if row.keys() >= set(JUDGED)]
        self.seeds = len(self.rows)

    def values(self, who: str, figure: str) -> list[float]:
        """Returns a figure of a dispatcher, by seed; `early = false` has not all of them."""
        return [float(row[who][figure]) for row in self.rows if who in row]

    def mean(self, who: str, figure: str) -> float:
        """Returns the mean of a figure; not a number where nothing is known."""
        values = self.values(who, figure)
        return fmean(values) if values else math.nan

    def statements(self) -> list[Statement]:
        """Returns what is asked of the broker here, and whether it holds."""
        better = max(RULES, key=lambda rule: self.mean(rule, "on_time"))
        more = Margin.between(self.values(BROKER, "on_time"), self.values(better, "on_time"))
        quicker = min(RULES, key=lambda rule: self.mean(rule, "mean_flow_s"))
        pairs = zip(
            self.values(BROKER, "mean_flow_s"), self.values(quicker, "mean_flow_s"), strict=True
        )
        ratio = Margin.of(one / other for one, other in pairs)
        found = [
            Statement(
                f"{self.setting}: on time, less {better}",
                _interval(more, percent=True),
                more.at_least(-ON_TIME_LESS),
                f"at least −{100 * ON_TIME_LESS:g} points",
            ),
            Statement(
                f"{self.setting}: mean flow, over {quicker}",
                _interval(ratio),
                ratio.at_most(FLOW_MORE),
                f"at most {FLOW_MORE:g}",
            ),
        ]
        least = LEAST_ON_TIME.get(self.setting.noise) if self.setting.load == 1 else None
        if least is not None:
            share = Margin.of(self.values(BROKER, "on_time"))
            found.append(
                Statement(
                    f"{self.setting}: on time",
                    _interval(share, percent=True),
                    share.at_least(least),
                    f"at least {100 * least:g} %",
                )
            )
        return found


def _row(
    setting: Setting, seed: int, known: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    keys = {who: Run(setting, seed, who).key for who in WHO}
    return {who: known[key] for who, key in keys.items() if key in known}


def _interval(margin: Margin, *, percent: bool = False) -> str:
    factor, digits = (100.0, 1) if percent else (1.0, 2)
    text = f"{factor * margin.mean:.{digits}f}"
    if margin.count > 1:
        text += f" ({factor * margin.low:.{digits}f} … {factor * margin.high:.{digits}f})"
    return text.replace("-", "\N{MINUS SIGN}")


# --- what is shown -------------------------------------------------------------------------------


def table(results: Iterable[Result]) -> list[tuple[str, ...]]:
    """Returns a row for each setting: on time and flow of all, then how the broker stands."""
    rows = []
    for each in results:
        on_time = [f"{100 * each.mean(who, 'on_time'):.1f}" for who in WHO]
        flow = [f"{each.mean(who, 'mean_flow_s'):.0f}" for who in WHO]
        verdicts = [statement.holds for statement in each.statements()]
        verdict = "no" if False in verdicts else "open" if None in verdicts else "yes"
        setting = each.setting
        rows.append(
            (
                setting.generator,
                f"{setting.load:g}",
                setting.noise,
                str(each.seeds),
                *on_time,
                *flow,
                verdict,
            )
        )
    return rows


HEADS: Final = (
    *("generator", "load", "noise", "seeds"),
    *(f"on time, {who}" for who in WHO),
    *(f"flow, {who}" for who in WHO),
    "holds",
)


def page(results: Sequence[Result], made: dict[str, Any]) -> str:
    """Returns the figures as a page with pictures."""
    statements = [each for result in results for each in result.statements()]
    drawings = []
    for generator, load in itertools.product(GENERATORS, LOADS):
        mine = [r for r in results if (r.setting.generator, r.setting.load) == (generator, load)]
        if mine:
            drawings.append(_drawing(mine, "on_time", "on time, percent", 100.0))
            drawings.append(_drawing(mine, "mean_flow_s", "mean flow, seconds", 1.0))
    judged = [
        (each.claim, each.measured, each.rule, mark(each.holds, each.word)) for each in statements
    ]
    document = Page(
        "Run times that are not what was thought",
        f"benchmark deviation, {__version__}",
        [
            Section("Figures", [Figure("".join(drawings), _CAPTION)]),
            Section("All figures", [Table(HEADS, table(results), name="All figures")]),
            Section(
                "Statements",
                [
                    Table(
                        ("", "Here", "It holds if", ""),
                        judged,
                        name="Statements",
                        words={1, 2},
                        kind="statements",
                    )
                ],
            ),
            Section(
                "How it was made", [Facts([*made.items(), ("Program", f"Hanse {__version__}")])]
            ),
        ],
        headline=f"{counted([each.holds for each in statements])}.",
        about=[
            (
                "Hanse's broker and a greedy dispatcher, which has no plan and reserves nothing, with "
                "the same workflows, resources and luck of each run."
            )
        ],
    )
    return str(document)


_CAPTION: Final = "Means over the seeds with intervals at 95 %. A noise is the share of its estimate that a run takes."


def _drawing(results: Sequence[Result], figure: str, name: str, factor: float) -> str:
    lines = []
    for color, who in enumerate(WHO):
        points = []
        for place, each in enumerate(results):
            if not each.values(who, figure):
                continue
            margin = Margin.of(factor * value for value in each.values(who, figure))
            one = margin.count == 1
            low, high = (margin.mean, margin.mean) if one else (margin.low, margin.high)
            points.append((place, margin.mean, low, high))
        lines.append(Line(who, color, points))
    setting = results[0].setting
    return line_chart(
        lines,
        [each.setting.noise for each in results],
        key=f"{setting.generator}-{setting.load:g}-{figure}".replace(".", "-"),
        title=f"{setting.generator}, load {setting.load:g}: {name}",
    )


# --- the command ---------------------------------------------------------------------------------


def work(
    runs: Sequence[Run], share: int, workers: int, keep: Callable[[Run, dict[str, Any]], None]
) -> None:
    """Measures runs, and hands over each as it is done."""
    if workers == 1:
        for run in runs:
            keep(run, measure(run, share))
        return
    with ProcessPoolExecutor(workers) as executor:
        waiting = {executor.submit(measure, run, share): run for run in runs}
        for done in as_completed(waiting):
            keep(waiting[done], done.result())


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Returns the options."""
    parser = options_of(__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="of each setting, from 1 on (20)")
    parser.add_argument(
        "--generator", action="append", choices=tuple(GENERATORS), help="only this; several times"
    )
    parser.add_argument("--load", action="append", type=float, choices=LOADS, help="only this")
    parser.add_argument(
        "--noise", action="append", choices=[each.name for each in NOISES], help="only this"
    )
    parser.add_argument(
        "--share", type=int, default=SHARE, help=f"so manieth part of the workflows ({SHARE})"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes (1)")
    parser.add_argument("--output", type=Path, default=FIGURES, help="the figures, JSON")
    parser.add_argument("--page", type=Path, help="writes a page with pictures, HTML")
    parser.add_argument("--fresh", action="store_true", help="measure what is known anew")
    parser.add_argument("--dry", action="store_true", help="a small load; writes no figures")
    options = parser.parse_args(arguments)
    if min(options.seeds, options.workers, options.share) < 1:
        parser.error("--seeds, --workers and --share are at least 1")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what is not known yet, and returns 1 if the broker fails a statement."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    noises = options.noise or [each.name for each in NOISES]
    share, seeds, made = options.share, options.seeds, MADE | {"share": options.share}
    if options.dry:
        share, seeds = 10, 1
        noises = options.noise or [NOISES[0].name, NOISES[3].name]
    settings = [
        Setting(*each)
        for each in itertools.product(
            options.generator or GENERATORS, options.load or LOADS, noises
        )
    ]
    known: dict[str, dict[str, Any]] = {}
    if options.output.exists() and not (options.fresh or options.dry):
        document = json.loads(options.output.read_text(encoding="utf-8"))
        known = document["runs"] if document["made"] == made else {}
    # Seed by seed, so that whatever is interrupted has all settings.
    wanted = [
        Run(setting, seed, who)
        for seed in range(1, seeds + 1)
        for setting in settings
        for who in (WHO if seed <= WAITING_SEEDS else JUDGED)
    ]
    runs = [run for run in wanted if run.key not in known]
    here = machine()

    def keep(run: Run, figures: dict[str, Any]) -> None:
        known[run.key] = figures
        print(
            f"{run.key}: on time {100 * figures['on_time']:.1f} %, in budget "
            f"{100 * figures['in_budget']:.0f} %, flow {figures['mean_flow_s']:.0f} s "
            f"({figures['processor_s']:.1f} s of processor time)",
            flush=True,
        )
        if not options.dry:
            text = json.dumps({"machine": here, "made": made, "runs": known}, indent=1)
            part = options.output.with_suffix(".part")
            part.write_text(text + "\n", encoding="utf-8")
            part.replace(options.output)

    work(runs, share, options.workers, keep)
    results = [Result(setting, known, seeds) for setting in settings]
    statements = [each for result in results for each in result.statements()]
    print(markdown(HEADS, table(results)))
    for each in statements:
        print(f"{each.word:5} {each.claim}: {each.measured}, {each.rule}")
    print(f"{counted([each.holds for each in statements])}.")
    if options.page is not None:
        options.page.write_text(page(results, {**here, **made}), encoding="utf-8")
    return 1 if any(each.holds is False for each in statements) else 0


if __name__ == "__main__":
    sys.exit(main())
