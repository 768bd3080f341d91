"""The commands that inspect a journal, for each program that has one."""

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from lrms_sim.util.json_output import json_option

if TYPE_CHECKING:
    from grms.daemon.journal import JournalKind

LINES_AT_ONCE: Final = 1000
"""Lines written together."""

_FILE = click.Path(path_type=Path, dir_okay=False)


def journal_group(
    kind: Callable[[], "JournalKind[Any]"], program: str, example: str
) -> click.Group:
    """Returns the group of commands; `program` and `example`, a journal's name, are for help.

    `kind` imports the kind of journal when a command needs it.
    """

    @click.group("journal", short_help="Look into a journal.")
    def journal() -> None:
        """Look into a journal, also while its daemon writes it."""

    @journal.command("show", short_help="Print records as JSON lines.")
    @click.argument("file", type=_FILE)
    @click.option(
        "--kind", "kinds", multiple=True, metavar="NAME", help="Only this kind; repeatable."
    )
    @click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N of them.")
    def show(file: Path, *, kinds: tuple[str, ...], last: int | None) -> None:
        from grms.daemon.journal_lines import lines  # noqa: PLC0415  # what it needs is slow to import

        found: Iterable[str] = lines(file, kind(), kinds)
        if last is not None:
            found = deque(found, maxlen=last)
        some = iter(found)
        while together := list(islice(some, LINES_AT_ONCE)):
            click.echo("\n".join(together))

    show.help = f"""Print the records of FILE, oldest first, a JSON object on each line.

    Bytes, as what a job runs, are in base64.

    \b
      {program} journal show {example} --last 20
      {program} journal show {example} --kind JobEnded | jq .outcome
    """

    @journal.command("check", short_help="Read all of a journal.")
    @click.argument("file", type=_FILE)
    @json_option("journal-check", "grms.daemon.journal_lines:JournalOutput")
    def check(file: Path, *, as_json: bool) -> None:
        """Read all of FILE, as the daemon does at its start, and say what there is.

        The status is 2 where something is not what was written; the message names the byte.
        """
        from grms.daemon.journal_lines import checked  # noqa: PLC0415  # same
        from lrms_sim.util.json_output import print_json  # noqa: PLC0415  # same

        found = checked(file, kind())
        if as_json:
            print_json("journal-check", found)
            return
        click.echo(
            f"{file}: {found.records} records, {found.bytes} bytes, all as written", nl=False
        )
        if found.unfinished_bytes:
            click.echo(f"; {found.unfinished_bytes} bytes more were never acknowledged", nl=False)
        click.echo(f"; last opened by Hanse {found.written_by}")

    return journal
