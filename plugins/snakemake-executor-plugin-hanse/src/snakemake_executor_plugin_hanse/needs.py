"""What a job asks for: Snakemake's resources as a site's request."""

import math
from collections.abc import Mapping
from typing import Any, Final

from lrms_sim.workload.requests import Gpus, Memory, Request

UNKNOWN: Final = "<TBD>"
"""How Snakemake writes a resource that is known on the node alone."""


def needs_of(resources: Mapping[str, Any], threads: int, runtime_min: int) -> Request:
    """Returns the request of a job.

    Args:
        resources: of the job, by their names in Snakemake.
        threads: of the job; cores of each task unless `cpus_per_task` is there.
        runtime_min: requested time if `runtime` is not there, minutes.

    Raises:
        ValueError: a resource is no number where it has to be, or two contradict each other.
    """
    nodes = _count(resources, "nodes")
    return Request(
        # Every node of a job runs a task.
        tasks=_count(resources, "tasks", "ntasks") or nodes or 1,
        cores_per_task=_count(resources, "cpus_per_task") or threads,
        nodes_min=nodes or 1,
        nodes_max=nodes,
        tasks_per_node=_count(resources, "tasks_per_node", "ntasks_per_node"),
        memory=_memory(resources),
        gpus=_gpus(resources),
        features=_names(_word(resources, "constraint")),
        wall_time=60.0 * (_count(resources, "runtime") or runtime_min),
        partition=_word(resources, "slurm_partition", "partition"),
        account=_word(resources, "slurm_account", "account"),
        qos=_word(resources, "qos"),
    )


def _given(resources: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, Any]:
    # The first of them that is there, or the first without a value.
    for name in names:
        value = resources.get(name)
        if value is not None and str(value) not in {"", UNKNOWN}:
            return name, value
    return names[0], None


def _count(resources: Mapping[str, Any], *names: str) -> int | None:
    name, value = _given(resources, names)
    if value is None:
        return None
    text = str(value)
    if isinstance(value, bool) or not text.isascii() or not text.isdigit():
        raise ValueError(f"the resource {name} is {value!r}; it must be a whole number")
    return int(text)


def _word(resources: Mapping[str, Any], *names: str) -> str:
    value = _given(resources, names)[1]
    return "" if value is None else str(value)


def _names(text: str) -> tuple[str, ...]:
    if "|" in text:
        raise ValueError(f"the resource constraint is {text!r}; a site knows no choice of features")
    return tuple(each for each in text.replace("&", ",").split(",") if each)


def _memory(resources: Mapping[str, Any]) -> Memory | None:
    # Snakemake counts megabytes of a million bytes; a job without memory says nothing of it.
    for name, per in (("mem_mb_per_cpu", "core"), ("mem_mb", "node")):
        megabytes = _count(resources, name)
        if megabytes:
            mib = math.ceil(megabytes * 1_000_000 / 2**20)
            return Memory(mib, "core" if per == "core" else "node")
    return None


def _gpus(resources: Mapping[str, Any]) -> Gpus | None:
    count = _count(resources, "gpus", "gpu")
    if not count:
        return None
    return Gpus(count, type=_word(resources, "gpu_model", "gpu_type"))
