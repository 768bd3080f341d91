"""What a utility machine may do with jobs, and what that costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, cast, get_args

from lrms_sim.util.option_fields import option

SUSPENSIONS_MAX: Final = 2**31 - 1

Grow = Literal["never", "first", "last"]
Leave = Literal["never", "worthless", "zero"]
Suspension = Literal["suspend", "requeue"]
Law = Literal["linear", "amdahl", "downey"]


@dataclass(frozen=True, slots=True)
class Speedup:
    """How fast a job runs on fewer processors than requested.

    Attributes:
        law: `linear`: half the processors, half the speed (the paper). `amdahl`: a share of
            the work is serial. `downey`: Downey 1997, "A model for speedup of parallel
            programs", whose average parallelism is a multiple of the job's width.
        serial: for `amdahl`, from 0 to 1.
        parallelism: for `downey`, average parallelism over width; more than 0.
        variance: for `downey`, of the parallelism; at least 0.
    """

    law: Law = "linear"
    serial: float = 0.0
    parallelism: float = 1.0
    variance: float = 0.0

    def __post_init__(self) -> None:
        check_choice("speedup", self.law, get_args(Law))
        _number("serial share", self.serial, 0, 1)
        _number("parallelism", self.parallelism, 1e-9, math.inf)
        _number("variance", self.variance, 0, math.inf)


_PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "linear": (),
    "amdahl": ("serial",),
    "downey": ("parallelism", "variance"),
}


def speedup_of(text: str) -> Speedup:
    """Returns the speed-up that `linear`, `amdahl:SERIAL` or `downey:PARALLELISM:VARIANCE` says.

    Raises:
        ValueError: it is none of these, or a parameter is out of its bounds.
    """
    law, *numbers = text.split(":")
    names = _PARAMETERS.get(law, ())
    try:
        values = [float(each) for each in numbers]
    except ValueError:
        values = None
    if values is None or len(values) != len(names):
        raise ValueError(f"{text!r} is no speed-up; write linear, amdahl:0.1 or downey:1:0.5")
    return Speedup(cast("Law", law), **dict(zip(names, values, strict=True)))


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """Rules of a machine and its policies.

    Attributes:
        grow: when a squeezed job gets processors that have become free: `first`, before all others;
            `last`, what the pass has left; `never`. The paper's text says it grows; its results fit
            `never`.
        leave: which waiting jobs leave the queue at a pass, suspended ones too: `zero`, those
            so old that any completion is worth nothing (the paper's); `worthless`, those whose
            completion would be worth nothing even if they ran from now on; `never`.
        worthless: whether jobs whose completion would be worth nothing may be forced and
            squeezed.
        refit: best fit once more after a preemption, into what the victims left free.
        step: ends are rounded up to multiples of it, in seconds; 0 is continuous time. The
            paper's is 1 in its time steps.
        suspension: `suspend` keeps progress and memory, and the job goes on where it was;
            `requeue` keeps what was saved at checkpoints, and the job goes on anywhere.
        suspension_cost: seconds of ideal time that each suspension adds to a job.
        resize_cost: seconds of ideal time that each change of a running job's processors adds.
        checkpoint: seconds of ideal time between checkpoints; 0 for none. For `requeue`.
        exempt: seconds that a job runs at a stretch before it may be suspended.
        suspensions_max: how often one job may be suspended.
        suspended_max: memory for suspended jobs: how many processors they held, as a multiple
            of the machine's processors; infinite for no limit.
        speedup: how fast jobs run on fewer processors.
    """

    grow: Grow = option("When squeezed jobs get free processors.", default="first")
    leave: Leave = option("Which waiting jobs leave the queue.", default="zero")
    worthless: bool = option(
        "Force and squeeze no job that would bring nothing.", default=True, flag="--spare-worthless"
    )
    refit: bool = option("No best fit after a preemption.", default=True, flag="--no-refit")
    step: float = option("Ends in whole steps.  [default: 0; 1 of the model]", default=0.0)
    suspension: Suspension = "suspend"
    suspension_cost: float = option("Seconds that each suspension costs.", default=0.0)
    resize_cost: float = option("Seconds that each resize costs.", default=0.0)
    checkpoint: float = option("Seconds between checkpoints, with --requeue.", default=0.0)
    exempt: float = option("Seconds a job runs before it may be suspended.", default=0.0)
    suspensions_max: int = option(
        "Suspensions of one job.", default=SUSPENSIONS_MAX, metavar="N", show_default=False
    )
    suspended_max: float = option(
        "Memory for suspended jobs, in machines.  [default: no limit]",
        default=math.inf,
        flag="--memory",
    )
    speedup: Speedup = field(default_factory=Speedup)

    def __post_init__(self) -> None:
        for name, choices in _WORDS.items():
            check_choice(name, getattr(self, name), choices)
        for name in ("step", "suspension_cost", "resize_cost", "checkpoint", "exempt"):
            _number(name, getattr(self, name), 0, 1e18)
        _number("suspended_max", self.suspended_max, 0, math.inf)
        if not 0 <= self.suspensions_max <= SUSPENSIONS_MAX:
            raise ValueError(
                f"suspensions_max is {self.suspensions_max}; it must be from 0 to {SUSPENSIONS_MAX}"
            )

    def for_kernel(self) -> dict[str, Any]:
        """Returns the options as the kernel takes them."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        speedup: Speedup = told.pop("speedup")
        law = speedup.law
        return {
            **told,
            **{name: choices.index(told[name]) for name, choices in _WORDS.items()},
            "law": get_args(Law).index(law),
            "law_first": speedup.parallelism if law == "downey" else speedup.serial,
            "law_second": speedup.variance,
        }


_WORDS: Final = {
    "grow": get_args(Grow),
    "leave": get_args(Leave),
    "suspension": get_args(Suspension),
}


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Checks a choice from a command line or a file.

    Raises:
        ValueError: it is unknown; the text lists the choices.
    """
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(choices)}")


def _number(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        bound = f"at least {least:g}" if math.isinf(most) else f"from {least:g} to {most:g}"
        raise ValueError(f"{name} is {value}; it must be {bound}")
