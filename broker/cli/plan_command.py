"""Implementation of `gorba plan`: reads, plans by several methods, reports progress, and writes."""

import math
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from broker.cli.search_options import Wanted
from broker.gantt.page import MethodRow, render_page
from broker.gantt.terminal import print_plan
from broker.gantt.wording import fitness
from broker.io.import_options import ImportOptions
from broker.io.loading import make_problem, read_inputs
from broker.io.plans import plan_document, read_plan
from broker.io.writing import to_json, write_text
from broker.model.instances import critical_path
from broker.model.limits import Limits
from broker.model.measures import measure
from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.planner.goals import MAKESPAN_ONLY, Goals
from broker.planner.methods import TITLES, Comparison, Result
from broker.planner.search import Budget
from broker.planner.search import Progress as SearchProgress
from lrms_sim.cli.running import EXIT_INTERRUPTED
from lrms_sim.util.executors import DaskExecutor, ThreadExecutor
from lrms_sim.util.json_output import escaped
from lrms_sim.util.messages import count, duration
from lrms_sim.util.version import __version__

BUDGET_SECONDS: Final = 30.0
"""Default planning time."""

FITNESS_MAX: Final = 100_000.0
"""Of a plan that cannot be better: where only the makespan counts, one as short as its bound."""

STANDARD_OUTPUT: Final = Path("-")


@dataclass(frozen=True, slots=True)
class Request:
    """What to plan, from `now` (seconds; `None` for what a file says, else the present) on."""

    files: tuple[Path, ...]
    options: ImportOptions
    limits: Limits
    now: float | None
    old: Path | None
    network: Path | None = None


def budget_of_each(wanted: Wanted) -> Budget:
    """Returns the budget of one search."""
    seconds = BUDGET_SECONDS if wanted.search_time is None else wanted.search_time
    enough = FITNESS_MAX if wanted.bounded else math.inf
    if wanted.evaluations is None:
        return Budget(seconds / len(wanted.methods), fitness=enough)
    limit = math.inf if wanted.search_time is None else seconds / len(wanted.methods)
    return Budget(limit, wanted.evaluations, enough)


def goals_of(wanted: Wanted) -> Goals:
    """Returns what plans are judged by."""
    base = MAKESPAN_ONLY if wanted.goal == "makespan" else Goals()
    return replace(base, stability=wanted.stability)


@dataclass(frozen=True, slots=True)
class Planned:
    """How a search ended.

    Attributes:
        schedules: that all searches have built together.
        interrupted: by Ctrl-C.
    """

    plan: Plan
    schedules: int
    interrupted: bool

    def end(self) -> None:
        """Ends the command with the status that all commands have after Ctrl-C, if that ended the search."""
        if self.interrupted:
            click.get_current_context().exit(EXIT_INTERRUPTED)


def prepared(request: Request) -> tuple[Problem, Plan | None]:
    """Returns the problem that the files make, and the earlier plan.

    Raises:
        BrokerError: a file is unusable, or files do not fit together.
    """
    inputs = read_inputs(request.files, request.network)
    old = None if request.old is None else read_plan(request.old)
    now = inputs.now if request.now is None else request.now
    now = float(math.floor(time.time())) if now is None else now
    problem = make_problem(inputs, now=now, options=request.options, limits=request.limits, old=old)
    return problem, old


def run_plan(
    wanted: Wanted,
    problem: Problem,
    out: Console,
    err: Console,
    *,
    old: Plan | None = None,
    files: Sequence[Path] = (),
) -> Planned:
    """Plans, prints and writes; returns the plan, and whether Ctrl-C ended the search.

    The result goes to `out`, progress and names of files to `err`.

    Raises:
        BrokerError: a file cannot be written.
    """
    comparison = Comparison(
        problem,
        goals=goals_of(wanted),
        old=old,
        seed=wanted.seed,
        workers=wanted.workers,
        population=wanted.population,
    )
    with _bars(err) as bars:
        if wanted.baselines:
            bars.begin("heuristics", None)
            comparison.baselines()
        with _interrupting(comparison):
            if wanted.islands is not None:
                _search_on_islands(comparison, wanted, bars)
            for method in wanted.methods if wanted.islands is None else ():
                budget = budget_of_each(wanted)
                bars.begin(TITLES[method], budget)
                comparison.search(method, budget, bars.show)
    best = comparison.best
    made = _made(wanted, files)
    if wanted.html is not None:
        page = _page(wanted, problem, best, comparison.results, made)
        write_text(wanted.html, page)
    if wanted.json is not None:
        document = plan_document(
            problem, best.plan, results=comparison.results, made={"method": best.method, **made}
        )
        if wanted.json == STANDARD_OUTPUT:
            click.echo(escaped(to_json(document)), nl=False)
        else:
            write_text(wanted.json, to_json(document))
    if wanted.json != STANDARD_OUTPUT:
        print_plan(out, problem, best.plan, comparison.results)
    _say(err, comparison, wanted)
    for path in (wanted.html, wanted.json):
        if path is not None and path != STANDARD_OUTPUT:
            err.print(f"written to {path}", highlight=False, markup=False, soft_wrap=True)
    schedules = sum(each.evaluations or 0 for each in comparison.results)
    return Planned(best.plan, schedules, comparison.stopped)


def _search_on_islands(comparison: Comparison, wanted: Wanted, bars: "_Bars") -> None:
    assert wanted.islands is not None
    assert wanted.evaluations is not None, "said before"
    dask = DaskExecutor(wanted.dask) if wanted.dask is not None else None
    with dask or ThreadExecutor(wanted.workers) as executor:
        for method in wanted.methods:
            bars.begin(TITLES[method], None)
            comparison.search_on_islands(method, executor, wanted.islands, wanted.evaluations)


def _say(err: Console, comparison: Comparison, wanted: Wanted) -> None:
    if wanted.baselines and not comparison.with_heft:
        err.print("HEFT is left out: tasks have too many alternatives in all", highlight=False)
    if comparison.stopped:
        err.print("interrupted: this is the best plan so far", highlight=False)


def makespan_words(planned: Planned) -> str:
    """Returns how many schedules it took, on any machine, and then the makespan."""
    return f"Schedules: {count(planned.schedules)}\nMakespan: {planned.plan.makespan_end:.15g}"


def project_words(problem: Problem, planned: Planned) -> str:
    """Returns the same of a project, after how far its makespan is from the longest chain of tasks."""
    makespan = planned.plan.makespan_end
    chain = max(critical_path(problem, workflow) for workflow in problem.workflows)
    above = "no plan is shorter"
    if makespan > chain:
        above = f"the plan is {100 * (makespan / chain - 1):.1f} % above it"
    return f"Longest chain of jobs: {chain:.15g}; {above}\n{makespan_words(planned)}"


def _page(
    wanted: Wanted,
    problem: Problem,
    best: Result,
    results: Sequence[Result],
    made: Mapping[str, Any],
) -> str:
    rows = [
        MethodRow(
            TITLES[each.method] + (f": {each.detail}" if each.method == "heuristic" else ""),
            measure(problem, each.plan),
            None if each.worth is None else each.worth.fitness,
            each.seconds,
            each.evaluations,
            each is best,
        )
        for each in results
    ]
    return render_page(
        problem,
        best.plan,
        title=wanted.title or _title(problem),
        methods=rows,
        made=[(name, str(value)) for name, value in made.items()],
    )


def _title(problem: Problem) -> str:
    names = [workflow.name for workflow in problem.workflows]
    return names[0] if len(names) == 1 else f"{count(len(names))} workflows"


def _made(wanted: Wanted, files: Sequence[Path]) -> Mapping[str, Any]:
    each = budget_of_each(wanted)
    seconds = "any time" if each.seconds == math.inf else duration(each.seconds)
    limit = "" if each.evaluations == math.inf else f", {count(int(each.evaluations))} schedules"
    return {
        "files": ", ".join(path.name for path in files),
        "goal": wanted.goal,
        **({"stability": wanted.stability} if wanted.stability else {}),
        "each search": seconds + limit,
        "seed": wanted.seed,
        "program": f"Hanse {__version__}",
    }


@contextmanager
def _interrupting(comparison: Comparison) -> Iterator[None]:
    """Makes the first Ctrl-C end the search; the second ends the program."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        comparison.stop()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Bars:
    """A bar for each stage, by time or by schedules, whichever is further; none without terminal."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._task: TaskID | None = None
        self._budget: Budget | None = None

    def begin(self, title: str, budget: Budget | None) -> None:
        """Begins a stage; its duration is unknown without a budget."""
        if self._progress is None:
            return
        if self._task is not None:
            self._progress.update(self._task, total=1.0, completed=1.0)
        total = None if budget is None else 1.0
        self._task = self._progress.add_task(title, total=total, told="")
        self._budget = budget

    def show(self, done: SearchProgress) -> None:
        if self._progress is None or self._task is None or self._budget is None:
            return
        share = max(
            done.seconds / max(self._budget.seconds, 1e-9),
            done.evaluations / max(self._budget.evaluations, 1),
        )
        self._progress.update(
            self._task,
            completed=min(share, 1.0),
            told=f"{count(done.evaluations)} schedules, fitness {fitness(done.fitness)}",
        )


@contextmanager
def _bars(console: Console) -> Iterator[_Bars]:
    if not console.is_terminal:
        yield _Bars(None)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("{task.fields[told]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bars(progress)
