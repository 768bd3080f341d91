"""What a job asks for, in the words of `qsub`. Pure.

Grid Engine counts slots, and whatever else a cell has made a resource of; how each is counted, `qconf -sc` says
(complex(5)): for every slot, once for a job, or not at all, so that it is only compared with what a host has. Which of
them is memory, and which are GPUs, the site's file says. How slots are dealt out over hosts is the rule of the parallel
environment (sge_pe(5), "allocation_rule").
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from lrms_sim.workload.requests import Request, RequestError

ONE_HOST: Final = "$pe_slots"
"""Allocation rule by which all slots of a job are on one host."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of a cell.

    Attributes:
        type: such as `MEMORY`, `INT`, `BOOL` or `STRING`.
        relation: such as `<=`; `EXCL` of the one by which a job has its hosts for itself.
        counted: `YES` for every slot of a job, `JOB` once for a job, `NO` if it is only compared.
        requestable: `YES`; `NO` if no job may ask for it; `FORCED` if only jobs that do come where it is.
    """

    type: str
    relation: str
    counted: str
    requestable: str = "YES"


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell and the site's file say of resources.

    Attributes:
        resources: by name.
        environment: name of the parallel environment.
        rule: its allocation rule; empty if unknown.
        memory, gpus, gpu_type: names of resources; empty for none.
    """

    resources: Mapping[str, Resource]
    environment: str = "smp"
    rule: str = ""
    memory: str = ""
    gpus: str = ""
    gpu_type: str = ""


def read_resources(text: str) -> dict[str, Resource]:
    """Returns the resources that `qconf -sc` shows.

    Raises:
        ValueError: it is something else.
    """
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 8 and not line.startswith("#"):
            found[words[0]] = Resource(words[2], words[3], words[5], words[4])
    if "slots" not in found:
        raise ValueError(f"qconf says {text.strip()[:80]!r}, not resources")
    return found


def read_rule(text: str) -> str:
    """Returns the allocation rule of the parallel environment that `qconf -sp` shows; empty if it shows none."""
    found = re.search(r"^allocation_rule\s+(?!0+\s)(\S+)", text, re.MULTILINE)
    return "" if found is None else found[1]


def resource_options(request: Request, cell: Cell) -> list[str]:
    """Returns the options of `qsub` with which a job gets what it asks for; without its wall time and its queues.

    Raises:
        RequestError: the cell has no words for it.
    """
    for asked, what in (
        (request.signal, "signal"),
        (request.image, "container image"),
        (request.qos, "QOS"),
    ):
        if asked:
            raise RequestError(f"Grid Engine has no {what} for a job; it asks for {asked}")
    _check_spread(request, cell)
    words = list(_resources(request, cell))
    slots = request.processors
    options = ["-pe", cell.environment, str(slots)] if slots > 1 else []
    return options + (["-l", ",".join(words)] if words else [])


def _check_spread(request: Request, cell: Cell) -> None:
    # Whether the slots of a job come to lie on hosts as it wants them.
    if request.processors_alone or request.processors == 1:
        return
    rule, each = cell.rule, request.tasks_per_node or request.tasks
    if rule == ONE_HOST:
        will_do, does = request.nodes_min == 1 and each >= request.tasks, "gives every job one host"
    elif rule.isdecimal():
        will_do, does = _as_many(request, int(rule), each), f"gives a job {rule} slots on each host"
    else:
        will_do, does = _anywhere(request), "may spread a job over any hosts"
    if not will_do:
        raise RequestError(f"the parallel environment {cell.environment} {does}")


def _as_many(request: Request, slots: int, each: int) -> bool:
    # Whether it wants so many slots on each host.
    hosts, rest = divmod(request.processors, slots)
    tasks, part = divmod(slots, request.cores_per_task)
    most = 1 if request.on_one_node else request.nodes_max or request.tasks
    return rest == part == 0 and request.nodes_min <= hosts <= most and tasks <= each


def _anywhere(request: Request) -> bool:
    # Whether it does not matter which slots share a host.
    bounds = (request.nodes_max, request.tasks_per_node)
    memory = request.memory is None or request.memory.per == "core"
    gpus = request.gpus is None or request.gpus.per == "task"
    alone = request.exclusive or request.cores_per_task > 1 or request.nodes_min > 1
    return bounds == (None, None) and memory and gpus and not alone


def _resources(request: Request, cell: Cell) -> Iterator[str]:
    yield from _amounts(request, cell)
    for name in request.features:
        found = cell.resources.get(name)
        if (
            found is None
            or found.type != "BOOL"
            or found.relation == "EXCL"
            or found.requestable == "NO"
        ):
            raise RequestError(f"no host of this cell has a feature {name}")
        yield f"{name}=TRUE"
    if request.exclusive:
        alone = [name for name, each in cell.resources.items() if each.relation == "EXCL"]
        if not alone:
            raise RequestError("this cell has no resource by which a job has a host for itself")
        yield f"{alone[0]}=TRUE"
    for name, count in request.licences:
        if cell.resources.get(name, Resource("", "", "NO")).counted == "NO":
            raise RequestError(f"this cell counts no licences of {name}")
        yield f"{name}={_share(cell, name, count, request)}"


def _amounts(request: Request, cell: Cell) -> Iterator[str]:
    # Memory and GPUs.
    gpus, hosts = request.node_gpus(), _hosts(request, cell)
    of_job = 0
    if gpus is not None:
        of_job = gpus.count * (request.tasks if gpus.per == "task" else hosts)
    if request.memory is not None:
        times = {"core": request.processors, "node": hosts, "gpu": of_job}[request.memory.per]
        name = _named(cell, cell.memory, "memory")
        amount = _of_hosts(cell, name, request.memory.mib * times, request, exact=False)
        yield f"{name}={amount}M"
    if gpus is not None:
        name = _named(cell, cell.gpus, "gpus")
        yield f"{name}={_of_hosts(cell, name, of_job, request)}"
        if gpus.type:
            yield f"{_named(cell, cell.gpu_type, 'gpu_type')}={gpus.type}"


def _hosts(request: Request, cell: Cell) -> int:
    # How many hosts a job has, where it matters.
    return max(1, request.processors // int(cell.rule)) if cell.rule.isdecimal() else 1


def _of_hosts(cell: Cell, name: str, whole: int, request: Request, *, exact: bool = True) -> int:
    # The number to be asked for, for so much of what hosts have in all.
    hosts = _hosts(request, cell)
    if hosts > 1 and cell.resources[name].counted == "JOB":
        raise RequestError(f"{name} is counted once for a job, and this one has {hosts} hosts")
    of_one, rest = divmod(whole, hosts)
    if cell.resources[name].counted == "NO":
        return of_one + bool(rest)  # compared with each of them
    return _share(cell, name, whole, request, exact=exact)


def _share(cell: Cell, name: str, whole: int, request: Request, *, exact: bool = True) -> int:
    # The number to be asked for, for so much of a resource in all.
    if cell.resources[name].counted != "YES":
        return whole
    share, rest = divmod(whole, request.processors)
    if rest and exact:
        raise RequestError(
            f"{name} is counted for each of the job's {request.processors} slots, and {whole} is no multiple of that"
        )
    return share + bool(rest)


def _named(cell: Cell, name: str, key: str) -> str:
    if not name:
        raise RequestError(f"the site's file does not say which resource to ask for (lrms.{key})")
    if name not in cell.resources:
        raise RequestError(f"this cell has no resource {name} (lrms.{key})")
    return name
