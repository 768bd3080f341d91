"""The study: which experiments are run, what is kept of them, and all of it together."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.console import Console

from lrms_sim.util.version import __version__
from scenarios.studies.common.frame import (
    Evaluate,
    as_json,
    having,
    plain_options,
    run_cases,
    threads,
)
from scenarios.studies.utility_scheduling.experiments import Case, Run, run_case
from scenarios.studies.utility_scheduling.federations import (
    FederationCase,
    federation_cases,
    run_federation,
)
from scenarios.studies.utility_scheduling.options import StudyOptions
from scenarios.studies.utility_scheduling.recorded import LogCase, Logs, log_cases, run_log_case
from scenarios.studies.utility_scheduling.reference import (
    BEST_FIT,
    HIGHEST,
    RATE,
    RATES,
    REACHABLE,
    REACHABLE_RATES,
    READINGS,
    SEVEN,
    SHAPE_RATES,
    SHAPES,
)

AnyCase = Case | LogCase | FederationCase
BOTH: Final = "both-value"
OVER: Final = "over-aggressive"


@dataclass(frozen=True)
class Study:
    """What was measured.

    Attributes:
        options: that it was measured with, as plain values.
        runs: experiments with what each policy came to, in order.
        logs: policies on logs with the figures of each training run, in order.
        federations: exchanges of jobs of logs with what each site got, in order.
    """

    options: dict[str, Any]
    runs: tuple[tuple[Case, dict[str, Run]], ...]
    logs: tuple[tuple[LogCase, list[dict[str, Any]]], ...] = ()
    federations: tuple[tuple[FederationCase, dict[str, Any]], ...] = ()
    version: str = __version__

    def of(
        self, part: str, reading: str, rate: float = RATE, shape: str = "linear"
    ) -> list[dict[str, Run]]:
        """Returns the experiments of a part, by number."""
        chosen = having(self.runs, part=part, reading=reading, rate=rate, shape=shape)
        return [found for _, found in chosen]

    def of_log(self, log: str, rules: str, policy: str) -> list[dict[str, Any]]:
        """Returns the figures of a policy on a log; none if it was not run."""
        chosen = having(self.logs, log=log, rules=rules, policy=policy)
        return chosen[0][1] if chosen else []

    def of_federation(
        self, grid: tuple[str, ...], rules: str, policy: str, transfer: str
    ) -> dict[str, Any] | None:
        """Returns what came of an exchange; `None` if it was not run."""
        wanted = {"grid": grid, "rules": rules, "policy": policy, "transfer": transfer}
        chosen = having(self.federations, **wanted)
        return chosen[0][1] if chosen else None

    def to_json(self) -> str:
        """Returns the study as a JSON document."""
        return as_json(
            self.version,
            self.options,
            runs=[
                {"case": asdict(case), "found": {name: asdict(run) for name, run in found.items()}}
                for case, found in self.runs
            ],
            logs=[{"case": asdict(case), "runs": figures} for case, figures in self.logs],
            federations=[
                {"case": asdict(case), "found": found} for case, found in self.federations
            ],
        )


def cases(options: StudyOptions) -> Iterator[Case]:
    """Yields every experiment of the study."""
    seven = tuple(SEVEN)
    for reading in READINGS:
        for number in range(options.experiments):
            yield Case("figure-2", reading, RATE, "linear", number, (*seven, *HIGHEST))
    for number in range(min(options.experiments, 10)):
        yield Case("paper-p", "never", RATE, "linear", number, seven, paper_p=True)
    yield from _sweeps(options)
    for rate in REACHABLE_RATES:
        for number in range(options.reachable):
            yield Case("reachable", "growth", rate, "linear", number, tuple(REACHABLE))


def _sweeps(options: StudyOptions) -> Iterator[Case]:
    few = (BEST_FIT, OVER, BOTH)
    for reading in ("never", "growth"):
        names = tuple(SEVEN) if reading == "never" else few
        for rate in RATES:
            for number in range(options.sweep):
                yield Case("figure-4", reading, rate, "linear", number, names)
        for rate in SHAPE_RATES:
            for shape in SHAPES:
                for number in range(options.experiments):
                    yield Case("figure-5", reading, rate, shape, number, (BEST_FIT, BOTH))


def run_study(options: StudyOptions, console: Console) -> Study:
    """Runs what is still to be done and returns all of it.

    Raises:
        OutputError: the file of experiments cannot be read or written.
        KeyboardInterrupt: the user has enough; what is done is kept.
    """
    logs = Logs()
    experiments = list(cases(options))
    on_logs = list(log_cases()) if options.logs else []
    grids = list(federation_cases()) if options.logs else []
    every: list[AnyCase] = [*on_logs, *grids, *experiments]

    wanted = {case.key: case for case in every}
    evaluate: Evaluate[AnyCase] = threads(lambda case: _found(case, logs), options.workers)
    known = run_cases(options.folder, wanted, evaluate, console, what="experiments")
    return Study(
        plain_options(options),
        tuple(
            (case, {name: _run(values) for name, values in known[case.key].items()})
            for case in experiments
        ),
        tuple((case, known[case.key]) for case in on_logs),
        tuple((case, known[case.key]) for case in grids),
    )


def _run(values: dict[str, Any]) -> Run:
    return Run(**{**values, "p": tuple(values["p"])})


def _found(case: AnyCase, logs: Logs) -> Any:
    if isinstance(case, LogCase):
        return run_log_case(case, logs)
    if isinstance(case, FederationCase):
        return run_federation(case, logs)
    return {name: asdict(run) for name, run in run_case(case).items()}
