"""Options that several studies have, and what their commands do with them.

It imports nothing that is slow, so that `--help` answers at once.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from lrms_sim.cli.running import open_console
from lrms_sim.util.option_fields import option
from lrms_sim.util.values import ParamType

SEEDS_MAX: Final = 100


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


def folder_option(help: str, name: str = "") -> Any:  # noqa: A002  # click's word
    """Returns the field of a study's folder.

    Args:
        help: of the option.
        name: of the folder in `out`; no default where empty.
    """
    default = {"default": Path("out", name)} if name else {}
    return option(help, flag="--output", type=click.Path(path_type=Path), **default)


def workers_option(most: int = 256) -> Any:
    """Returns the field of the number of threads, at most so many."""
    return option("[default: one a processor]", default=None, type=click.IntRange(1, most))


def seeds_option(help: str, *seeds: int) -> Any:  # noqa: A002  # as above
    """Returns the field of seeds that are used unless told otherwise."""
    return option(help, default=seeds, type=Seeds(), multiple=False)


def run_and_tell(study: str, options: Any) -> None:
    """Runs a study, and says where its page is; of one that learns, after Ctrl-C, how to go on.

    Raises:
        click.Abort: the user has enough of learning.
    """
    from grms.learning.training import TrainingInterrupted  # noqa: PLC0415  # slow to import

    run_command = import_module(f"scenarios.studies.{study}.command").run_command
    try:
        page = run_command(options, open_console(), open_console(stderr=True))
    except TrainingInterrupted as interruption:
        click.echo(f"\n{interruption}; the same command goes on from there", err=True)
        raise click.Abort from interruption
    click.echo(f"\nWritten to {page}")
