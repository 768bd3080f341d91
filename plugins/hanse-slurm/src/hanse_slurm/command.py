"""The command `hanse-slurm`: installs the programs into a folder, and says how they are found."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from hanse_slurm.programs import NAMES, PROLOG, program_text
from lrms_sim.cli.running import run_group

MODE = 0o755


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hanse-slurm", prog_name="hanse-slurm")
def cli() -> None:
    """Slurm's commands for the jobs of a Hanse site.

    \b
      hanse-slurm install ~/hanse-bin
      eval "$(hanse-slurm env ~/hanse-bin)"
      export HANSE_SOCKET=/run/hanse/users.sock
      sbatch job.sh
    """  # noqa: D301  # click's mark for a block that is not wrapped


@cli.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def install(folder: Path) -> None:
    """Write sbatch, squeue, sacct, scancel, scontrol, sinfo and srun into a folder.

    The folder has to be visible on all hosts where jobs use these commands. Programs of an earlier version are
    replaced; a file that is none of these stays as it is, and is an error.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = {name: program_text(name) for name in (*NAMES, PROLOG)}
    for name in texts:
        path = folder / name
        if path.is_symlink() or (path.exists() and b"hanse_slurm" not in path.read_bytes()):
            raise click.UsageError(f"{path} is there, and is no program of hanse-slurm")
    for name, text in texts.items():
        new = folder / f".{name}.{os.getpid()}"
        new.write_text(text, encoding="utf-8")
        new.chmod(MODE)
        new.replace(folder / name)
    click.echo(f"{', '.join(NAMES)} are in {folder}")


@cli.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def env(folder: Path) -> None:
    """Print the line by which a shell finds the programs of a folder first."""
    missing = [name for name in NAMES if not (folder / name).exists()]
    if missing:
        raise click.UsageError(f"{folder} has no {missing[0]}; hanse-slurm install writes it")
    click.echo(f'export PATH={shlex.quote(str(folder.resolve()))}:"$PATH"')


def run_command(arguments: Sequence[str]) -> int:
    """Runs the command line and returns the exit status."""
    return run_group(cli, "hanse-slurm", arguments, no_memory="")


def main() -> None:
    """Runs the command line of this process and ends it."""
    sys.exit(run_command(sys.argv[1:]))
