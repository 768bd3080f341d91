"""How recordings are read: what a user says of it, each an option of commands; nothing is slow to import."""

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

import click

from lrms_sim.util.option_fields import FloatRange, option

if TYPE_CHECKING:
    from broker.io.wfformat import RecordedTask

CoreRule = Literal["units", "ignore"]


@dataclass(frozen=True, slots=True)
class MappingRule:
    """Which resources some tasks may run on.

    Attributes:
        pattern: with `*`, `?` and `[…]`, of a task's id, name or program.
        targets: names or kinds of resources.
    """

    pattern: str
    targets: tuple[str, ...]

    def matches(self, task: "RecordedTask") -> bool:
        """Returns whether the rule speaks of a task."""
        return any(fnmatchcase(text, self.pattern) for text in (task.id, task.name, task.program))


def mapping_rule(text: str) -> MappingRule:
    """Returns the rule of a mapping such as "blast*=gpu,luebeck"."""
    pattern, sign, names = text.rpartition("=")
    targets = tuple(name.strip() for name in names.split(",") if name.strip())
    if not (sign and pattern and targets):
        raise click.BadParameter(f"{text!r} is no mapping; write 'blast*=gpu'")
    return MappingRule(pattern, targets)


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How a recording is imported.

    Attributes:
        rules: the first that matches a task counts. Tasks without one run on every resource of kind
            "cpu".
        cores: "units": the task takes a unit of its primary resource per core used, and smaller
            resources are no alternatives; "ignore": it takes one.
        reference_mhz: clock of a machine of performance 1. Work is then run time times the recorded
            machine's clock over this; with `None`, or an unknown clock, times its performance, which
            is 1 where a recording has none.
        time_factor: factor on all run times; more than 0.
        work_min: least work in seconds. Recorders round, some of them to nothing, and a task
            without work cannot be planned.
    """

    rules: tuple[MappingRule, ...] = option(
        "What tasks run on: a pattern of id, name or program, and resources or kinds, as "
        "'blast*=gpu' or '*_merge=luebeck,riga'. The first that matches counts; tasks without "
        "one run on every resource of kind cpu.",
        default=(),
        flag="--map",
        type=mapping_rule,
        metavar="PATTERN=RESOURCES",
    )
    cores: CoreRule = option(
        "units: a task takes a unit of a resource for each core it used; ignore: one.",
        default="units",
    )
    reference_mhz: float | None = option(
        "Clock of a machine of performance 1; run times recorded on faster ones are more "
        "work.  [default: run times are work]",
        default=None,
        type=FloatRange(0, min_open=True),
        metavar="MHZ",
    )
    time_factor: float = option(
        "Multiplies recorded run times.", default=1.0, type=FloatRange(0, min_open=True)
    )
    work_min: float = 1e-3

    def __post_init__(self) -> None:
        for word, value in (
            ("reference clock", self.reference_mhz),
            ("time factor", self.time_factor),
            ("least work", self.work_min),
        ):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"the {word} is {value}; it must be more than 0")

    def work(self, task: "RecordedTask") -> float:
        """Returns the seconds a task takes at performance 1."""
        speed = task.performance
        if self.reference_mhz is not None and task.speed_mhz is not None:
            speed = task.speed_mhz / self.reference_mhz
        return max(task.run_time * speed * self.time_factor, self.work_min)
