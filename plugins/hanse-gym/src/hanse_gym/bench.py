"""What anything learned has to beat: the house's own disciplines on the same sequences, with intervals.

`python -m hanse_gym.bench LOG` replays each discipline on fixed sequences of one part of each log.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, Final, Literal, get_args

import click
import numpy as np
import numpy.typing as npt
from rich.console import Console

from hanse_gym.agents import objectives
from hanse_gym.options import PickOptions
from hanse_gym.sequences import SPLITS, Sequences, Split
from hanse_gym.workloads import SUITE, workload
from lrms_sim.analysis.metrics import (
    BOUNDED_SLOWDOWN_THRESHOLD_S,
    awrt,
    mean_bounded_slowdown,
    mean_wait_time,
)
from lrms_sim.cli.log_options import preparation_options, user_errors
from lrms_sim.machine.machine import simulate
from lrms_sim.machine.picks import FEATURES, OBJECTIVES, Objective
from lrms_sim.report.parts import Table
from lrms_sim.report.terminal import print_table
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.util.option_fields import FloatRange
from lrms_sim.workload.preparation_report import PreparationOptions
from lrms_sim.workload.schedule import Schedule

CONSTANTS: Final = (
    "fcfs", "sjf", "saf", "wfp3", "f1", "f2", "f3", "f4",
    "easy", "easy-sjbf", "easy-saf", "easy-plus-plus", "conservative",
    "clairvoyant-saf", "clairvoyant-easy", "clairvoyant-easy-sjbf",
)  # fmt: skip
"""Disciplines that are replayed unless others are named."""

CLAIRVOYANT: Final = "clairvoyant-"
"""Before a discipline's name: it is given the run time of every job in place of its requested time."""

AgentKind = Literal["linear", "ppo"]
"""The modules that have an example of an agent that learns."""

AGENTS: Final[tuple[AgentKind, ...]] = get_args(AgentKind)

RESAMPLES: Final = 10_000
"""Bootstrap samples of an interval."""

_METRICS: Final[Mapping[Objective, Callable[[Schedule], float]]] = {
    "bounded-slowdown": mean_bounded_slowdown,
    "wait": mean_wait_time,
    "awrt": awrt,
}

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Result:
    """What one discipline or agent reaches on the sequences.

    Attributes:
        name: the discipline.
        mean: of the objective over the sequences; less is better.
        low: lower end of the 95 % interval of the mean.
        high: its upper end.
        median: of the objective over the sequences.
        values: of each sequence.
    """

    name: str
    mean: float
    low: float
    high: float
    median: float
    values: list[float]


def bootstrap(values: Values, seed: int = 0, level: float = 0.95) -> tuple[float, float]:
    """Returns the percentile interval of the mean, from `RESAMPLES` samples with replacement (Efron 1979).

    Raises:
        ValueError: there is no value.
    """
    if len(values) == 0:
        raise ValueError("no values; at least one is needed for a mean")
    random = np.random.default_rng(seed)
    means = [values[random.integers(0, len(values), len(values))].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def result(name: str, values: Iterable[float], seed: int = 0) -> Result:
    """Returns the result of values by sequence."""
    given = np.array(list(values), np.float64)
    low, high = bootstrap(given, seed)
    return Result(name, float(given.mean()), low, high, float(np.median(given)), given.tolist())


def constants(
    sequences: Sequences,
    firsts: Iterable[int],
    names: Sequence[str] = CONSTANTS,
    objective: Objective = OBJECTIVES[0],
    tau: float = BOUNDED_SLOWDOWN_THRESHOLD_S,
) -> list[Result]:
    """Replays disciplines on the sequences that begin in the rows `firsts`; one result each, in their order.

    In bounded slowdowns shorter run times count as `tau`, seconds.

    Raises:
        ValueError: an unknown discipline or objective, or `tau` is not more than 0.
    """
    if objective not in _METRICS:
        raise ValueError(f"objective is {objective!r}; it must be one of {', '.join(_METRICS)}")
    metric = _METRICS[objective]
    if objective == "bounded-slowdown":
        metric = partial(mean_bounded_slowdown, threshold=tau)
    given = [sequences.table(int(first)) for first in firsts]
    exact = [replace(jobs, requested_time=jobs.run_time) for jobs in given]
    return [
        result(
            name,
            (
                metric(
                    simulate(
                        jobs,
                        sequences.processors,
                        discipline_by_name(name.removeprefix(CLAIRVOYANT)),
                    )
                )
                for jobs in (exact if name.startswith(CLAIRVOYANT) else given)
            ),
        )
        for name in names
    ]


def judged(
    name: str,
    agent: Callable[[npt.NDArray[np.float32]], int],
    sequences: Sequences,
    firsts: Iterable[int],
    options: PickOptions | None = None,
) -> Result:
    """Lets an agent pick on the same sequences; it is given what the environment shows, and returns a place."""
    rules = options or PickOptions()
    machine = rules.machine(sequences)
    seen = np.empty((rules.window, FEATURES), np.float32)
    values = []
    for first in firsts:
        machine.reset(int(first), sequences.length)
        total, ended = 0.0, False
        while not ended:
            machine.observe(seen)
            reward, ended = machine.step(agent(seen))
            total -= reward
        values.append(total)
    return result(name, values)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A learned agent against the constant with the best mean, sequence by sequence.

    Attributes:
        name: the agent.
        constant: what it is compared with.
        difference: mean of agent minus constant; less than 0 is better.
        low: lower end of the 95 % interval of that mean.
        high: its upper end.
    """

    name: str
    constant: str
    difference: float
    low: float
    high: float

    @property
    def sentence(self) -> str:
        """Whether the agent beats the constant: only if the whole interval says so."""
        verdict = "beats" if self.high < 0 else "does not beat"
        exact = " that knows run times" if self.constant.startswith(CLAIRVOYANT) else ""
        return (
            f"{self.name} {verdict} {self.constant}, the best constant{exact}: "
            f"{self.difference:+,.2f} ({self.low:+,.2f} to {self.high:+,.2f})"
        )


def compared(agent: Result, constant_results: Sequence[Result]) -> Comparison:
    """Returns an agent's paired difference to the best of constants on the same sequences."""
    best = min(constant_results, key=lambda one: one.mean)
    differences = np.array(agent.values) - np.array(best.values)
    low, high = bootstrap(differences)
    return Comparison(agent.name, best.name, float(differences.mean()), low, high)


def comparisons(agents: Iterable[Result], constant_results: Sequence[Result]) -> list[Comparison]:
    """Compares agents with the best constant that knows requests alone, and the best that knows run times."""
    kinds = [
        [one for one in constant_results if one.name.startswith(CLAIRVOYANT) == exact]
        for exact in (False, True)
    ]
    return [compared(agent, kind) for agent in agents for kind in kinds if kind]


def _table(results: Sequence[Result], title: str) -> Table:
    rows = [
        (
            one.name,
            f"{one.mean:,.2f}",
            f"{one.low:,.2f} to {one.high:,.2f}",
            f"{one.median:,.2f}",
        )
        for one in results
    ]
    return Table(("discipline", "mean", "95 % interval", "median"), rows, title=title)


def _learned(
    kind: AgentKind,
    sequences: Sequences,
    firsts: npt.NDArray[np.int64],
    options: PickOptions,
    seeds: Iterable[int],
) -> list[Result]:
    try:
        train = import_module(f"hanse_gym.{kind}").train
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is missing: pip install 'hanse-gym[learn]'"
        ) from error
    part = replace(sequences, split="train")
    held = replace(sequences, split="validation")
    return [
        result(
            f"{kind}-{seed}",
            objectives(
                train(part, held, seed=seed, options=options), sequences, firsts, options
            ).tolist(),
        )
        for seed in seeds
    ]


@click.command()
@click.argument("logs", metavar="[LOG]...", nargs=-1)
@click.option("--suite", is_flag=True, help=f"Take these: {', '.join(SUITE)}.")
@click.option(
    "--processors", type=click.IntRange(1), help="Size of the machine; default the log's."
)
@click.option("--disciplines", default=",".join(CONSTANTS), show_default=True)
@click.option(
    "--objective", type=click.Choice(OBJECTIVES), default=OBJECTIVES[0], show_default=True
)
@click.option(
    "--tau",
    type=FloatRange(0, 1e9, min_open=True),
    default=BOUNDED_SLOWDOWN_THRESHOLD_S,
    show_default=True,
    metavar="S",
    help="Shorter run times count as this in bounded slowdowns, seconds.",
)
@click.option(
    "--length", type=click.IntRange(1), default=256, show_default=True, help="Jobs of a sequence."
)
@click.option("--sequences", "count", type=click.IntRange(1), default=100, show_default=True)
@click.option("--split", type=click.Choice(SPLITS), default="test", show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--learn",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Train so many agents, each with its own seed, and judge them too.",
)
@click.option(
    "--agent",
    type=click.Choice(AGENTS),
    default=AGENTS[0],
    show_default=True,
    help="What learns: a weighted sum by CMA-ES, which needs hanse-gym[learn], or a small network by PPO.",
)
@click.option("--backfill", is_flag=True, help="Learned agents pick with backfilling.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, with the value of each sequence."
)
@preparation_options
def main(
    logs: tuple[str, ...],
    *,
    suite: bool,
    processors: int | None,
    disciplines: str,
    objective: Objective,
    tau: float,
    length: int,
    count: int,
    split: Split,
    seed: int,
    learn: int,
    agent: AgentKind,
    backfill: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Replay disciplines on fixed sequences of logs: what anything learned has to beat.

    LOG is a file in the Standard Workload Format, the key of a known log, or lublin-N, a model of a machine of N
    processors.
    """
    names = (*logs, *(SUITE if suite else ()))
    if not names:
        raise click.UsageError("no log; name at least one, or give --suite")
    options = PickOptions(backfill=backfill, objective=objective, tau=tau)
    documents = []
    for name in names:
        with user_errors():
            try:
                found = workload(name, processors, PreparationOptions(**given))
            except FileNotFoundError as error:
                raise click.ClickException(str(error)) from error
            sequences = Sequences(found.jobs, found.processors, length, split)
            firsts = sequences.fixed(count, seed)
            results = constants(sequences, firsts, disciplines.split(","), objective, tau)
            learned = (
                _learned(agent, sequences, firsts, options, range(seed, seed + learn))
                if learn
                else []
            )
        verdicts = comparisons(learned, results)
        documents.append(
            {
                "log": found.name,
                "processors": found.processors,
                "objective": objective,
                "tau": tau,
                "length": length,
                "split": split,
                "seed": seed,
                "first_rows": firsts.tolist(),
                "results": [asdict(one) for one in (*results, *learned)],
                "comparisons": [asdict(one) for one in verdicts],
            }
        )
        if as_json:
            continue
        title = f"{found.name}, {split}: {objective} of {count} sequences of {length} jobs (less is better)"
        print_table(Console(), _table((*results, *learned), title))
        for one in verdicts:
            click.echo(one.sentence)
    if as_json:
        click.echo(json.dumps(documents, indent=2))


if __name__ == "__main__":
    main()
