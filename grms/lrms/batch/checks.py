"""Whether everything is there that a site above a real batch system needs, whichever it is.

Nothing is changed but that files are made in the folder of the jobs and deleted again, and that a job of one
processor is run where that is wanted. It has a name of its own, so that a daemon of the site that runs
meanwhile leaves it alone.
"""

import asyncio
import os
import pwd
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.launch import Spool
from grms.lrms.batch.system import BatchSystem
from grms.lrms.checks import Finding, doubt, good, missing
from grms.lrms.port import Ended, LrmsEnd, LrmsError, LrmsEvent, LrmsJob, Program
from grms.outcomes import Outcome

SPACE_MIN: Final = 1 << 30
"""Less room than this for jobs is told, bytes."""

_SAID = "hanse-check"
_PROBE = f"#!/bin/sh\necho {_SAID} >seen\nhostname\ndate +%s\n"


def probe_name(site: str) -> str:
    """Returns the name under which a job is run to see whether jobs run; it is no site's."""
    return f"{site[:57]}.-check"


def check_user(uid: int) -> Finding:
    """Returns whether the daemon's user is one that should run partners' jobs.

    Args:
        uid: of this process.
    """
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        cure = "give the daemon an account that this host and all nodes know"
        return missing("user", f"user {uid} has no name here", cure)
    if uid == 0:
        cure = "run the daemon, and this command, as an account of its own: User= in its unit"
        return doubt("user", "root: partners' jobs would run as root", cure)
    return good("user", f"{name}: jobs are submitted, and partners' jobs run, as this user")


def check_spool(folder: Path) -> list[Finding]:
    """Returns whether jobs can have folders.

    Args:
        folder: `lrms.spool`.
    """
    what = "spool"
    probe = folder / f".check-{os.getpid()}"
    try:
        Spool(folder).open()
        probe.write_text(_SAID)
        probe.unlink()
    except OSError as error:
        cure = "name a folder in lrms.spool that this user can write, on a disk that all nodes see"
        return [missing(what, f"{folder}: {error.strerror or error}", cure)]
    found = [good(what, f"{folder} can be written")]
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        cure = f"chown it to the daemon's user, and chmod 700 {folder}"
        found = [missing(what, f"{folder}: others can write into it", cure)]
    free = shutil.disk_usage(folder).free
    if free < SPACE_MIN:
        cure = "make room, or lower results.keep_days and results.job_bytes"
        found.append(doubt("space", f"{free >> 20} MiB are free for what jobs leave", cure))
    return found


def check_accounting(path: str) -> Finding:
    """Returns whether an accounting file can be read, which says how jobs ended.

    Args:
        path: of the file; one that is not there yet, with its folder, comes with the first end.
    """
    try:
        with Path(path).open("rb"):
            pass
    except FileNotFoundError:
        if Path(path).parent.is_dir():
            return good("records", f"{path} comes with the first job that ends")
        cure = "set lrms.root and lrms.cell as SGE_ROOT and SGE_CELL are"
        return missing("records", f"there is no folder for {path}", cure)
    except OSError as error:
        cure = "let this user read it: without it every job ends as unknown"
        return missing("records", f"{path}: {error.strerror or error}", cure)
    return good("records", f"{path} says how jobs ended")


async def check_size(system: BatchSystem, processors: int) -> Finding:
    """Returns whether the batch system shows its table, and is as large as the site says.

    Args:
        system: how it is spoken to.
        processors: size of the machine as the site's file has it.
    """
    what = "table"
    try:
        table = await system.look()
    except LrmsError as error:
        return missing(what, error.reason, "see that its controller runs and lets this user look")
    text = f"{table.processors} processors, {table.free} free, {table.waiting_others} waited for"
    if table.processors != processors:
        cure = f"set processors = {table.processors} in the site's file, or name partitions"
        return doubt(what, f"{text}; the site's file says {processors}", cure)
    return good(what, text)


async def check_run(lrms: BatchLrms, spool: Path, site: str, timeout_s: float) -> list[Finding]:
    """Runs a job and returns whether it ran as a job of a site does.

    Args:
        lrms: a port of its own, for jobs of another name.
        spool: the folder of the jobs.
        site: name of the port's jobs, which is not the site's.
        timeout_s: seconds in which it has to end.
    """
    ended: asyncio.Future[LrmsEnd] = asyncio.get_running_loop().create_future()
    began = time.time()
    key = f"{site}/0/{time.time_ns()}"

    def told(events: Sequence[LrmsEvent]) -> None:
        for event in events:
            if isinstance(event, Ended) and event.key == key and not ended.done():
                ended.set_result(event.end)

    lrms.listen(told)
    following = asyncio.create_task(lrms.run(), name="check")
    folders = Spool(spool)
    place = folders.place(key)
    try:
        async with asyncio.timeout(timeout_s):
            await lrms.open()
            await lrms.submit(LrmsJob(key, 1, 60.0, program=Program(_PROBE)))
            end = await ended
        return [*_judged(end, place), _clock(place, began, end)]
    except LrmsError as error:
        cure = "see what the batch system has against the job; the options are those of [lrms]"
        return [missing("job", error.reason, cure)]
    except TimeoutError:
        await _given_up(lrms, key)
        text = f"a job of one processor has not ended within {timeout_s:g} s"
        return [doubt("job", text, "try when the machine is less busy, or with a longer --timeout")]
    finally:
        following.cancel()
        await asyncio.wait([following])
        folders.remove(key)


async def _given_up(lrms: BatchLrms, key: str) -> None:
    try:
        async with asyncio.timeout(60.0):
            await lrms.cancel(key)
    except (LrmsError, TimeoutError):
        pass  # it is held, or ends by itself in a moment


def _judged(end: LrmsEnd, place: Path) -> list[Finding]:
    seen = (place / "seen").is_file() and (place / "stdout").is_file()
    where = "its folder, as this host has it"
    if not seen:
        cure = "put lrms.spool on a disk that this host and all nodes have under the same path"
        text = f"a job ended ({end.outcome.value}), and nothing of it came into {where}"
        return [missing("job", text, cure)]
    if end.outcome is not Outcome.COMPLETED:
        cure = "if it is unknown, see `records`; else its reason says more"
        return [
            missing("job", f"a job of `exit 0` ended as {end.outcome.value}: {end.reason}", cure)
        ]
    host = (place / "stdout").read_text(encoding="utf-8", errors="replace").split("\n")[0]
    return [good("job", f"one ran on {host[:40]}, and wrote into {where}")]


def _clock(place: Path, began: float, end: LrmsEnd) -> Finding:
    try:
        node = float((place / "stdout").read_text(encoding="utf-8").split("\n")[1])
    except (OSError, ValueError, IndexError):
        node = end.end_time
    now = time.time()
    off = max(began - 2.0 - node, node - now - 2.0, 0.0)
    if off > 0:
        return doubt(
            "node's clock", f"it is {off:.0f} s off", "let all hosts follow one clock (NTP)"
        )
    return good("node's clock", "as here")
