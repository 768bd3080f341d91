"""Options of the studies' commands. Each is said once: as a field of what a study is given.

It imports nothing that is slow, so that `--help` answers at once.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any, Final, get_args

import click

from lrms_sim.commandline.running import open_console
from lrms_sim.commandline.values import ParamType

SEEDS_MAX: Final = 100
"""Most seeds of one study."""

Decorate = Callable[[Callable[..., None]], Callable[..., None]]


class Seeds(ParamType[tuple[int, ...]]):
    """Seeds as people write them: `3`, `1-5`, `1,4,7`."""

    name = "seeds"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Returns the seeds; fails with how to write them."""
        if isinstance(value, tuple):
            return value
        seeds: list[int] = []
        for part in str(value).split(","):
            match = re.fullmatch(r"\s*(\d{1,18})(?:-(\d{1,18}))?\s*", part)
            if match is None:
                self.fail(f"{value!r} are no seeds; write them as 1-5 or 1,4,7", param, ctx)
            first, last = int(match[1]), int(match[2] or match[1])
            if last < first or last - first >= SEEDS_MAX:
                self.fail(f"{part.strip()!r}: at most {SEEDS_MAX} seeds, upward", param, ctx)
            seeds += range(first, last + 1)
        if len(set(seeds)) != len(seeds) or len(seeds) > SEEDS_MAX:
            self.fail(f"{value!r}: each seed once, at most {SEEDS_MAX}", param, ctx)
        return tuple(seeds)


@dataclass(frozen=True, slots=True)
class Option:
    """What makes a field an option of a command; it stands in the field's annotation.

    Attributes:
        words: the help.
        flag: of the command; the field's name where empty.
        least: of a number; any where None.
        most: of a number; any where None.
        choices: the words that may be given; of a tuple several.
        kind: of the value, where the field's type does not say it.
    """

    words: str
    flag: str = ""
    least: int | None = None
    most: int | None = None
    choices: Sequence[str] = ()
    kind: "click.ParamType[Any] | None" = None


FOLDER: Final = "--output"
"""The flag that says where a study's files lie."""

WORKERS: Final = "[default: one a processor]"
"""The help of the option that says how many threads compute."""


def takes(options: Any, *wanted: str | Decorate) -> Decorate:
    """Gives a command its options, in this order.

    Args:
        options: a dataclass whose fields are annotated with an `Option`. The default of a field is the option's,
            and shown in the help if it is a number, a word or a path.
        wanted: names of fields, and options that have none.
    """
    known = {each.name: each for each in fields(options)}

    def given(command: Callable[..., None]) -> Callable[..., None]:
        for each in reversed(wanted):
            decorate = _click_option(known[each]) if isinstance(each, str) else each
            command = decorate(command)
        return command

    return given


def _click_option(each: "Field[Any]") -> Decorate:
    annotated, found = get_args(each.type)
    default = None if each.default is MISSING else each.default
    is_flag = annotated is bool
    settings: dict[str, Any] = {"is_flag": True} if is_flag else {"type": _kind(annotated, found)}
    if is_flag and default:
        # Not every version of click has a default that differs from a flag's value.
        default, settings["callback"] = False, _negated
    return click.option(
        found.flag or f"--{each.name.replace('_', '-')}",
        each.name,
        default=default,
        show_default=not (default is None or isinstance(default, bool | tuple)),
        help=found.words,
        multiple=bool(found.choices) and isinstance(default, tuple),
        **settings,
    )


def _negated(
    _context: click.Context, _option: click.Parameter, value: bool
) -> bool:  # as click has it
    return not value


def _kind(annotated: Any, found: Option) -> "click.ParamType[Any]":
    if found.kind is not None:
        return found.kind
    if found.choices:
        return click.Choice(found.choices)
    if annotated is Path:
        return click.Path(path_type=Path)
    return click.IntRange(found.least, found.most)


def run_and_tell(run_command: Callable[..., Path], options: Any) -> None:
    """Runs a study, and says where its page is.

    Args:
        run_command: of the study.
        options: what the user asks for.
    """
    page = run_command(options, open_console(), open_console(stderr=True))
    click.echo(f"\nWritten to {page}")


def train_and_tell(run_command: Callable[..., Path], options: Any) -> None:
    """Runs a study that learns, and says where its page is; after Ctrl-C how to go on.

    Raises:
        click.Abort: the user has enough.
    """
    from grms.learning.session import TrainingInterrupted  # noqa: PLC0415  # slow to import

    try:
        run_and_tell(run_command, options)
    except TrainingInterrupted as interruption:
        click.echo(f"\n{interruption}; the same command goes on from there", err=True)
        raise click.Abort from interruption
