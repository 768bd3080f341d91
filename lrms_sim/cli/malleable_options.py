"""Options of the commands `lrms-sim utility …`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lrms_sim.malleable.options import SUSPENSIONS_MAX, MachineOptions, speedup_of
from lrms_sim.util.option_fields import FloatRange, field_options, taken

if TYPE_CHECKING:
    from lrms_sim.malleable.policies import Policy
    from lrms_sim.malleable.source import Source

_Command = TypeVar("_Command", bound=Callable[..., object])

SECONDS = FloatRange(0)


_SPAN = {"type": SECONDS, "metavar": "S", "show_default": False}


def source_options(command: _Command) -> _Command:
    """Gives a command the options that say where jobs come from."""
    for option in reversed(
        (
            click.option(
                "--processors",
                type=click.IntRange(1, 2**31 - 1),
                metavar="N",
                help="Size of the machine.  [default: MaxProcs of a log, 24 of the model]",
            ),
            click.option(
                "--rules",
                default="lenient",
                show_default=True,
                metavar="FILE",
                help="Utilities of a log's jobs: a TOML file, or `lenient`, `tight`.",
            ),
            click.option(
                "--rate",
                type=FloatRange(0, 1000),
                default=0.1,
                show_default=True,
                help="Arrivals in a step of the model.",
            ),
            click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True),
        )
    ):
        command = option(command)
    return command


def machine_options(command: _Command) -> _Command:
    """Gives a command the options that say what the machine may do."""
    options = (
        field_options(
            MachineOptions,
            ("grow", "leave", "worthless", "refit", "step"),
            step=_SPAN | {"default": None},
        ),
        click.option("--requeue", is_flag=True, help="Requeue jobs instead of suspending them."),
        field_options(
            MachineOptions,
            (
                "checkpoint",
                "suspension_cost",
                "resize_cost",
                "exempt",
                "suspensions_max",
                "suspended_max",
            ),
            checkpoint=_SPAN,
            suspension_cost=_SPAN,
            resize_cost=_SPAN,
            exempt=_SPAN,
            suspensions_max={"type": click.IntRange(0, SUSPENSIONS_MAX)},
            suspended_max=_SPAN | {"default": None, "metavar": "X"},
        ),
        click.option(
            "--speedup",
            default="linear",
            show_default=True,
            metavar="LAW",
            help="linear, amdahl:SERIAL, downey:PARALLELISM:VARIANCE.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def machine_of(given: dict[str, Any], *, seconds: bool) -> MachineOptions:
    """Removes the machine's options from those of a command line, and returns them.

    `seconds` says whether the source's times are seconds; otherwise ends are whole steps.
    """
    try:
        speedup = speedup_of(given.pop("speedup"))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--speedup") from None
    wanted = taken(MachineOptions, given)
    if wanted["step"] is None:
        wanted["step"] = 0.0 if seconds else 1.0
    if wanted["suspended_max"] is None:
        del wanted["suspended_max"]
    return MachineOptions(
        suspension="requeue" if given.pop("requeue") else "suspend",
        speedup=speedup,
        **wanted,
    )


def ordered_by(text: str) -> "Policy":
    """Returns the policy that replans by an order with the weights of `W1,…,W8`."""
    from lrms_sim.malleable.policies import Ordered  # noqa: PLC0415  # help and errors come at once

    try:
        weights = tuple(float(each) for each in text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} are not eight numbers", param_hint="--weights"
        ) from None
    return Ordered("replan", "weights", squeezes=True, weights=weights)


def source_of(source: str, given: dict[str, Any], *, training: bool = False) -> "Source":
    """Returns where jobs come from, and takes the options that say so out of `given`."""
    from lrms_sim.malleable.source import open_source  # noqa: PLC0415  # help and errors come at once

    return open_source(
        source,
        processors=given.pop("processors"),
        rules=given.pop("rules"),
        rate=given.pop("rate"),
        seed=given.pop("seed"),
        training=training,
    )
