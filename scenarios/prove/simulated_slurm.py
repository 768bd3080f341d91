"""A simulated Slurm: programs that answer as Slurm's do, for hosts without it, and the machine behind them.

`FakeSlurm.up` puts `squeue`, `sbatch`, `scontrol` and `scancel` into a folder. They are a few
lines of bash that hand their arguments to this process, which moves the machine on to the present
moment and answers. Jobs are real processes. What is printed is what Slurm 22.05 has printed for the
same question, as far as the adapter asks. As with Slurm, a crash of the controller undoes what was
not yet saved, and numbers are given away a second time.
"""

import argparse
import copy
import os
import pwd
import re
import signal
import socketserver
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TOO_MANY = (
    "AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy "
    "(job submit limit, user's size and/or time limits)"
)

FAR = "now+365days"
"""The one start far ahead that is understood."""

SAVED_AFTER_S = 5.0
"""So old a change is before it is saved."""

ENDED = ("CD", "F", "CA", "TO", "NF", "PR")
LONG_STATES = {
    "CD": "COMPLETED",
    "F": "FAILED",
    "CA": "CANCELLED",
    "TO": "TIMEOUT",
    "NF": "NODE_FAIL",
    "PR": "PREEMPTED",
    "PD": "PENDING",
    "R": "RUNNING",
    "S": "SUSPENDED",
}
PROGRAMS = ("squeue", "sbatch", "scontrol", "scancel")

_CLIENT = """#!/bin/bash
typed=()
[ "$#" -gt 0 ] || mapfile -t typed
set -- "$@" "${{typed[@]}}"
exec 3<>/dev/tcp/127.0.0.1/{port} || exit 1
printf '%s\\0' {program}"${{FAKE_ACCOUNT:+@$FAKE_ACCOUNT}}" "$#" "$@" >&3
if ! IFS= read -r -d '' -t "${{FAKE_PATIENCE:-600}}" code <&3; then
  echo "{program}: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
  exit 1
fi
IFS= read -r -d '' error <&3
cat <&3
printf '%s' "$error" >&2
exit "$code"
"""

_SUDO = """#!/bin/bash
echo "$*" >>{log}
[ "$1 $2 $4" = "-n -u --" ] || exit 1
export FAKE_ACCOUNT="$3"
shift 4
exec "$@"
"""

Job = dict[str, Any]


class NotDoneError(Exception):
    """What a program says on standard error when it has not done what it was asked."""


class NotFoundError(NotDoneError):
    """The same on standard output."""


@dataclass
class FakeSlurm:
    """A cluster without daemons; it has the methods of `SlurmCluster`.

    Attributes:
        folder: where everything is.
        nodes: how many.
        cpus: processors of each.
        name: of the cluster, as its jobs see it.
    """

    folder: Path
    nodes: int = 2
    cpus: int = 8
    name: str = "test"
    machine: "Machine" = field(init=False)
    _awake: threading.Event = field(default_factory=threading.Event)
    _server: socketserver.ThreadingTCPServer | None = None
    _thread: threading.Thread | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """What the programs need; they are found by their folder."""
        return {}

    @property
    def programs(self) -> str:
        """Folder of the programs."""
        return str(self.folder / "bin")

    @property
    def completion_log(self) -> str:
        """Path of the completion log."""
        return str(self.folder / "jobcomp.txt")

    def up(self) -> None:
        """Makes the programs and an idle machine."""
        (self.folder / "bin").mkdir(parents=True)
        nodes = {f"n{number}": self.cpus for number in range(1, self.nodes + 1)}
        self.machine = machine = Machine(self.folder / "jobcomp.txt", nodes, self.name)
        self._awake.set()
        awake = self._awake

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):  # who asks may be ended, or has given up
                    words = _words(self.rfile.read1)
                    awake.wait()
                    self.wfile.write(machine.answer(*words))

        self._server = server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self._thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        self._thread.start()
        for name in PROGRAMS:
            path = self.folder / "bin" / name
            path.write_text(_CLIENT.format(port=server.server_address[1], program=name))
            path.chmod(0o755)

    def make_sudo(self) -> Path:
        """Makes a program `sudo`, by which the others are another user's, and returns the file of its calls."""
        path, log = self.folder / "bin" / "sudo", self.folder / "sudo.log"
        path.write_text(_SUDO.format(log=log))
        path.chmod(0o755)
        return log

    def ask(self, program: str, *arguments: str) -> str:
        """Asks as one of the programs does, and returns what it prints."""
        code, error, output = self.machine.answer(program, list(arguments)).split(b"\0", 2)
        if code != b"0":
            raise ValueError(error.decode())
        return output.decode()

    @staticmethod
    def wait_until_left() -> None:
        """Returns at once: what is killed here is gone."""

    def kill_controller(self) -> None:
        """Lets the programs find nobody, and forgets what was not saved."""
        self.machine.crash()

    def hang_controller(self) -> None:
        """Lets the programs wait; what they ask is answered later, also where they have given up."""
        self._awake.clear()

    def wake_controller(self) -> None:
        """Answers what has waited."""
        self._awake.set()

    def save_state(self) -> float:
        """Returns this moment, seconds since 1970: the machine itself keeps what it was `SAVED_AFTER_S` ago."""
        return time.time()

    def lose_state(self) -> None:
        """Forgets what was not saved, as every crash does here."""
        self.kill_controller()

    def resume_nodes(self) -> None:
        """Does nothing: no node is ever drained here."""

    def is_idle(self) -> bool:
        """Returns whether no job waits or runs; False also where nobody answers."""
        return not self.machine.away and self.machine.is_idle()

    def impatient(self, seconds: int) -> dict[str, str]:
        """Returns the environment of a user whose commands give up after so many seconds without an answer."""
        return {"PATH": f"{self.programs}:/usr/bin:/bin", "FAKE_PATIENCE": str(seconds)}

    def start_controller(self) -> None:
        """Lets them find somebody again."""
        self.machine.away = False

    def down(self) -> None:
        """Ends all jobs, and the programs find nobody; does nothing where it is not up."""
        self._awake.set()
        if self._thread is None or self._server is None:
            return
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.machine.end_all()


def _words(read: Callable[[int], bytes]) -> tuple[str, list[str]]:
    # A program's name, the number of its arguments, and these, each ended by NUL.
    text = b""
    while True:
        parts = text.split(b"\0")
        if len(parts) > 2 and len(parts) >= int(parts[1]) + 3:
            return parts[0].decode(), [part.decode() for part in parts[2:-1]]
        new = read(65536)
        if not new:
            raise ConnectionError("the program was ended")
        text += new


# --- the machine ---------------------------------------------------------------------------------


@dataclass
class Part:
    """A partition.

    Attributes:
        limit: the longest job, as scontrol prints it.
        nodes: most of a job, likewise.
        state: in small letters.
    """

    limit: str
    nodes: str = "UNLIMITED"
    state: str = "up"

    def keeps(self, job: Job) -> str:
        """Returns the reason with which a job waits that is in no other partition; empty where it may start."""
        if self.state in {"down", "inactive"}:
            return "PartitionDown" if self.state == "down" else "PartitionInactive"
        days, _, clock = self.limit.rpartition("-")
        if self.limit == "UNLIMITED":
            return ""
        seconds = 86_400 * int(days or 0)
        seconds += sum(
            int(word) * 60**place for place, word in enumerate(reversed(clock.split(":")))
        )
        return "PartitionTimeLimit" if job["limit"] > seconds else ""


class Machine:
    """A machine and its queue, which move on whenever somebody asks.

    Args:
        log: the completion log.
        nodes: processors of each.
        cluster: its name, as jobs see it.

    Attributes:
        ended_together: how many jobs each call of scancel was about.
        forgotten: numbers of jobs that run on for it although they have ended, as after a crash.
        partitions: to which jobs are handed, by name; the first is the default one.
        refuses: what `sbatch` says to every job; nothing where it takes them.
        most: so many jobs may a user have in the queue (`MaxSubmitJobs`); None for any number.
        shows: how many lines of its table `squeue` prints, as where a wrapper cuts it; None for all.
        hides: names of jobs that `squeue` leaves out, as one does that is filtered for its user.
        loses: how many answers of `sbatch` get lost from now on, of jobs that it takes all the same.
        drops: how many calls of `sbatch` from now on it never hears of.
        array_size: indices of arrays are below it (`MaxArraySize`).
        refuses_arrays: what `sbatch` says to every array; nothing where it takes them.
        arrays: how many elements each array had.
        fixes_names: nobody may change a job's name.
        unheard: numbers of jobs whose start never comes to their node, as where that dies at this moment.
    """

    def __init__(self, log: Path, nodes: Mapping[str, int], cluster: str = "test") -> None:
        self.away = False
        self._cluster = cluster
        self._log = log
        self._nodes = dict(nodes)
        self._broken: set[str] = set()
        self._table: dict[str, Job] = {}
        self._next = 1
        self._rank = 0
        self._processes: dict[tuple[str, int, int], subprocess.Popen[bytes]] = {}
        self._history: list[tuple[float, int, dict[str, Job]]] = []
        self._lock = threading.Lock()
        self._asker = ""
        self.now = int(time.time())
        self.forgotten: set[str] = set()
        self.ended_together: list[int] = []
        self.partitions = {"main": Part("1-00:00:00"), "urgent": Part("UNLIMITED")}
        self.refuses = ""
        self.most: int | None = None
        self.shows: int | None = None
        self.hides: set[str] = set()
        self.loses = 0
        self.drops = 0
        self.array_size = 1001
        self.refuses_arrays = ""
        self.arrays: list[int] = []
        self.fixes_names = False
        self.unheard: set[str] = set()
        self._hidden: set[str] = set()
        self._is_over = False

    def answer(self, program: str, arguments: list[str]) -> bytes:
        """Returns exit status, standard error and standard output of a program, NUL between."""
        program, _, account = program.partition("@")
        with self._lock:
            self._asker = account or pwd.getpwuid(os.getuid()).pw_name
            drops = program == "sbatch" and self.drops > 0
            self.drops -= drops
            if self.away or drops or self._is_over:
                error = "Unable to contact slurm controller (connect failure)"
                return f"1\0{program}: error: {error}\n\0".encode()
            self._move_on()
            try:
                output = getattr(self, program)(arguments)
            except NotFoundError as error:
                return f"1\0\0{error}\n".encode()
            except NotDoneError as error:
                return f"1\0{program}: error: {error}\n\0".encode()
            self._move_on()
            self._keep()
            if program == "sbatch" and self.loses:
                self.loses -= 1
                return b"1\0sbatch: error: Socket timed out on send/recv operation\n\0"
            return f"0\0\0{output}".encode()

    def is_idle(self) -> bool:
        """Returns whether no job waits or runs at this moment."""
        with self._lock:
            if not self._is_over:
                self._move_on()
            return all(job["state"] in ENDED for job in self._table.values())

    def crash(self, *, empty: bool = False, kills: bool = True) -> None:
        """Forgets what was not yet saved, and answers nobody.

        Args:
            empty: all that was saved is lost as well.
            kills: runs that it has forgotten are ended where they go on.
        """
        with self._lock:
            self.away = True
            saved = [each for each in self._history if time.time() - each[0] >= SAVED_AFTER_S]
            before = self._table
            _, following, table = saved[-1] if saved else (0.0, 1, {})
            self._next, self._table = (self._next, {}) if empty else (following, table)
            self._history = []
            for number, job in before.items():
                lost = self._table.get(number, {}).get("state") != "R"
                if kills and job["state"] == "R" and lost:
                    self._kill(job)

    def forget_run(self, number: str, *, held: bool = False) -> None:
        """Takes a running job for one that waits, as after a crash; what runs goes on.

        Args:
            number: of the job.
            held: its release is forgotten as well.
        """
        with self._lock:
            job = self._table[number]
            job.update(state="PD", start=None, nodes={}, hold="user" if held else "")
            job["accrue"] = None if held else job["accrue"]

    def end_all(self) -> None:
        """Ends all processes of jobs, and starts none any more, whatever is still asked."""
        with self._lock:
            self._is_over = True
            for process in self._processes.values():
                _end(process)

    def _keep(self) -> None:
        now = time.time()
        self._history.append((now, self._next, copy.deepcopy(self._table)))
        old = [each for each in self._history if now - each[0] >= SAVED_AFTER_S]
        self._history = old[-1:] + self._history[len(old) :]

    def _kill(self, job: Job) -> None:
        process = self._processes.get((job["id"], job["submit"], job["attempt"]))
        if process is not None:
            _end(process)

    def _jobs(self) -> list[Job]:
        return sorted(self._table.values(), key=lambda job: int(job["id"]))

    def _ranked(self) -> int:
        # As of priority/basic: behind all that are there.
        self._rank += 1
        return self._rank

    def _free(self) -> dict[str, int]:
        left = dict(self._nodes)
        for job in self._jobs():
            if job["state"] in {"R", "S"}:
                for node, count in job["nodes"].items():
                    left[node] -= count
        return {node: count for node, count in left.items() if node not in self._broken}

    def _move_on(self) -> None:
        self.now = int(time.time())
        for job in self._jobs():
            if job["state"] == "R":
                self._watch(job)
        waiting = [job for job in self._jobs() if job["state"] == "PD"]
        waiting = [job for job in waiting if not (job["hold"] or job["pause"] or job["far"])]
        for job in sorted(waiting, key=lambda job: (job["partition"] != "urgent", job["rank"])):
            why = [self.partitions[name].keeps(job) for name in job["partition"].split(",")]
            if all(why):
                job["reason"] = why[-1]
                continue
            job["accrue"] = job["accrue"] or self.now
            if job["partition"] == "urgent":
                self._make_room(job)
            if not self._placed(job):
                job["reason"] = "Resources"

    def _watch(self, job: Job) -> None:
        process = self._processes[job["id"], job["submit"], job["attempt"]]
        code = None if job["id"] in self.forgotten else process.poll()
        if set(job["nodes"]) & self._broken:
            self._kill(job)
            self._requeue_or(job, "NF", "NodeDown")
        elif code is not None:
            exit_code = f"0:{-code}" if code < 0 else f"{code}:0"
            self._end(job, "F" if code else "CD", exit_code, "NonZeroExitCode" if code else "")
        elif self.now >= job["start"] + job["limit"]:
            self._kill(job)
            self._end(job, "TO", reason="TimeLimit")

    def _make_room(self, job: Job) -> None:
        for other in self._jobs():
            ordinary = other["state"] == "R" and other["partition"] != "urgent"
            if ordinary and job["node"] in other["nodes"]:
                self._kill(other)
                self._requeue_or(other, "PR", "")

    def _placed(self, job: Job) -> bool:
        nodes: dict[str, int] = {}
        left = job["cpus"]
        for node, count in sorted(self._free().items()):
            if job["node"] in {"", node} and left and count > 0:
                nodes[node] = min(left, count)
                left -= nodes[node]
        if left:
            return False
        job.update(state="R", nodes=nodes, start=self.now, reason="None", parted=True)
        job["attempt"] += 1
        command = [job["script"], *job["arguments"]]
        if job["id"] in self.unheard:
            command = ["sleep", "infinity"]
        if job["mode"] == "truncate":
            Path(job["output"]).write_bytes(b"")
        with (
            Path(job["output"]).open("ab") as out,
            Path(job["error"]).open("ab") as err,
        ):
            self._processes[job["id"], job["submit"], job["attempt"]] = subprocess.Popen(  # noqa: S603  # the job
                command,
                cwd=job["folder"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                env={
                    "PATH": "/usr/bin:/bin",
                    "SLURM_JOB_ID": job["id"],
                    "SLURM_CLUSTER_NAME": self._cluster,
                    "SLURMD_NODENAME": min(nodes),
                    "SLURM_JOB_NAME": job["named"],
                    **_array_variables(job),
                },
            )
        return True

    def _requeue_or(self, job: Job, state: str, reason: str) -> None:
        if job["requeue"]:
            self._write(job, "PENDING" if state == "CA" else LONG_STATES[state])
            job.update(state="PD", nodes={}, start=None, submit=self.now, reason=reason)
            job["pause"] = True  # Slurm makes one of two minutes
        else:
            self._end(job, state, reason=reason)

    def _end(self, job: Job, state: str, exit_code: str = "0:0", reason: str = "") -> None:
        if job["start"] is None:
            job["start"] = self.now
        job.update(state=state, end=self.now, exit=exit_code, reason=reason or "None")
        self._write(job, LONG_STATES[state])

    def _write(self, job: Job, state: str) -> None:
        moments = [_local(job["start"]), _local(job["end"] or self.now), _local(job["submit"])]
        nodes = ",".join(job["nodes"]) or "(null)"
        with self._log.open("a") as file:
            file.write(
                f"JobId={job['id']} UserId={job['user']}({_number(job['user'])}) GroupId=root(0) Name={job['name']} "
                f"JobState={state} Partition={job['partition']} TimeLimit=1 StartTime={moments[0]} "
                f"EndTime={moments[1]} NodeList={nodes} NodeCnt=1 ProcCnt={job['cpus']} "
                f"WorkDir={job['folder']} ReservationName= Tres= Account= QOS= WcKey= "
                f"Cluster=unknown SubmitTime={moments[2]} EligibleTime={moments[2]} "
                f"{'' if job['task'] is None else 'ArrayJobId={array} ArrayTaskId={task} '.format(**job)}"
                f"DerivedExitCode=0:0 ExitCode={job['exit']} \n"
            )

    # --- the programs ----------------------------------------------------------------------------

    def squeue(self, arguments: list[str]) -> str:
        """Returns the table."""
        form = arguments[arguments.index("-o") + 1]
        wanted = set(arguments[arguments.index("-p") + 1].split(",")) if "-p" in arguments else None
        numbers = arguments[arguments.index("-j") + 1].split(",") if "-j" in arguments else None
        lines = []
        for job in reversed(self._jobs()):
            if numbers is not None and str(_number_of(job)) not in numbers:
                continue
            if wanted is not None and wanted.isdisjoint(job["partition"].split(",")):
                continue
            if job["name"] in self.hides:
                continue
            if wanted is None and "-a" not in arguments and job["partition"] in self._hidden:
                continue
            values = {
                "i": _number_of(job),
                "t": job["state"],
                "C": job["cpus"],
                "V": job["submit"],
                "S": job["start"] or "N/A",
                "e": job["end"] or "N/A",
                "r": _reason(job),
                "u": job["user"],
                "U": _number(job["user"]),
                "N": ",".join(job["nodes"]),
                "Y": "(null)",
                "P": job["partition"],
                "k": job["comment"] or "(null)",
                "j": job["name"],
            }
            line = form
            for letter, value in values.items():
                line = line.replace(f"%{letter}", str(value))
            lines.append(line)
        return "".join(f"{line}\n" for line in lines[: self.shows])

    def _updated_or_written(self, act: str, rest: list[str]) -> str:
        if act == "write":
            return Path(self._table[rest[1]]["script"]).read_text() + "\n"
        self._update(dict(word.split("=", 1) for word in rest))
        return ""

    def _machine_shown(self, what: str, name: str = "") -> str:
        return {
            "node": self._nodes_shown(),
            "partition": self._partitions_shown(name),
            "reservation": "No reservations in the system\n",
            "config": f"{_CONFIGURATION}MaxArraySize            = {self.array_size}\n",
        }[what]

    def _nodes_shown(self) -> str:
        free, lines = self._free(), []
        for name, cpus in self._nodes.items():
            held = 0 if name in self._broken else cpus - free[name]
            state = "DOWN" if name in self._broken else "MIXED" if held else "IDLE"
            lines.append(
                f"NodeName={name} CoresPerSocket=1  CPUAlloc={held} CPUEfctv={cpus} CPUTot={cpus} "
                f"ActiveFeatures=(null) Gres=(null) GresDrain=N/A GresUsed=(null) RealMemory=1000 "
                f"AllocMem=0 State={state} ThreadsPerCore=1 Weight=1 "
                f"Partitions={','.join(self.partitions)} \n"
            )
        return "".join(lines)

    def _partitions_shown(self, wanted: str) -> str:
        return "".join(
            f"PartitionName={name} Default={'YES' if name == 'main' else 'NO'} MaxNodes={part.nodes} "
            f"MaxTime={part.limit} MinNodes=0 MaxCPUsPerNode=UNLIMITED OverSubscribe=NO "
            f"State={part.state.upper()} DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED\n"
            for name, part in self.partitions.items()
            if wanted in {"", name}
        )

    def sbatch(self, arguments: list[str]) -> str:
        """Takes a job, or an array of them, and returns the number."""
        given = _OPTIONS.parse_args(arguments)
        parts = [self.partitions.get(name) for name in (given.partition or "main").split(",")]
        if None in parts:
            raise NotDoneError("Batch job submission failed: Invalid partition name specified")
        if all(part.state in {"drain", "inactive"} for part in parts if part is not None):
            text = "Required partition not available (inactive or drain)"
            raise NotDoneError(f"Batch job submission failed: {text}")
        if self.refuses:
            raise NotDoneError(self.refuses)
        tasks = self._tasks(given.array)
        mine = [job for job in self._jobs() if job["user"] == self._asker]
        left = sum(job["state"] not in ENDED for job in mine)
        if self.most is not None and left + len(tasks) > self.most:
            raise NotDoneError(_TOO_MANY)
        array = str(self._next)
        for task in tasks:
            number = str(self._next)
            self._next += 1
            script, words = given.script, given.arguments
            if given.wrap:
                script, words = "/bin/sh", ["-c", given.wrap]
            self._table[number] = {
                "id": number,
                "array": array,
                "task": task,
                "name": given.job_name or "wrap",
                "user": self._asker,
                "state": "PD",
                "cpus": given.ntasks * given.cpus_per_task,
                "limit": given.time * 60,
                "submit": self.now,
                "start": None,
                "end": None,
                "reason": "None",
                "nodes": {},
                "comment": given.comment,
                "exit": "0:0",
                "requeue": not given.no_requeue,
                "hold": "user" if given.hold else "",
                "accrue": None,
                "attempt": 0,
                "pause": False,
                "far": given.begin == FAR,
                "rank": self._ranked(),
                "partition": given.partition or "main",
                "node": given.nodelist,
                "script": script,
                "arguments": words,
                "folder": given.chdir or "/",
                "output": _expanded(given.output or "/dev/null", task),
                "error": _expanded(given.error or given.output or "/dev/null", task),
                "mode": given.open_mode,
                "named": given.job_name or "wrap",
                "parted": task is None,
            }
        return f"{array}\n"

    def _tasks(self, text: str) -> list[int] | list[None]:
        if not text:
            return [None]
        if self.refuses_arrays:
            raise NotDoneError(self.refuses_arrays)
        tasks: list[int] = []
        for word in text.split(","):
            first, _, last = word.partition("-")
            tasks += range(int(first), int(last or first) + 1)
        if max(tasks) >= self.array_size:
            raise NotDoneError("Batch job submission failed: Invalid job array specification")
        self.arrays.append(len(tasks))
        return tasks

    def scontrol(self, arguments: list[str]) -> str:
        """Shows, holds, releases, requeues, and sets nodes and limits; lines are what was typed, each for itself."""
        if any(" " in word for word in arguments[:1]):
            return self._typed(arguments)
        act, *rest = (word for word in arguments if not word.startswith("--"))
        if act == "show" and rest[0] != "job":
            return self._machine_shown(*rest)
        if act in {"update", "write"}:
            return self._updated_or_written(act, rest)
        refused: NotDoneError | None = None
        for number in rest[-1].split(","):
            try:
                shown = self._one_job(act, number)
            except NotDoneError as error:
                refused = error  # the others are done all the same
        if refused is not None:
            raise refused
        return shown

    def _typed(self, lines: list[str]) -> str:
        errors = []
        for line in lines:
            try:
                self.scontrol(line.split())
            except NotDoneError as error:
                number = line.partition("JobId=")[2].partition(" ")[0]
                errors.append(f"{number}: {error}")
        if errors:
            raise NotDoneError("\n".join(errors))
        return ""

    def _job(self, number: str) -> Job | None:
        # By its own number, or that of its array with its index.
        return next((job for job in self._jobs() if number in {job["id"], _number_of(job)}), None)

    def _one_job(self, act: str, number: str) -> str:
        job = self._job(number)
        if act == "show" and (shown := self._shown(number)):
            return shown
        if job is None:
            raise NotDoneError("Invalid job id specified")
        self._check_owner(job)
        job["parted"] = True
        if act == "requeue" and (job["state"] != "R" or not job["requeue"]):
            raise NotDoneError("Requested operation is presently disabled")
        if job["state"] in ENDED:
            raise NotDoneError(f"Job has already finished for job {job['id']}")
        if act == "requeue":
            self._kill(job)
            self._requeue_or(job, "CA", "BeginTime")
        elif act == "release":
            job["rank"] = self._ranked()
            job["hold"] = ""
        elif job["state"] == "PD":
            job["hold"] = "user" if act == "uhold" else "admin"
            parts = [self.partitions[name] for name in job["partition"].split(",")]
            if all(part.state == "inactive" for part in parts):
                # As Slurm 22.05, it holds the job all the same.
                text = "Requested partition configuration not available now"
                raise NotDoneError(f"{text} for job {job['id']}")
        return ""

    def _shown(self, number: str) -> str:
        # Of an array all elements. Of one that is not there it says so in another way where its array is.
        job, array = self._job(number), number.partition("_")[0]
        elements = [each for each in self._jobs() if each["array"] == array and each["task"]]
        if number == array and elements:
            return "".join(map(_shown, elements))
        if job is None and elements:
            raise NotFoundError(f"Job {number} not found")
        return "" if job is None else _shown(job)

    def _check_owner(self, job: Job) -> None:
        if job["user"] != self._asker:
            raise NotDoneError("Access/permission denied")

    def _update(self, values: Mapping[str, str]) -> None:
        if values.get("State") == "DOWN":
            self._broken.add(values["NodeName"])
        elif "NodeName" in values:
            self._broken.discard(values["NodeName"])
        elif "PartitionName" in values:
            change = self._hidden.add if values["Hidden"] == "YES" else self._hidden.discard
            change(values["PartitionName"])
        elif "Partition" in values:
            self._table[values["JobId"]]["partition"] = values["Partition"]
        elif "EndTime" in values:
            self._table[values["JobId"]]["limit"] = 1
        elif {"StartTime", "JobName"} & values.keys():
            self._update_job(self._job(values["JobId"]), values)

    def _update_job(self, job: Job | None, values: Mapping[str, str]) -> None:
        if job is None:
            raise NotDoneError("Invalid job id specified")
        over = NotDoneError(f"Job is no longer pending execution for job {job['id']}")
        if job["state"] in ENDED:
            raise over
        job["parted"] = True  # also where a plugin then refuses the change
        if "JobName" in values and self.fixes_names:
            raise NotDoneError("Access/permission denied")
        job["name"] = values.get("JobName", job["name"])  # of one that runs, too
        if "StartTime" in values:
            if job["state"] != "PD":
                raise over
            job["pause"], job["far"] = False, values["StartTime"] == FAR

    def scancel(self, arguments: list[str]) -> str:
        """Ends jobs, or nothing where name or user is another; of those that are over it complains, after the others."""
        names = [word.split("=", 1)[1] for word in arguments if word.startswith("--name=")]
        users = [word.split("=", 1)[1] for word in arguments if word.startswith("--user=")]
        wanted = [word for word in arguments if not word.startswith("-")]
        self.ended_together.append(len(wanted))
        over, asked = set(wanted), set(wanted)
        if names or users or "--state=PENDING" in arguments:
            # With a filter it ends all elements of an array that are not parted, instead of one.
            waits = (job for job in self._jobs() if _is_whole(job) and _number_of(job) in asked)
            whole = {job["array"] for job in waits}
        else:
            whole = {number for number in asked if "_" not in number}
        for job in self._jobs():
            known = {job["id"], job["array"], _number_of(job)}
            unparted = _is_whole(job) and job["array"] in whole
            if not (known & asked or unparted) or job["state"] in ENDED:
                continue
            over -= known
            named = not names or job["name"] in names
            named = named and (not users or job["user"] in users)
            if named and ("--state=PENDING" not in arguments or job["state"] == "PD"):
                self._check_owner(job)
                self._kill(job)
                if unparted:
                    self._end_whole(job)
                elif _is_whole(job):
                    self._end_unparted(job)
                else:
                    self._end(job, "CA")
        if over:
            said = "Kill job error on job id {}: Invalid job id specified"
            raise NotDoneError("\nscancel: error: ".join(map(said.format, sorted(over))))
        return ""

    def _end_unparted(self, job: Job) -> None:
        # There is no record of an element that leaves its array, except of the last one; of that neither where another one
        # has the array's own number here.
        waits = [each["array"] for each in self._jobs() if _is_whole(each)]
        first = self._table.get(job["array"], job)
        if waits.count(job["array"]) > 1 or (first is not job and first["task"] is not None):
            del self._table[job["id"]]
        else:
            self._end_whole(job)

    def _end_whole(self, job: Job) -> None:
        # An element of an array that is ended as one: of all there is one row, without an index.
        row = self._table.get(job["array"])
        if row is None or row["task"] is not None or row["state"] not in ENDED:
            row = self._table[job["array"]] = {**job, "id": job["array"], "task": None}
            self._end(row, "CA", reason="JobHeldUser" if job["hold"] else "")
        if job["id"] != job["array"]:
            del self._table[job["id"]]


def _number_of(job: Job) -> str:
    return str(job["id"]) if job["task"] is None else f"{job['array']}_{job['task']}"


def _is_whole(job: Job) -> bool:
    # Whether it is an element that waits and is not parted from the others.
    return job["task"] is not None and job["state"] == "PD" and not job["parted"]


def _array_variables(job: Job) -> dict[str, str]:
    if job["task"] is None:
        return {}
    return {
        "SLURM_ARRAY_JOB_ID": job["array"],
        "SLURM_ARRAY_TASK_ID": str(job["task"]),
        "SLURM_ARRAY_TASK_COUNT": "1",
    }


def _expanded(path: str, task: int | None) -> str:
    if task is None:
        return path
    return re.sub(r"%(\d*)a", lambda found: str(task).zfill(int(found[1] or 0)), path)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(exit_on_error=False)
    first = ("job-name", "comment", "export", "chdir", "input", "output", "error", "open-mode")
    second = ("partition", "account", "qos", "nice", "array", "nodelist", "nodes", "wrap")
    for name in (*first, *second, "begin"):
        parser.add_argument(f"--{name}", default="")
    for name in ("parsable", "hold", "requeue", "no-requeue"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--ntasks", type=int, default=1)
    parser.add_argument("--cpus-per-task", type=int, default=1)
    parser.add_argument("--time", type=int, default=60)
    parser.add_argument("script", nargs="?", default="")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


_OPTIONS = _options()

_CONFIGURATION = """PriorityType            = priority/basic
SchedulerType           = sched/builtin
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE
"""


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(300)


def _number(user: str) -> int:
    # Of a user that nobody knows: one that nobody has.
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return int(user.removeprefix("#")) if user.startswith("#") else 4_000_000_000


def _local(moment: int | None) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moment or 0))


def _reason(job: Job) -> str:
    if job["state"] == "PD" and job["hold"]:
        return "JobHeldAdmin" if job["hold"] == "admin" else "JobHeldUser"
    if job["state"] == "PD" and job["far"]:
        return "BeginTime"
    return str(job["reason"])


def _shown(job: Job) -> str:
    fields = {
        "JobId": job["id"],
        **({} if job["task"] is None else {"ArrayJobId": job["array"], "ArrayTaskId": job["task"]}),
        "JobName": job["name"],
        "UserId": f"{job['user']}({_number(job['user'])})",
        "Priority": 0 if job["hold"] else 4294901757,
        "JobState": LONG_STATES[job["state"]],
        "Reason": _reason(job),
        "ExitCode": job["exit"],
        "TimeLimit": f"{job['limit'] // 60}:00",
        "SubmitTime": job["submit"],
        "AccrueTime": job["accrue"] or "Unknown",
        "StartTime": job["start"] or "Unknown",
        "EndTime": job["end"] or "Unknown",
        "NodeList": ",".join(job["nodes"]) or "(null)",
        "NumNodes": 1,
        "NumCPUs": job["cpus"],
        "NumTasks": job["cpus"],
        "CPUs/Task": 1,
        "Command": " ".join([job["script"], *job["arguments"]]),
    }
    return " ".join(f"{name}={value}" for name, value in fields.items()) + "\n"
