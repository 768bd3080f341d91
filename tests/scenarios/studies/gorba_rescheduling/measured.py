"""A study that was not run: records of what it might have measured, for pages and figures."""

from typing import Any

from scenarios.studies.gorba_rescheduling.records import Record
from scenarios.studies.gorba_rescheduling.reference import (
    CLASSES,
    COLUMNS,
    HARD,
    TABLE_4_1,
    TASKS,
)
from scenarios.studies.gorba_rescheduling.study import GLEAM, HEURISTICS, SEARCHED, Study

OPTIONS = {
    "runs": 3,
    "seconds": None,
    "sizes": [200, 400, 1000],
    "parts": ["settings", "sweep"],
    "reduction": 0.08,
    "first_evaluations": 2000,
    "evaluations": 5000,
}
HEURISTIC = 20_000.0


def record(part: str, method: str, **values: Any) -> Record:
    """Returns a record with these values, and plain ones for the others."""
    plain: dict[str, Any] = {
        "part": part,
        "method": method,
        "event": "e",
        "benchmark": "sRlD",
        "tasks": 200,
        "finished": 0.1,
        "new": 0.1,
        "seed": 1,
        "fitness": 50_000.0,
        "heuristic": HEURISTIC,
        "late": 0,
        "over_budget": 0,
        "unplanned": 0,
        "evaluations": 1000,
        "generations": 10,
        "seconds": 2.0,
        "each": {},
        "processor_seconds": 1.0,
    }
    return Record(**(plain | values))


def heuristics(finished: float, new: float) -> dict[str, float]:
    """Returns fitness of each heuristic such that Table 4.1 comes out as the paper prints it."""
    column = COLUMNS.index((finished, new))
    best = max(row[column] for row in TABLE_4_1.values())
    return {name: HEURISTIC * row[column] / best for name, row in TABLE_4_1.items()}


def paper_study(*, parts: tuple[str, ...] = ("settings", "sweep")) -> Study:
    """Returns a study in which everything came out as the paper says."""
    records = []
    if "settings" in parts:
        for benchmark in HARD:
            for tasks in TASKS:
                for finished, new in COLUMNS:
                    where: dict[str, Any] = {
                        "benchmark": benchmark,
                        "tasks": tasks,
                        "finished": finished,
                        "new": new,
                    }
                    each = heuristics(finished, new)
                    records.append(record("settings", HEURISTICS, each=each, **where))
                    late = int(new == 0.5 and tasks == 100)
                    records += [
                        record("settings", GLEAM, seed=n, fitness=5e4 + n, late=late, **where)
                        for n in (1, 2, 3)
                    ]
    if "sweep" in parts:
        for benchmark in CLASSES:
            for tasks in (200, 400, 1000, 1600):
                limit = 1000 if benchmark.startswith("lR") else 400
                rate = (20_000 if benchmark.startswith("sR") else 9000) * 200 // tasks
                records += [
                    record(
                        "sweep",
                        method,
                        benchmark=benchmark,
                        tasks=tasks,
                        seed=n,
                        fitness=40_000.0 + n,
                        late=int(tasks > limit and (method == GLEAM or n > 2)),
                        evaluations=rate,
                    )
                    for method in SEARCHED
                    for n in (1, 2, 3)
                ]
    return Study(dict(OPTIONS, parts=list(parts)), tuple(records))
