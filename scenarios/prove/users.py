"""Users' commands as processes, repeated until one is answered: `grms submit --key` and plain `sbatch`."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scenarios.prove.history import History

ATTEMPTS: Final = 60
"""More than any fault lasts."""

BETWEEN_S: Final = 0.5
"""Seconds between an attempt and the next."""

LONGER_S: Final = 20.0
"""Seconds beyond a command's own patience after which it is ended: on a busy host a process takes its time to begin."""

SCRIPT: Final = """#!/bin/sh
note() {
  printf '{"event": "%s", "time": %s, "job": "%s", "site": "%s", "node": "%s", "number": "%s"}\\n' \\
    "$1" "$(date +%s.%N)" "$2" "$SLURM_CLUSTER_NAME" "$SLURMD_NODENAME" "$SLURM_JOB_ID" >>"$3"
}
note started "$1" "$2"
sleep "$3"
note ended "$1" "$2"
"""
"""What every job runs: it appends a line to a file when it begins, and one as its last act (`>>` is O_APPEND)."""

PROCESSORS: Final = 2
LIMIT_S: Final = 60
CLIENTS: Final = ("sbatch", "grms")


@dataclass(frozen=True, slots=True)
class Submission:
    """A job that a user submits by both commands.

    Attributes:
        word: its name, alike of both.
        site: at which.
        run_s: how long it runs, seconds.
        away: the site that alone may run it, of `grms submit`; empty where the site decides.
    """

    word: str
    site: str
    run_s: float
    away: str = ""


class Users:
    """Submits jobs by both commands.

    Args:
        sbatch: of each site, the environment of `sbatch`, which gives up by itself.
        sockets: of each site.
        patience_s: after which `grms submit` gives up, seconds.
    """

    def __init__(
        self,
        history: History,
        folder: Path,
        *,
        sbatch: Mapping[str, Mapping[str, str]],
        sockets: Mapping[str, Path],
        patience_s: float,
    ) -> None:
        self._history = history
        self._script = folder / "job.sh"
        self._script.write_text(SCRIPT)
        self._script.chmod(0o755)
        self._sbatch = sbatch
        self._sockets = sockets
        self._patience_s = patience_s
        self.effects = folder / "effects.jsonl"
        self.submitted = 0
        self.numbers: dict[tuple[str, str], str] = {}
        """The names of jobs that a site has acknowledged, by site and its number."""

    async def submit(self, job: Submission) -> None:
        """Submits a job by both commands; returns when both were answered."""
        self.submitted += 1
        async with asyncio.TaskGroup() as group:
            group.create_task(self._with_sbatch(job), name=f"sbatch {job.word}")
            group.create_task(self._with_grms(job), name=f"grms {job.word}")

    async def _with_sbatch(self, job: Submission) -> None:
        name = f"sbatch-{job.word}"
        words = ["sbatch", "--parsable", f"--ntasks={PROCESSORS}", "--time=1"]
        words += [f"--job-name={name}", "--output=/dev/null", str(self._script)]
        await self._until_answered(
            name, "sbatch", job, [*words, *self._arguments(name, job)], self._sbatch[job.site]
        )

    async def _with_grms(self, job: Submission) -> None:
        name = f"grms-{job.word}"
        # Without -P a file of the user's folder that is called as a module would be imported for it.
        words = [sys.executable, "-P", "-c", "from grms.command import main; main()", "submit"]
        words += ["--socket", str(self._sockets[job.site]), "--timeout", f"{self._patience_s:g}"]
        words += ["-p", f"{PROCESSORS}", "-t", f"{LIMIT_S}", "--script", str(self._script)]
        words += ["--at", job.away] if job.away else []
        words += ["--key", name, "--"]
        number = await self._until_answered(
            name, "grms", job, [*words, *self._arguments(name, job)], os.environ
        )
        if number:
            self.numbers[job.site, number] = name

    def _arguments(self, name: str, job: Submission) -> list[str]:
        return [name, str(self.effects), f"{job.run_s:.1f}"]

    async def _until_answered(
        self,
        name: str,
        client: str,
        job: Submission,
        words: Sequence[str],
        environment: Mapping[str, str],
    ) -> str:
        for attempt in range(1, ATTEMPTS + 1):
            self._history.note("submitted", job=name, client=client, site=job.site, attempt=attempt)
            status, said = await _run(words, environment, self._patience_s + LONGER_S)
            if status == 0:
                self._history.note("acknowledged", job=name, id=said)
                return said
            self._history.note("unanswered", job=name, text=said)
            await asyncio.sleep(BETWEEN_S)
        return ""


async def _run(
    words: Sequence[str], environment: Mapping[str, str], timeout_s: float
) -> tuple[int, str]:
    """Returns a command's status, and what it has printed, of an error the last line."""
    process = await asyncio.create_subprocess_exec(
        "/usr/bin/env",
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**environment},
    )
    try:
        async with asyncio.timeout(timeout_s):
            output, errors = await process.communicate()
    except TimeoutError:
        return -1, f"no answer after {timeout_s:g} s"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return 0, output.decode(errors="replace").strip()
    lines = errors.decode(errors="replace").strip().splitlines()
    return process.returncode or -1, lines[-1] if lines else f"status {process.returncode}"
