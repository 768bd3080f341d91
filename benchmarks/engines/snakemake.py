"""Snakemake's executor plugin for Slurm: `sbatch --parsable`, `sacct`, `scancel`; jobs run Snakemake by `srun`.

Its users cancel single jobs by `scancel`. Files are in its folder, which jobs find.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.engines.plan import KINDS, LIMIT_MIN, LONG_MIN, WAIT_S, Told, here, lines_of, told

WORKFLOW: Final = """
rule all:
    input: expand("{{number}}.txt", number=range({count}))
"""
RULE: Final = """
rule job_{number}:
    output: "{number}.txt"
    resources: runtime={limit}
    shell: "{command}; echo done >{{output}}"
"""
SUBMITTED: Final = re.compile(
    r"rule_job_(\d+)\b.*?SLURM jobid (\d+)|SLURM jobid (\d+).*?rule_job_(\d+)\b"
)
FAILED: Final = re.compile(r"SLURM-job '(\d+)' failed, SLURM status is: '([A-Z_]+)")


def main() -> None:
    """Runs a workflow, cancels some of its jobs, and tells what became of all."""
    plan = here()
    text = WORKFLOW.format(count=len(KINDS))
    for number, kind in enumerate(KINDS):
        limit = LIMIT_MIN.get(kind, LONG_MIN)
        text += RULE.format(number=number, limit=limit, command=plan.command(number))
    (plan.folder / "Snakefile").write_text(text)
    said = plan.folder / "snakemake.log"
    command = [sys.executable, "-m", "snakemake", "--executor", "slurm", "--jobs", "30"]
    command += ["--keep-going", "--latency-wait", "5", "--default-resources", "mem_mb=100"]
    command += ["--slurm-init-seconds-before-status-checks", "2", "--verbose"]
    with said.open("w") as log:
        process = subprocess.Popen(command, cwd=plan.folder, stdout=log, stderr=log)
    plan.until_killed()
    for number in plan.numbers("gone"):
        list(lines_of("scancel", numbers_of(said)[number]))
    status = process.wait(WAIT_S)
    assert status == 1, said.read_text()
    states = {found[1]: found[2] for found in FAILED.finditer(said.read_text())}
    names = numbers_of(said)
    found = {}
    for number in range(len(KINDS)):
        is_there = (plan.folder / f"{number}.txt").exists()
        found[number] = Told("finished" if is_there else states.get(names.get(number, "")))
    told(found)


def numbers_of(said: Path) -> dict[int, str]:
    """Returns the numbers that Slurm has given to the jobs, by their rules."""
    found = {}
    for match in SUBMITTED.finditer(said.read_text()):
        rule, job = (match[1], match[2]) if match[1] else (match[4], match[3])
        found[int(rule)] = job
    return found


if __name__ == "__main__":
    main()
