"""Combines the files that a user names into one planning problem."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from broker.io.documents import read_document
from broker.io.import_options import ImportOptions
from broker.io.importing import to_workflow
from broker.io.pools import Document, parse_file
from broker.io.wfformat import RecordedWorkflow, is_wfformat, parse_wfformat
from broker.model.limits import Limits, with_limits
from broker.model.plan import Placement, Plan
from broker.model.pool import Pool
from broker.model.problem import Problem
from broker.model.workflow import Workflow
from broker.util.errors import InputError


@dataclass(frozen=True, slots=True)
class Inputs:
    """Contents of the files, with recorded workflows in WfFormat by the names of their files."""

    documents: tuple[Document, ...]
    recorded: tuple[tuple[str, RecordedWorkflow], ...]

    @property
    def now(self) -> float | None:
        """When the plan begins; `None` if no file says so.

        Raises:
            InputError: two files disagree.
        """
        said = {each.now: each.file for each in self.documents if each.now is not None}
        if len(said) > 1:
            files = " and ".join(said.values())
            raise InputError(f"{files} give different moments as now; name one with --now")
        return next(iter(said), None)

    @property
    def pool(self) -> Pool:
        """All resources.

        Raises:
            InputError: there are none, two files define the same name, or requirements are missing or
                circular.
        """
        resources = [(each, d.file) for d in self.documents for each in d.pool.resources]
        if not resources:
            raise InputError("there is no resource to plan for; name a file of them: --resources")
        first: dict[str, str] = {}
        for resource, file in resources:
            if resource.name in first:
                raise InputError(
                    f"resource {resource.name!r} is in {first[resource.name]} and {file}"
                )
            first[resource.name] = file
        requires = {
            name: demands
            for each in self.documents
            for name, demands in each.pool.requires.items()
            if demands
        }
        for name, demands in requires.items():
            for demand in demands:
                if demand.resource not in first:
                    raise InputError(
                        f"{first[name]}: resource {name!r} requires {demand.resource!r}, which is "
                        "not there"
                    )
        try:
            return Pool(tuple(resource for resource, _ in resources), requires)
        except ValueError as error:
            raise InputError(str(error)) from None


def read_inputs(paths: Sequence[Path]) -> Inputs:
    """Reads files of resources and workflows, in the project's own format or WfFormat, in any order.

    Raises:
        FileError: one of them is unusable.
    """
    documents = []
    recorded: list[tuple[str, RecordedWorkflow]] = []
    for path in paths:
        content = read_document(path)
        if is_wfformat(content):
            name = _free_name(path, {name for name, _ in recorded})
            recorded.append((name, parse_wfformat(content, file=str(path))))
        else:
            documents.append(parse_file(content, file=str(path)))
    return Inputs(tuple(documents), tuple(recorded))


def _free_name(path: Path, taken: set[str]) -> str:
    stem = path.name.removesuffix(".gz").removesuffix(".json") or path.name
    number = 1
    name = stem
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name


def make_problem(
    inputs: Inputs,
    *,
    now: float,
    options: ImportOptions | None = None,
    limits: Limits | None = None,
    old: Plan | None = None,
) -> Problem:
    """Combines workflows and resources into a problem that begins at `now`, in seconds.

    `limits` apply to workflows without their own. Tasks of `old` that start before `now` are fixed.

    Raises:
        FileError: a file names a missing resource.
        InputError: they do not form a problem; the text says why.
    """
    pool = inputs.pool
    workflows: list[Workflow] = []
    for document in inputs.documents:
        workflows += document.workflows(pool)
    for name, recorded in inputs.recorded:
        workflows.append(to_workflow(recorded, pool, options or ImportOptions(), name=name))
    if not workflows:
        raise InputError("there is no workflow to plan; name a file of workflows")
    fixed = started(old, workflows, now) if old is not None else ()
    try:
        problem = Problem(tuple(workflows), pool.resources, now, fixed)
    except ValueError as error:
        raise InputError(str(error)) from error
    return with_limits(problem, limits or Limits())


def started(old: Plan, workflows: Sequence[Workflow], now: float) -> tuple[Placement, ...]:
    """Returns the placements of a plan that stay: of tasks still there that start before now."""
    known = {(workflow.name, task.name) for workflow in workflows for task in workflow.tasks}
    return tuple(each for each in old if each.start < now and each.key in known)
