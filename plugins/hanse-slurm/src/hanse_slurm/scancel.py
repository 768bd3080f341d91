"""The program `scancel`."""

import os
from collections.abc import Sequence
from typing import Final

from grms.lrms.slurm.job_rows import OPEN, Row
from hanse_slurm.options import UsageError, parse, run, tell, unknown, with_variables
from hanse_slurm.site import Site
from hanse_slurm.variables import job_words, socket
from hanse_slurm.wanted import Wanted

_LETTERS: Final = "A:bfM:n:p:q:Qs:t:u:v"
_NAMES: Final = (
    *("account=", "batch", "clusters=", "full", "jobname=", "me", "name=", "partition=", "qos="),
    *("quiet", "signal=", "state=", "user=", "verbose"),
)
_LONG_OF: Final = {
    "A": "account",
    "M": "clusters",
    "n": "name",
    "p": "partition",
    "q": "qos",
    "u": "user",
}
_VARIABLES: Final = {
    "SCANCEL_ACCOUNT": ("--account", "-A"),
    "SCANCEL_NAME": ("--name", "-n", "--jobname"),
    "SCANCEL_PARTITION": ("--partition", "-p"),
    "SCANCEL_QOS": ("--qos", "-q"),
    "SCANCEL_STATE": ("--state", "-t"),
    "SCANCEL_USER": ("--user", "-u", "--me"),
    "SCANCEL_WCKEY": (),
    "SLURM_CLUSTERS": ("--clusters", "-M"),
}
_SWITCHES: Final[dict[str, tuple[str, ...]]] = {
    "SCANCEL_BATCH": (),
    "SCANCEL_HURRY": (),
    "SCANCEL_INTERACTIVE": (),
    "SCANCEL_VERBOSE": ("--verbose", "-v"),
}
"""Slurm takes no value of them but `T` for set."""

_ENDING: Final = frozenset(("KILL", "SIGKILL", "9", "TERM", "SIGTERM", "15"))
_NOTHING: Final = frozenset(("-f", "--full"))
"""It is all of a job that ends, in any case."""


def run_command(words: Sequence[str]) -> int:
    """Runs the command line and returns the exit status."""
    return run("scancel", scancel, words)


def scancel(words: Sequence[str]) -> int:
    """Asks for the end of jobs; returns 1 where one is another user's, or the site refuses."""
    given, rest = parse("scancel", words, _LETTERS, _NAMES)
    set_ones = {
        name: options
        for name, options in _SWITCHES.items()
        if os.environ.get(name, "").upper() == "T"
    }
    given = with_variables("scancel", given, _VARIABLES | set_ones)
    wanted = Wanted(job_words(rest), states=OPEN)
    is_loud = is_quiet = False
    for option, value in given:
        name = option.lstrip("-")
        if option in _NOTHING:
            continue
        if name in {"v", "verbose"}:
            is_loud = True
        elif name in {"Q", "quiet"}:
            is_quiet = True
        elif name in {"b", "batch"} or (name in {"s", "signal"} and value.upper() not in _ENDING):
            raise unknown("scancel", f"{option} {value}".strip())
        elif name in {"t", "state"}:
            wanted.take_states(value)
        elif name not in {"s", "signal"}:
            wanted.take(_LONG_OF.get(name, name), value)
    filters = any(option.lstrip("-") not in _NO_FILTERS for option, _ in given)
    if not wanted.jobs and not filters:
        raise UsageError("No job identification provided")
    with Site() as site:
        names = wanted.jobs
        if filters:
            names = [_name(row) for row in wanted.rows(site, only_open=True)]
        return _ask(site, names, loud=is_loud, quiet=is_quiet)


_NO_FILTERS: Final = frozenset(
    ("f", "full", "Q", "quiet", "s", "signal", "v", "verbose", "M", "clusters")
)


def _name(row: Row) -> str:
    return f"{row.site}-{row.number}"


def _ask(site: Site, names: Sequence[str], *, loud: bool, quiet: bool) -> int:
    status = 0
    if loud:
        for name in names:
            tell_plainly(f"scancel: Terminating job {name}")
    for name, answer in zip(names, site.cancel(names), strict=True):
        if answer.HasField("job"):
            continue
        refusal = answer.refusal
        is_gone = refusal.code == "NOT_FOUND"
        status = status if is_gone else 1
        # What is over, or was never there, needs no end: Slurm is silent as well.
        if (not is_gone or loud) and not quiet:
            tell("scancel", f"Kill job error on job id {name}: {refusal.reason}")
    from grms.cli.handing_in import start_deputy  # noqa: PLC0415  # when all is asked

    start_deputy(socket())
    return status


def tell_plainly(text: str) -> None:
    """Prints a line to standard error."""
    import sys  # noqa: PLC0415  # seldom needed

    print(text, file=sys.stderr)
