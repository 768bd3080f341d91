"""Combines the files that a user names into one planning problem."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from broker.io.documents import read_document
from broker.io.import_options import ImportOptions
from broker.io.importing import to_workflow
from broker.io.networks import NetworkTable, parse_network
from broker.io.pools import Document, parse_file
from broker.io.wfformat import RecordedWorkflow, is_wfformat, parse_wfformat
from broker.model.limits import Limits, with_limits
from broker.model.network import HOME, Copy, Network
from broker.model.plan import Placement, Plan, Transfer
from broker.model.pool import Pool
from broker.model.problem import Problem
from broker.model.workflow import Workflow
from broker.util.errors import InputError
from lrms_sim.util.messages import unknown


@dataclass(frozen=True, slots=True)
class Inputs:
    """Contents of the files, with recorded workflows in WfFormat by the names of their files.

    `network` is what one of them says of it.
    """

    documents: tuple[Document, ...]
    recorded: tuple[tuple[str, RecordedWorkflow], ...]
    network: NetworkTable | None = None

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


def read_inputs(paths: Sequence[Path], network: Path | None = None) -> Inputs:
    """Reads files of resources and workflows, in the project's own format or WfFormat, in any order.

    Raises:
        FileError: one of them, or that of the `network`, is unusable.
        InputError: two of them say what the network is.
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
    said = {each.file: each.network for each in documents if each.network is not None}
    if network is not None:
        said[str(network)] = parse_network(read_document(network), file=str(network))
    if len(said) > 1:
        raise InputError(f"{' and '.join(said)} each have a network; there is one at most")
    return Inputs(tuple(documents), tuple(recorded), next(iter(said.values()), None))


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

    `limits` apply to workflows without their own. Tasks of `old` that start before `now` are fixed, as are transfers that
    begin before.

    Raises:
        FileError: a file names a missing resource.
        InputError: they do not form a problem; the text says why.
    """
    pool = inputs.pool
    workflows: list[Workflow] = []
    for document in inputs.documents:
        workflows += document.workflows(pool)
    for name, recorded in inputs.recorded:
        data = inputs.network is not None
        imported = to_workflow(recorded, pool, options or ImportOptions(), name=name, data=data)
        workflows.append(imported)
    if not workflows:
        raise InputError("there is no workflow to plan; name a file of workflows")
    fixed = started(old, workflows, now) if old is not None else ()
    try:
        network = None
        if inputs.network is not None:
            try:
                network = inputs.network.network([each.name for each in pool.resources])
            except ValueError as error:
                raise ValueError(f"network: {error}") from None
            _check_sites(workflows, network, inputs.network, pool)
        begun = begun_transfers(old, workflows, now) if old is not None and network else ()
        copies = tuple(
            Copy(each.workflow, file, each.target, each.end)
            for each in begun
            for file in each.files
        )
        under_way = tuple(each for each in begun if each.end > now)
        problem = Problem(tuple(workflows), pool.resources, now, fixed, network, copies, under_way)
    except ValueError as error:
        raise InputError(str(error)) from error
    return with_limits(problem, limits or Limits())


def _check_sites(
    workflows: Sequence[Workflow], network: Network, table: NetworkTable, pool: Pool
) -> None:
    known = {network.site(each.name) for each in pool.resources} | {HOME, *table.sites}
    for workflow in workflows:
        for file in workflow.files:
            if file.site and file.site not in known:
                raise ValueError(
                    f"workflow {workflow.name!r}, file {file.name!r}: "
                    f"{unknown('site', file.site, sorted(known))}"
                )


def begun_transfers(old: Plan, workflows: Sequence[Workflow], now: float) -> tuple[Transfer, ...]:
    """Returns the transfers of a plan that stay: of files still there that begin before now."""
    known = {(workflow.name, file.name) for workflow in workflows for file in workflow.files}
    return tuple(
        each
        for each in old.transfers
        if each.begin < now and all((each.workflow, file) in known for file in each.files)
    )


def started(old: Plan, workflows: Sequence[Workflow], now: float) -> tuple[Placement, ...]:
    """Returns the placements of a plan that stay: of tasks still there that start before now."""
    known = {(workflow.name, task.name) for workflow in workflows for task in workflow.tasks}
    return tuple(each for each in old if each.start < now and each.key in known)
