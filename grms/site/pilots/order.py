"""The way of a program into a pilot and back: what the agent is sent, and what its words mean."""

import base64
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from grms.daemon.job_files import JobFile
from grms.lrms.batch.launcher import Spool, check_program, run_files, values_text
from grms.lrms.exit_status import BEGUN, KILLED, read_begun_at, read_script_end
from grms.site.model.events import RunNews, RunState
from grms.site.model.jobs import Exit, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.reservations import Reservation
from grms.site.pilots.messages import RunTold
from grms.site.wire.convert import lrms_job

BEGUN_BYTES_MAX: Final = 1024
"""Bytes read of what a folder says of its run; the run itself could write more."""

Contents = Callable[[str, int, JobFile], Path]
"""Says where the content of a file is that a program is given: by its reservation's owner, its number and what it is."""


def check(key: str, request: Request, payload: bytes) -> None:
    """Checks what is to run; `LrmsRefusedError` if it cannot."""
    check_program(lrms_job(key, request, payload).program)


def order(found: Reservation, spool: Spool, contents: Contents) -> dict[str, Any]:
    """Returns what the agent is sent; lays the folder where the program is given files. Accesses the disk then.

    Raises:
        LrmsRefusedError: it cannot be run.
        OSError: the folder cannot be laid.
    """
    assert found.request is not None
    asked = found.request.asked
    job = lrms_job(
        found.run_key,
        found.request,
        found.payload,
        contents=lambda number, file: contents(found.owner, number, file),
    )
    program = check_program(job.program)
    order: dict[str, Any] = {
        "run": str(found.number),
        "folder": str(spool.place(found.run_key)),
        "processors": found.request.processors,
        "begin": found.job_begin,
        "until": found.end,
        "limit": found.request.requested_time,
        "files": None,
    }
    if found.group:
        order |= {"group": str(found.group), "share": found.share, "length": found.run_time}
    if program.inputs or program.shared:
        spool.prepare(found.run_key, program, run=True, name=job.name, modules=asked.modules)
    else:
        # Made by the agent, without a wait for the disk of this host: the journal has it all.
        values = values_text(program, name=job.name, modules=asked.modules)
        order["files"] = [
            [name, base64.b64encode(content).decode(), mode]
            for name, content, mode in run_files(program, values)
        ]
    return order


def has_files(payload: bytes) -> bool:
    """Returns whether a program is given files."""
    program = lrms_job("", Request(1, 1.0), payload).program
    return program is not None and bool(program.inputs or program.shared)


_STATES: Final = {state.value: state for state in RunState}
_CUT: Final = {
    "limit": (Outcome.TIMEOUT, "its time limit was over"),
    "until": (Outcome.TIMEOUT, "its reservation was over, and others wanted its processors"),
    "killed": (Outcome.CANCELLED, ""),
    "pilot": (Outcome.NODE_FAIL, "its pilot was ended while it ran"),
}


def news(told: RunTold) -> RunNews | None:
    """Returns what an agent has told as the state has it; `None` if it is no run of this site."""
    if not (told.run.isascii() and told.run.isdigit() and len(told.run) < 19):
        return None
    number, state = int(told.run), _STATES[told.state]
    if state is not RunState.ENDED:
        return RunNews(number, state, told.start)
    exited = Exit.known(told.code, told.signal)
    outcome: Outcome | None
    if told.start is None:
        # It certainly has not begun, and its owner may have it run elsewhere, unless it would not begin there either.
        outcome, reason = (Outcome.FAILED if told.why == "folder" else None), told.said
    elif told.why in _CUT:
        outcome, reason = _CUT[told.why]
    else:
        outcome, reason = (Outcome.COMPLETED if told.code == 0 else Outcome.FAILED), ""
    return RunNews(number, state, told.start, told.end, outcome, exited, reason or told.said)


def found_in_folder(found: Reservation, place: Path, why: str) -> RunNews:
    """Returns how a run has ended whose pilot is over and has not told it. Accesses the disk.

    A run that has not begun never will: its folder, or the file that says so, is made here, exclusively, and the agent
    makes both exclusively. So even one that is still there, cut off on its node, starts nothing more.

    Raises:
        OSError: the folder cannot be looked at.
    """
    with suppress(FileExistsError):
        place.mkdir(mode=0o700)
    list(place.iterdir())  # has a file server asked anew for what is there
    begun = place / BEGUN
    try:
        os.close(os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except FileExistsError:
        pass
    else:
        return RunNews(found.number, RunState.ENDED, reason=f"it had not begun: {why}")
    with begun.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - BEGUN_BYTES_MAX))
        text = file.read(BEGUN_BYTES_MAX).decode("ascii", "replace")
    start, end = read_begun_at(text), read_script_end(text)
    if end is None or end.code in KILLED:
        reason = f"its pilot ended while it ran: {why}"
        return RunNews(
            found.number, RunState.ENDED, start, outcome=Outcome.NODE_FAIL, reason=reason
        )
    outcome = Outcome.FAILED if end.code else Outcome.COMPLETED
    at = None if start is None or end.run_time is None else start + end.run_time
    reason = "its pilot has not told its end; its folder says it"
    return RunNews(
        found.number, RunState.ENDED, start, at, outcome, Exit.known(end.code, None), reason
    )
