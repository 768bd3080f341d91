"""The frame of every study: cases are run and kept, figures are written and shown.

A study by itself has its cases, what it runs for each, statements, tables and drawings.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from rich.console import Console

from lrms_sim.report.parts import Page, Table
from lrms_sim.report.terminal import print_page, print_table
from lrms_sim.util.run_log import RunLog
from lrms_sim.util.version import __version__
from scenarios.studies.common.study_folder import (
    RUNS,
    in_threads,
    make_folder,
    progress_bar,
    write_study,
)
from scenarios.studies.common.verdicts import Statement
from scenarios.util.errors import OutputError

RESULT_FORMAT: Final = 1
"""In study.json."""


class Values(Protocol):
    """A dataclass, whichever."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class Measured(Protocol):
    """What a study has measured."""

    def to_json(self) -> str:
        """Returns every figure as JSON."""
        ...


_Study = TypeVar("_Study", bound=Measured)
_Case = TypeVar("_Case")
_Found = TypeVar("_Found")
_AnyCase = TypeVar("_AnyCase", bound=Values)

Evaluate = Callable[[Iterable[_Case]], Iterator[tuple[_Case, Any]]]
"""Runs cases, and yields each with its results, plain values, as they end."""


@dataclass(frozen=True)
class CaseStudy(Generic[_AnyCase]):
    """What was measured, where every case came to one set of figures.

    Attributes:
        options: that it was measured with, as plain values.
        runs: cases with what came of them, in order.
    """

    options: dict[str, Any]
    runs: tuple[tuple[_AnyCase, dict[str, Any]], ...]
    version: str = __version__

    def to_json(self) -> str:
        """Returns the study as a JSON document."""
        runs = [{"case": asdict(case), "found": found} for case, found in self.runs]
        return as_json(self.version, self.options, runs=runs)


def as_json(version: str, options: Mapping[str, Any], **figures: Sequence[Any]) -> str:
    """Returns a study as a JSON document."""
    head = {"format": RESULT_FORMAT, "version": version, "options": options}
    return json.dumps(head | figures, indent=1, ensure_ascii=False) + "\n"


def plain_options(options: Values) -> dict[str, Any]:
    """Returns the options that a study's figures depend on, as plain values.

    The folder and the workers are not among them.
    """
    left_out = {"folder", "workers"}
    return {name: value for name, value in asdict(options).items() if name not in left_out}


def having(runs: Iterable[tuple[_Case, _Found]], **wanted: object) -> list[tuple[_Case, _Found]]:
    """Returns the cases whose attributes are as wanted, with what came of them, in order."""
    return [
        (case, found)
        for case, found in runs
        if all(getattr(case, name) == value for name, value in wanted.items())
    ]


def threads(run: Callable[[_Case], Any], workers: int | None) -> Evaluate[_Case]:
    """Returns an `Evaluate` that runs cases in threads, by default one per processor.

    Most of the work of `run` should hold no lock of the interpreter.
    """
    return lambda todo: in_threads(todo, run, workers or os.cpu_count() or 1)


def run_cases(
    folder: Path,
    cases: Mapping[str, _Case],
    evaluate: Evaluate[_Case],
    console: Console,
    *,
    what: str,
    describe: Callable[[_Case], str] | None = None,
) -> Mapping[str, Any]:
    """Runs the cases that are missing in an existing folder, and returns the results of all by key.

    Results are plain values, saved as they come. `what` names the cases in messages; `describe`
    names a case as it begins, if they are run one by one.

    Raises:
        OutputError: the file of runs cannot be read or written.
        KeyboardInterrupt: the user has enough; what is done is kept.
    """
    log = RunLog(folder / RUNS, OutputError)
    todo = {case: key for key, case in cases.items() if key not in log.known}
    with progress_bar(console) as progress:
        bar = progress.add_task(what, total=len(cases), completed=len(cases) - len(todo))

        def begun() -> Iterator[_Case]:
            for case in todo:
                if describe is not None:
                    progress.update(bar, description=describe(case))
                yield case

        for case, found in evaluate(begun()):
            log.add(todo[case], found)
            progress.advance(bar)
    return log.known


class Asked(Protocol):
    """What a user asks for."""

    @property
    def folder(self) -> Path:
        """The folder of the study; it is made if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class StudyCommand(Generic[_Study]):
    """What a command does: runs a study, writes its files and prints its outcome.

    Attributes:
        run: the study with what a user asks for; shows how far it is.
        show: prints the outcome; the tables and the headline of the page where None.
        table: returns the table of statements, as Markdown.
    """

    run: Callable[[Any, Console], _Study]
    render: Callable[[_Study], Page | str]
    show: Callable[[Console, _Study], None] | None = None
    table: Callable[[_Study], str] | None = None

    def __call__(self, options: Asked, console: Console, progress: Console) -> Path:
        """Runs the study and returns its page.

        Raises:
            OutputError: a file cannot be written, or the runs from before cannot be read.
            Exception: whatever `run` raises; after `KeyboardInterrupt` the same study goes on from
                there.
        """
        make_folder(options.folder)
        study = self.run(options, progress)
        statements = "" if self.table is None else self.table(study)
        page = self.render(study)
        written = write_study(options.folder, study.to_json(), str(page), statements)
        if self.show is not None:
            self.show(console, study)
        elif isinstance(page, Page):
            print_page(console, page)
        return written


def print_statements(console: Console, title: str, statements: Iterable[Statement]) -> None:
    """Prints the statements of a paper with what was measured."""
    rows = [(each.claim, each.measured, each.word) for each in statements]
    print_table(console, Table(("the paper", "here", "holds"), rows, title, words={1, 2}))
