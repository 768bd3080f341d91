"""Runs workflow engines, as the package index has them, over sites above two real Slurms, by the programs of hanse-slurm alone.

    python -m benchmarks.slurm_engines
    python -m benchmarks.slurm_engines submitit parsl --json figures.json

Each engine has an environment of its own (`--environments`), which is made where it is not there. It submits twenty jobs: twelve that
end well, four that fail, three that are then cancelled, and one that runs over its limit. When all have begun, the
slurmctld of the first site is killed, just after it has saved its state, and started again. The engine has to tell the right state of each, and the exit code where it tells one; so has
`sacct`; and each job must have run once, by the lines that jobs write themselves. Engines whose jobs need no folder of
theirs run at both sites, the others at home.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.engines.plan import KINDS, STATUS, Plan
from benchmarks.frame import options_of
from benchmarks.snakemake_jobs import two_sites
from tests.clusters.slurm import PATH, SlurmCluster

ROOT: Final = Path(__file__).resolve().parents[1]
PROGRAMS: Final = ROOT / "plugins/hanse-slurm/src"
ENVIRONMENTS: Final = ROOT / "build/engines"
ENGINE_S: Final = 600.0
CALLS: Final = "calls.jsonl"
AWAY_S: Final = 4.0
"""For so long there is no slurmctld."""

CPUS: Final = {"home": 6, "away": 4}
"""The jobs that are over by themselves only later take four."""


@dataclass(frozen=True)
class Engine:
    """An engine.

    Attributes:
        requirements: of its environment; the first is named in the table.
        states: its words for the end of each kind of job; empty where it tells none.
        codes: the exit codes that it tells; empty where it tells none.
        variables: what its users set.
        travels: its jobs need no folder of the engine.
        status: with which its failed jobs end.
    """

    requirements: tuple[str, ...]
    states: Mapping[str, str]
    codes: Mapping[str, int] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    travels: bool = False
    status: int = STATUS


HOME: Final = {"HANSE_SLURM_HOME_ONLY": "1"}
TOLD_ID: Final = {"HANSE_SLURM_TOLD_ID": "1"}
SLURMS: Final = {"good": "COMPLETED", "bad": "FAILED", "gone": "CANCELLED", "over": "TIMEOUT"}

_RECORDER: Final = """\
#!/bin/sh
# One of hanse_slurm.programs as `real` has it: those programs look for Slurm's own behind it.
exec '{python}' -I -S -c '
import json, os, subprocess, sys
name, words = sys.argv[1], sys.argv[2:]
ended = subprocess.run([os.path.join("{programs}", name), *words], capture_output=True, text=True)
scripts = [open(word).read() for word in words[-1:] if name == "sbatch" and os.path.isfile(word)]
call = dict(words=[name, *words], script=scripts, status=ended.returncode, out=ended.stdout, error=ended.stderr)
line = json.dumps(call) + chr(10)
with open("{calls}", "ab", buffering=0) as file:
    file.write(line.encode())
sys.stdout.write(ended.stdout)
sys.stderr.write(ended.stderr)
sys.exit(ended.returncode)
' {name} "$@"
"""
RECORDED: Final = ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo")


def write_recorders(folder: Path, programs: Path, calls: Path) -> None:
    """Writes programs that call those of another folder, and append each call and its answer to a file, a line of JSON each."""
    folder.mkdir()
    for name in RECORDED:
        path = folder / name
        text = _RECORDER.format(python=sys.executable, programs=programs, calls=calls, name=name)
        path.write_text(text)
        path.chmod(0o755)


ENGINES: Final = {
    "psij": Engine(
        ("psij-python==0.9.11",),
        {"good": "COMPLETED", "bad": "FAILED", "gone": "CANCELED", "over": "FAILED"},
        {"good": 0, "bad": STATUS},
        HOME | TOLD_ID,
        status=0,  # its script ends well, and leaves the exit code of the job in a file
    ),
    "parsl": Engine(("parsl==2026.10.26",), SLURMS, travels=True),
    "dask": Engine(("dask-jobqueue==0.9.0",), {}, travels=True),
    "submitit": Engine(("submitit==1.5.4",), SLURMS, variables=HOME | TOLD_ID),
    "snakemake": Engine(
        ("snakemake-executor-plugin-slurm==2.8.0", "snakemake==9.27.1"),
        {**SLURMS, "good": "finished"},
        variables=HOME | TOLD_ID,
        status=1,
    ),
    "toil": Engine(
        ("toil==9.6.0",),
        {"good": "FINISHED", "bad": "FAILED", "gone": "KILLED", "over": "TIMELIMIT"},
        {"good": 0, "bad": STATUS},
        travels=True,
    ),
    "clusterfutures": Engine(
        ("clusterfutures==0.5",),
        {},
        variables=HOME,
    ),
    # It does not tell how a job has ended, but for the limit.
    "aiida": Engine(
        ("aiida-core==2.9.4",),
        {"good": "DONE", "bad": "DONE", "gone": "DONE", "over": "OUT_OF_WALLTIME"},
        variables=HOME,
    ),
}


def python_of(name: str, environments: Path) -> Path:
    """Returns the Python of an engine, whose environment is made where it is not there."""
    folder = environments / name
    python = folder / "bin/python"
    made = folder / "made"
    wanted = "\n".join(ENGINES[name].requirements)
    if not made.exists() or made.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = ("-m", "pip", "install", "--quiet", "--prefer-binary")
        subprocess.run([python, *install, *ENGINES[name].requirements], check=True)
        made.write_text(wanted)
    return python


class Field:
    """Two sites above clusters, and the programs of hanse-slurm in front of `PATH`."""

    def __init__(self, folder: Path, socket: Path, clusters: Mapping[str, SlurmCluster]) -> None:
        self.folder = folder
        self._clusters = clusters
        self._variables = {
            **clusters["home"].environment,
            **{name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ},
            "HANSE_SOCKET": str(socket),
            "HANSE_TIMEOUT": "60",
            "TZ": "UTC",
        }
        # Some engines bring a package of the name of this one.
        package = folder / "programs/benchmarks"
        shutil.copytree(ROOT / "benchmarks/engines", package / "engines")
        (package / "__init__.py").touch()
        paths = {"PYTHONPATH": f"{PROGRAMS}:{ROOT}"}
        # Snakemake keeps few of Slurm's variables, and the cluster is known by one of them alone.
        srun = folder / "found/srun"
        srun.parent.mkdir()
        where = clusters["home"].environment["SLURM_CONF"]
        own = shutil.which("srun", path=PATH)
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={where} exec {own} "$@"\n')
        srun.chmod(0o755)
        install = "from hanse_slurm.command import main; main()"
        command = [sys.executable, "-c", install, "install", str(folder / "bin")]
        subprocess.run(command, env=os.environ | paths, check=True, stdout=subprocess.DEVNULL)

    def run(self, name: str, python: Path) -> dict[str, Any]:
        """Runs an engine, and returns what came of it."""
        engine = ENGINES[name]
        plan = Plan(self.folder / name)
        plan.write()
        recorders = plan.folder / "recorders"
        write_recorders(recorders, self.folder / "bin", plan.folder / CALLS)
        path = f"{recorders}:{self.folder / 'bin'}:{self.folder / 'found'}:{python.parent}:{PATH}"
        variables = {
            **self._variables,
            **engine.variables,
            "PATH": path,
            "PYTHONPATH": str(self.folder / "programs"),
        }
        variables |= {"ENGINE_FOLDER": str(plan.folder), "USER": os.environ.get("USER", "root")}
        begun = time.monotonic()
        before = {line.partition("|")[0] for line in self._ask(variables)}
        log = plan.folder / "engine.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [python, "-m", f"benchmarks.engines.{name}"],
                cwd=plan.folder,
                env=variables,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        try:
            self._kill_controller(plan, process)
            said, _ = process.communicate(timeout=ENGINE_S)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode:
            raise SystemExit(f"FAILED: {name}: {said}\n{log.read_text()[-8000:]}")
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        ends = [
            line.split("|")[1:]
            for line in self._ask(variables)
            if line.partition("|")[0] not in before
        ]
        return judged(engine, lines, ends, plan) | {"seconds": round(time.monotonic() - begun)}

    def _ask(self, variables: Mapping[str, str]) -> list[str]:
        words = [str(self.folder / "bin/sacct"), "-X", "-n", "-P", "-o", "JobID,State,ExitCode"]
        ended = subprocess.run(words, env=variables, check=True, stdout=subprocess.PIPE, text=True)
        return ended.stdout.splitlines()

    def _kill_controller(self, plan: Plan, process: subprocess.Popen[str]) -> None:
        while process.poll() is None and len(plan.marks()) < len(KINDS):
            time.sleep(0.1)
        home = self._clusters["home"]
        # It saves changes every five seconds, and forgets what came later: jobs that it has started since, too.
        home.save_state()
        home.kill_controller()
        time.sleep(AWAY_S)
        home.start_controller()
        plan.tell_killed()


def judged(
    engine: Engine, lines: list[dict[str, Any]], ends: list[list[str]], plan: Plan
) -> dict[str, Any]:
    """Returns how many jobs an engine and `sacct` are right about, and where jobs have run."""
    told = {line["number"]: line for line in lines}
    states = codes = 0
    for number, kind in enumerate(KINDS):
        line = told.get(number, {"state": None, "exit": None})
        words = {engine.states.get(kind)}
        # Toil says nothing of how a job ends that it has killed itself.
        words |= {"killed"} if kind == "gone" and engine.codes else set()
        states += line["state"] in words
        codes += kind in engine.codes and line["exit"] == engine.codes[kind]
    code = {"good": "0:0", "bad": f"{engine.status}:0"}
    bad = "FAILED" if engine.status else "COMPLETED"
    expected = Counter(
        (bad if kind == "bad" else SLURMS[kind], code.get(kind, "")) for kind in KINDS
    )
    found = Counter(
        (state.split(" ")[0], code if state.startswith(("COMPLETED", "FAILED")) else "")
        for state, code in ends
    )
    marks = plan.marks()
    runs = [cluster for clusters in marks.values() for cluster in clusters]
    return {
        "jobs": len(ends),
        "told states right": states if engine.states else None,
        "told exit codes right": codes if engine.codes else None,
        "of": sum(kind in engine.codes for kind in KINDS),
        "sacct right": sum((expected & found).values()),
        "ran": dict(sorted(Counter(runs).items())),
        "ran twice": sum(len(clusters) - 1 for clusters in marks.values()),
        "not run": len(KINDS) - len(marks),
    }


def is_right(name: str, found: Mapping[str, Any]) -> bool:
    """Returns whether all of it is as it has to be."""
    engine, count = ENGINES[name], len(KINDS)
    return (
        found["jobs"] == found["sacct right"] == count
        and found["told states right"] == (count if engine.states else None)
        and found["told exit codes right"] == (found["of"] if engine.codes else None)
        and not found["ran twice"]
        and not found["not run"]
        and (engine.travels or set(found["ran"]) == {"home"})
    )


async def _all(folder: Path, pythons: Mapping[str, Path]) -> dict[str, Any]:
    all_found: dict[str, Any] = {}
    async with two_sites(folder, CPUS) as (sites, clusters):
        ground = Field(folder, sites["home"].socket, clusters)
        for name, python in pythons.items():
            found = await asyncio.to_thread(ground.run, name, python)
            right = is_right(name, found)
            print(f"{name}: {'right' if right else 'WRONG'}: {found}", flush=True)
            all_found[name] = found | {"right": right}
    return all_found


def main() -> None:
    """Runs all of it."""
    parser = options_of(__doc__)
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=f"of {', '.join(ENGINES)}")
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS)
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument(
        "--keep",
        type=Path,
        help=f"folder for everything, which stays, with the calls of each engine in ENGINE/{CALLS}",
    )
    options = parser.parse_args()
    names = options.engines or list(ENGINES)
    if unknown := sorted(set(names) - set(ENGINES)):
        parser.error(f"there is no engine {unknown[0]}")
    pythons = {name: python_of(name, options.environments.resolve()) for name in names}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        all_found = asyncio.run(_all(folder, pythons))
    if options.json is not None:
        options.json.write_text(json.dumps(all_found, indent=2) + "\n")
    if not all(found["right"] for found in all_found.values()):
        raise SystemExit("FAILED")


if __name__ == "__main__":
    main()
