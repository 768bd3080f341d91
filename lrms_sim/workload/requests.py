"""What a job asks for, in the field's vocabulary; one value for submission, offer, reservation and simulation.

The words are Slurm's where Slurm has one. Memory is in MiB, times are in seconds. People write them in options and
files as `4G/node`, `a100:2`, `2-4`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final, Literal, Self, cast

from lrms_sim.util.errors import HanseError

MemoryScope = Literal["node", "core", "gpu"]
GpuScope = Literal["node", "task", "job"]
COUNT_MAX = 2**31 - 1
"""Largest number of tasks, cores, nodes or GPUs; kernels count with 32 bits."""

MEMORY_MAX = 2**40
"""Largest amount of memory, MiB: one exbibyte."""

NAMES_MAX: Final = 64
"""Most features, licences or modules of one job."""

_NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9_.:@/+=-]{0,127}"

_SIGNAL: Final = (
    r"(?:B:)?(?:HUP|INT|QUIT|ABRT|KILL|ALRM|TERM|USR1|USR2|URG|CONT|STOP|TSTP|TTIN|TTOU"
    r"|[1-9]|[1-5][0-9]|6[0-4])"
)
SIGNAL_BEFORE_MAX: Final = 65535.0
"""How long before its end a job can be sent a signal, seconds: what Slurm takes."""

_IMAGE: Final = r"[^\x00-\x20\x7f-]{1}[^\x00-\x20\x7f]{0,1023}"


class RequestError(HanseError, ValueError):
    """A request contradicts itself, or a number in it is out of range."""


@dataclass(frozen=True, slots=True)
class Memory:
    """How much memory a job needs, and for what each amount is.

    Attributes:
        mib: amount, MiB; at least 1.
        per: what has that much: each node of the job (`--mem`), each core (`--mem-per-cpu`) or each GPU.
    """

    mib: int
    per: MemoryScope = "core"

    def __post_init__(self) -> None:
        """Checks the amount.

        Raises:
            RequestError: it is out of range.
        """
        if not 1 <= self.mib <= MEMORY_MAX:
            raise RequestError(f"memory is {self.mib} MiB; it must be from 1 to {MEMORY_MAX}")

    def __str__(self) -> str:
        """Returns it as people write it, such as `4 GiB a core`."""
        return f"{size_text(self.mib)} a {self.per.replace('gpu', 'GPU')}"


@dataclass(frozen=True, slots=True)
class Gpus:
    """Which GPUs a job needs.

    Attributes:
        count: how many; at least 1.
        per: what has that many: each node of the job (`--gpus-per-node`, `--gres=gpu`), each task
            (`--gpus-per-task`) or the job as a whole (`--gpus`).
        type: the type's name; empty for any.
    """

    count: int
    per: GpuScope = "job"
    type: str = ""

    def __post_init__(self) -> None:
        """Checks the count.

        Raises:
            RequestError: it is out of range.
        """
        _check("GPUs", self.count)

    def __str__(self) -> str:
        """Returns it as people write it, such as `2 GPUs (a100) a node`."""
        kind = f" ({self.type})" if self.type else ""
        return f"{counted(self.count, 'GPU')}{kind}" + (
            "" if self.per == "job" else f" a {self.per}"
        )


@dataclass(frozen=True, slots=True)
class Request:
    """What a job asks for.

    `Request(tasks=8)` is eight processors wherever they are: what a request of processors alone means.

    Attributes:
        tasks: processes that run at the same time; at least 1.
        cores_per_task: cores of one task, all on one node.
        nodes_min: least number of nodes; every node of a job runs at least one task.
        nodes_max: greatest number of nodes; None for any.
        tasks_per_node: greatest number of tasks on one node; None for any.
        memory: None where the job says nothing of it, which takes none.
        gpus: None for no GPU.
        features: names that every node of the job must have.
        exclusive: no other job runs on the nodes of this one, and it has all that they have.
        licences: what it takes of what is counted for all nodes together, by name.
        wall_time: seconds after which the batch system ends it; None for the queue's limit.
        image: container image in which it runs; empty for none.
        signal: signal sent before the wall time is over, as `USR1`; empty for none.
        signal_before: seconds between that signal and the end of the wall time.
        requeue: whether it may be run again from its start; None where nobody has said it.
        partition: partitions of which one is to run it, by the names of the site where it was written, with
            commas between; empty for the site's choice. A simulated machine has none.
        account: that pays for it, likewise.
        qos: quality of service, likewise.
        modules: of software that are loaded before it begins, likewise.
    """

    tasks: int = 1
    cores_per_task: int = 1
    nodes_min: int = 1
    nodes_max: int | None = None
    tasks_per_node: int | None = None
    memory: Memory | None = None
    gpus: Gpus | None = None
    features: tuple[str, ...] = ()
    exclusive: bool = False
    licences: tuple[tuple[str, int], ...] = ()
    wall_time: float | None = None
    image: str = ""
    signal: str = ""
    signal_before: float = 60.0
    requeue: bool | None = None
    partition: str = ""
    account: str = ""
    qos: str = ""
    modules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Checks that a machine with enough nodes could run it.

        Raises:
            RequestError: a number is out of range, or two words contradict each other.
        """
        _check("tasks", self.tasks)
        _check("cores per task", self.cores_per_task)
        if self.processors > COUNT_MAX:
            raise RequestError(
                f"{self.tasks} tasks of {self.cores_per_task} cores are more than {COUNT_MAX} cores"
            )
        self._check_nodes()
        if self.memory is not None and self.memory.per == "gpu" and self.gpus is None:
            raise RequestError("memory per GPU, and no GPU is asked for")
        if self.wall_time is not None and not self.wall_time > 0:
            raise RequestError(f"the wall time is {self.wall_time} s; it must be more than 0")
        if not 0 <= self.signal_before <= SIGNAL_BEFORE_MAX:
            raise RequestError(
                f"the signal comes {self.signal_before:g} s before the end; that must be from 0 s to {SIGNAL_BEFORE_MAX:.0f} s"
            )
        for name, count in self.licences:
            _check(f"licences of {name}", count)
        if len({name for name, _ in self.licences}) < len(self.licences):
            raise RequestError("licences: one of them is there twice")

    def _check_nodes(self) -> None:
        _check("nodes", self.nodes_min)
        if self.nodes_min > self.tasks:
            raise RequestError(
                f"{self.nodes_min} nodes for {counted(self.tasks, 'task')}; every node runs at least "
                "one task"
            )
        if self.tasks_per_node is not None:
            _check("tasks per node", self.tasks_per_node)
        if self.nodes_max is None:
            return
        _check("nodes", self.nodes_max)
        if self.nodes_max < self.nodes_min:
            raise RequestError(f"nodes: from {self.nodes_min} to {self.nodes_max} is no range")
        if self.tasks_per_node is not None and self.nodes_max * self.tasks_per_node < self.tasks:
            raise RequestError(
                f"{self.tasks} tasks do not go on {counted(self.nodes_max, 'node')} with "
                f"{self.tasks_per_node} each"
            )

    @classmethod
    def of_processors(cls, processors: int, wall_time: float | None = None) -> Self:
        """Returns the request of that many processors, wherever they are, and no more."""
        return cls(tasks=processors, wall_time=wall_time)

    @property
    def processors(self) -> int:
        """Cores of all tasks."""
        return self.tasks * self.cores_per_task

    @property
    def processors_alone(self) -> bool:
        """Whether it asks for nothing that a machine of processors would not understand."""
        return (
            self.cores_per_task == self.nodes_min == 1
            and (self.nodes_max, self.tasks_per_node, self.memory, self.gpus) == (None,) * 4
            and not (self.features or self.exclusive or self.licences)
        )

    @property
    def memory_least(self) -> int:
        """Memory on all of its nodes together, MiB, if these are as few as it allows; 0 if it says nothing."""
        if self.memory is None:
            return 0
        parts = {"core": self.processors, "node": self.nodes_min, "gpu": self.gpus_least}
        return self.memory.mib * parts[self.memory.per]

    @property
    def gpus_least(self) -> int:
        """GPUs on all of its nodes together if these are as few as it allows."""
        if self.gpus is None:
            return 0
        return (
            self.gpus.count * {"node": self.nodes_min, "task": self.tasks, "job": 1}[self.gpus.per]
        )

    def node_gpus(self) -> Gpus | None:
        """Returns the GPUs of a node or of a task.

        GPUs of a job as a whole are dealt out evenly: to the tasks where their number divides; else to
        the nodes, where their number is fixed and divides; else the job has one node.

        Returns:
            None for none; never `per="job"`. Where the job has to be on one node, `per="node"`.
        """
        if self.gpus is None or self.gpus.per != "job":
            return self.gpus
        if self.gpus.count % self.tasks == 0:
            return Gpus(self.gpus.count // self.tasks, "task", self.gpus.type)
        if self.nodes_max == self.nodes_min and self.gpus.count % self.nodes_min == 0:
            return Gpus(self.gpus.count // self.nodes_min, "node", self.gpus.type)
        return Gpus(self.gpus.count, "node", self.gpus.type)

    @property
    def on_one_node(self) -> bool:
        """Whether it goes on one node and no more."""
        if self.nodes_max == 1:
            return True
        whole = self.gpus is not None and self.gpus.per == "job"
        if not whole or self.gpus is None or self.gpus.count % self.tasks == 0:
            return False
        return not (self.nodes_max == self.nodes_min and self.gpus.count % self.nodes_min == 0)

    def __str__(self) -> str:
        """Returns it as people read it, such as `4 tasks of 2 cores, 8 GiB a node`."""
        if self.processors_alone:
            return ", ".join([counted(self.tasks, "processor"), *self._names()])
        said = [counted(self.tasks, "task")]
        if self.cores_per_task > 1:
            said[0] += f" of {self.cores_per_task} cores"
        if self.nodes_max is not None:
            least = "" if self.nodes_min == self.nodes_max else f"{self.nodes_min} to "
            said.append(least + counted(self.nodes_max, "node"))
        elif self.nodes_min > 1:
            said.append(f"at least {self.nodes_min} nodes")
        if self.tasks_per_node is not None:
            said.append(f"at most {counted(self.tasks_per_node, 'task')} a node")
        said += [str(part) for part in (self.memory, self.gpus) if part is not None]
        said += self.features
        if self.exclusive:
            said.append("exclusive")
        said += [f"{count} × {name}" for name, count in self.licences]
        return ", ".join([*said, *self._names()])

    def _names(self) -> list[str]:
        # What is named and has no number.
        named = (
            ("image", self.image),
            ("partition", self.partition),
            ("account", self.account),
            ("QOS", self.qos),
            *(("module", name) for name in self.modules),
        )
        return [f"{what} {name}" for what, name in named if name]


def check_names(request: Request) -> None:
    """Checks that no name in a request could be taken for anything else than a name.

    Raises:
        RequestError: one could.
    """
    for what, names in (
        ("features", request.features),
        ("licences", tuple(name for name, _ in request.licences)),
        ("modules", request.modules),
        ("partition", tuple(request.partition.split(",")) if request.partition else ()),
        ("account", (request.account,) if request.account else ()),
        ("qos", (request.qos,) if request.qos else ()),
        ("gpus", (request.gpus.type,) if request.gpus is not None and request.gpus.type else ()),
    ):
        if len(names) > NAMES_MAX:
            raise RequestError(f"{what}: {len(names)} names; at most {NAMES_MAX} are possible")
        for name in names:
            if re.fullmatch(_NAME, name) is None:
                raise RequestError(
                    f"{what}: {name[:80]!r} is no name; one has letters, digits and _.:@/+=-, and begins with neither sign"
                )
    image = request.image
    if image and (re.fullmatch(_IMAGE, image) is None or not image.isprintable()):
        raise RequestError(f"image: {request.image[:80]!r} is no name of a container image")
    if request.signal and re.fullmatch(_SIGNAL, request.signal) is None:
        raise RequestError(f"signal: {request.signal[:80]!r} is none; one is USR1, or B:USR1")


def counted(count: int, noun: str) -> str:
    """Returns a number of things, such as `1 task` and `2 tasks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def size_text(mib: int) -> str:
    """Returns an amount of memory in the largest unit in which it is whole, such as `4 GiB`."""
    amount, unit = mib, "MiB"
    for larger in ("GiB", "TiB", "PiB"):
        if amount % 1024:
            break
        amount //= 1024
        unit = larger
    return f"{amount} {unit}"


def mib_of(text: str) -> int | None:
    """Returns the MiB of an amount of memory as people write it, rounded up; None of any other text.

    `4 GiB`, `4G`, `4096M` and `4096` are the same: units are those of Slurm, powers of 1024, and MiB where
    there is none.
    """
    found = re.fullmatch(_AMOUNT, text.strip())
    if found is None:
        return None
    return math.ceil(float(found[1]) * 1024.0 ** ("KMGTP".index((found[2] or "M").upper()) - 1))


_AMOUNT: Final = r"(?i:(\d{1,15}(?:\.\d{1,9})?) *([KMGTP]?)(?:(?<=[KMGTP])i?B)?)"


def _check(what: str, count: int) -> None:
    if not 1 <= count <= COUNT_MAX:
        raise RequestError(f"{what}: {count} is not from 1 to {COUNT_MAX}")


_SIZE: Final = re.compile(r"(\d{1,15})([MGT])(?:i?B)?(?:/(node|core|gpu))?", re.IGNORECASE)
_UNITS: Final = {"M": 1, "G": 1024, "T": 1024**2}

_GPUS: Final = re.compile(
    r"(?:(?P<type>[A-Za-z_][\w.-]*):)?(?P<count>\d{1,15})(?:/(?P<per>node|task|job))?"
)
_NODES: Final = re.compile(r"(\d{1,15})(?:-(\d{1,15}))?")
_LICENCE: Final = re.compile(r"([\w.@+/-]+?)(?::(\d{1,15}))?")


def nodes_of(text: str) -> tuple[int, int]:
    """Returns the least and greatest number of nodes of `2` or `2-4`; `RequestError` for any other text."""
    found = _read(_NODES, text, "no number of nodes; write 2, or 2-4")
    return int(found[1]), int(found[2] or found[1])


def memory_of(text: str) -> Memory:
    """Returns the memory of `4G` (of each core) or `64G/node`; `RequestError` for any other text."""
    found = _read(_SIZE, text, "no amount of memory; write 4G, or 64G/node")
    per = (found[3] or "core").lower()
    return Memory(int(found[1]) * _UNITS[found[2].upper()], cast("MemoryScope", per))


def gpus_of(text: str) -> Gpus:
    """Returns the GPUs of `2`, `a100:2` or `1/task`; `RequestError` for any other text."""
    found = _read(_GPUS, text, "no number of GPUs; write 2, a100:2 or 1/task")
    return Gpus(int(found["count"]), cast("GpuScope", found["per"] or "job"), found["type"] or "")


def licence_of(text: str) -> tuple[str, int]:
    """Returns name and count of `NAME` or `NAME:2`; `RequestError` for any other text."""
    found = _read(_LICENCE, text, "no licence; write NAME, or NAME:2")
    return found[1], int(found[2] or 1)


def _read(pattern: re.Pattern[str], text: str, what: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise RequestError(f"{text[:80]!r} is {what}")
    return found
