"""What came of a run through daemons that nobody conducted: its figures, beside the replay's."""

import math
from dataclasses import astuple
from typing import Final

from lrms_sim.workload.schedule import Schedule
from scenarios.live.folder import RUN
from scenarios.live.live import LiveResult
from scenarios.report.output import save_run
from scenarios.run.replay import Run
from scenarios.run.results import ScenarioResult, evaluate

FAILURES_SHOWN: Final = 3
"""Most incomplete jobs that are named."""


def scaled_outcome(replayed: Run, live: LiveResult, *, html: bool) -> tuple[str, str]:
    """Saves a run on a scaled clock, and compares it with the replay in one process.

    Returns messages and errors; a run with incomplete jobs has no figures and is not saved. `html`
    also writes the HTML page.

    Raises:
        OutputError: it cannot be saved.
    """
    if live.failures:
        shown = "; ".join(live.failures[:FAILURES_SHOWN])
        count = f"{len(live.failures):,} of {len(live.schedule):,} jobs were not completed"
        return "", f"{count}, such as {shown}; see the logs in {live.folder}"
    result = _evaluated(replayed, live.schedule, live.elapsed_s)
    folder = live.folder / RUN
    save_run(folder, replayed.spec, result, html=html)
    lines = ["All jobs were completed; on the scaled clock, and in the replay in one process:"]
    for now, then in zip(result.sites, replayed.result.sites, strict=True):
        lines.append(
            f"  {now.name}: AWRT {_seconds(now.awrt)} and {_seconds(then.awrt)}, "
            f"{now.jobs_given:,} and {then.jobs_given:,} jobs given away"
        )
    lines.append(f"All figures: scenario report {folder}")
    return "\n".join(lines), ""


def _seconds(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:,.1f} s"


def _evaluated(replayed: Run, schedule: Schedule, elapsed_s: float) -> ScenarioResult:
    known = replayed.result
    return evaluate(
        name=known.name,
        title=f"{known.title or known.name}, through daemons on a scaled clock",
        description=known.description,
        seed=known.seed,
        disciplines=[site.discipline for site in known.sites],
        schedule=schedule,
        schedule_alone=known.schedule_alone,
        workload_notes=[[astuple(note) for note in notes] for notes in known.workload_notes],
        elapsed_s=elapsed_s,
        acknowledgements=known.acknowledgements,
    )
