"""The study as one HTML page: statements, what each policy saves, for whose wait, and what it depends on."""

from collections.abc import Sequence
from typing import Any

from lrms_sim.electricity.power import LOOK_AHEAD_S, SAVING
from lrms_sim.electricity.synthetic import CARBON, PRICE
from lrms_sim.report.parts import (
    Figure,
    Page,
    Points,
    Section,
    Stacked,
    Table,
    Words,
    made,
)
from scenarios.studies.common.bar_chart import SpreadBar, improvement_chart
from scenarios.studies.common.charts import Line, line_chart
from scenarios.studies.common.frame import having
from scenarios.studies.common.page_parts import judgement
from scenarios.studies.common.samples import Spread
from scenarios.studies.common.verdicts import Statement, counted
from scenarios.studies.electricity.grids import GRIDS, LOAD
from scenarios.studies.electricity.statements import (
    SOURCE,
    SOURCE_BOTH,
    at_idle_share,
    carbon,
    carbon_off,
    changes,
    cost,
    cost_off,
    grids,
    statements,
    values,
    worst_delay,
)
from scenarios.studies.electricity.study import (
    ALONE,
    BUSY_WATTS,
    BY_SPREAD,
    IDLE,
    IDLE_SHARES,
    POLICIES,
    SPREAD,
    SPREADS,
    Study,
)

TITLE = "What exchange by price or carbon saves"
WEAK = """\
Prices and carbon intensities are synthetic: a shape of the day, cheaper weekends, and autoregressive noise, drawn for each site by itself. No number is of a market. Noise of neighbouring markets goes together, so that differences between them are smaller than here.
With idle nodes on, idle power is always paid: moving or delaying work saves only what a busy node draws beyond an idle one. Idle nodes that are off draw nothing, and are on again at once and at no cost, which flatters them.
The future of prices is known for as long as a job may wait and for a day of its request, as a day-ahead market tells it in part.
All jobs draw the same for each processor, and power follows the load in proportion. Cooling, network and storage are not counted, nor the data that moves with a job.
Which site pays for whose job is not settled: a bill is of the site that ran the work, and cheap sites have the bills of others.
Recorded logs are laid side by side from their first day on; that they are of different years, and their hours local ones, is not corrected.
A published range is of other machines and real prices. Its base is another scheduler’s whole bill, which is not told apart into idle and busy.
Where the best case of a publication is the bound, the mean over parts is held against it.
""".strip().splitlines()
"""Limits of these figures."""


def page_of(study: Study) -> Page:
    """Returns the page; equal studies give equal documents."""
    every = list(statements(study))
    about = (
        "Three sites under EASY exchange jobs, or do not, and pay for electricity by the hour. Costs are those of all "
        "sites together, in percent of those without exchange on the same jobs and prices: negative is less. A site’s "
        "wait is the mean of its own users’ jobs, and the worst site is the one where that grows most. Means over "
        "seeds, of which each makes another site the cheap one; medians over parts, and the least and the greatest. "
        f"Mean prices differ by ±{100 * SPREAD:g} % between the sites, and an idle node draws {IDLE:g} of a busy one’s "
        "power, unless a figure says otherwise."
    )
    return Page(
        TITLE,
        "study electricity",
        [
            Section(
                "Statements",
                [_judged(study, every)],
                about=(
                    "The mean over the parts of a grid, with its interval, is held against the bound. Published: "
                    f"{SOURCE} (10 to 20 % with several sites, up to 18 % in time); {SOURCE_BOTH} (cost and "
                    "response times fall together, and no site’s users are worse off)."
                ),
            ),
            *(_grid(study, grid) for grid in grids(study)),
            Section("What this does not show", [Points(WEAK)]),
            _made(study),
        ],
        headline=counted([each.holds for each in every]),
        about=[about],
    )


def _judged(study: Study, every: Sequence[Statement]) -> Table:
    names = grids(study)
    found = {tuple(each.claim.split(": ", 1)): each for each in every}
    claims = [claim for grid, claim in found if grid == names[0]]
    rows: list[list[Words]] = [
        [
            claim[0].upper() + claim[1:],
            found[names[0], claim].rule,
            *(judgement(found[grid, claim]) for grid in names),
        ]
        for claim in claims
    ]
    columns = set(range(1, len(names) + 2))
    return Table(("statement", "what is held", *names), rows, name="Statements", words=columns)


def _number(value: float, digits: int = 1) -> str:
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def _spread(found: Sequence[float], digits: int = 1) -> Stacked:
    value = Spread.of(found)
    return Stacked(
        _number(value.median, digits),
        f"{_number(value.low, digits)} … {_number(value.high, digits)}",
    )


def _ends(found: Sequence[float]) -> tuple[float, float, float]:
    value = Spread.of(found)
    return value.median, value.low, value.high


def _grid(study: Study, grid: str) -> Section:
    sites = ", ".join(
        f"{place.name} ({place.processors:,} processors, {place.time_zone})"
        for place in GRIDS[grid]
    )
    parts = [
        _bars(study, grid),
        _savings(study, grid),
        _waits(study, grid),
        _by_spread(study, grid),
        _by_idle(study, grid),
        _bills(study, grid),
    ]
    return Section(grid.capitalize(), parts, about=f"{sites}.")


def _bars(study: Study, grid: str) -> Figure:
    groups = []
    for policy in POLICIES:
        if policy == ALONE:
            continue
        bars = [
            SpreadBar(
                color,
                Spread.of([-each / 100 for each in changes(study, grid, policy, figure)]),
                words,
            )
            for color, figure, words in (
                ("federated", cost_off, "idle nodes off"),
                ("alone", cost, "idle nodes on"),
            )
        ]
        groups.append((_short(policy), bars))
    drawing = improvement_chart(
        groups, key=f"saved-{grid}", heading=f"{grid}: saved electricity cost"
    )
    return Figure(drawing, label=f"{grid}: saved cost by policy")


def _short(policy: str) -> str:
    shorter = {
        "cheaper first, no balance": "no balance",
        "cheaper only, no balance": "only, no bal.",
        "cheaper only, deferred 12 h": "only, 12 h",
    }
    return shorter.get(policy, policy)


def _savings(study: Study, grid: str) -> Table:
    rows: list[list[Words]] = []
    for policy in POLICIES:
        figures = (cost, cost_off, carbon, carbon_off)
        cells = [_spread(changes(study, grid, policy, figure)) for figure in figures]
        moved = values(study, grid, policy, lambda found: 100 * found["moved"])
        rows.append([policy, *cells, _spread(moved)])
    return Table(
        ("policy", "nodes on", "nodes off", "nodes on", "nodes off", "work moved, %"),
        rows,
        "Change of cost and carbon dioxide of all sites against alone, percent, idle nodes being on or off",
        name=f"{grid}: what each policy saves",
        groups=[("cost", 2), ("carbon dioxide", 2), ("", 1)],
    )


def _waits(study: Study, grid: str) -> Table:
    rows: list[list[Words]] = []
    for policy in POLICIES:
        waits = [
            _spread(
                [one / 3600 for one in values(study, grid, policy, _of_site("wait", number))], 2
            )
            for number in range(len(GRIDS[grid]))
        ]
        rows.append([policy, *waits, _spread(values(study, grid, policy, worst_delay), 2)])
    return Table(
        ("policy", *(place.name for place in GRIDS[grid]), "worst site, longer"),
        rows,
        "Mean waits of each site’s own jobs, hours; and by how much the wait of the worst site is longer than alone",
        name=f"{grid}: who waits for it",
    )


def _of_site(figure: str, number: int) -> Any:
    return lambda found: float(found[figure][number])


def _by_spread(study: Study, grid: str) -> Figure:
    lines = [
        Line(
            policy,
            color,
            [
                (place, *_ends(changes(study, grid, policy, cost_off, spread=spread)))
                for place, spread in enumerate(SPREADS)
            ],
        )
        for color, policy in enumerate(BY_SPREAD)
        if policy != ALONE
    ]
    drawing = line_chart(
        lines,
        [f"±{100 * spread:g} %" for spread in SPREADS],
        key=f"spread-{grid}",
        title=f"{grid}: change of the cost, idle nodes off",
        below="mean prices of the cheap and the dear site, against the middle one",
        scale=(None, None),
        unit=" %",
    )
    return Figure(drawing, label=f"{grid}: cost by differences of mean prices")


def _by_idle(study: Study, grid: str) -> Figure:
    policies = [policy for policy in BY_SPREAD if policy != ALONE]
    lines = [
        Line(
            policy,
            color + 1,
            [
                (place, *_ends(changes(study, grid, policy, at_idle_share(place))))
                for place in range(len(IDLE_SHARES))
            ],
        )
        for color, policy in enumerate(policies)
    ]
    drawing = line_chart(
        lines,
        [f"{100 * share:g} %" for share in IDLE_SHARES],
        key=f"idle-{grid}",
        title=f"{grid}: change of the cost, idle nodes on",
        below="idle power, of busy power; at 0 % the same as idle nodes off",
        scale=(None, None),
        unit=" %",
    )
    return Figure(drawing, label=f"{grid}: cost by idle power")


def _bills(study: Study, grid: str) -> Table:
    """Returns what becomes of the bill of the cheap, the middle and the dear site."""
    count = len(GRIDS[grid])
    rows: list[list[Words]] = []
    for policy in POLICIES:
        cells: list[Words] = [policy]
        for place in range(count):
            found = []
            pairs = zip(
                having(study.runs, grid=grid, policy=policy, spread=SPREAD),
                having(study.runs, grid=grid, policy=ALONE, spread=SPREAD),
                strict=True,
            )
            for (case, values_found), (_, alone) in pairs:
                # As `grids.supplies` says which site is how dear.
                number = (place - case.seed) % count
                found.append(100 * (values_found["bills"][number] / alone["bills"][number] - 1))
            cells.append(_spread(found))
        rows.append(cells)
    heads = ("policy", "cheap site", "middle", "dear site")
    return Table(
        heads,
        rows,
        "Change of the bill of each site against alone, percent, idle nodes being on; over parts and seeds",
        name=f"{grid}: who pays",
    )


def _made(study: Study) -> Section:
    seeds = ", ".join(str(seed) for seed in study.options["seeds"])
    words = "mean {mean:g}, day ±{swing:g} of it, weekends {weekend:g} of it lower, noise {noise:g} of it with {memory:g} left after an hour"
    models = [
        words.format(
            **{
                name: getattr(model, name)
                for name in ("mean", "swing", "weekend", "noise", "memory")
            }
        )
        for model in (PRICE, CARBON)
    ]
    rows = [
        ("Replays", f"{len(study.runs):,}"),
        ("Parts", f"{study.options['parts']} of {study.options['days']} days, of each log; as many draws of Lublin’s models at load {LOAD:g}"),
        ("Seeds", f"{seeds}: they draw prices and carbon intensities, and say which site is cheap and which is clean"),
        ("Prices, per MWh", models[0]),
        ("Carbon, g/kWh", models[1]),
        ("Power", f"{IDLE * BUSY_WATTS:g} W idle and {BUSY_WATTS:g} W busy for each processor; off 0 W"),
        ("Time that is paid", "from the first moment of a part to the day after its last job ends without exchange, or to its last end where that is later"),
        ("What saving counts", f"{100 * SAVING:g} % of what the first {LOOK_AHEAD_S / 3600:g} h of the request cost at once at home"),
        *((policy, about.words) for policy, about in POLICIES.items()),
    ]  # fmt: skip
    return made(rows, study.version)
