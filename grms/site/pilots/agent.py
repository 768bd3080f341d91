"""The program that runs inside a pilot: it starts what the site sends, by the clock, and tells how it ended.

It is the script of an ordinary batch job, on a node where nothing of this package need be installed: one file, the
standard library, Python 3.8. Its one argument is the pilot's folder, private to the account that the job runs as
and seen by the nodes as the jobs' folders are. There is `contact.json`: where the site listens, the certificate it
shows, and the secret by which it knows this pilot. The file is read anew before every attempt to connect, as a
site that was started again has another certificate and often another port.

The connection is made from the node to the site's host, by TCP under TLS: batch jobs may usually open connections
within their cluster, as every MPI and every parallel debugger does, and nothing can be connected to on a node. Files
alone would need no route, but each message would wait for the attribute cache of a file server (3 to 60 s on NFS),
and polling loads its metadata server.

What a run leaves is in its own folder, as that of a batch job is (`grms.lrms.exit_status`): streams, `begun` with
a line for its begin and one for its end. The folder is made here, without a wait for the disk: the site's journal
has the run before it is sent, and `begun`, created exclusively, lets it begin once at most, whoever sends it again.

Programs of a group share some of the processors: the next of them starts as soon as one of the group has ended, without
a word of the site's. One that would not be over within the group's window, as far as that is known, is handed back.

The agent ends when the site says so, when it has been without work for its idle limit, or by the clock a little
before the wall time of its job. A connection that is lost changes nothing: runs go on, what has ended is told at the
next one and kept until the site has it in its journal.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ctypes
import errno
import heapq
import json
import math
import os
import random
import signal
import ssl
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

VERSION = 1
"""Of the messages; a site refuses another."""

LINE_BYTES_MAX = 16 << 20
"""Longest message: a script of 4 MiB with arguments and variables, as JSON."""

BEAT_S = 10.0
"""Both sides send at least this often, seconds; three times as long without a message, the connection is dead."""

SILENCE_S = 3 * BEAT_S
FAREWELL_S = 10.0
"""Wait for a site that is to know how the last runs ended; a batch system that ends a job waits longer, by default."""

FORSAKEN_S = 600.0
"""A pilot without runs ends after so long without its site, seconds, whatever its idle limit."""

ATTEMPT_S = 20.0
PAUSE_FIRST_S, PAUSE_MOST_S = 0.2, 5.0

SPAWNED_AT_ONCE = 16
"""Runs started before messages and ends are looked at again."""

LOOKED_AT_S = 5.0
"""Interval of looks for ended runs without a signal, seconds."""

LAYING_AT_ONCE = 4
"""Folders made at a time: a file server answers slowly, and several at once."""

STARTED_WORDS = '. "$1/values" || exit 125; exec "$@"'
"""Read by a shell in the run's folder, which is its first word: `values` sets the words of the program."""

BEGUN = "begun"
MARK = "HANSE_RUN"
"""The variable by which processes are known that have left their run's group."""

_PR_SET_CHILD_SUBREAPER = 36

ENDING_S = 0.5
"""So much later at most the agent is ended than its runs, where a batch system ends all of them, seconds."""

_ENDING = (signal.SIGTERM, signal.SIGKILL)


def is_killed(code: int | None, number: int | None) -> bool:
    """Returns whether a batch system may have ended a run: by a signal, or by one to its last command, as its shell says."""
    return number in _ENDING or code in {128 + each for each in _ENDING}


_BROKEN = (OSError, ValueError, LookupError, TypeError, AttributeError, asyncio.TimeoutError)
"""What ends a connection, and nothing else: it is lost, or something damaged has come over it."""

_no_birth = threading.Lock()
"""Held while a file is written, and while a process is born: a child has its parent's open files for a moment after
its birth, and nobody can run a program that somebody has open for writing ("Text file busy")."""

_ORDER: dict[str, Any] = {
    "run": str,
    "folder": str,
    "processors": int,
    "begin": (int, float),
    "until": (int, float),
    "limit": (int, float),
    "files": (list, type(None)),
}
"""What a site says of a run, and of which kinds; its files are read as they are laid."""

_GROUP: dict[str, Any] = {"group": str, "share": int, "length": (int, float)}
"""The same of a run in a group: which, how many processors that has, and seconds that the run is thought to take."""

_NO_TIME = "its time was over before it could begin"

WAITING, RUNNING, ENDED = "waiting", "running", "ended"


class Run:
    """One run of a program.

    `begin` and `until` are seconds of the site's clock, `limit` seconds of run time.
    """

    def __init__(self, order: dict[str, Any], arrival: int) -> None:
        for name, kind in _ORDER.items():
            if not isinstance(order[name], kind) or isinstance(order[name], bool):
                raise TypeError(f"{name} of a run is {order[name]!r}")
        self.id: str = order["run"]
        self.folder: str = order["folder"]
        self.processors: int = order["processors"]
        self.begin: float = order["begin"]
        self.until: float = order["until"]
        self.limit: float = order["limit"]
        self.files: list[list[Any]] | None = order["files"]
        self.group: str = order.get("group", "")
        self.share: int = 0
        self.length: float = 0.0
        if self.group:
            for name, kind in _GROUP.items():
                if not isinstance(order[name], kind) or isinstance(order[name], bool):
                    raise TypeError(f"{name} of a run is {order[name]!r}")
            self.share, self.length = order["share"], order["length"]
        self.arrival = arrival
        self.state = WAITING
        self.laid = False
        self.pid = 0
        self.cores: list[int] = []
        self.start: float | None = None
        self.end: float | None = None
        self.code: int | None = None
        self.signal: int | None = None
        self.why = ""
        self.problem = ""
        self.killing = False

    @property
    def kill_at(self) -> float:
        """When it is ended, whoever wants its processors; seconds of the site's clock."""
        return math.inf if self.start is None else self.start + self.limit

    def told(self) -> dict[str, Any]:
        """Returns what the site is told of it."""
        known = {"run": self.id, "state": self.state}
        for name in ("start", "end", "code", "signal"):
            value = getattr(self, name)
            if value is not None:
                known[name] = value
        for name in ("why", "problem"):
            if getattr(self, name):
                known[name] = getattr(self, name)
        return known


class Group:
    """Runs that share processors.

    `used` of them are taken; `head` is the run that is the next to start, and looked at by the clock; behind it the
    others wait.
    """

    def __init__(self) -> None:
        self.used = 0
        self.head: Run | None = None
        self.waiting: deque[Run] = deque()


def lay(folder: str, files: list[list[Any]] | None) -> None:
    """Makes a run's folder with its files (name, base64, mode); `None`: the site has made it.

    Raises:
        OSError: there is no room, or the folder is there already.
    """
    if files is None:
        return
    os.mkdir(folder, 0o700)
    for name, content, mode in files:
        text = base64.b64decode(content)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        path = os.path.join(folder, name)
        with _no_birth, os.fdopen(os.open(path, flags, mode), "wb") as file:
            file.write(text)


def children() -> list[int]:
    """Returns the processes whose parent this one is."""
    own = os.getpid()
    try:
        return [int(word) for word in Path(f"/proc/{own}/task/{own}/children").read_text().split()]
    except OSError:
        return []


def mark_of(pid: int) -> str:
    """Returns the run to which a process belongs, by its variables; empty if it says nothing."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    given = [each for each in variables if each.startswith(MARK.encode() + b"=")]
    return os.fsdecode(given[0].partition(b"=")[2]) if given else ""


class Contact:
    """Where the site is, from the pilot's folder."""

    def __init__(self, folder: Path) -> None:
        known = json.loads((folder / "contact.json").read_text())
        self.pilot: str = known["pilot"]
        self.secret: str = known["secret"]
        self.address: tuple[str, int] = (known["host"], known["port"])
        self.processors: int = known["processors"]
        self.wall_time: float = known["wall_time"]
        self.spare: float = known["spare"]
        self.idle_limit: float = known["idle_limit"]
        self.grace: float = known["grace"]
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.tls.minimum_version = ssl.TLSVersion.TLSv1_2
        # The certificate itself is known, so that its name proves nothing more.
        self.tls.check_hostname = False
        self.tls.load_verify_locations(cadata=known["certificate"])


class Agent:
    """Runs of one pilot, and the connection to its site."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._say = say
        contact = Contact(folder)
        self._grace = contact.grace
        self._idle_limit = contact.idle_limit
        self._processors = contact.processors
        self._began = time.monotonic()
        self._ends = self._began + contact.wall_time - contact.spare
        self._offset = time.time() - self._began
        self.runs: dict[str, Run] = {}
        self._pids: dict[int, Run] = {}
        self._due: list[tuple[float, int, Run]] = []
        self._groups: dict[str, Group] = {}
        self._arrivals = 0
        self._free = self._processors
        self._is_ended_by_others = False
        self._used_before = 0.0
        cores = sorted(os.sched_getaffinity(0))
        self._cores: list[int] | None = cores if len(cores) >= self._processors else None
        self._unlaid: asyncio.Queue[Run] = asyncio.Queue()
        self._writer: asyncio.StreamWriter | None = None
        self._outgoing: list[dict[str, Any]] = []
        self._news: list[dict[str, Any]] = []
        self._flush_wanted = False
        self._wake = asyncio.Event()
        self._over = asyncio.Event()
        self._left = asyncio.Event()
        self._draining = ""
        self._worked = self._parted = self._began

    # --- its life ------------------------------------------------------------------------------

    async def live(self) -> None:
        """Serves until the pilot is over; every run has ended then."""
        with contextlib.suppress(OSError, AttributeError):
            # What leaves its run's group becomes a child of this process, and is found at the run's end.
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        loop.add_signal_handler(signal.SIGTERM, self._terminated)
        for warning in (signal.SIGUSR1, signal.SIGUSR2):
            loop.add_signal_handler(warning, self.drain, f"the batch system sent {warning.name}")
        for other in (signal.SIGHUP, signal.SIGINT):
            loop.add_signal_handler(other, lambda: None)
        # A byte that does not fit stands for a signal that is already noticed, or is looked for (`_start_by_clock`).
        signal.set_wakeup_fd(signal.set_wakeup_fd(-1), warn_on_full_buffer=False)
        loop.call_later(max(0.0, self._ends - time.monotonic()), self._time_is_up)
        loop.set_default_executor(ThreadPoolExecutor(LAYING_AT_ONCE, "folder"))
        tasks = [loop.create_task(self._follow()), loop.create_task(self._start_by_clock())]
        tasks += [loop.create_task(self._lay_folders()) for _ in range(LAYING_AT_ONCE)]
        over = loop.create_task(self._over.wait())
        await asyncio.wait([*tasks, over], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
        # What has ended is told, if the site is there in time; it is written in the folders of the runs anyway.
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self._say_farewell(), FAREWELL_S)
        for task in tasks:
            task.cancel()

    def now(self) -> float:
        """Returns the moment by the site's clock, seconds."""
        return time.monotonic() + self._offset

    def drain(self, why: str) -> None:
        """Starts no more runs; those that run go on. The pilot ends with the last of them."""
        if not self._draining:
            self._draining = why
            self._tell({"draining": why})
        for run in [each for each in self.runs.values() if each.state == WAITING]:
            self._not_started(run, "pilot", f"the pilot takes no more work: {why}")
        self._look_whether_over()

    def _terminated(self) -> None:
        self._is_ended_by_others = True
        self._end_all("the batch system has ended the pilot")

    def _time_is_up(self) -> None:
        self._end_all("the wall time of the pilot is nearly over")

    def _end_all(self, why: str) -> None:
        self.drain(why)
        for run in list(self._pids.values()):
            self._kill(run, "pilot")

    def _look_whether_over(self) -> None:
        if self._draining and not any(run.state != ENDED for run in self.runs.values()):
            self._over.set()

    async def _say_farewell(self) -> None:
        # The site closes the connection once all of it is in its journal. Where there is none, the next hello says it.
        self._tell({"over": True, "used": self._used()})
        await self._left.wait()

    # --- the connection ------------------------------------------------------------------------

    async def _follow(self) -> None:
        pause = PAUSE_FIRST_S
        while True:
            try:
                contact = Contact(self._folder)
                host, port = contact.address
                opening = asyncio.open_connection(
                    host, port, ssl=contact.tls, server_hostname=host, limit=LINE_BYTES_MAX
                )
                reader, writer = await asyncio.wait_for(opening, ATTEMPT_S)
            except (OSError, ValueError, KeyError, asyncio.TimeoutError) as error:
                self._say(f"no connection to the site: {why(error)}")
            else:
                try:
                    if await self._speak(contact, reader, writer):
                        pause = PAUSE_FIRST_S
                except _BROKEN as error:
                    self._say(f"the connection to the site is lost: {why(error)}")
                finally:
                    self._writer = None
                    writer.close()
                    self._parted = time.monotonic()
            # Many pilots of a site that comes back do not come all at once.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  # no secret
            pause = min(PAUSE_MOST_S, 2 * pause)

    async def _speak(
        self, contact: Contact, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        hello = {
            "hello": VERSION,
            "pilot": contact.pilot,
            "secret": contact.secret,
            "job": os.environ.get("SLURM_JOB_ID") or os.environ.get("JOB_ID") or "",
            "host": os.uname().nodename,
            "ends_in": self._ends - time.monotonic(),
            "draining": self._draining,
            "over": self._over.is_set(),
            "used": self._used(),
            "runs": [run.told() for run in self.runs.values()],
        }
        self._outgoing, self._news = [], []  # it is all in there
        writer.write(line_of(hello))
        welcome = message_of(await asyncio.wait_for(reader.readline(), ATTEMPT_S) or b"{}")
        if "now" not in welcome:
            self._say(f"the site refuses this pilot: {welcome.get('refused', 'it says nothing')}")
            return False
        self._offset = welcome["now"] - time.monotonic()
        self._writer = writer
        self._flush()
        self._wake.set()
        beats = asyncio.get_running_loop().create_task(self._beat(writer))
        try:
            while True:
                line = await asyncio.wait_for(reader.readline(), SILENCE_S)
                if not line.endswith(b"\n"):
                    return True
                self._heard(message_of(line))
        finally:
            beats.cancel()

    async def _beat(self, writer: asyncio.StreamWriter) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            writer.write(line_of({"used": self._used()}))

    def _used(self) -> float:
        now = self.now()
        running = [run.processors * (now - (run.start or now)) for run in self._pids.values()]
        return self._used_before + sum(running)

    def _heard(self, said: dict[str, Any]) -> None:
        for order in said.get("runs", ()):
            self._take(order)
        for run, begin, until in said.get("moves", ()):
            self._move(run, begin, until)
        for name in said.get("kills", ()):
            self._cancel(name)
        for name in said.get("withdraws", ()):
            self._withdraw(name)
        for name in said.get("known", ()):
            self._forget(name)
        if "drain" in said:
            self.drain(said["drain"])
        if "end" in said:
            self._end_all(said["end"])
        if "left" in said:
            self._left.set()
        self._wake.set()

    def _tell_of(self, run: Run) -> None:
        self._news.append(run.told())
        self._tell({})

    def _tell(self, what: dict[str, Any]) -> None:
        if what:
            self._outgoing.append(what)
        if not self._flush_wanted:
            self._flush_wanted = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        # Without a connection it waits for the next hello, which has all of it.
        self._flush_wanted = False
        if self._writer is None:
            return
        news = [{"runs": self._news}] if self._news else []
        self._writer.write(b"".join(map(line_of, [*news, *self._outgoing])))
        self._outgoing, self._news = [], []

    # --- runs ----------------------------------------------------------------------------------

    def _take(self, order: dict[str, Any]) -> None:
        if order["run"] in self.runs:
            return  # sent again, as the connection was lost
        self._arrivals += 1
        run = Run(order, self._arrivals)
        self.runs[run.id] = run
        if self._draining:
            self._not_started(run, "pilot", f"the pilot takes no more work: {self._draining}")
            return
        if run.group:
            self._groups.setdefault(run.group, Group()).waiting.append(run)
            self._next_of(run.group)
        else:
            heapq.heappush(self._due, (run.begin, run.arrival, run))
        self._unlaid.put_nowait(run)

    def _next_of(self, name: str) -> None:
        # Has the next run of a group looked at by the clock, and forgets a group that has none.
        group = self._groups[name]
        if group.head is not None and group.head.state == WAITING:
            return
        group.head = None
        while group.waiting and group.head is None:
            run = group.waiting.popleft()
            if run.state == WAITING:
                group.head = run
                heapq.heappush(self._due, (run.begin, run.arrival, run))
        if group.head is None and not group.used:
            del self._groups[name]

    def _hand_back(self, now: float) -> float:
        # Runs of groups that would not be over in time do not start, whatever else is free; returns the seconds until that
        # is so of another one.
        pause = math.inf
        for name, group in list(self._groups.items()):
            while group.head is not None and now >= group.head.until - group.head.length:
                if group.head.state == WAITING:
                    self._not_started(group.head, "until", _NO_TIME)
                self._next_of(name)
            if group.head is not None:
                pause = min(pause, group.head.until - group.head.length - now)
        return pause

    def _has_room(self, run: Run) -> bool:
        return not run.group or self._groups[run.group].used + run.processors <= run.share

    def _release(self, run: Run) -> None:
        # The processors of a run that is over are its group's again.
        if run.group:
            self._groups[run.group].used -= run.processors
            self._next_of(run.group)

    async def _lay_folders(self) -> None:
        # A thread tells of each folder by a byte in the pipe by which signals come, too, and which is small.
        while True:
            run = await self._unlaid.get()
            files, run.files = run.files, None
            if run.state != WAITING:
                continue
            work = asyncio.get_running_loop().run_in_executor(None, lay, run.folder, files)
            try:
                await work
            except (OSError, ValueError) as error:
                if run.state == WAITING:
                    text = getattr(error, "strerror", None) or str(error)
                    self._not_started(run, "folder", f"its folder cannot be made: {text}")
            else:
                run.laid = True
                self._wake.set()

    def _move(self, name: str, begin: float, until: float) -> None:
        run = self.runs.get(name)
        if run is None or run.state == ENDED:
            return
        run.until = until
        if run.state == WAITING and not run.group:
            run.begin = begin
            self._arrivals += 1
            run.arrival = self._arrivals
            heapq.heappush(self._due, (begin, run.arrival, run))

    def _forget(self, name: str) -> None:
        known = self.runs.get(name)
        if known is not None and known.state == ENDED:
            del self.runs[name]

    def _withdraw(self, name: str) -> None:
        run = self.runs.get(name)
        if run is not None and run.state == WAITING:
            self._not_started(run, "killed", "")

    def _cancel(self, name: str) -> None:
        self._withdraw(name)
        run = self.runs.get(name)
        if run is not None and run.pid in self._pids:
            self._kill(run, "killed")

    def _not_started(self, run: Run, why: str, problem: str) -> None:
        run.state, run.why, run.problem, run.end = ENDED, why, problem, self.now()
        self._tell_of(run)
        self._look_whether_over()

    async def _start_by_clock(self) -> None:
        while True:
            self._wake.clear()
            pause = min(self._start_due(), LOOKED_AT_S)
            timer = asyncio.get_running_loop().call_later(pause, self._wake.set)
            await self._wake.wait()
            timer.cancel()
            await asyncio.sleep(0)  # messages and ends have their turn
            self._reap()

    def _start_due(self) -> float:
        # Starts what is due and fits, in the order of begins; returns the seconds until something is due.
        now, held, started = self.now(), [], 0
        pause = min(self._until_end_of_idleness(), self._hand_back(now))
        while self._due and self._free and started < SPAWNED_AT_ONCE:
            begin, arrival, run = self._due[0]
            if run.state != WAITING or run.arrival != arrival:
                heapq.heappop(self._due)
                if run.group in self._groups:
                    self._next_of(run.group)
                continue
            if begin > now:
                pause = min(pause, begin - now)
                break
            heapq.heappop(self._due)
            if now >= run.until:
                self._not_started(run, "until", _NO_TIME)
            elif run.laid and run.processors <= self._free and self._has_room(run):
                self._start(run)
                started += 1
            else:
                held.append((begin, arrival, run))
                pause = min(pause, run.until - now)
                continue
            if run.group in self._groups:
                self._next_of(run.group)
        for each in held:
            heapq.heappush(self._due, each)
        pause = min(pause, self._end_late(now))
        return 0.0 if started == SPAWNED_AT_ONCE else max(0.0, pause)

    def _end_late(self, now: float) -> float:
        # Ends runs at their limits, and those whose windows are over where others want their processors: a window is
        # often a little too short, and whoever would move its end may be away. Returns the seconds until one is due.
        pause, coming, overdue = math.inf, self._free, []
        is_wanted = any(begin <= now for begin, _, _ in self._due[:1])
        for run in list(self._pids.values()):
            if run.killing:
                coming += run.processors
            elif run.kill_at <= now:
                self._kill(run, "limit")
                coming += run.processors
            elif run.until <= now:
                overdue.append(run)
                pause = min(pause, run.kill_at - now)
            else:
                pause = min(
                    pause, (min(run.until, run.kill_at) if is_wanted else run.kill_at) - now
                )
        if overdue and is_wanted:
            wanted = sum(
                run.processors
                for begin, arrival, run in self._due
                if begin <= now
                and run.state == WAITING
                and run.arrival == arrival
                and run.laid
                and self._has_room(run)
            )
            for run in sorted(overdue, key=lambda run: (run.until, run.arrival)):
                if wanted > coming:
                    self._kill(run, "until")
                    coming += run.processors
        return pause

    def _until_end_of_idleness(self) -> float:
        now = time.monotonic()
        if any(run.state != ENDED for run in self.runs.values()):
            self._worked = now
        left = math.inf
        if self._idle_limit:
            left = self._worked + self._idle_limit - now
        if self._writer is None:
            left = min(left, max(self._worked, self._parted) + FORSAKEN_S - now)
        if left <= 0 and not self._draining:
            self.drain("it has had no work for its idle limit")
        return min(left, FORSAKEN_S) if left > 0 else FORSAKEN_S

    def _start(self, run: Run) -> None:
        folder = run.folder
        try:
            # Exclusively: a run that was sent to another pilot, or to this job before it was started anew, began there.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            begun = os.open(os.path.join(folder, BEGUN), flags, 0o600)
        except OSError as error:
            again = error.errno == errno.EEXIST
            why = "it has begun before" if again else f"it cannot begin: {error.strerror}"
            self._not_started(run, "folder", why)
            return
        run.start = self.now()
        cores: list[int] = []
        try:
            with os.fdopen(begun, "w") as file:
                file.write(f"0 {int(time.time())}\n")
            if self._cores is not None:
                cores, self._cores = self._cores[: run.processors], self._cores[run.processors :]
            run.pid = self._spawn(run, cores)
        except OSError as error:
            run.start = None
            self._cores = None if self._cores is None else sorted([*self._cores, *cores])
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, BEGUN))  # nothing of it has run
            self._not_started(run, "folder", f"it cannot begin: {error.strerror or error}")
            return
        run.cores, run.state = cores, RUNNING
        self._free -= run.processors
        if run.group:
            self._groups[run.group].used += run.processors
        self._pids[run.pid] = run
        self._tell_of(run)

    def _spawn(self, run: Run, cores: list[int]) -> int:
        folder = run.folder
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.path.join(folder, "stdout"), append, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, os.path.join(folder, "stderr"), append, 0o600),
        ]
        variables = {
            **os.environ,
            MARK: run.id,
            "HANSE_PROCESSORS": str(run.processors),
            "PWD": folder,
        }
        words = ["sh", "-c", f'cd -P -- "$1" || exit 125; {STARTED_WORDS}', "sh", folder]
        own = os.sched_getaffinity(0)
        if cores:
            # Its processors are those of its run alone; a child has the affinity of this process at its birth.
            os.sched_setaffinity(0, cores)
        try:
            with _no_birth:
                return os.posix_spawn(
                    "/bin/sh",
                    words,
                    variables,
                    file_actions=actions,
                    setsid=True,
                    setsigmask=[],
                    setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGHUP, signal.SIGTERM],
                )
        finally:
            if cores:
                os.sched_setaffinity(0, own)

    # --- ends ----------------------------------------------------------------------------------

    def _kill(self, run: Run, why: str) -> None:
        if run.killing:
            return
        run.killing, run.why = True, why
        self._send_all(run, signal.SIGTERM)
        later = asyncio.get_running_loop().call_later
        later(self._grace, self._send_all, run, signal.SIGKILL)

    def _send_all(self, run: Run, number: signal.Signals) -> None:
        if run.pid not in self._pids:
            return  # its number may be another process's by now
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(run.pid, signal.SIGCONT)
            os.killpg(run.pid, number)
        for pid in self._strays(run.id):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _strays(self, name: str) -> list[int]:
        return [pid for pid in children() if pid not in self._pids and mark_of(pid) == name]

    def _reap(self) -> None:
        # Each is looked at before it is reaped: until then no other process can have its number, nor its group's.
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                break
            if found is None:
                break
            run = self._pids.get(found.si_pid)
            if run is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(found.si_pid, signal.SIGKILL)
            os.waitid(os.P_PID, found.si_pid, os.WEXITED)
            if run is not None:
                del self._pids[found.si_pid]
                self._ended(run, found)
                self._wake.set()

    def _ended(self, run: Run, found: Any) -> None:
        run.end = self.now()
        if found.si_code == os.CLD_EXITED:
            run.code = found.si_status
        else:
            run.signal = found.si_status
        while strays := self._strays(run.id):
            # Their own children come to this process when they are gone.
            for pid in strays:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
        code = run.code if run.code is not None else 128 + (run.signal or 0)
        try:
            with open(os.path.join(run.folder, BEGUN), "a", encoding="ascii") as file:
                file.write(f"ended {code} {int(time.time())}\n")
        except OSError as error:
            self._say(f"the end of {run.id} cannot be written down: {error.strerror}")
        self._free += run.processors
        self._release(run)
        self._used_before += run.processors * (run.end - (run.start or run.end))
        if run.cores and self._cores is not None:
            self._cores = sorted([*self._cores, *run.cores])
        self._worked = time.monotonic()
        if is_killed(run.code, run.signal) and not run.killing:
            # A batch system that ends the pilot sends the same to every process of it, to the runs perhaps first.
            asyncio.get_running_loop().call_later(ENDING_S, self._finish, run)
        else:
            self._finish(run)

    def _finish(self, run: Run) -> None:
        if self._is_ended_by_others and is_killed(run.code, run.signal) and not run.killing:
            run.why = "pilot"
        run.state = ENDED
        self._tell_of(run)
        self._look_whether_over()


def why(error: Exception) -> str:
    """Returns what went wrong, for people."""
    return str(error) or type(error).__name__


def message_of(line: bytes) -> dict[str, Any]:
    """Returns the message of a line.

    Raises:
        ValueError, TypeError: it is none.
    """
    try:
        found = json.loads(line, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("a message is nested too deeply") from error
    if not isinstance(found, dict):
        raise TypeError("a message is no JSON object")
    return found


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


def line_of(message: dict[str, Any]) -> bytes:
    """Returns a message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def main(words: list[str]) -> int:
    """Runs a pilot in the folder that the first word names, and returns its exit code."""
    if len(words) != 1:
        sys.stderr.write("usage: agent FOLDER (started by a site in a batch job)\n")
        return 2

    def say(text: str) -> None:
        sys.stderr.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {text}\n")
        sys.stderr.flush()

    async def live() -> None:
        await Agent(Path(words[0]), say).live()

    try:
        asyncio.run(live())
    except (OSError, ValueError, KeyError) as error:
        say(f"the pilot cannot begin: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
