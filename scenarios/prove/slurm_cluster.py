"""A Slurm cluster of one's own on loopback, to be thrown away: munged, slurmctld and slurmds as this user.

No root, no systemd, no cgroups; everything is in one folder and on free ports. Nodes are slurmds with
pretended processors on this host.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scenarios.prove.keeper import forget, free_ports, keep

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
NEEDS = ("slurmctld", "slurmd", "munged", "squeue")
DEADLINE_S = 300.0
SAVED_EVERY_S = 6.0
"""After this slurmctld has saved what was changed before."""

_CONFIGURATION = """
ClusterName={name}
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={short}/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={short}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/nodes/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/nodes/%n.log
SlurmctldDebug=info
SlurmdDebug=error
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp.txt
SchedulerType=sched/{scheduler}
SelectType=select/cons_tres
SelectTypeParameters={parameters}
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_interval=1,requeue_delay=0{scheduling}
{preemption}
PriorityType=priority/basic
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout={silence_s}
MinJobAge=300
MaxJobCount=50000
"""

_PARTITIONS = """
PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 DefaultTime=60 PriorityTier=1 State=UP
PartitionName=urgent Nodes=ALL MaxTime=INFINITE DefaultTime=60 PriorityTier=9 State=UP
"""

_PREEMPTION = """
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=1
"""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")
"""Files of pretended GPUs: every one of a node needs another."""


def missing_program() -> str:
    """Returns the first program of Slurm that is not installed; empty where all are."""
    return next((name for name in NEEDS if shutil.which(name, path=PATH) is None), "")


def wait_for(condition: "Iterator[bool]") -> None:
    """Returns when a condition holds; fails after a generous deadline."""
    end = time.monotonic() + DEADLINE_S
    for holds in condition:
        if holds:
            return
        if time.monotonic() > end:
            raise TimeoutError("the cluster is not as it should be")
        time.sleep(0.05)


@dataclass
class SlurmCluster:
    """A cluster; `up` starts it.

    Attributes:
        folder: where everything is.
        nodes: slurmds.
        cpus: pretended processors of each.
        scheduler: `backfill`, or `builtin`, which starts jobs in their order alone.
        parameters: what jobs share of a node.
        kinds: what slurm.conf says of each node, where they are not alike: of GPUs as `Gres=gpu:TYPE:NUMBER`.
        partitions: lines of the configuration.
        preemption: lines of the configuration about how jobs are ended.
        scheduling: further words of `SchedulerParameters`.
        more: lines of the configuration.
        name: of the cluster, as its jobs see it.
        silence_s: after so many seconds a node that says nothing is given up.
    """

    folder: Path
    nodes: int = 2
    cpus: int = 8
    scheduler: str = "backfill"
    parameters: str = "CR_Core"
    kinds: tuple[str, ...] = ()
    partitions: str = _PARTITIONS
    preemption: str = _PREEMPTION
    scheduling: str = ""
    more: str = ""
    name: str = "test"
    silence_s: int = 10
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    # Sockets stand in a folder with a short name: their paths may have 107 characters, and a job
    # whose step has no socket ends before it begins.
    _short: tempfile.TemporaryDirectory[str] = field(
        default_factory=lambda: tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp")  # short
    )

    @property
    def environment(self) -> Mapping[str, str]:
        """What Slurm's programs need to find the cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    @property
    def completion_log(self) -> str:
        """Path of the file of jobcomp/filetxt."""
        return str(self.folder / "jobcomp.txt")

    @property
    def node_names(self) -> list[str]:
        """The nodes."""
        return [f"n{number}" for number in range(1, self.nodes + 1)]

    def __post_init__(self) -> None:
        """Counts the nodes of several kinds."""
        self.nodes = len(self.kinds) or self.nodes

    def up(self) -> None:
        """Starts everything, and returns when all nodes are idle; what has begun is ended where that fails."""
        try:
            self._up()
        except BaseException:
            self._kill_all()
            self._short.cleanup()
            raise

    def _up(self) -> None:
        for name in ("munge", "state", "nodes"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        ports = free_ports(2 + self.nodes)
        text = _CONFIGURATION.format(
            name=self.name,
            silence_s=self.silence_s,
            folder=self.folder,
            short=self._short.name,
            user=pwd.getpwuid(os.getuid()).pw_name,
            ports=ports,
            scheduler=self.scheduler,
            parameters=self.parameters,
            preemption=self.preemption,
            scheduling=f",{self.scheduling}" if self.scheduling else "",
        )
        nodes = self._node_lines(ports[2:])
        (self.folder / "slurm.conf").write_text(text + nodes + self.partitions + self.more)
        (self.folder / "gres.conf").write_text(self._gpu_lines())
        munge = self.folder / "munge"
        self._run("mungekey", "--create", f"--keyfile={munge}/key")
        files = [f"--{name}={munge}/{name}" for name in ("key-file", "pid-file", "log-file")]
        files[0] = f"--key-file={munge}/key"
        seed = f"--seed-file={munge}/seed"
        plain = ["--foreground", "--force", "--num-threads=2", f"--socket={self._short.name}/munge"]
        self._start("munged", *plain, seed, *files)
        wait_for((Path(self._short.name) / "munge").exists() for _ in iter(int, 1))
        self.start_controller()
        for name in self.node_names:
            self.start_node(name)
        wait_for(self._idle() for _ in iter(int, 1))

    def _node_lines(self, ports: list[int]) -> str:
        alike = (f"CPUs={self.cpus} RealMemory=1000",) * self.nodes
        lines = [
            f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} {kind} State=UNKNOWN\n"
            for name, port, kind in zip(self.node_names, ports, self.kinds or alike, strict=True)
        ]
        return ("GresTypes=gpu\n" if "Gres=" in "".join(lines) else "") + "".join(lines)

    def _gpu_lines(self) -> str:
        lines = []
        for name, kind in zip(self.node_names, self.kinds, strict=False):
            for word in kind.split():
                if word.startswith("Gres=gpu:"):
                    gpu, number = word.split(":")[1:]
                    files = ",".join(DEVICES[: int(number)])
                    lines.append(f"NodeName={name} Name=gpu Type={gpu} File={files}\n")
        return "".join(lines)

    def open_to_all(self) -> None:
        """Lets other users of this host use the cluster."""
        for place in (self._short.name, self.folder, f"{self.folder}/slurm.conf"):
            Path(place).chmod(0o755)

    def _start(self, program: str, *arguments: str, name: str = "") -> None:
        name = name or program
        with (self.folder / f"{name}.out").open("ab") as output:
            self.processes[name] = subprocess.Popen(  # noqa: S603  # a daemon of the test's own
                [_path(program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={"PATH": PATH, **self.environment},
                cwd=self.folder,
                start_new_session=True,
            )
        keep(self.processes[name].pid)

    def start_controller(self) -> None:
        """Starts slurmctld; nodes that are there already tell it so at once."""
        self._start("slurmctld", "-D", "-i")
        nodes = [name for name in self.processes if name.startswith("n")]
        if nodes:
            wait_for(self._answers() for _ in iter(int, 1))
        for name in nodes:
            self.processes[name].send_signal(signal.SIGHUP)

    def _answers(self) -> bool:
        try:
            return "UP" in self.ask("scontrol", "ping")
        except subprocess.SubprocessError:
            return False

    def kill_controller(self) -> None:
        """Ends slurmctld without a word."""
        self._end("slurmctld", signal.SIGKILL)

    def hang_controller(self) -> None:
        """Stops slurmctld: connections stand, requests wait in them, and nobody answers."""
        self.processes["slurmctld"].send_signal(signal.SIGSTOP)

    def wake_controller(self) -> None:
        """Lets a slurmctld that was stopped go on; it then answers what has waited."""
        if "slurmctld" in self.processes:
            self.processes["slurmctld"].send_signal(signal.SIGCONT)

    def save_state(self) -> float:
        """Copies what slurmctld has just saved, scripts of jobs included, for `lose_state`.

        It saves changes every five seconds: the next time is waited for, as otherwise more would be lost than the time since
        the copy. Returns when it saved, seconds since 1970.
        """
        before, saved_at = self._saved_at(), time.time()
        while (moment := self._saved_at()) == before and time.time() < saved_at + SAVED_EVERY_S:
            time.sleep(0.02)
        saved_at = time.time() if moment == before else moment
        saved = self.folder / "saved"
        shutil.rmtree(saved, ignore_errors=True)
        saved.mkdir()
        state = self.folder / "state"
        for path in state.rglob("*"):
            copy = saved / path.relative_to(state)
            # Meanwhile it moves new files to their places, and removes what is over.
            with contextlib.suppress(FileNotFoundError):
                if path.is_dir():
                    copy.mkdir(exist_ok=True)
                else:
                    shutil.copy2(path, copy)
        return saved_at

    def _saved_at(self) -> float:
        try:
            return (self.folder / "state/job_state").stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def lose_state(self) -> None:
        """Ends slurmctld without a word, and puts back what it had saved at the last `save_state`."""
        self.kill_controller()
        shutil.rmtree(self.folder / "state")
        shutil.copytree(self.folder / "saved", self.folder / "state")

    def resume_nodes(self) -> None:
        """Takes drained nodes back, and releases jobs that could not be started there, as an operator does.

        Slurm drains a node that still runs a job of a number which a controller without its last state gives away again.
        """
        with contextlib.suppress(subprocess.SubprocessError):
            lines = self.ask("sinfo", "-h", "-a", "-N", "-o", "%N %t").splitlines()
            for name in sorted({line.split()[0] for line in lines if " dr" in line}):
                self.ask("scontrol", "update", f"nodename={name}", "state=resume")
            for line in self.ask("squeue", "-h", "-a", "-o", "%i %r").splitlines():
                number, _, reason = line.partition(" ")
                if reason == "launch failed requeued held":
                    self.ask("scontrol", "release", number)

    def is_idle(self) -> bool:
        """Returns whether no job waits or runs; False also where nobody answers."""
        try:
            return not self.ask("squeue", "-h", "-a")
        except subprocess.SubprocessError:
            return False

    def impatient(self, seconds: int) -> dict[str, str]:
        """Returns the environment of a user whose commands give up after so many seconds without an answer."""
        own = self.folder / f"impatient-{seconds}.conf"
        lines = (self.folder / "slurm.conf").read_text()
        own.write_text(f"{lines}MessageTimeout={seconds}\n")
        return {"PATH": PATH, "SLURM_CONF": str(own)}

    def start_node(self, name: str) -> None:
        """Starts a slurmd."""
        self._start("slurmd", "-D", "-N", name, name=name)

    def kill_node(self, name: str) -> None:
        """Ends a slurmd without a word; what it runs goes on."""
        self._end(name, signal.SIGKILL)

    def _end(self, name: str, number: signal.Signals) -> None:
        process = self.processes[name]
        process.send_signal(number)
        process.wait(DEADLINE_S)
        forget(process.pid)
        del self.processes[name]

    def _kill_all(self) -> None:
        for name in list(self.processes):
            self._end(name, signal.SIGKILL)

    def ask(self, program: str, *arguments: str) -> str:
        """Runs one of Slurm's programs as an operator would, and returns what it prints."""
        return self._run(program, *arguments)

    def _run(self, program: str, *arguments: str) -> str:
        return subprocess.run(  # noqa: S603  # a program of the cluster
            [_path(program), *arguments],
            env={"PATH": PATH, **self.environment},
            check=True,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        ).stdout

    @staticmethod
    def wait_until_left() -> None:
        """Returns when a job that was requeued can run again.

        A node refuses what was signed in the second in which it was told to end the run before.
        """
        time.sleep(1.5)

    def _idle(self) -> bool:
        try:
            lines = self.ask("sinfo", "-h", "-a", "-N", "-o", "%N %t").splitlines()
        except subprocess.CalledProcessError:
            return False
        return {*lines} == {f"{name} idle" for name in self.node_names}

    def down(self) -> None:
        """Ends everything, jobs included."""
        try:
            with contextlib.suppress(subprocess.SubprocessError, OSError):
                self.ask("scancel", "--user", str(os.getuid()))
                wait_for(not self.ask("squeue", "-h") for _ in iter(int, 1))
            for name in [*sorted(set(self.processes) - {"munged"}), "munged"]:
                if name in self.processes:
                    self._end(name, signal.SIGTERM)
        finally:
            self._kill_all()
            self._short.cleanup()


def _path(program: str) -> str:
    found = shutil.which(program, path=PATH)
    assert found is not None, program
    return found
