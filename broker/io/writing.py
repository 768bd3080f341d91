"""Writes resources and workflows without loss, for `broker.io.pools` to read."""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from broker.io.moments import (
    is_every_day,
    written_moment,
    written_offset,
    written_time_of_day,
    written_weekdays,
)
from broker.io.pools import HOUR
from broker.model.network import DataFile
from broker.model.pool import KIND_DEFAULT
from broker.model.resources import DAY, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.util.errors import OutputError
from lrms_sim.util.files import replacing, to_toml

_DIGITS_MAX = 18
_INLINE_MAX = 2


def document_of(
    resources: Iterable[Resource] = (),
    workflows: Iterable[Workflow] = (),
    *,
    now: float | None = None,
    description: str = "",
) -> dict[str, Any]:
    """Returns resources and workflows as the document of a file; defaults are left out.

    `now` is in seconds; it is left out if `None`.
    """
    document: dict[str, Any] = {}
    if description:
        document["description"] = description
    if now is not None:
        document["now"] = written_moment(now)
    if rows := [_resource(each) for each in resources]:
        document["resources"] = rows
    if rows := [_workflow(each) for each in workflows]:
        document["workflows"] = rows
    return document


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a document as JSON if the name ends in `.json`, else as TOML.

    Raises:
        OutputError: the file cannot be written.
    """
    write_text(path, to_json(document) if path.suffix == ".json" else to_toml(document))


def write_text(path: Path, text: str) -> None:
    """Writes a file atomically: it appears under its name only when complete.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        with replacing(path) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error


def to_json(document: Mapping[str, Any]) -> str:
    """Returns a document as JSON with a line for each table in a list, for people to find them."""
    return _object(document, "") + "\n"


def _object(table: Mapping[str, Any], indent: str) -> str:
    inner = indent + " "
    lines = []
    for key, value in table.items():
        if _is_rows(value):
            rows = f",\n{inner} ".join(_row(row, inner + " ") for row in value)
            text = f"[\n{inner} {rows}\n{inner}]"
        else:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        lines.append(f"{inner}{json.dumps(key, ensure_ascii=False)}: {text}")
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _row(row: Mapping[str, Any], indent: str) -> str:
    if any(_is_rows(value) and len(value) > _INLINE_MAX for value in row.values()):
        return _object(row, indent)
    return json.dumps(row, ensure_ascii=False, allow_nan=False)


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _resource(resource: Resource) -> dict[str, Any]:
    table: dict[str, Any] = {"name": resource.name}
    if resource.kind != KIND_DEFAULT:
        table["kind"] = resource.kind
    if resource.performance != 1:
        table["performance"] = resource.performance
    if resource.capacity != 1:
        table["capacity"] = resource.capacity
    if resource.utc_offset:
        table["utc_offset"] = written_offset(resource.utc_offset)
    if resource.price:
        table |= _price(resource.price)
    calendar = resource.calendar
    if resource.price_rules:
        table["prices"] = [
            _price(rule.price) | _hours(rule.window) for rule in resource.price_rules
        ]
    if calendar.opening:
        table["opening"] = [_hours(window) for window in calendar.opening]
    if calendar.closures:
        table["closures"] = [_closure(begin, end) for begin, end in calendar.closures]
    return table


def _price(price: float) -> dict[str, float]:
    # The shortest number that yields the same price; there is not always one.
    for digits in range(_DIGITS_MAX):
        by_hour = round(price * HOUR, digits)
        if by_hour / HOUR == price:
            return {"price_per_hour": by_hour}
    return {"price_per_second": price}


def _hours(window: WeeklyWindow) -> dict[str, Any]:
    table: dict[str, Any] = {}
    if not is_every_day(window.weekdays):
        table["weekdays"] = written_weekdays(window.weekdays)
    if window.begin > 0:
        table["begin"] = written_time_of_day(window.begin)
    if window.end < DAY:
        table["end"] = written_time_of_day(window.end)
    return table


def _closure(begin: float, end: float) -> dict[str, Any]:
    table: dict[str, Any] = {}
    if begin > -math.inf:
        table["begin"] = written_moment(begin)
    if end < math.inf:
        table["end"] = written_moment(end)
    return table


def _workflow(workflow: Workflow) -> dict[str, Any]:
    table: dict[str, Any] = {"name": workflow.name}
    if workflow.earliest_start > -math.inf:
        table["earliest_start"] = written_moment(workflow.earliest_start)
    if workflow.due_date < math.inf:
        table["due_date"] = written_moment(workflow.due_date)
    if workflow.budget < math.inf:
        table["budget"] = workflow.budget
    if workflow.preference != 0.5:
        table["preference"] = workflow.preference
    if workflow.on_failure != "finish":
        table["on_failure"] = workflow.on_failure
    table["tasks"] = [_task(task) for task in workflow.tasks]
    if workflow.files:
        table["files"] = [_file(each) for each in workflow.files]
    return table


def _file(file: DataFile) -> dict[str, Any]:
    table: dict[str, Any] = {"name": file.name, "size": file.size, "readers": list(file.readers)}
    if file.maker:
        table["task"] = file.maker
    if file.site:
        table["site"] = file.site
    return table


def _task(task: Task) -> dict[str, Any]:
    table: dict[str, Any] = {"name": task.name, "work": task.work}
    if task.predecessors:
        table["predecessors"] = list(task.predecessors)
    if task.on_failure is not None:
        table["on_failure"] = task.on_failure
    table["alternatives"] = [_alternative(each) for each in task.alternatives]
    return table


def _alternative(alternative: Alternative) -> list[Any] | dict[str, Any]:
    # A list is taken literally; a bare name would add what its resource requires.
    demands = [_demand(each) for each in alternative.demands]
    if not alternative.timed:
        return demands
    table: dict[str, Any] = {"resource": demands}
    if alternative.seconds is not None:
        table["seconds"] = alternative.seconds
    if alternative.setup:
        table["setup"] = alternative.setup
    return table


def _demand(demand: Demand) -> str | dict[str, Any]:
    if demand.units == 1:
        return demand.resource
    return {"resource": demand.resource, "units": demand.units}
