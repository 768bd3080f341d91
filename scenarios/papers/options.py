"""Options of the studies' commands. Each is said once: as a field of what a study is given.

It imports nothing that is slow, so that `--help` answers at once.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any, Final, get_args

import click

from lrms_sim.commandline.field_options import field_option
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
    hint, found = get_args(each.type)
    metadata: dict[str, Any] = {"help": found.words}
    if found.flag:
        metadata["option"] = found.flag
    if found.kind is not None:
        metadata["type"] = found.kind
    elif found.choices:
        metadata |= {
            "type": click.Choice(found.choices),
            "multiple": isinstance(each.default, tuple),
        }
    elif hint is Path:
        metadata["type"] = click.Path(path_type=Path)
    elif hint is not bool:
        metadata["type"] = click.IntRange(found.least, found.most)
    if isinstance(each.default, tuple):
        metadata |= {"show_default": False, "multiple": bool(found.choices)}
    return field_option(each, hint, metadata)


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
