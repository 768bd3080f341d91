"""What was measured, run by run, kept in a file so that an interrupted study goes on."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from scenarios.errors import OutputError

RUNS: Final = "runs.jsonl"
"""The file, in the study's folder: one JSON object for each run."""


@dataclass(frozen=True, slots=True)
class Record:
    """One run of one method on one event, or its heuristics.

    Attributes:
        part: "settings" for Figure 4.1 and Table 4.1, "sweep" for Figures 4.2 to 4.5.
        event: name of the event.
        benchmark: class of its workflows.
        tasks: of its first planning.
        finished: share of finished tasks.
        new: share of new tasks.
        method: "heuristics", or a search of `broker.planner.methods`.
        seed: of the run.
        fitness: of the best plan, from 0 to 100,000.
        heuristic: fitness of the best heuristic.
        late: workflows that miss their due dates, in the best plan.
        over_budget: workflows over their budgets.
        unplanned: tasks without a place.
        evaluations: schedules built.
        generations: complete ones.
        seconds: that it took.
        each: fitness of each heuristic by name, where the method is "heuristics".
    """

    part: str
    event: str
    benchmark: str
    tasks: int
    finished: float
    new: float
    method: str
    seed: int
    fitness: float
    heuristic: float
    late: int
    over_budget: int
    unplanned: int
    evaluations: int
    generations: int
    seconds: float
    each: dict[str, float]

    @property
    def keeps_all_limits(self) -> bool:
        """Whether the run was a success in the paper's words: no limit is violated."""
        return self.late == self.over_budget == self.unplanned == 0

    @property
    def factor(self) -> float:
        """How many times the fitness is that of the best heuristic."""
        return self.fitness / self.heuristic if self.heuristic > 0 else 1.0


class RunLog:
    """The runs in a folder; each is on disk before the next begins.

    Args:
        folder: of the study.

    Raises:
        OutputError: the file is there and cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / RUNS
        self._known: dict[str, Record] = {}
        try:
            text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise OutputError(f"{self._path} cannot be read: {error}") from error
        for key, record in _records(text):
            self._known[key] = record

    def get(self, key: str) -> Record | None:
        """Returns what a run came to, or None where it is still to be done."""
        return self._known.get(key)

    def add(self, key: str, record: Record) -> None:
        """Keeps a run.

        Raises:
            OutputError: the file cannot be written.
        """
        self._known[key] = record
        line = json.dumps({"key": key, **asdict(record)}, ensure_ascii=False)
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            raise OutputError(f"{self._path} cannot be written: {error.strerror}") from error


def _records(text: str) -> Iterator[tuple[str, Record]]:
    """Yields the runs in a file; a line that was cut off, or is of another version, is not one."""
    names = {field.name for field in fields(Record)}
    for line in text.splitlines():
        try:
            values: Any = json.loads(line)
        except ValueError:
            continue
        if isinstance(values, dict) and values.keys() == {"key", *names}:
            key = values.pop("key")
            yield key, Record(**values)
