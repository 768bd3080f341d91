"""The page on a comparison of disciplines, which the terminal prints without its pictures."""

from collections import Counter
from collections.abc import Sequence

from lrms_sim.analysis.comparison import VERDICTS, Comparison, Difference, metric_named
from lrms_sim.analysis.metrics import BOUNDED_SLOWDOWN_THRESHOLD_S
from lrms_sim.report.comparison_figure import figure_of_page
from lrms_sim.report.comparison_tables import HEADS, caption, cells, grouped, plain
from lrms_sim.report.parts import Figure, Page, Section, Strong, Table, Words, made
from lrms_sim.util import messages
from lrms_sim.util.version import __version__

ABOUT = (
    "Each log is replayed again and again with its arrivals shifted at random, as one replay alone "
    "says little of a difference (Tsafrir, Feitelson 2006; Tsafrir, Ouaknine, Feitelson 2007). With "
    "one shift all disciplines have the same jobs, so they are compared shift by shift, and the mean "
    "of the differences has a 95 % interval after Student. Each interval stands by itself: of twenty "
    "without a difference one is expected to exclude 0. They say how sure a difference is on this "
    "log, not what another log would show."
)

_TONES = {"better": "gain", "worse": "loss"}


def page_of(comparison: Comparison, *, pictures: bool = True) -> Page:
    """Returns the page of a comparison; equal comparisons give equal documents.

    Without `pictures` it is for the terminal, and matplotlib is not used.
    """
    tables: dict[str, list[Words]] = {}
    for (log, metric), differences in grouped(comparison).items():
        tables.setdefault(log, []).append(_table(log, metric, comparison, differences))
    drawn = [Figure(figure_of_page(comparison), caption(comparison))] if pictures else []
    name = "log" if len(comparison.sizes) == 1 else "logs"
    return Page(
        f"Queue disciplines against {comparison.baseline}",
        f"lrms-sim compare, {__version__}",
        [
            Section("Differences", drawn),
            *(Section(_title(log, comparison), parts) for log, parts in tables.items()),
            made(_facts(comparison), __version__),
        ],
        headline=headline(comparison),
        about=(ABOUT,),
        window=f"{comparison.baseline} and others on {len(comparison.sizes)} {name}",
    )


def headline(comparison: Comparison) -> str:
    """Returns the outcome by the first metric: of one log its changes, of several how many are better or worse."""
    metric, baseline = comparison.metrics[0], comparison.baseline
    found = []
    for name in comparison.disciplines:
        some = [
            each
            for each in comparison.differences
            if (each.discipline, each.metric) == (name, metric)
        ]
        if len(some) == 1:
            found.append(f"{name} {messages.change(some[0].change.mean)} ({some[0].verdict})")
        elif some:
            verdicts = Counter(each.verdict for each in some)
            said = [f"{word} on {verdicts[word]}" for word in VERDICTS if word in verdicts]
            found.append(f"{name} is {messages.listed(said)}")
    logs = len(comparison.sizes)
    where = "" if logs == 1 else f" on {logs} logs"
    words = metric_named(metric).words
    return f"{words[0].upper()}{words[1:]} against {baseline}{where}: {'; '.join(found)}."


def _title(log: str, comparison: Comparison) -> str:
    jobs, counted, processors = comparison.sizes[log]
    some = "" if counted == jobs else f", of which {counted:,} count"
    return f"{messages.printable(log)}: {jobs:,} jobs{some}, {processors:,} processors"


def _table(
    log: str, metric: str, comparison: Comparison, differences: Sequence[Difference]
) -> Table:
    shown = metric_named(metric)
    rows: list[tuple[Words, ...]] = []
    for each in differences:
        name, mean, difference, *others = cells(each)
        tone = _TONES.get(each.verdict, "")
        rows.append((name, mean, Strong(difference, tone) if tone else difference, *others))
    baseline = plain(differences[0].baseline, shown.digits)
    better = "more is better" if shown.greater_is_better else "less is better"
    title = (
        f"{messages.printable(log)}, {shown.label} ({better}); {comparison.baseline}: {baseline}"
    )
    return Table(HEADS, rows, title=title)


def _facts(comparison: Comparison) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = [
        ("Disciplines", ", ".join(comparison.disciplines)),
        (
            "Shifts",
            f"{comparison.shifts}, by up to {comparison.seconds:g} s, seed {comparison.seed}",
        ),
    ]
    if comparison.warm_up_days or comparison.cool_down_days:
        cut = f"{comparison.warm_up_days:g} and {comparison.cool_down_days:g} days"
        rows.append(("Warm-up and cool-down", f"{cut}, whose jobs run but do not count"))
    if comparison.tau != BOUNDED_SLOWDOWN_THRESHOLD_S:
        rows.append(("Bounded slowdown", f"run times below {comparison.tau:g} s count as this"))
    return rows
