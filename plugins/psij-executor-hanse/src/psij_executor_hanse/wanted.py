"""A job of PSI/J in a site's words."""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from psij import Job, JobAttributes, JobSpec, ResourceSpecV1

from lrms_sim.workload.requests import Gpus, Memory, Request

PREFIX: Final = "hanse."
"""Of custom attributes that are for this executor; those of others are for other executors."""

_SCHEDULERS: Final = (
    "SLURM*|HANSE_*|SGE_*|PE|PE_HOSTFILE|NSLOTS|NHOSTS|NQUEUES|QUEUE|JOB_ID|TMPDIR|PATH"
)
"""Variables that a job without an inherited environment has all the same: launchers need them."""

_UNSET: Final = f"""\
for _psij_name in $(compgen -e); do
    case $_psij_name in {_SCHEDULERS}) ;; *) unset "$_psij_name" ;; esac
done
unset _psij_name"""

_NODEFILE: Final = """\
PSIJ_NODEFILE=$(mktemp)
if [ -n "${SLURM_JOB_NODELIST-}" ]; then
    scontrol show hostnames "$SLURM_JOB_NODELIST"
elif [ -n "${PE_HOSTFILE-}" ]; then
    cut -d ' ' -f 1 "$PE_HOSTFILE"
else
    hostname
fi | awk -v n=%d '{ node[NR] = $0 } END { for (i = 0; i < n; i++) print node[i %% NR + 1] }' > "$PSIJ_NODEFILE"
export PSIJ_NODEFILE
trap 'rm -f "$PSIJ_NODEFILE"' EXIT"""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def wanted_of(job: Job, spec: JobSpec, launch: Sequence[str]) -> dict[str, Any]:
    """Returns the arguments of `SyncClient.submit` for a job; its own identifier is the key.

    Args:
        job: it.
        spec: of it.
        launch: the command of the launcher.

    Raises:
        ValueError: a site cannot do what it asks for.
    """
    attributes = spec.attributes or JobAttributes()
    custom = _own_attributes(attributes)
    sites = _names(custom.pop("sites", ()), "sites")
    home_only = custom.pop("home_only", not sites)
    if home_only is not True and home_only is not False:
        raise ValueError(f"hanse.home_only is {home_only!r}; it must be True or False")
    needs = needs_of(spec.resources, attributes, custom)
    if custom:
        raise ValueError(f"there is no custom attribute {PREFIX}{next(iter(custom))}")
    return {
        "key": f"psij-{job.id}",
        "name": spec.name or "",
        "needs": needs,
        "script": _script(spec, needs, launch),
        "sites": sites,
        "home_only": home_only,
    }


def needs_of(resources: object, attributes: JobAttributes, custom: dict[str, object]) -> Request:
    """Returns what a job asks for, and takes what is said of it out of its custom attributes.

    Raises:
        ValueError: a site cannot give it.
    """
    if not isinstance(resources, ResourceSpecV1):
        text = f"resources are of {type(resources).__name__}; a site takes those of ResourceSpecV1"
        raise ValueError(text)  # noqa: TRY004  # as all that no site could take
    if attributes.reservation_id is not None:
        raise ValueError("reservation_id is set, and a site knows no reservations")
    nodes, tasks = resources.computed_node_count, resources.computed_process_count
    several = tasks > 1
    memory = resources.memory
    gpus = resources.gpu_cores_per_process
    return Request(
        tasks=tasks,
        cores_per_task=resources.cpu_cores_per_process or 1,
        nodes_min=nodes,
        nodes_max=nodes if several else None,  # one process is on one node in any case
        tasks_per_node=resources.computed_processes_per_node if several else None,
        # PSI/J counts the bytes of the job as a whole.
        memory=Memory(math.ceil(memory / nodes / 2**20), "node") if memory else None,
        gpus=Gpus(gpus, "task") if gpus else None,
        exclusive=resources.exclusive_node_use,
        features=tuple(_names(custom.pop("constraint", ()), "constraint")),
        wall_time=attributes.duration.total_seconds(),
        partition=attributes.queue_name or "",
        account=attributes.account or "",
        qos=str(custom.pop("qos", "")),
    )


def _own_attributes(attributes: JobAttributes) -> dict[str, object]:
    given: Mapping[str, object] = attributes.custom_attributes or {}
    return {
        name.removeprefix(PREFIX): value for name, value in given.items() if name.startswith(PREFIX)
    }


def _names(value: object, what: str) -> list[str]:
    if isinstance(value, str):
        return [each for each in re.split("[,&]", value) if each]
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return list(value)
    raise ValueError(f"{PREFIX}{what} is {value!r}; it must be names, in a list or with commas")


def _script(spec: JobSpec, needs: Request, launch: Sequence[str]) -> str:
    lines = ["#!/bin/bash"]
    if spec.directory is not None:
        lines.append(f"cd {shlex.quote(str(spec.directory))} || exit 1")
    if not spec.inherit_environment:
        lines.append(_UNSET)
    for name, value in (spec.environment or {}).items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of an environment variable")
        lines.append(f"export {name}={shlex.quote(value)}")
    return "\n".join([*lines, _NODEFILE % needs.tasks, shlex.join(launch), ""])
