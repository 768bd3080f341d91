"""What makes the transfers of a plan valid, checked anew from the problem and the placements alone.

For each file a list of where it is from when on is kept: made by its task, given, copied, or brought by a
transfer. Where links carry one transfer at a time, each is compared with each other. Nothing of the planner is used.
"""

import math
from collections.abc import Iterator

from broker.model.network import Network
from broker.model.plan import Placement, Plan, Transfer
from broker.model.problem import Problem

FileAt = tuple[str, str, str]
"""Workflow, file and site."""


def data_violations(problem: Problem, plan: Plan) -> list[str]:
    """Returns what is wrong with transfers, and which tasks begin before their files are there."""
    if problem.network is None:
        return [f"{each}: there is no network" for each in plan.transfers]
    there = before_transfers(problem, problem.network, plan)
    sizes = {(w.name, file.name): file.size for w in problem.workflows for file in w.files}
    found = []
    brought: dict[FileAt, float] = {}
    for each in plan.transfers:
        name = f"{each.workflow}/{each.task}: {', '.join(each.files)} to {each.target}"
        size = sum(sizes[each.workflow, file] for file in each.files)
        found += [f"{name}: {text}" for text in transfer_violations(problem.network, each, size)]
        if each.begin < problem.now:
            found.append(f"{name}: begins before now")
        for file in each.files:
            since = there.get((each.workflow, file, each.source), math.inf)
            if each.begin < since:
                found.append(f"{name}: is sent at {each.begin} and is there from {since} on")
            key = each.workflow, file, each.target
            if key in brought or key in there:
                found.append(f"{name}: {file} is there already, or sent twice")
            brought[key] = each.end
    if problem.network.contention == "link":
        found += link_violations(problem, plan)
    return found + list(waiting_violations(problem, problem.network, plan, there | brought))


def link_violations(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yields which transfers are on a link, of one site to another, at the same time."""
    seen: list[tuple[Transfer, bool]] = []
    for mine, planned in [
        *((t, False) for t in problem.under_way),
        *((t, True) for t in plan.transfers),
    ]:
        for other, planned_too in seen:
            together = min(mine.end, other.end) - max(mine.begin, other.begin)
            # What was under way before may be so twice; the planner must not add to it.
            if (
                (mine.source, mine.target) == (other.source, other.target)
                and (planned or planned_too)
                and together > max(1e-6, 1e-9 * abs(mine.begin))
            ):
                names = " and ".join(f"{t.workflow}/{t.task}" for t in (other, mine))
                yield f"{mine.source} to {mine.target}: {names} are sent for at {mine.begin}"
        seen.append((mine, planned))


def site_of(network: Network, placement: Placement) -> str:
    """Returns the site at which a task runs."""
    name = placement.demands[0].resource
    return network.sites.get(name, name)


def before_transfers(problem: Problem, network: Network, plan: Plan) -> dict[FileAt, float]:
    """Returns since when files are where without any transfer of the plan."""
    placed = {(each.workflow, each.task): each for each in plan.placements}
    fixed = {(each.workflow, each.task) for each in problem.fixed}
    moments = [((c.workflow, c.file, c.site), c.since) for c in problem.copies]
    for workflow in problem.workflows:
        for file in workflow.files:
            if not file.maker:
                site = file.site or network.inputs
                moments.append(((workflow.name, file.name, site), -math.inf))
            elif (workflow.name, file.maker) in placed:
                maker = placed[workflow.name, file.maker]
                moments.append(((workflow.name, file.name, site_of(network, maker)), maker.end))
            for reader in file.readers:
                if (workflow.name, reader) in fixed:
                    began = placed[workflow.name, reader]
                    key = workflow.name, file.name, site_of(network, began)
                    moments.append((key, began.start))
    there: dict[FileAt, float] = {}
    for key, moment in moments:
        there[key] = min(moment, there.get(key, math.inf))
    return there


def transfer_violations(network: Network, transfer: Transfer, size: float) -> Iterator[str]:
    """Yields what is wrong with one transfer of files of so many bytes together."""
    if transfer.source == transfer.target:
        yield "goes nowhere"
    if not math.isclose(size, transfer.size):
        yield f"{transfer.size} bytes, not {size}"
    link = network.links.get((transfer.source, transfer.target), network.default)
    end = transfer.begin + link.latency + size / link.bandwidth
    if not math.isclose(transfer.end, end, rel_tol=1e-9, abs_tol=1e-6):
        yield f"ends at {transfer.end}, not {end}"
    if not math.isclose(transfer.cost, size * link.price, abs_tol=1e-9):
        yield f"costs {transfer.cost}, not {size * link.price}"


def waiting_violations(
    problem: Problem, network: Network, plan: Plan, there: dict[FileAt, float]
) -> Iterator[str]:
    """Yields which tasks begin before a file of theirs is at their site."""
    fixed = {(each.workflow, each.task) for each in problem.fixed}
    placed = {(each.workflow, each.task): each for each in plan.placements}
    for workflow in problem.workflows:
        for file in workflow.files:
            for reader in file.readers:
                placement = placed.get((workflow.name, reader))
                if placement is None or (workflow.name, reader) in fixed:
                    continue
                site = site_of(network, placement)
                moment = there.get((workflow.name, file.name, site), math.inf)
                late = moment - placement.start
                if late > max(1e-6, 1e-9 * abs(placement.start)):
                    text = f"begins at {placement.start}, and {file.name} is at {site} at {moment}"
                    yield f"{workflow.name}/{reader}: {text}"
