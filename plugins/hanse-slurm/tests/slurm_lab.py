"""A site above a real Slurm, with the programs of `hanse-slurm install` in a folder of the test."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hanse_slurm.command import run_command
from lrms_sim.util.files import to_toml
from tests.clusters.slurm import PATH, SlurmCluster, wait_for
from tests.grms.site.daemons import document
from tests.programs import run_program

TIMEOUT_S: Final = 300.0
PAUSE_S: Final = 0.3
"""Between two questions by a program, whose start costs more than all else; sites ask Slurm as seldom."""


@dataclass(frozen=True)
class Said:
    """What a program has printed, and its exit status."""

    status: int
    out: str
    error: str

    @property
    def lines(self) -> list[str]:
        """Its lines on standard output, without spaces around them."""
        return [line.strip() for line in self.out.splitlines()]


@dataclass(frozen=True)
class Lab:
    """A cluster, its site, and both kinds of programs."""

    folder: Path
    environment: dict[str, str]

    @property
    def programs(self) -> Path:
        """The folder of the programs."""
        return self.folder / "bin"

    def ours(self, *words: str, stdin: str = "", **more: str) -> Said:
        """Runs one of the programs that are tested, with more variables."""
        environment = {**self.environment, "PATH": f"{self.programs}:{PATH}", **more}
        return self._run(words, stdin, environment)

    def slurms(self, *words: str, **more: str) -> Said:
        """Runs one of Slurm's own programs."""
        return self._run(words, "", {**self.environment, "PATH": PATH, **more})

    def _run(self, words: Sequence[str], stdin: str, environment: dict[str, str]) -> Said:
        place = shutil.which(words[0], path=environment["PATH"])
        assert place is not None, words[0]
        ended = run_program(
            [place, *words[1:]],
            cwd=self.folder / "work",
            env=environment,
            input=stdin,
            timeout=TIMEOUT_S,
        )
        return Said(ended.returncode, ended.stdout, ended.stderr)

    def submitted(self, *words: str) -> str:
        """Submits a job, and returns its number."""
        said = self.ours("sbatch", "--parsable", *words)
        assert said.status == 0, said.error
        return said.out.strip()

    def until(self, state: str, *numbers: str) -> None:
        """Returns when jobs are in a state."""
        words = ("squeue", "-h", "-r", "-t", "all", "-o", "%T", "-j", ",".join(numbers))
        self.wait(lambda: set(self.ours(*words).lines) == {state})

    @staticmethod
    def wait(condition: Callable[[], bool]) -> None:
        """Returns when a condition holds."""

        def tries() -> Iterator[bool]:
            while not condition():
                time.sleep(PAUSE_S)
                yield False
            yield True

        wait_for(tries())


@contextmanager
def lab_in(folder: Path) -> Iterator[Lab]:
    """Yields a site above a cluster of three nodes, and ends both."""
    cluster = SlurmCluster(folder / "cluster", nodes=3, cpus=8)
    cluster.up()
    daemon: subprocess.Popen[bytes] | None = None
    try:
        table = {"kind": "slurm", "poll_s": 0.4, "settle_s": 0.0, "spool": str(folder / "jobs")}
        table |= {"completion_log": cluster.completion_log, "commands": 4}
        table["configuration"] = cluster.environment["SLURM_CONF"]
        site = folder / "home.toml"
        site.write_text(to_toml(document(folder, processors=24, lrms=table)))
        (folder / "work").mkdir()
        assert run_command(["install", str(folder / "bin")]) == 0
        with (folder / "daemon.log").open("wb") as log:
            daemon = subprocess.Popen(
                [sys.executable, "-c", "from grms.command import main; main()", "serve", site],
                env=os.environ | dict(cluster.environment),
                stdout=log,
                stderr=log,
            )
        Lab.wait((folder / "home.sock").exists)
        variables = {"HANSE_SOCKET": str(folder / "home.sock"), "HANSE_TIMEOUT": "200"}
        variables |= {"HOME": str(folder), "LANG": "C.UTF-8", "TZ": "UTC"}
        yield Lab(folder, {**cluster.environment, **variables})
    finally:
        if daemon is not None:
            daemon.terminate()
            daemon.wait(TIMEOUT_S)
        cluster.down()


def moment(text: str) -> float:
    """Returns a moment as the programs print it, seconds since 1970, where TZ is UTC."""
    import calendar  # noqa: PLC0415  # of this alone

    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
