"""The twenty jobs that every engine submits, and what it tells of them.

This is run by the Python of an engine, which has the standard library and the engine.
"""

import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

KINDS: Final = ("over", *("gone",) * 3, *("bad",) * 4, *("good",) * 12)
"""Jobs that run over their limit, are cancelled while they run, fail, and end well; all by their position."""

STATUS: Final = 3
"""With which a job fails."""

LIMIT_MIN: Final = {"over": 1}
"""Requested time of a kind, minutes, where it is not `LONG_MIN`."""

LONG_MIN: Final = 10
WAIT_S: Final = 400.0
PAUSE_S: Final = 0.2

SCRIPT: Final = f"""\
#!/bin/sh
# What a job does: it leaves a line under its name, the name of the cluster, and ends as its kind wants.
echo "$SLURM_CLUSTER_NAME" >>"$(dirname "$0")/marks/$2" || exit 9
case $1 in
good) sleep 6 ;;
bad) exit {STATUS} ;;
over | gone)
    trap '' USR1 USR2 # of engines that warn a job before its limit
    exec sleep 600
    ;;
esac
"""


@dataclass(frozen=True)
class Told:
    """What an engine tells of a job: a state in its own words, and an exit code; `None` where it tells none."""

    state: str | None
    exit_code: int | None = None


class Plan:
    """The jobs, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self) -> None:
        """Makes the folder, with the script of all jobs."""
        (self.folder / "marks").mkdir(parents=True)
        (self.folder / "job.sh").write_text(SCRIPT)

    def words(self, number: int) -> list[str]:
        """Returns the command of a job."""
        return ["/bin/sh", str(self.folder / "job.sh"), KINDS[number], str(number)]

    def command(self, number: int) -> str:
        """Returns the same as a line of a shell."""
        return shlex.join(self.words(number))

    def numbers(self, kind: str) -> list[int]:
        """Returns the jobs of a kind."""
        return [number for number, each in enumerate(KINDS) if each == kind]

    def marks(self) -> dict[str, list[str]]:
        """Returns the clusters on which each job has run, a name for every run."""
        return {path.name: path.read_text().split() for path in sorted(self.folder.glob("marks/*"))}

    def tell_killed(self) -> None:
        """Says that Slurm's controller was killed, and is there again."""
        (self.folder / "killed").touch()

    def until_killed(self) -> None:
        """Returns when all jobs have begun, and Slurm's controller was killed and is there again."""
        until((self.folder / "killed").exists)


def until(condition: Callable[[], bool], wait_s: float = WAIT_S) -> None:
    """Returns when a condition holds.

    Raises:
        TimeoutError: it does not in time.
    """
    end = time.monotonic() + wait_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it has not come to that in time")
        time.sleep(PAUSE_S)


def told(found: dict[int, Told]) -> None:
    """Prints what an engine tells of its jobs, for the program that has started this one."""
    for number, each in sorted(found.items()):
        line: dict[str, Any] = {"number": number, "state": each.state, "exit": each.exit_code}
        print(json.dumps(line), flush=True)


def here() -> Plan:
    """Returns the jobs of this process."""
    return Plan(Path(os.environ["ENGINE_FOLDER"]))


def lines_of(*words: str) -> Iterator[str]:
    """Yields what a program prints."""
    yield from subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
