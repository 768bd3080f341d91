"""Checks common to all real batch systems of a site.

Nothing is changed, except that files are created and deleted in the jobs' folder, and that a job of one processor
runs on request. It has a name of its own, so that a running daemon of the site ignores it.
"""

import asyncio
import os
import pwd
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from grms.lrms.base import Ended, LrmsEnd, LrmsError, LrmsEvent, LrmsJob, Program
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.system import BatchSystem
from grms.lrms.checks import Finding, doubt, good, missing
from grms.util.outcomes import Outcome
from lrms_sim.machine.node_kinds import NodeKind
from lrms_sim.workload.requests import Gpus, counted, size_text

SPACE_MIN: Final = 1 << 30
"""Less free space than this is reported, bytes."""

_SAID = "hanse-check"
_PROBE = f"#!/bin/sh\necho {_SAID} >seen\nhostname\ndate +%s\n"


def probe_name(site: str) -> str:
    """Returns the name under which a job is run to see whether jobs run; it is no site's."""
    return f"{site[:57]}.-check"


def check_user(uid: int) -> Finding:
    """Returns whether the daemon's user, with number `uid`, should run partners' jobs."""
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
    """Returns whether jobs can have folders in `lrms.spool`."""
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


def shared_account(account: str, cure: str) -> Finding:
    """Returns what it means that own users' jobs run as the daemon's user, `account`."""
    text = (
        f"own users' jobs run as {account}: each can read, change and cancel all others, and act as an operator "
        "of this site"
    )
    return doubt("own users", text, cure)


def check_accounting(path: str) -> Finding:
    """Returns whether an accounting file is readable, or will be when the first job ends."""
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
    """Returns whether the batch system shows its queue and has the configured size."""
    what = "table"
    try:
        table = await system.look()
    except LrmsError as error:
        return missing(what, error.reason, "see that its controller runs and lets this user look")
    text = f"{table.processors} processors, {table.free} free, {table.waiting_others} waited for"
    if table.processors != processors:
        cure = f"set processors = {table.processors} in the site's file, or name partitions"
        return doubt(what, f"{text}; the site's file says {processors}", cure)
    kinds = () if table.nodes is None else table.nodes.kinds()
    return good(what, "; ".join([text, *(f"nodes: {_shown(kind)}" for kind in kinds)]))


def _shown(kind: NodeKind) -> str:
    # As `[[nodes]]` of the site's file has it.
    said = [f"{kind.nodes} of {counted(kind.cores, 'core')}"]
    said += [size_text(kind.memory)] if kind.memory else []
    said += [str(Gpus(kind.gpus, "job", kind.gpu_type))] if kind.gpus else []
    return ", ".join([*said, *sorted(kind.features)])


async def check_run(lrms: BatchLrms, spool: Path, site: str, timeout_s: float) -> list[Finding]:
    """Runs a job and returns whether it behaves like a job of a site.

    The port and `site`, the name of its jobs, are used for this alone; the job must end within `timeout_s` seconds.
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
