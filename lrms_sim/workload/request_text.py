"""Requests as texts by field: what tables of jobs and other programs' files say of them."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, cast

from lrms_sim.util.messages import shown, unknown
from lrms_sim.workload.requests import Gpus, GpuScope, Memory, MemoryScope, Request, RequestError

FIELDS: Final = (
    *("tasks", "cores_per_task", "nodes_min", "nodes_max", "tasks_per_node"),
    *("memory_mib", "memory_per", "gpus", "gpus_per", "gpu_type"),
    *("features", "exclusive", "licences"),
)
"""What is said of a request, by name."""

_YES: Final = frozenset({"1", "true", "yes"})
_NO: Final = frozenset({"", "0", "false", "no"})


def fields_of(request: Request) -> dict[str, str]:
    """Returns what a request says, by `FIELDS`; nothing of what is as by default, except the tasks."""
    memory, gpus = request.memory, request.gpus
    said: dict[str, object] = {
        "tasks": request.tasks,
        "cores_per_task": request.cores_per_task if request.cores_per_task > 1 else None,
        "nodes_min": request.nodes_min if request.nodes_min > 1 else None,
        "nodes_max": request.nodes_max,
        "tasks_per_node": request.tasks_per_node,
        "memory_mib": memory and memory.mib,
        "memory_per": memory and memory.per,
        "gpus": gpus and gpus.count,
        "gpus_per": gpus and gpus.per,
        "gpu_type": gpus and gpus.type,
        "features": " ".join(request.features),
        "exclusive": "yes" if request.exclusive else None,
        "licences": " ".join(f"{name}:{count}" for name, count in request.licences),
    }
    return {name: str(value) for name, value in said.items() if value}


def request_of(fields: Mapping[str, Any], processors: int | None = None) -> Request:
    """Returns the request that `fields_of` has written, or one that a person has.

    Args:
        fields: by `FIELDS`, texts or numbers; others are ignored.
        processors: cores of all tasks, for a row that does not say its tasks.

    Raises:
        ValueError: a field is no number or no known word, or fields contradict each other.
    """
    said = {name: str(fields[name]).strip() for name in FIELDS if fields.get(name) is not None}
    cores = _count(said, "cores_per_task") or 1
    tasks = _count(said, "tasks")
    if tasks is None:
        tasks, rest = divmod(processors or cores, cores)
        if rest:
            raise RequestError(f"{processors} processors are no whole number of {cores} cores")
    memory, gpus = _count(said, "memory_mib"), _count(said, "gpus")
    memory_per = _word(said, "memory_per", "core", "node", "gpu")
    gpus_per = _word(said, "gpus_per", "job", "node", "task")
    return Request(
        tasks=tasks,
        cores_per_task=cores,
        nodes_min=_count(said, "nodes_min") or 1,
        nodes_max=_count(said, "nodes_max"),
        tasks_per_node=_count(said, "tasks_per_node"),
        memory=None if memory is None else Memory(memory, cast("MemoryScope", memory_per)),
        gpus=None
        if gpus is None
        else Gpus(gpus, cast("GpuScope", gpus_per), said.get("gpu_type", "")),
        features=tuple(said.get("features", "").split()),
        exclusive=_truth(said),
        licences=licences_of(said.get("licences", "")),
    )


def licences_of(text: str) -> tuple[tuple[str, int], ...]:
    """Returns licences by name: of `matlab:2 ansys`, two and one.

    Raises:
        ValueError: a count is no whole number.
    """
    found: Counter[str] = Counter()
    for word in text.replace(",", " ").split():
        name, sign, count = word.partition(":")
        number = _whole(count) if sign else 1
        if not name or number is None:
            raise RequestError(f"licences: {shown(word)} is not NAME:COUNT")
        if number:
            found[name] += number
    return tuple(found.items())


def _count(said: Mapping[str, str], name: str) -> int | None:
    """Returns a whole number; None for none and for 0."""
    text = said.get(name, "")
    if not text:
        return None
    number = _whole(text)
    if number is None:
        raise RequestError(f"{name} is {shown(text)}; a whole number is expected")
    return number or None


def _word(said: Mapping[str, str], name: str, *known: str) -> str:
    word = said.get(name) or known[0]
    if word not in known:
        raise RequestError(f"{name}: {unknown('word', word, known)}")
    return word


def _truth(said: Mapping[str, str]) -> bool:
    word = said.get("exclusive", "").lower()
    if word not in _YES | _NO:
        raise RequestError(f"exclusive is {shown(word)}; yes or no is expected")
    return word in _YES


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None
