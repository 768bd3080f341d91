"""What a job asks for, between Slurm's words and a `Request`. Pure.

Nothing here reads a script: Slurm does, and prints the options in force (`sbatch --test-only --verbose --verbose`)
or the job's fields (`scontrol show job`). What a request cannot say raises `UnsaidError`, with the option.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NamedTuple

from grms.lrms.slurm.slurm_limits import read_limit
from lrms_sim.workload.requests import Gpus, GpuScope, Memory, MemoryScope, Request, RequestError

SIGNAL_BEFORE_S: Final = 60.0
"""When Slurm sends the signal of `--signal` without a moment, seconds before the end (sbatch(1))."""

ASKED: Final = frozenset(
    (
        *("ntasks", "cpus-per-task", "nodes", "ntasks-per-node", "time", "signal", "container"),
        *("mem", "mem-per-cpu", "mem-per-gpu", "exclusive", "constraint", "licenses"),
        *("gres", "gpus", "gpus-per-node", "gpus-per-task", "cpus-per-gpu", "ntasks-per-gpu"),
        *("partition", "account", "qos", "requeue", "no-requeue"),
    )
)
"""Options of sbatch of which a request is made."""

_UNITS: Final = {"K": 1 / 1024, "M": 1, "": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_NAMES: Final = r"[\w.+-]+(?:[&,][\w.+-]+)*"
_GPUS: Final = r"(?:gres[:/])?gpu(?::(?P<type>[A-Za-z_][\w.-]*))?(?::(?P<count>\d+))?"
_PLAIN_GPUS: Final = r"(?:(?P<type>[A-Za-z_][\w.-]*)(?::|$))?(?P<count>\d+)?"
_SIGNAL: Final = r"(?:(?P<flags>[BR]+):)?(?P<name>\w+)(?:@(?P<before>\d+))?"
_LICENCE: Final = r"(?P<name>[\w.@/+-]+)(?::(?P<count>\d+))?"


class UnsaidError(RequestError):
    """Something that a job asks for, and that a request cannot say.

    Attributes:
        option: long name of sbatch's option.
        reason: for people.
    """

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"--{option}: {reason}")
        self.option = option
        self.reason = reason


# --- single values -------------------------------------------------------------------------------


def read_memory(text: str) -> int:
    """Returns an amount of memory as Slurm prints it, MiB, rounded up; 0 for all that a node has.

    Raises:
        ValueError: it is no amount.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)B?\??", text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no amount of memory as Slurm writes them")
    return math.ceil(float(found[1]) * _UNITS[found[2]])


def read_nodes(text: str) -> tuple[int, int]:
    """Returns the least and the greatest number of nodes in `2` or `2-4`; each may end in k or m, for 1024 and its square.

    Raises:
        ValueError: it is neither.
    """
    found = re.fullmatch(r"(\d+)([km]?)(?:-(\d+)([km]?))?", text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no number of nodes")
    times = {"": 1, "k": 1024, "m": 1024**2}
    least = int(found[1]) * times[found[2]]
    return least, int(found[3]) * times[found[4]] if found[3] else least


def read_gpus(text: str, per: GpuScope) -> Gpus | None:
    """Returns the GPUs of `gres:gpu:a100:2`, `gpu:2`, `a100:2`, `a100` or `2`.

    Returns:
        `None` for a number of zero.

    Raises:
        ValueError: it is something else, such as GPUs of two types, or another generic resource.
    """
    found = re.fullmatch(_GPUS, text) or re.fullmatch(_PLAIN_GPUS, text)
    if found is None or not text:
        raise ValueError(f"{text[:40]!r} are not GPUs of one type")
    count = int(found["count"] or 1)
    return Gpus(count, per, found["type"] or "") if count else None


def read_signal(text: str) -> tuple[str, float]:
    """Returns the signal and when it is sent, seconds before the end, in `USR1`, `USR1@90` or `B:USR1@90`.

    The signal keeps `B:`, which sends it to the script alone instead of its steps; `sigusr1` is `USR1`, too.

    Raises:
        ValueError: it is something else.
    """
    found = re.fullmatch(_SIGNAL, text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no signal as Slurm writes them")
    alone = "B:" if "B" in (found["flags"] or "") else ""
    return alone + found["name"].upper().removeprefix("SIG"), float(
        found["before"] or SIGNAL_BEFORE_S
    )


def read_features(text: str) -> tuple[str, ...]:
    """Returns the names of which a node must have every one.

    Raises:
        ValueError: it is another condition: a choice, or a number of nodes.
    """
    if re.fullmatch(_NAMES, text) is None:
        raise ValueError("only names joined by & mean the same elsewhere")
    return tuple(re.split("[&,]", text))


def read_licences(text: str) -> tuple[tuple[str, int], ...]:
    """Returns the licences of `matlab:2,fluent`.

    Raises:
        ValueError: it is a choice among some.
    """
    found = [re.fullmatch(_LICENCE, word) for word in re.split("[,;]", text)]
    if not all(found):
        raise ValueError(f"{text[:40]!r} are not names, each with a number")
    counts: Counter[str] = Counter()
    for each in found:
        if each:
            counts[each["name"]] += int(each["count"] or 1)
    return tuple(counts.items())


# --- options in force ----------------------------------------------------------------------------


class _Asked(NamedTuple):
    """What a job asks for as Slurm counts it, from either of its programs."""

    tasks: int | None
    cores: int
    nodes: tuple[int, int] | None
    tasks_per_node: int | None
    gpus: Gpus | None
    cores_per_gpu: int
    tasks_per_gpu: int


def read_options(options: Mapping[str, str], processors: int | None = None) -> Request:
    """Returns the request of options in force, as `sbatch --test-only --verbose --verbose` prints them.

    `processors` are those that the controller would give it. They count where nothing else is asked for: a node may
    give out processors in pairs. Options that are none of `ASKED` are left out.

    Raises:
        RequestError: the options contradict each other, or an `UnsaidError` where a request cannot say one.
    """

    def number(name: str, otherwise: int) -> int:
        try:
            return int(options.get(name, otherwise))
        except ValueError as error:
            raise UnsaidError(name, f"{options[name][:40]!r} is no number") from error

    with _of("nodes"):
        nodes = read_nodes(options["nodes"]) if "nodes" in options else None
    asked = _Asked(
        tasks=number("ntasks", 0) or None,
        cores=number("cpus-per-task", 1),
        nodes=nodes,
        tasks_per_node=number("ntasks-per-node", 0) or None,
        gpus=_gpus(options),
        cores_per_gpu=number("cpus-per-gpu", 0),
        tasks_per_gpu=number("ntasks-per-gpu", 0),
    )
    memory, whole = _memory(options)
    with _of("constraint"):
        features = read_features(options["constraint"]) if "constraint" in options else ()
    with _of("licenses"):
        licences = read_licences(options["licenses"]) if "licenses" in options else ()
    with _of("signal"):
        signal, before = read_signal(options["signal"]) if "signal" in options else ("", 60.0)
    requeue = True if "requeue" in options else False if "no-requeue" in options else None
    request = replace(
        _shape(asked, memory),
        features=features,
        exclusive="exclusive" in options or whole,
        licences=licences,
        wall_time=_wall_time(options.get("time", "")),
        image=options.get("container", ""),
        signal=signal,
        signal_before=before,
        requeue=requeue,
        partition=options.get("partition", ""),
        account=options.get("account", ""),
        qos=options.get("qos", ""),
    )
    return (
        replace(request, tasks=processors) if processors and request.processors_alone else request
    )


@contextmanager
def _of(option: str) -> Iterator[None]:
    # What cannot be read within is this option's.
    try:
        yield
    except UnsaidError:
        raise
    except ValueError as error:
        raise UnsaidError(option, str(error)) from error


def _wall_time(text: str) -> float | None:
    with _of("time"):
        return read_limit(text) if text else None


def _gpus(options: Mapping[str, str]) -> Gpus | None:
    scopes: tuple[tuple[str, GpuScope], ...] = (
        ("gpus-per-task", "task"),
        ("gpus-per-node", "node"),
        ("gres", "node"),
        ("gpus", "job"),
    )
    said = [(name, per) for name, per in scopes if options.get(name)]
    if options.get("gres", "").lower() == "none":
        said.remove(("gres", "node"))  # Slurm's word for no generic resource, and no type of GPU
    found: dict[str, Gpus] = {}
    for name, per in said:
        with _of(name):
            gpus = read_gpus(options[name], per)
        if gpus is not None:
            found[name] = gpus
    if len(found) > 1:
        # Slurm makes one condition of several, which is that of none of them alone.
        names = " and ".join(f"--{name}" for name in found)
        raise UnsaidError(next(iter(found)), f"{names} at once: a partner is told one of them")
    return next(iter(found.values()), None)


_MEMORY: Final[tuple[tuple[str, MemoryScope], ...]] = (
    ("mem", "node"),
    ("mem-per-cpu", "core"),
    ("mem-per-gpu", "gpu"),
)


def _memory(options: Mapping[str, str]) -> tuple[Memory | None, bool]:
    # And whether all of the memory of its nodes is meant.
    for name, per in _MEMORY:
        if name in options:
            with _of(name):
                mib = read_memory(options[name])
            return (Memory(mib, per), False) if mib else (None, True)
    return None, False


def _shape(asked: _Asked, memory: Memory | None) -> Request:
    # What Slurm fills in for what is left out (sbatch(1), "--ntasks", "--ntasks-per-gpu").
    gpus, tasks = asked.gpus, asked.tasks
    least = 1 if asked.nodes is None else asked.nodes[0]
    if each := asked.tasks_per_gpu:
        if gpus is None and tasks is not None:
            gpus = Gpus(-(-tasks // each))
        elif gpus is not None and gpus.per == "job" and tasks in {None, gpus.count * each}:
            tasks = gpus.count * each
        else:
            raise UnsaidError(
                "ntasks-per-gpu", "only with --gpus or --ntasks it says how many tasks"
            )
    if tasks is None:
        tasks = least * (asked.tasks_per_node or 1)
    cores = asked.cores
    if asked.cores_per_gpu:
        cores = asked.cores_per_gpu * _gpus_of_task(asked, gpus, tasks)
    return Request(
        tasks,
        cores,
        nodes_min=min(least, tasks),
        nodes_max=None if asked.nodes is None else asked.nodes[1],
        tasks_per_node=asked.tasks_per_node,
        memory=memory,
        gpus=gpus,
    )


def _gpus_of_task(asked: _Asked, gpus: Gpus | None, tasks: int) -> int:
    # How many GPUs each task has, where every one has as many.
    if gpus is not None:
        if gpus.per == "task":
            return gpus.count
        there = tasks if gpus.per == "job" else 0
        if gpus.per == "node" and asked.nodes is not None and asked.nodes[0] == asked.nodes[1]:
            there = tasks // asked.nodes[0] if tasks % asked.nodes[0] == 0 else 0
        elif gpus.per == "node" and tasks == 1:
            there = 1
        if there and gpus.count % there == 0:
            return gpus.count // there
    raise UnsaidError("cpus-per-gpu", "its tasks have no equal number of GPUs; say --cpus-per-task")


# --- a job that Slurm has ------------------------------------------------------------------------

_NONE: Final = frozenset(("", "(null)", "N/A"))

_ALONE: Final = {
    "Dependency": ("dependency", _NONE),
    "ReqNodeList": ("nodelist", _NONE),
    "Network": ("network", _NONE),
    "MinTmpDiskNode": ("tmp", frozenset("0")),
    "Reservation": ("reservation", _NONE),
    "BurstBuffer": ("bb", _NONE),
    "Deadline": ("deadline", _NONE),
    "HetJobId": ("hetjob", _NONE),
    "TresPerSocket": ("gpus-per-socket", _NONE),
}
"""Fields with what keeps a job at home: its option, and values that say that it was not given."""


def read_fields(fields: Mapping[str, str]) -> Request:
    """Returns the request of a job that waits, from the fields of `scontrol show job`.

    What its partition adds counts as the job's: memory, if there is a default, and whether it may be run again. Its
    partition, account and QOS are left out, as Slurm fills them in for everybody, and so is its signal, which Slurm
    does not show.

    Raises:
        RequestError: as in `read_options`.
        KeyError: a field is missing.
    """
    for name, (option, plain) in _ALONE.items():
        if fields.get(name, "(null)") not in plain | _NONE:
            raise UnsaidError(option, f"{fields[name][:40]} is of this cluster")
    options = {
        "ntasks": fields["NumTasks"],
        "cpus-per-task": fields["CPUs/Task"].replace("N/A", "1"),
        "time": fields["TimeLimit"],
        "requeue" if fields.get("Requeue") == "1" else "no-requeue": "set",
    }
    if "-" in fields["NumNodes"]:  # else it is Slurm's guess
        options["nodes"] = fields["NumNodes"]
    per_node = fields.get("NtasksPerN:B:S:C", "0").partition(":")[0]
    options |= {"ntasks-per-node": per_node} if per_node.isdecimal() and int(per_node) else {}
    options |= {
        name: fields[key] for name, key in _FIELDS.items() if fields.get(key, "") not in _NONE
    }
    for name in ("cpus-per-gpu", "mem-per-gpu"):
        if name in options:
            options[name] = options[name].rpartition(":")[2]
    for name in ("mem", "mem-per-cpu"):
        if name in options and ("mem-per-gpu" in options or not read_memory(options[name])):
            del options[name]  # the partition's default, or no amount at all
    if fields.get("OverSubscribe") in {"NO", "USER", "MCS"}:
        options["exclusive"] = "exclusive"
    request = read_options(options, int(fields["NumCPUs"].partition("-")[0]))
    least = fields.get("MinCPUsNode", "1")
    implied = request.cores_per_task * (request.tasks_per_node or 1)
    if least.isdecimal() and int(least) > max(implied, 1):
        raise UnsaidError("mincpus", "a partner is not told how many processors a node has to have")
    return request


_FIELDS: Final = {
    "mem": "MinMemoryNode",
    "mem-per-cpu": "MinMemoryCPU",
    "mem-per-gpu": "MemPerTres",
    "constraint": "Features",
    "licenses": "Licenses",
    "gres": "TresPerNode",
    "gpus": "TresPerJob",
    "gpus-per-task": "TresPerTask",
    "cpus-per-gpu": "CpusPerTres",
    "ntasks-per-gpu": "NtasksPerTRES",
    "container": "Container",
}
"""Fields that have the values of options."""


# --- a request for sbatch ------------------------------------------------------------------------


def shape_options(request: Request) -> list[str]:
    """Returns options of sbatch with which Slurm gives a job what it asks for.

    Without its wall time, and without what is the site's to say: partition, account, QOS, whether it may be run again.
    """
    each = request.tasks_per_node
    said = {
        "ntasks": request.tasks,
        "cpus-per-task": request.cores_per_task if request.cores_per_task > 1 else 0,
        "nodes": _nodes(request),
        # Slurm gives every node room for as many, whether or not there are so many tasks.
        "ntasks-per-node": each if each is not None and each < request.tasks else 0,
        "constraint": "&".join(request.features),
        "licenses": ",".join(f"{name}:{count}" for name, count in request.licences),
        "signal": f"{request.signal}@{request.signal_before:.0f}" if request.signal else "",
        "container": request.image,
    }
    if request.memory is not None:
        name = {per: name for name, per in _MEMORY}[request.memory.per]
        said[name] = f"{request.memory.mib}M"
    elif request.exclusive:
        said["mem"] = "0"  # all that its nodes have
    if (gpus := request.node_gpus()) is not None:
        kind = f"{gpus.type}:" if gpus.type else ""
        # A task's GPUs are known to one selection plugin alone, a node's to all.
        name, prefix = ("gpus-per-task", "") if gpus.per == "task" else ("gres", "gpu:")
        said[name] = f"{prefix}{kind}{gpus.count}"
    words = [f"--{name}={value}" for name, value in said.items() if value]
    return [*words, "--exclusive"] if request.exclusive else words


def _nodes(request: Request) -> str:
    if request.on_one_node:
        return "1"
    if request.nodes_max is None and request.nodes_min == 1:
        return ""
    # Slurm knows no range without an end; no job has more nodes than tasks.
    most = request.tasks if request.nodes_max is None else min(request.nodes_max, request.tasks)
    least = request.nodes_min
    return str(least) if least == most else f"{least}-{most}"
