"""Plans as JSON files; docs/workflows.md describes the format."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, ValidationError

from broker.io.documents import read_document
from broker.io.moments import moment
from broker.model.critical import critical_path
from broker.model.measures import Measures, measure
from broker.model.plan import Placement, Plan, Transfer
from broker.model.problem import Problem
from broker.model.workflow import Demand
from broker.planner.methods import Result
from broker.util.errors import FileError
from grms.daemon.config_base import Model, wrong
from grms.daemon.config_errors import mistakes_of
from lrms_sim.util.file_errors import Mistake
from lrms_sim.util.messages import shown

FORMAT: Final = "hanse plan 1"
COST_MAX: Final = 1e300
"""Of one task; keeps sums finite."""

_Name = Annotated[str, Field(min_length=1)]
_Moment = Annotated[float, BeforeValidator(moment)]


class _Demand(Model):
    resource: _Name
    units: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1


class _Placement(Model):
    workflow: _Name
    task: _Name
    resources: Annotated[list[_Demand], Field(min_length=1)]
    start: _Moment
    end: _Moment
    cost: Annotated[float, Field(ge=0, le=COST_MAX, allow_inf_nan=False)]


class _Transfer(Model):
    workflow: _Name
    task: _Name
    files: list[_Name]
    source: _Name
    target: _Name
    begin: _Moment
    end: _Moment
    size: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    cost: Annotated[float, Field(ge=0, le=COST_MAX, allow_inf_nan=False)]


class _Unplanned(Model):
    workflow: _Name
    task: _Name


def _format(value: object) -> object:
    if value != FORMAT:
        raise wrong(f"is {shown(value)}; this program reads {FORMAT!r}")
    return value


class _File(Model):
    format: Annotated[str, BeforeValidator(_format)]
    now: _Moment
    placements: list[_Placement]
    unplanned: list[_Unplanned]
    transfers: Annotated[list[_Transfer], Field(default_factory=list)]
    # The rest is for people and other programs; it is not read back.
    made: object = None
    figures: object = None
    methods: object = None
    workflows: object = None
    critical_path: object = None


def plan_document(
    problem: Problem,
    plan: Plan,
    *,
    results: Sequence[Result] = (),
    made: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns a plan as a document; `results` are those of all methods tried, `made` says how."""
    outcomes = plan.outcomes(problem.workflows)
    return {
        "format": FORMAT,
        "now": problem.now,
        "made": dict(made or {}),
        "figures": _figures(measure(problem, plan)),
        "methods": [_result(problem, each) for each in results],
        "workflows": [
            {
                "name": workflow.name,
                "tasks": len(workflow.tasks),
                "start": _finite(each.start),
                "completion": _finite(each.completion),
                "due_date": _finite(workflow.due_date),
                "tardiness": _finite(each.tardiness),
                "cost": each.cost,
                "budget": _finite(workflow.budget),
                "over_budget": each.over_budget,
            }
            for workflow, each in zip(problem.workflows, outcomes, strict=True)
        ],
        "critical_path": [
            {"workflow": w, "task": t, "reason": link.reason}
            for link in critical_path(plan, problem.workflows)
            for w, t in [link.placement.key]
        ],
        "placements": [
            {
                "workflow": each.workflow,
                "task": each.task,
                "resources": [{"resource": d.resource, "units": d.units} for d in each.demands],
                "start": each.start,
                "end": each.end,
                "cost": each.cost,
            }
            for each in plan
        ],
        "unplanned": [{"workflow": workflow, "task": task} for workflow, task in plan.unplanned],
        **({} if problem.network is None else {"transfers": [asdict(t) for t in plan.transfers]}),
    }


def _finite(value: float) -> float | None:
    """Returns a number, or `None` for one that JSON lacks: no such moment or limit."""
    return value if math.isfinite(value) else None


def _figures(found: Measures) -> dict[str, Any]:
    return {
        "makespan": _finite(found.makespan),
        "mean_completion": _finite(found.completion),
        "cost": found.cost,
        "utilization": found.utilization,
        "late": found.late,
        "tardiness": _finite(found.tardiness),
        "over_budget": found.over_budget,
        "overspent": found.overspent,
        "keeping": found.keeping,
        "unplanned": found.unplanned,
    }


def _result(problem: Problem, result: Result) -> dict[str, Any]:
    return {
        "method": result.method,
        "detail": result.detail,
        "fitness": None if result.worth is None else result.worth.fitness,
        "seconds": result.seconds,
        "evaluations": result.evaluations,
        **_figures(measure(problem, result.plan)),
    }


def read_plan(path: Path) -> Plan:
    """Reads the placements and transfers of a plan; `FileError` if it cannot be read or is no plan."""
    document = read_document(path)
    try:
        content = _File.model_validate(document)
    except ValidationError as error:
        raise FileError(str(path), mistakes_of(error, document, _File)) from None
    placements = tuple(
        Placement(
            each.workflow,
            each.task,
            tuple(Demand(demand.resource, demand.units) for demand in each.resources),
            each.start,
            each.end,
            each.cost,
        )
        for each in content.placements
    )
    transfers = tuple(
        Transfer(**{**dict(each), "files": tuple(each.files)}) for each in content.transfers
    )
    unplanned = tuple((each.workflow, each.task) for each in content.unplanned)
    try:
        return Plan(placements, unplanned, transfers)
    except ValueError as error:
        raise FileError(str(path), [Mistake("placements", str(error))]) from None
