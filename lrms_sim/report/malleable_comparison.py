"""Policies compared on one source, learned in one window and tested in another."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.malleable.machine import Learning, simulate
from lrms_sim.malleable.model import TEST_STEPS, TRAINING_STEPS
from lrms_sim.malleable.options import MachineOptions
from lrms_sim.malleable.policies import policy_by_name
from lrms_sim.malleable.source import TRAINING_SEED, Source
from lrms_sim.malleable.trainer import fingerprint
from lrms_sim.malleable.training import Training, learn, reordered, scales_for
from lrms_sim.malleable.value import ValueFunction
from lrms_sim.report.malleable_report import Figures, figures_of
from lrms_sim.util.files import write_text


@dataclass(frozen=True, slots=True)
class Plan:
    """A comparison.

    Attributes:
        learn: training window, in days.
        test: test window, in days.
        seeds: training runs of each policy that learns.
        seed: the first of them, and that of the model's test jobs.
    """

    names: tuple[str, ...]
    learn: tuple[float | None, float | None] = (None, None)
    test: tuple[float | None, float | None] = (None, None)
    seeds: int = 5
    seed: int = 0
    options: MachineOptions = field(default_factory=MachineOptions)

    def __post_init__(self) -> None:
        for name in self.names:
            policy_by_name(name)
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"{', '.join(self.names)}: a policy comes twice")

    @property
    def runs(self) -> list[tuple[str, int | None]]:
        """Policy and training seed of every run, in order."""
        found: list[tuple[str, int | None]] = []
        for name in self.names:
            learns = policy_by_name(name).by_value
            found += (
                [(name, self.seed + n) for n in range(self.seeds)] if learns else [(name, None)]
            )
        return found

    @property
    def total(self) -> int:
        """Number of runs."""
        return len(self.runs)


def compare_policies(
    source: Source,
    plan: Plan,
    results: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[list[Figures]]:
    """Runs every policy, learning ones once for each seed; returns the runs of each policy.

    `results` is a JSON file of finished runs, which are not repeated. `progress` is called with the
    number of runs done.

    Raises:
        ValueError: a window holds no job, or the file is of another comparison.
    """
    test = source.window(*plan.test)
    train = source.window(*plan.learn)
    key = {
        "test": fingerprint(test),
        "train": fingerprint(train),
        "processors": source.processors,
        "options": json.loads(json.dumps(asdict(plan.options))),
    }
    done = _done(results, key)
    groups: dict[str, list[Figures]] = {}
    for number, (name, seed) in enumerate(plan.runs, 1):
        place = f"{name} {seed}"
        if place not in done:
            value = None if seed is None else _learned(source, plan, train, name, seed)
            outcome = simulate(
                test,
                source.processors,
                policy_by_name(name),
                options=plan.options,
                value=value,
                origin=(plan.test[0] or 0.0) * source.unit,
                horizon=source.end(TEST_STEPS),
            )
            done[place] = figures_of(name, outcome, seed)
            _keep(results, key, done)
        groups.setdefault(name, []).append(done[place])
        if progress is not None:
            progress(number)
    return list(groups.values())


def _learned(source: Source, plan: Plan, train: UtilityJobs, name: str, seed: int) -> ValueFunction:
    if source.seconds:
        workload = reordered(train, seed - plan.seed)
    else:
        # Jobs of the model are drawn anew for learning, never those of the test.
        workload = source.drawn(TRAINING_STEPS, TRAINING_SEED + seed)
    scales = scales_for(workload, source.processors, source.time_scale)
    start = Training(ValueFunction(scales=scales), Learning())
    policy, horizon = policy_by_name(name), source.end(TRAINING_STEPS)
    return learn(start, workload, source.processors, policy, plan.options, horizon=horizon).value


def _done(path: Path | None, key: dict[str, Any]) -> dict[str, Figures]:
    if path is None or not path.exists():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["of"] != key:
            raise ValueError(f"{path}: holds another comparison; name another file")
        return {place: _figures(run) for place, run in document["runs"].items()}
    except (OSError, KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: holds no comparison: {error}") from error


def _figures(run: dict[str, Any]) -> Figures:
    # What JSON cannot say was written as nothing; a seed may really be none.
    said: dict[str, Any] = {
        name: float("nan") if value is None and name != "seed" else value
        for name, value in run.items()
    }
    return Figures(**said)


def _keep(path: Path | None, key: dict[str, Any], done: dict[str, Figures]) -> None:
    if path is not None:
        runs = {place: figures.document() for place, figures in done.items()}
        write_text(path, json.dumps({"of": key, "runs": runs}, indent=1))


def draw_bars(groups: Sequence[Sequence[Figures]], title: str) -> str:
    """Draws medians and ranges of the shares of the possible utility, and suspensions, as SVG."""
    row, left, wide = 22, 130, 380
    height = 50 + row * len(groups)
    most = max((median(e.suspensions for e in g) for g in groups), default=0) or 1
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {height}" role="img">',
        (
            "<style>svg{background:var(--paper);font:12px system-ui,sans-serif;--paper:#fff;"
            "--ink:#1d2733}@media(prefers-color-scheme:dark){svg{--paper:#14191f;--ink:#dfe5ea}}"
            "text{fill:var(--ink)}.w{stroke:var(--ink)}</style>"
        ),
        f'<text x="8" y="18" font-weight="600">{escape(title)}</text>',
        f'<text x="{left}" y="38">share of the possible utility</text>',
        '<text x="590" y="38">suspensions</text>',
    ]
    for place, group in enumerate(groups):
        y = 48 + row * place
        shares = [each.share for each in group]
        share, stops = median(shares), median(each.suspensions for each in group)
        parts += [
            f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{escape(group[0].policy)}</text>',
            f'<rect x="{left}" y="{y}" width="{wide * share:.1f}" height="15" fill="#3e7cb1"/>',
            (
                f'<path class="w" d="M{left + wide * min(shares):.1f} {y + 7}H'
                f'{left + wide * max(shares):.1f}"/>'
            ),
            f'<text x="{left + wide * share + 5:.1f}" y="{y + 12}">{100 * share:.1f} %</text>',
            f'<rect x="590" y="{y}" width="{230 * stops / most:.1f}" height="15" fill="#c97b3d"/>',
            f'<text x="{595 + 230 * stops / most:.1f}" y="{y + 12}">{stops:,.0f}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
