"""What an operator does so that a Grid Engine ends guests for own jobs, for the cell as it is.

Asking for it changes nothing, and any user may.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from grms.lrms.base import LrmsRefusedError
from grms.lrms.batch.subprocesses import Programs
from grms.lrms.gridengine.gridengine import UTC, GridEngineSettings
from grms.lrms.gridengine.gridengine_preemption import (
    NONE,
    read_configurations,
    suspend_method,
    threshold,
)
from grms.lrms.preemption import FileLines

USUAL: Final = "guest"
"""Name of the queue where the site's file has none."""

USERS: Final = "hanse_guests"
"""Access list of the queue: no job of anybody else comes into it."""


async def preemption_lines(programs: Programs, settings: GridEngineSettings) -> list[FileLines]:
    """Returns commands for a manager of the cell, and the table for the site's file.

    Raises:
        LrmsError: Grid Engine does not answer, or refuses to say it.
    """
    answer = await programs.run("qconf", "-sq", "*", also=UTC)
    if answer.code != 0:
        raise LrmsRefusedError(f"qconf: {answer.error.strip()[:200]}")
    queues = read_configurations(answer.output.decode("utf-8", "replace"))
    guest = settings.guests or USUAL
    own = settings.queues or tuple(name for name in queues if name != guest)
    method = suspend_method(programs.place("qdel"))
    return [
        *cell(queues, own, guest, method, settings.account),
        site_file(own, guest),
    ]


def cell(
    queues: Mapping[str, Mapping[str, str]],
    own: Sequence[str],
    guest: str,
    method: str,
    account: str,
) -> list[FileLines]:
    """Returns the commands for a manager, of those that are still to be run.

    Args:
        queues: fields of each queue of the cell.
        own: queues of the site.
        guest: queue of guests to make.
        method: its suspend method.
        account: as which guests run.
    """
    what, found = "as a manager of the cell, on a host of its administration", []
    there = [name for name in own if name in queues]
    if guest not in queues and there:
        fields = {
            "qname": guest,
            "subordinate_list": NONE,
            "suspend_method": method,
            "user_lists": USERS,
            "xuser_lists": NONE,
            "rerun": "FALSE",
        }
        edits = " ".join(f"-e 's#^{key} .*#{key} {value}#'" for key, value in fields.items())
        found += [
            f"qconf -au {account} {USERS}",
            f"SGE_SINGLE_LINE=1 qconf -sq {there[0]} | sed {edits} >{guest}.queue",
            f"qconf -Aq {guest}.queue",
        ]
    elif guest in queues and queues[guest].get("suspend_method") != method:
        edit = f"-e 's#^suspend_method .*#suspend_method {method}#'"
        found += [
            f"SGE_SINGLE_LINE=1 qconf -sq {guest} | sed {edit} >{guest}.queue",
            f"qconf -Mq {guest}.queue",
        ]
    found += [
        f"qconf -aattr queue subordinate_list {guest}=1 {name}"
        for name in there
        if threshold(queues[name], guest, 1) is None
    ]
    return [FileLines("qconf", what, tuple(found))] if found else []


def site_file(own: Sequence[str], guest: str) -> FileLines:
    """Returns the tables for the site's file."""
    names = ", ".join(f'"{name}"' for name in own)
    lines = (
        "# in [guests]: preemptible = true",
        f"# in [lrms]: queues = [{names}]",
        "[lrms.preemption]",
        f'queue = "{guest}"',
    )
    return FileLines("the site's file", "as a table of its own", lines, "restart the daemon")
