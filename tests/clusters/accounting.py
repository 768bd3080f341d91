"""A Slurm cluster of one's own with accounting: slurmdbd and a database of its own, as this user."""

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scenarios.prove.keeper import free_ports
from tests.clusters.slurm import PATH, SlurmCluster, need_slurm, wait_for
from tests.services import need

DATABASE: Final = "/usr/share/mysql"
"""Folder of the database's messages, and of the statements that make its own tables."""

PLUGINS: Final = "/usr/lib/x86_64-linux-gnu/slurm-wlm"

_TABLES: Final = (
    *("mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"),
)

_ACCOUNTING: Final = """
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={short}/munge
AccountingStorageEnforce=associations,limits,qos
"""

_SLURMDBD: Final = """
AuthType=auth/munge
AuthInfo=socket={short}/munge
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports[0]}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports[1]}
StorageUser=slurm
StorageLoc=accounting
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
PluginDir={plugins}
"""


def own_user() -> str:
    """Returns the name of the user who runs the cluster."""
    return pwd.getpwuid(os.getuid()).pw_name


def need_accounting() -> None:
    """Skips a test where there is no Slurm, or no accounting for it."""
    need_slurm()
    need("slurmdbd mariadb-server-core", "slurmdbd", "mariadbd", path=PATH)


@dataclass
class AccountingCluster(SlurmCluster):
    """A cluster that knows accounts and QOS; `known` are calls of sacctmgr before its controller starts."""

    known: Sequence[str] = ()

    def start_controller(self) -> None:
        """Starts slurmctld, behind the accounting if that is not there yet."""
        if "slurmdbd" not in self.processes:
            self._start_accounting()
        super().start_controller()

    def _start_accounting(self) -> None:
        ports = free_ports(2)
        self._start_database(ports[1])
        configuration = self.folder / "slurmdbd.conf"
        text = _SLURMDBD.format(
            folder=self.folder,
            short=self._short.name,
            ports=ports,
            user=own_user(),
            plugins=PLUGINS,
        )
        configuration.write_text(text)
        configuration.chmod(0o600)  # else slurmdbd does not start
        with (self.folder / "slurm.conf").open("a") as file:
            file.write(_ACCOUNTING.format(port=ports[0], short=self._short.name))
        self._start("slurmdbd", "-D")
        wait_for(_hears(ports[0]) for _ in iter(int, 1))
        for words in ("add cluster test", *self.known):
            self.ask("sacctmgr", "--immediate", *words.split())

    def _start_database(self, port: int) -> None:
        folder = self.folder / "database"
        folder.mkdir()
        words = [
            *("--no-defaults", f"--datadir={folder}", f"--lc-messages-dir={DATABASE}"),
            *(f"--character-sets-dir={DATABASE}/charsets", f"--socket={self._short.name}/database"),
            *(
                f"--user={own_user()}",
                "--innodb-buffer-pool-size=64M",
                "--innodb-log-file-size=16M",
            ),
        ]
        begin = "create database if not exists mysql;\nuse mysql;\n"
        program = shutil.which("mariadbd", path=PATH)
        assert program is not None
        made = subprocess.run(  # noqa: S603  # a database of the test's own
            [program, *words, "--bootstrap"],
            input=begin + "".join((Path(DATABASE) / name).read_text() for name in _TABLES),
            env={"PATH": PATH},
            check=False,
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr[-4000:]
        self._start(
            "mariadbd", *words, "--skip-grant-tables", "--bind-address=127.0.0.1", f"--port={port}"
        )
        wait_for(_hears(port) for _ in iter(int, 1))


def _hears(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port)):
            return True
    except OSError:
        return False
