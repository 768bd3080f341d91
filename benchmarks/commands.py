"""Measures the processor time that users' commands take from their start to their end, beside daemons that run.

    python -m benchmarks.commands                    writes figures-commands.json
    python -m benchmarks.commands --beside FOLDER    with another tree (built, too) in turns
    python -m benchmarks.commands --dry              to the terminal alone

What counts is processor time, the kernel's for it and that of programs that a command starts included. All commands
take turns, so that a busy machine is busy for all of them; the interpreter alone, which imports nothing, is one of
them and says how busy it was. Where Slurm is installed, `sbatch` of `hanse-slurm` and Slurm's own submit to a cluster
of this machine; those are of this tree alone. The first turn, which may have to compile modules, does not count.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.frame import keep, machine, options_of
from lrms_sim.util.files import to_toml
from tests.clusters.slurm import NEEDS, PATH, SlurmCluster, wait_for

FIGURES: Final = Path(__file__).with_name("figures-commands.json")
HERE: Final = Path(__file__).resolve().parents[1]
PLUGIN: Final = "plugins/hanse-slurm/src"
RUNS: Final = 20


def run(words: list[str], environment: dict[str, str], folder: Path) -> float:
    """Returns the processor time of a command, milliseconds.

    Raises:
        SystemExit: it has failed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(  # our own program, or Slurm's
        words, env=environment, cwd=folder, capture_output=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.decode()}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return round(1000 * used, 2)


def program(module: str, *words: str) -> list[str]:
    """Returns a command of the house as an installed program starts it."""
    return [sys.executable, "-c", f"from {module}.command import main; main()", *words]


def environment_of(tree: Path, **more: str) -> dict[str, str]:
    """Returns the variables of a command of a tree; modules that were compiled are kept, as in an installation."""
    found = {**os.environ, "PYTHONPATH": f"{tree}:{tree / PLUGIN}", **more}
    return {name: word for name, word in found.items() if name != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def serving(words: list[str], socket: Path, environment: dict[str, str]) -> Iterator[None]:
    """Runs a daemon; its socket is there within."""
    with (
        (socket.parent / f"{socket.stem}.log").open("w") as log,
        subprocess.Popen(words, stdout=log, stderr=log, env=environment) as daemon,  # our own
    ):

        def there() -> Iterator[bool]:
            while daemon.poll() is None:
                yield socket.exists()
            raise SystemExit(Path(log.name).read_text())

        try:
            wait_for(there())
            yield
        finally:
            daemon.terminate()


@contextmanager
def commands_of(name: str, tree: Path, folder: Path) -> Iterator[dict[str, Callable[[], float]]]:
    """Yields the commands of a tree, with a site and a broker of its own."""
    users, broker = folder / "home.sock", folder / "gorba.sock"
    variables = {"HANSE_SOCKET": str(users), "GORBA_SOCKET": str(broker)}
    environment = environment_of(tree, **variables)
    site: dict[str, Any] = {
        "name": "home",
        "processors": 64,
        "listen": {"users": str(users)},
        "journal": {"path": str(folder / "home.journal")},
        "lrms": {"kind": "simulated", "discipline": "fcfs"},
        "mqtt": {"enabled": False},
    }
    (folder / "home.toml").write_text(to_toml(site))
    (folder / "gorba.toml").write_text(
        f'listen.socket = "{broker}"\njournal.path = "{folder / "gorba.journal"}"\n'
    )
    submit = program("grms", "submit", "-p", "1", "-t", "60", "--run-time", "600")
    all_words = {
        "grms submit": submit,
        "grms jobs": program("grms", "jobs", "--limit", "3"),
        "grms status JOB": program("grms", "status", "home-1"),
        "grms cancel": program("grms", "cancel", "home-1"),
        "grms status": program("grms", "status"),
        "gorba status": program("broker", "status"),
        "gorba list": program("broker", "list"),
    }
    serve, plan = program("grms", "serve", "home.toml"), program("broker", "serve", "gorba.toml")
    serve[-1], plan[-1] = str(folder / serve[-1]), str(folder / plan[-1])
    with serving(serve, users, environment), serving(plan, broker, environment):
        run(submit, environment, folder)  # the job that is asked for, and cancelled
        yield {
            f"{name}: {what}": partial(run, words, environment, folder)
            for what, words in all_words.items()
        }


@contextmanager
def slurm_commands(folder: Path) -> Iterator[dict[str, Callable[[], float]]]:
    """Yields `sbatch` of `hanse-slurm`, of this tree, and Slurm's own, above one cluster."""
    cluster = SlurmCluster(folder / "cluster", nodes=1, cpus=2)
    cluster.up()
    try:
        (folder / "job.sh").write_text("#!/bin/sh\ntrue\n")
        users, programs = folder / "home.sock", folder / "bin"
        own = {**os.environ, **dict(cluster.environment), "PATH": PATH, "HANSE_SOCKET": str(users)}
        environment = {**environment_of(HERE), **own}
        install = "from hanse_slurm.command import main; main()"
        run([sys.executable, "-c", install, "install", str(programs)], environment, folder)
        site = {
            "name": "home",
            "processors": 2,
            "listen": {"users": str(users)},
            "journal": {"path": str(folder / "home.journal")},
            "lrms": {
                "kind": "slurm",
                "spool": str(folder / "jobs"),
                "completion_log": cluster.completion_log,
                "configuration": cluster.environment["SLURM_CONF"],
            },
            "mqtt": {"enabled": False},
        }
        (folder / "home.toml").write_text(to_toml(site))
        serve = program("grms", "serve", str(folder / "home.toml"))
        words = ["--parsable", "-t", "1", "job.sh"]
        ours = {**own, "PATH": f"{programs}:{PATH}"}
        with serving(serve, users, environment):
            yield {
                "sbatch of hanse-slurm": lambda: run(
                    [str(programs / "sbatch"), *words], ours, folder
                ),
                "sbatch of Slurm": lambda: run(["/usr/bin/sbatch", *words], own, folder),
            }
    finally:
        cluster.down()


def main() -> None:
    """Measures what was asked for."""
    parser = options_of(__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="so many of each, in turns")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another tree")
    parser.add_argument("--dry", action="store_true", help="write no figures")
    arguments = parser.parse_args()
    trees = {"this": HERE}
    if arguments.beside is not None:
        trees["beside"] = arguments.beside.resolve()
    runs: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="hanse-bench-") as name, ExitStack() as daemons:
        folder = Path(name)
        alone = [sys.executable, "-I", "-S", "-c", "pass"]
        commands: dict[str, Callable[[], float]] = {
            "python -I -S -c pass": lambda: run(alone, dict(os.environ), folder)
        }
        for each, tree in trees.items():
            (folder / each).mkdir()
            commands |= daemons.enter_context(commands_of(each, tree, folder / each))
        if all(shutil.which(each, path=PATH) for each in NEEDS):
            (folder / "slurm").mkdir()
            commands |= daemons.enter_context(slurm_commands(folder / "slurm"))
        for turn in range(arguments.runs + 1):
            for what, command in commands.items():
                used = command()
                if turn:
                    runs.setdefault(what, []).append(used)
    medians = {what: statistics.median(found) for what, found in runs.items()}
    for what, median in medians.items():
        print(f"{what:<28} {median:7.1f} ms  ({min(runs[what]):.1f} to {max(runs[what]):.1f})")
    if not arguments.dry:
        kept = {"machine": machine(), "load": os.getloadavg()[0], "medians_ms": medians}
        keep(FIGURES, kept | {"runs_ms": runs})


if __name__ == "__main__":
    main()
