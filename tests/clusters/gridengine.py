"""A Grid Engine cell of one's own, for tests on loopback: master and execution daemon as this user.

Everything is in one folder and on free ports; Debian's own cell is not touched. One host with
pretended slots.
"""

import contextlib
import os
import pwd
import signal
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scenarios.prove.keeper import forget, free_ports, keep
from tests.clusters.slurm import DEADLINE_S, wait_for
from tests.services import need

PACKAGES = "gridengine-master gridengine-exec gridengine-client"
LIBRARY = "/usr/lib/gridengine"
SHARE = "/usr/share/gridengine"
PARTS = ("util", "bin", "lib", "utilbin")

_BOOTSTRAP = """\
admin_user none
default_domain none
ignore_fqdn false
spooling_method berkeleydb
spooling_lib libspoolb
spooling_params {folder}/database
binary_path {library}
qmaster_spool_dir {folder}/master
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""

_HOST = """\
hostname localhost
load_scaling NONE
complex_values NONE
user_lists NONE
xuser_lists NONE
projects NONE
xprojects NONE
usage_scaling NONE
report_variables NONE
"""

_ENVIRONMENT = """\
pe_name smp
slots 999
user_lists NONE
xuser_lists NONE
start_proc_args /bin/true
stop_proc_args /bin/true
allocation_rule $pe_slots
control_slaves FALSE
job_is_first_task TRUE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
"""

_LIMITS = "cpu fsize data stack core rss vmem"
_QUEUE = {
    "qname": "main",
    "hostlist": "localhost",
    "seq_no": "0",
    "load_thresholds": "NONE",
    "suspend_thresholds": "NONE",
    "nsuspend": "1",
    "suspend_interval": "00:05:00",
    "priority": "0",
    "min_cpu_interval": "00:05:00",
    "processors": "UNDEFINED",
    "qtype": "BATCH",
    "ckpt_list": "NONE",
    "pe_list": "smp",
    "rerun": "FALSE",
    "tmpdir": "/tmp",  # noqa: S108  # as in every cell
    "shell": "/bin/sh",
    "prolog": "NONE",
    "epilog": "NONE",  # its default
    "shell_start_mode": "unix_behavior",
    "starter_method": "NONE",
    "suspend_method": "NONE",
    "resume_method": "NONE",
    "terminate_method": "NONE",
    "notify": "00:00:60",
    "owner_list": "NONE",
    "user_lists": "NONE",
    "xuser_lists": "NONE",
    "subordinate_list": "NONE",
    "complex_values": "NONE",
    "projects": "NONE",
    "xprojects": "NONE",
    "calendar": "NONE",
    "initial_state": "default",
    **{f"{kind}_{what}": "INFINITY" for what in ("rt", *_LIMITS.split()) for kind in "sh"},
}


def need_gridengine() -> None:
    """Skips a test where there is no Grid Engine."""
    need(PACKAGES, "sge_qmaster", "sge_execd", "qsub", "spoolinit", path=LIBRARY)


@dataclass
class GridEngineCluster:
    """A cell; `up` starts it.

    Attributes:
        folder: where everything is.
        slots: of the one host.
    """

    folder: Path
    slots: int = 32
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ports: list[int] = field(default_factory=list)

    @property
    def programs(self) -> str:
        """Folder of the programs."""
        return LIBRARY

    @property
    def environment(self) -> Mapping[str, str]:
        """What the programs need to find the cell."""
        return {
            "SGE_ROOT": str(self.folder),
            "SGE_CELL": "default",
            "SGE_QMASTER_PORT": str(self.ports[0]),
            "SGE_EXECD_PORT": str(self.ports[1]),
        }

    @property
    def accounting(self) -> str:
        """Path of the accounting file."""
        return str(self.folder / "default/common/accounting")

    def up(self) -> None:
        """Makes the cell, and returns when its queue has slots; what has begun is ended where that fails."""
        try:
            self._up()
        except BaseException:
            self._kill_all()
            raise

    def _up(self) -> None:
        self.ports = free_ports(2)
        common = self.folder / "default/common"
        for path in (common, self.folder / "master/job_scripts", self.folder / "database"):
            path.mkdir(parents=True)
        for name in PARTS:
            (self.folder / name).symlink_to(f"/var/lib/gridengine/{name}")
        bootstrap = _BOOTSTRAP.format(folder=self.folder, library=LIBRARY)
        (common / "bootstrap").write_text(bootstrap)
        (common / "act_qmaster").write_text("localhost\n")
        # The host's own name and loopback are one, or the master knows nobody.
        (common / "host_aliases").write_text(f"localhost {socket.gethostname()}\n")
        self._spool()
        self.start_controller()
        self._configure()
        self._start("sge_execd")
        wait_for(f"<available>{self.slots}<" in self._queues() for _ in iter(int, 1))

    def _spool(self) -> None:
        lines = Path(SHARE, "default-configuration").read_text().splitlines()
        flush = "flush_time=00:00:15 accounting_flush_time=00:00:00"
        own = {
            "execd_spool_dir": str(self.folder / "nodes"),
            "load_report_time": "00:00:02",
            "min_uid": "0",
            "min_gid": "0",
            "reporting_params": f"accounting=true reporting=false {flush} joblog=false sharelog=00:00:00",
        }
        (self.folder / "nodes").mkdir()
        text = []
        for line in lines:
            name = line.partition(" ")[0].strip()
            text.append(f"{name} {own[name]}" if name in own else line)
        configuration = self.folder / "configuration"
        configuration.write_text("\n".join(text) + "\n")
        self.ask("spoolinit", "berkeleydb", "libspoolb", f"{self.folder}/database", "init")
        self.ask("spooldefaults", "configuration", str(configuration))
        self.ask("spooldefaults", "complexes", f"{SHARE}/util/resources/centry")
        self.ask("spooldefaults", "usersets", f"{SHARE}/util/resources/usersets")
        self.ask("spooldefaults", "managers", pwd.getpwuid(os.getuid()).pw_name)

    def _configure(self) -> None:
        self.ask("qconf", "-as", "localhost")
        scheduler = self.ask("qconf", "-ssconf").splitlines()
        quick = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}
        lines = [
            f"{line.split()[0]} {quick.get(line.split()[0], line.split()[1])}" for line in scheduler
        ]
        queue = [f"{name} {value}" for name, value in (_QUEUE | {"slots": str(self.slots)}).items()]
        for option, text in (
            ("-Ae", _HOST),
            ("-Ap", _ENVIRONMENT),
            ("-Aq", "\n".join(queue)),
            ("-Msconf", "\n".join(lines)),
        ):
            path = self.folder / f"qconf{option}"
            path.write_text(text + "\n")
            self.ask("qconf", option, str(path))

    def _start(self, program: str) -> None:
        with (self.folder / f"{program}.out").open("ab") as output:
            self.processes[program] = subprocess.Popen(  # noqa: S603  # a daemon of the test's own
                [f"{LIBRARY}/{program}"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={"PATH": "/usr/bin:/bin", "SGE_ND": "1", **self.environment},
                cwd=self.folder,
                start_new_session=True,
            )
        keep(self.processes[program].pid)

    def start_controller(self) -> None:
        """Starts the master, and returns when it answers; its host tells it so at once."""
        self._start("sge_qmaster")
        wait_for(self._answers() for _ in iter(int, 1))
        if "sge_execd" in self.processes:
            self._end("sge_execd", signal.SIGKILL)
            self._start("sge_execd")

    def kill_controller(self) -> None:
        """Ends the master without a word."""
        self._end("sge_qmaster", signal.SIGKILL)

    @property
    def node_names(self) -> list[str]:
        """The nodes: one."""
        return ["localhost"]

    def kill_node(self, name: str) -> None:
        """Ends the execution daemon without a word; what it runs goes on."""
        assert name in self.node_names
        self._end("sge_execd", signal.SIGKILL)

    def start_node(self, name: str) -> None:
        """Starts it again."""
        assert name in self.node_names
        self._start("sge_execd")

    def _end(self, name: str, number: signal.Signals) -> None:
        process = self.processes[name]
        process.send_signal(number)
        process.wait(DEADLINE_S)
        forget(process.pid)
        del self.processes[name]

    def _kill_all(self) -> None:
        for name in list(self.processes):
            self._end(name, signal.SIGKILL)

    def _answers(self) -> bool:
        try:
            self.ask("qconf", "-sh")
        except subprocess.SubprocessError:
            return False
        return True

    def _queues(self) -> str:
        return self.ask("qstat", "-g", "c", "-xml")

    def ask(self, program: str, *arguments: str) -> str:
        """Runs one of Grid Engine's programs as an operator would, and returns what it prints."""
        return subprocess.run(  # noqa: S603  # a program of the cell
            [f"{LIBRARY}/{program}", *arguments],
            env={"PATH": "/usr/bin:/bin", **self.environment},
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        ).stdout

    def down(self) -> None:
        """Ends everything, jobs included."""
        try:
            with contextlib.suppress(subprocess.SubprocessError, OSError):
                self.ask("qdel", "-u", "*")
                wait_for(not self.ask("qstat", "-u", "*") for _ in iter(int, 1))
        finally:
            self._kill_all()  # they take their time otherwise
