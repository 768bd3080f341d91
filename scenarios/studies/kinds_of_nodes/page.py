"""The study as one HTML page: statements, gains of sites, waits by class, and what it does not show."""

from lrms_sim.report.parts import Page, Points, Section, Stacked, Table, Words, made
from scenarios.studies.common.page_parts import judgement
from scenarios.studies.common.samples import Spread
from scenarios.studies.common.verdicts import counted
from scenarios.studies.kinds_of_nodes.sites import (
    DAYS,
    GPU_SHARE,
    LARGE_SHARE,
    LOGS_DRAWN,
    MUCH_MEMORY,
    POD_HASTE,
    POD_KINDS,
    SHARES,
    SILENT,
    SOME_MEMORY,
)
from scenarios.studies.kinds_of_nodes.statements import (
    WORDS,
    mean_gain,
    statements,
    values,
    wait_saved,
    workloads,
)
from scenarios.studies.kinds_of_nodes.study import (
    CLASSES,
    DISCIPLINES,
    POLICIES,
    REQUESTS,
    TOLD,
    Study,
)

TITLE = "What exchange brings where sites differ in their nodes"
WEAK = """\
The logs do not record memory and GPUs: what their jobs ask for is drawn by a model, whose numbers stand below.
The sites are made for the study, as are their nodes. Other shares of kinds give other gains.
Requests are told truthfully, and a job uses all that it asks for.
With FCFS sites of several kinds of nodes are overloaded alone: one job that waits for a GPU blocks everybody behind it. What exchange changes there is large and varies with the draw.
Pods that ran for more than a day, or to the end of the table, are services and are left out.
""".strip().splitlines()
"""Limits of these figures."""

TOLD_WORDS = {"requests": "whole request", "processors": "processors alone"}
_GAIN = ("queue", "policy", "told")


def page_of(study: Study) -> Page:
    """Returns the page; equal studies give equal documents."""
    every = list(statements(study))
    about = (
        "A throughput site, a site with much memory and a GPU site exchange jobs. Every site has nodes of all three kinds, "
        "in different numbers, and users who ask for all of them. Gains are changes of a site’s response times against the "
        "site alone, weighted by run time and dominant share (the largest of a job’s shares of processors, memory and GPUs), "
        "in percent: positive is better. Medians over draws, and the least and the greatest."
    )
    return Page(
        TITLE,
        "study kinds-of-nodes",
        [
            Section(
                "Statements",
                [
                    Table(
                        ("statement", "here"),
                        [(each.claim, judgement(each)) for each in every],
                        "Statements",
                        words={1},
                    )
                ],
                about="The mean over draws, with its interval, is held against the bound.",
            ),
            *(_workload(study, workload) for workload in workloads(study)),
            Section("What this does not show", [Points(WEAK)]),
            _made(study),
        ],
        headline=counted([each.holds for each in every]),
        about=[about],
    )


def _number(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}".replace("-", "−")


def _spread(found: list[float]) -> Stacked:
    value = Spread.of(found)
    return Stacked(_number(value.median), f"{_number(value.low)} … {_number(value.high)}")


def _workload(study: Study, workload: str) -> Section:
    sites = list(SHARES if workload == LOGS_DRAWN else POD_KINDS)
    gains: list[list[Words]] = []
    waits: list[list[Words]] = []
    for discipline in DISCIPLINES:
        for policy in POLICIES:
            for told in TOLD:
                same = {
                    "workload": workload, "discipline": discipline, "policy": policy, "told": told,
                }  # fmt: skip
                head: list[Words] = [WORDS[discipline], policy, TOLD_WORDS[told]]
                each = [
                    _spread(values(study, lambda found, n=n: found["gain_by_share"][n], **same))  # type: ignore[misc]  # mypy does not see the default
                    for n in range(len(sites))
                ]
                gains.append([*head, *each, _spread(values(study, mean_gain, **same))])
                saved = [
                    _spread(values(study, wait_saved(number), **same))
                    for number in range(len(CLASSES))
                ]
                waits.append([*head, *saved, _spread(values(study, _moved, **same))])
    words = "Recorded logs, requests drawn" if workload == LOGS_DRAWN else "Pods"
    return Section(
        words,
        [
            Table((*_GAIN, *sites, "mean"), gains, "Gain of each site, percent", name=f"{words}: gains", words={0, 1, 2}),
            Table(
                (*_GAIN, *CLASSES, "ran elsewhere, %"),
                waits,
                "Mean wait saved, by what jobs ask for, percent of alone",
                name=f"{words}: waits",
                words={0, 1, 2},
            ),
        ],
    )  # fmt: skip


def _moved(found: dict[str, list[dict[str, float]]]) -> float:
    classes = found["classes"]
    return 100.0 * sum(one["moved"] for one in classes) / sum(one["jobs"] for one in classes)


def _made(study: Study) -> Section:
    nodes = "; ".join(
        f"{name}: log {log}, {shares[0]:.0%} thin, {shares[1]:.0%} with much memory, {shares[2]:.0%} with GPUs"
        for name, (log, shares) in SHARES.items()
    )
    asked = (
        f"{SILENT:.0%} say nothing but processors; {GPU_SHARE:.0%} ask for a GPU for each four cores and 8 GiB for each "
        f"GPU; {LARGE_SHARE:.0%} for much memory, lognormal for each core with a median of {MUCH_MEMORY[0] / 1024:g} GiB "
        f"and σ {MUCH_MEMORY[1]:g}; the rest for some, {SOME_MEMORY[0] / 1024:g} GiB and σ {SOME_MEMORY[1]:g}. What the "
        "job’s home could never hold becomes processors alone"
    )
    rows = (
        ("Replays", f"{len(study.runs):,}, and each site alone"),
        ("Draws", str(study.options["draws"])),
        ("Logs", f"the first {DAYS} days of each"),
        ("Nodes", f"16 cores; thin 64 GiB, much memory 512 GiB, GPUs 128 GiB and 4 GPUs. {nodes}"),
        ("Requests", asked),
        ("Pods", f"dealt to the sites at random; times between submissions divided by {POD_HASTE:g}"),
        ("Told", f"{TOLD_WORDS[REQUESTS]}, or processors alone: then jobs that ask for more stay at home"),
    )  # fmt: skip
    return made(rows, study.version)
