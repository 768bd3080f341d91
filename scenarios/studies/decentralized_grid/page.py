"""The study as one HTML page: every table and figure of the paper, and what was measured."""

from collections.abc import Mapping, Sequence

from lrms_sim.report.parts import Figure, Html, Page, Section, Strong, Table, Words, made
from lrms_sim.util.messages import listed
from scenarios.report import wording
from scenarios.studies.common.bar_chart import SpreadBar, improvement_chart
from scenarios.studies.common.samples import Spread
from scenarios.studies.common.verdicts import Margin
from scenarios.studies.decentralized_grid import drawings
from scenarios.studies.decentralized_grid.drawings import DotRow
from scenarios.studies.decentralized_grid.grids import (
    EASY_EGOISTIC,
    EASY_NO_LOSER,
    EGOISTIC,
    NO_LOSER,
    GridRun,
    Regime,
)
from scenarios.studies.decentralized_grid.reference import (
    FOUR_SITES,
    PAIRS,
    SETUPS,
    STATEMENTS,
    TABLE_1,
    THREE_SITES,
    Setup,
    WindowFigures,
)
from scenarios.studies.decentralized_grid.study import Study, awrt_of, improvement_of

TITLE = "Decentralized Grid Scheduling with Evolutionary Fuzzy Systems, measured again"
LABELS = {
    "awf": ("alone", "AWF"),
    EGOISTIC.key: ("federated", "learned"),
    NO_LOSER.key: ("work", "learned, no loser"),
    EASY_EGOISTIC.key: ("federated", "learned"),
    EASY_NO_LOSER.key: ("work", "learned, no loser"),
}


def render(study: Study) -> str:
    """Returns the page; equal studies give equal documents."""
    seeds = study.options["seeds"]
    how = (
        f"{len(study.trainings)} training runs with the seeds {', '.join(map(str, seeds))}; tables "
        "and bars show medians, with the least and the greatest value over the seeds beside them."
        if seeds
        else "With the rule bases that come with the program, one for each pair of sites: no spread."
    )
    paper = (
        "C. Fölling, C. Grimme, J. Lepping, A. Papaspyrou: Decentralized Grid "
        "Scheduling with Evolutionary Fuzzy Systems, JSSPP 2009. Sites learn when to keep a job "
        "and when to take one, by AWRT, the average weighted response time of their own users’ "
        "jobs (equation 11)."
    )
    page = Page(
        TITLE,
        "paper decentralized-grid",
        [
            _table_1(study),
            _table_2(study),
            _grids(study, "Figure 4: pairs of sites on unseen months", PAIRS, "pairs", "4"),
            _grids(study, "Figure 5(a): three sites", (THREE_SITES,), "three", "5a"),
            _grids(study, "Figure 5(b): a partner nobody knows", (FOUR_SITES,), "four", "5b"),
            _easy(study),
            _training(study),
            _made(study),
        ],
        headline=verdict(study),
        about=[paper, how],
    )
    return str(page)


def verdict(study: Study) -> str:
    """Returns the outcome of Table 2 as a sentence."""
    gaps = [_gaps(study, setup) for setup in SETUPS]
    medians = [Spread.of(each).median for each in gaps]
    better = sum(value < 0 for value in medians)
    within = sum(value <= 0.01 for value in medians)
    seeds = len(gaps[0])
    verdicts = [Margin.of(each).below() for each in gaps]
    sure = (
        f" (medians over {seeds} seeds); beyond what seeds differ by it is shorter in {verdicts.count(True)} and "
        f"longer in {verdicts.count(False)}."
    )
    return (
        f"In {better} of {len(SETUPS)} setups the learned policy's AWRT is shorter than the "
        f"paper's, in {within} of {len(SETUPS)} within 1 % of it or shorter"
        + (sure if seeds > 1 else ".")
    )


def _table_1(study: Study) -> Section:
    rows = []
    for name, paper in TABLE_1.items():
        found = study.windows[name]
        figures = (
            wording.count(paper.jobs),
            wording.count(int(found["jobs"])),
            wording.seconds(paper.awrt),
            wording.seconds(found["awrt"]),
            f"{paper.utilization:.2f}",
            f"{found['utilization']:.2f}",
            wording.count(paper.makespan),
            wording.count(int(found["makespan"])),
        )
        rows.append((name, *figures))
    grouped = _grouped(
        "Each site alone under FCFS.",
        "Window",
        (("Jobs", 2), ("AWRT, s", 2), ("U, %", 2), (Html("C<sub>max</sub>, s"), 2)),
        ("paper", "here") * 4,
        rows,
        name="Table 1",
    )
    return Section(
        "Table 1: the workloads",
        [grouped],
        about=f"{logs(study)} U is counted from the first start on (equation 13).",
    )


def logs(study: Study) -> str:
    """Returns which windows of Table 1 are the paper's, with no tolerance: each figure as printed."""
    same = [name for name, paper in TABLE_1.items() if _is_printed(paper, study.windows[name])]
    other = [name for name in TABLE_1 if name not in same]
    parts = []
    if same:
        parts.append(f"To the last digit the paper’s: {listed(same)}.")
    if other:
        parts.append(
            f"Not quite: {listed(other)}; the archive now has other versions of some logs "
            "than the paper used."
        )
    return " ".join(parts)


def _is_printed(paper: WindowFigures, found: Mapping[str, float]) -> bool:
    return (
        int(found["jobs"]) == paper.jobs
        and f"{found['awrt']:.2f}" == f"{paper.awrt:.2f}"
        and f"{found['utilization']:.2f}" == f"{paper.utilization:.2f}"
        and int(found["makespan"]) == paper.makespan
    )


def _table_2(study: Study) -> Section:
    rows: list[list[Words]] = []
    for setup in SETUPS:
        runs = study.of(setup.scenario, EGOISTIC.key)
        for name in (setup.site, setup.partner):
            own = name == setup.site
            paper = setup.paper[name]
            awrt = awrt_of(runs, name)
            median = wording.seconds(awrt.median)
            improvement = improvement_of(runs, name)
            area = Spread.of(
                s.squashed_area_change for r in runs for s in r.sites if s.name == name
            )
            figures = (
                wording.seconds(paper.awrt),
                Strong(median) if own else median,
                f"{wording.seconds(awrt.low)} … {wording.seconds(awrt.high)}"
                if awrt.count > 1
                else wording.NOTHING,
                wording.change(awrt.median / paper.awrt - 1),
                wording.change(paper.awrt_improvement / 100),
                wording.change(improvement.median),
                wording.change(paper.squashed_area_change / 100),
                wording.change(area.median),
            )
            head = f"{setup.number} {name} (learns)" if own else f"— {name}"
            rows.append([head, *figures])
    grouped = _grouped(
        "The learning site against a partner that accepts when fit, on the training months.",
        "Setup and site",
        (("AWRT, s", 4), ("Improvement", 2), ("ΔSA", 2)),
        ("paper", "here, median", "least … greatest", "change", "paper", "here", "paper", "here"),
        rows,
        name="Table 2",
    )
    about = (
        f"{verdict(study)} The partner’s figures are no goal of the learning; which of many "
        "equally good policies a run ends with decides them."
    )
    parts: list[Words] = [grouped]
    if study.options["seeds"]:
        dots = [DotRow(f"{setup.number} {setup.site}", _gaps(study, setup)) for setup in SETUPS]
        parts.append(
            Figure(
                drawings.dot_chart(
                    dots, key="table-2", heading="AWRT of the learning site, against the paper’s"
                ),
                "A dot for each seed, the median as a line; left of the black line is shorter "
                "than in the paper.",
            )
        )
    return Section("Table 2: learning", parts, about=about)


def _gaps(study: Study, setup: Setup) -> list[float]:
    """Returns the learner's AWRT over the paper's, minus 1, for each seed."""
    paper = setup.paper[setup.site].awrt
    return [
        site.awrt / paper - 1
        for run in study.of(setup.scenario, EGOISTIC.key)
        for site in run.sites
        if site.name == setup.site
    ]


def _grids(
    study: Study, title: str, scenarios: Sequence[str], statement: str, number: str
) -> Section:
    regimes = [EGOISTIC, NO_LOSER] if study.options["more_generations"] else [EGOISTIC]
    parts = [
        part
        for scenario in scenarios
        for part in _grid(study, scenario, regimes, f"figure-{number}")
    ]
    return Section(title, parts, about=STATEMENTS[statement])


def _grid(study: Study, scenario: str, regimes: Sequence[Regime], key: str) -> tuple[Figure, Table]:
    discipline = regimes[0].discipline
    kinds = ["awf", *(regime.key for regime in regimes)]
    runs = {kind: study.of(scenario, kind, discipline) for kind in kinds}
    names = [site.name for site in runs["awf"][0].sites]
    groups = [
        (
            name,
            [
                SpreadBar(LABELS[kind][0], improvement_of(runs[kind], name), LABELS[kind][1])
                for kind in kinds
            ],
        )
        for name in names
    ]
    chart = improvement_chart(
        groups,
        key=f"{key}-{scenario}-{discipline}",
        heading=f"{', '.join(names)}: improvement of AWRT over each site alone",
    )
    lows = [bar.spread.low for _, bars in groups for bar in bars]
    highs = [bar.spread.high for _, bars in groups for bar in bars]
    cut = min(lows) < -max(0.1, *highs)
    caption = (
        "What runs to the left edge goes on beyond it, as far as the numbers say." if cut else ""
    )
    return Figure(chart, caption), _grid_table(names, kinds, runs)


def _grid_table(
    names: Sequence[str], kinds: Sequence[str], runs: dict[str, list[GridRun]]
) -> Table:
    rows = []
    for name in names:
        alone = next(site for site in runs["awf"][0].sites if site.name == name).awrt_alone
        values = [wording.seconds(alone, 0)]
        for kind in kinds:
            figures = [site for run in runs[kind] for site in run.sites if site.name == name]
            area = Spread.of(site.squashed_area_change for site in figures)
            values += [
                wording.seconds(Spread.of(site.awrt for site in figures).median, 0),
                wording.change(improvement_of(runs[kind], name).median),
                wording.change(area.median),
            ]
        rows.append([name, *values])
    return _grouped(
        "",
        "Site",
        (("alone", 1), *((LABELS[kind][1], 3) for kind in kinds)),
        ("AWRT, s", *("AWRT, s", "improvement", "ΔSA") * len(kinds)),
        rows,
        name="Figures of the grid",
    )


def _easy(study: Study) -> Words:
    if not study.options["more_generations"]:
        return ""
    regimes = [EASY_EGOISTIC, EASY_NO_LOSER]
    about = (
        "Not in the paper: every site backfills (EASY), alone and in the grid. There is less to "
        "gain where queues are short already. Policies were learned with EASY at both sites, in "
        f"{study.options['more_generations']} generations."
    )
    parts = [
        part
        for scenario in (*PAIRS, THREE_SITES, FOUR_SITES)
        for part in _grid(study, scenario, regimes, "easy")
    ]
    return Section("The same with EASY backfilling", parts, about=about)


def _training(study: Study) -> Words:
    if not study.trainings:
        return ""
    rows = []
    for regime in dict.fromkeys(run.regime for run in study.trainings):
        for setup in SETUPS:
            runs = [r for r in study.trainings if (r.regime, r.setup) == (regime, setup.number)]
            seconds = Spread.of(run.elapsed_s for run in runs)
            rate = Spread.of(run.evaluations / run.elapsed_s for run in runs)
            figures = (
                str(len(runs)),
                wording.count(runs[0].generations),
                wording.count(runs[0].evaluations),
                f"{seconds.median:.1f} ({seconds.low:.1f} … {seconds.high:.1f})",
                f"{rate.median:.0f}",
            )
            rows.append((f"{regime}, {setup.number} {setup.site}", *figures))
    heads = (
        "Training",
        "Seeds",
        "Generations",
        "Evaluations",
        "Seconds, median (least … greatest)",
        "Evaluations/s",
    )
    return Section(
        "What the learning cost",
        [Table(heads, rows, name="Training runs", kind="compact")],
        about="The paper: some minutes to half an "
        "hour for one evaluation, on a cluster of 200 nodes (section 4.5). Here: "
        f"{study.machine}.",
    )


def _made(study: Study) -> Section:
    options = ", ".join(f"{name} {value}" for name, value in study.options.items())
    rows = (
        ("Command", "scenario paper decentralized-grid"),
        ("Options", options),
        ("Training", "(13+91) evolution strategy, 10 rules, steps 0.01 and 0.1 (section 4.5)"),
        ("Machine", study.machine),
    )
    return made(rows, study.version, study.acknowledgements)


def _grouped(
    caption: str,
    first: str,
    groups: Sequence[tuple[Words, int]],
    heads: Sequence[str],
    rows: Sequence[Sequence[Words]],
    *,
    name: str,
) -> Table:
    return Table((first, *heads), rows, caption, name=name, groups=groups, kind="compact")
