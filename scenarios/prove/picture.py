"""What became of jobs, over time: each command's jobs as rows, beside those of the other."""

from collections.abc import Sequence
from typing import Any, Final

from lrms_sim.report.parts import HALF
from lrms_sim.report.templates import alone, filled
from lrms_sim.report.time_axis import Axis
from scenarios.prove.plan import SITES
from scenarios.prove.result import COMMANDS, FaultSpan, JobLine, Proof
from scenarios.prove.users import CLIENTS

LEFT: Final = 34.0
RIGHT: Final = 44.0
TOP: Final = 28.0
GAP: Final = 20.0
CLASSES: Final = {
    "hang": "hang",
    "kill": "kill",
    "state loss": "loss",
    "site kill": "daemon",
}
"""The class of a band; all others are the link's."""


def pair(proof: Proof, span: FaultSpan | None) -> str:
    """Returns two drawings beside each other, of all jobs, or of those that were submitted during a fault."""
    return "".join(_chart(proof, client, span) for client in CLIENTS)


def picture(proof: Proof, span: FaultSpan | None) -> str:
    """Returns both as one picture that stands alone."""
    charts = [_values(proof, client, span) for client in CLIENTS]
    height = max(float(chart["height"]) for chart in charts)
    inner = "".join(
        filled("scenarios.prove", "timeline.html", it=chart | {"x": number * (HALF + GAP)})
        for number, chart in enumerate(charts)
    )
    return alone(
        f'<svg class="chart" viewBox="-8 -4 {2 * HALF + GAP + 16:g} {height + 8:g}">{inner}</svg>'
    )


def _chart(proof: Proof, client: str, span: FaultSpan | None) -> str:
    return filled("scenarios.prove", "timeline.html", it=_values(proof, client, span))


def _values(proof: Proof, client: str, span: FaultSpan | None) -> dict[str, Any]:
    jobs = proof.during(client, span)
    step, half = (26.0, 6.0) if span is not None else (11.0, 3.0)
    axis = _axis(proof, span)
    rows: list[dict[str, Any]] = []
    heads: list[tuple[float, str]] = []
    bands: list[tuple[object, ...]] = []
    top = TOP
    for site in SITES:
        own = sorted((job for job in jobs if job.site == site), key=lambda job: job.tries)
        if not own:
            continue
        if span is None:
            heads.append((top + 8, site))
            top += 12
        bottom = top + step * len(own)
        bands += _bands(proof, axis, site, top, bottom)
        rows += [
            _row(axis, job, top + step * (number + 0.5), half, bool(span))
            for number, job in enumerate(own)
        ]
        top = bottom + 6
    kinds = [job.kind for job in jobs]
    starts = sum(len(job.runs) for job in jobs)
    return {
        "width": HALF,
        "height": round(top + 16, 1),
        "x": None,
        "key": f"{client}-{'worst' if span else 'all'}",
        "title": f"{len(jobs)} jobs by {COMMANDS[client]} ran {starts} times",
        "heading": COMMANDS[client],
        "note": f"{len(jobs)} jobs, {starts} runs, {kinds.count('lost')} lost",
        "ticks": [(axis.at(moment), label) for moment, label in axis.ticks(5)],
        "bands": bands,
        "heads": heads,
        "rows": rows,
    }


def _axis(proof: Proof, span: FaultSpan | None) -> Axis:
    right = HALF - RIGHT
    if span is None:
        return Axis(0.0, max(proof.seconds, 1.0), LEFT, right, 0.0)
    jobs = [job for client in CLIENTS for job in proof.during(client, span)]
    last = [moment for job in jobs for run in job.runs for moment in run if moment is not None]
    begin = max(0.0, span.begin - 1.0)
    return Axis(begin, max([span.end, *last]) + 1.0, LEFT, right, span.begin)


def _bands(
    proof: Proof, axis: Axis, site: str, top: float, bottom: float
) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for span in proof.faults:
        inside = span.end > axis.begin and span.begin < axis.end
        if not inside or span.place not in {site, ""}:
            continue
        left, right = axis.at(span.begin), axis.at(span.end)
        words = (
            f"{span.kind}{f' at {span.place}' if span.place else ''}, {span.end - span.begin:.1f} s"
        )
        # What is between the sites, and their daemons, is a strip below the rows.
        kind = CLASSES.get(span.kind, "link")
        strip = {"link": bottom + 1, "daemon": bottom + 3}.get(kind)
        y, height = (top, bottom - top) if strip is None else (strip, 2.0)
        found.append((kind, left, y, max(right - left, 1.0), height, words))
    return found


def _row(
    axis: Axis, job: JobLine, y: float, half: float, large: bool
) -> dict[str, Any]:  # of a drawing
    def at(moments: Sequence[float]) -> list[float]:
        return [axis.at(moment) for moment in moments if axis.begin <= moment <= axis.end]

    runs = []
    lanes = _lanes(job)
    height = 2 * half / (max(lanes, default=0) + 1)
    for number, (lane, (begin, end)) in enumerate(zip(lanes, job.runs, strict=True)):
        width = 3.0 if end is None else max(axis.at(end) - axis.at(begin), 1.5)
        kind = "cut" if end is None else "again" if number else "run"
        runs.append((axis.at(begin), y - half + lane * height, width, height, kind))
    figure = {"lost": "lost", "pending": "pending", "false": "false"}.get(
        job.kind, f"{len(job.runs)}×"
    )
    return {
        "y": y,
        "half": half,
        "dot": 3.2 if large else 2.0,
        "name": job.word if large else "",
        "words": f"{job.client}-{job.word} at {job.site}: {job.why or 'ran once'}",
        "runs": runs,
        "tries": at(job.tries),
        "answers": at(job.answers),
        "figure": "failed" if job.kind == "failed" else figure,
        "bad": job.kind in {"lost", "twice", "pending", "false"},
    }


def _lanes(job: JobLine) -> list[int]:
    """Returns which lane of its row each run has, so that runs at one time stand above each other."""
    busy: list[float] = []
    found = []
    for begin, end in job.runs:
        lane = next((lane for lane, until in enumerate(busy) if until <= begin), len(busy))
        busy[lane : lane + 1] = [begin if end is None else end]
        found.append(lane)
    return found
