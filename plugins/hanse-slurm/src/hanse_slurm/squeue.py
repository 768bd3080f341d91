"""The program `squeue`."""

import time
from collections.abc import Sequence
from typing import Final

from grms.lrms.slurm.job_rows import OPEN, Row, together
from hanse_slurm.options import UsageError, parse, run, tell, unknown, with_variables
from hanse_slurm.queue_fields import LONG, SHORT, Placed, in_order, lines, read_letters, read_names
from hanse_slurm.site import Site
from hanse_slurm.wanted import Wanted

_LETTERS: Final = "A:ahj:lM:n:o:O:p:q:rS:t:u:v"
_NAMES: Final = (
    *("account=", "all", "array", "array-unique", "clusters=", "federation", "Format=", "format="),
    *("hide", "jobs=", "json", "local", "long", "me", "name=", "noconvert", "noheader"),
    *("partition=", "qos=", "sort=", "states=", "user=", "verbose"),
)
_LONG_OF: Final = {
    "A": "account",
    "M": "clusters",
    "j": "jobs",
    "n": "name",
    "p": "partition",
    "q": "qos",
    "u": "user",
}
_FORMATS: Final = ("-o", "--format", "-O", "--Format", "-l", "--long", "--json")
_VARIABLES: Final = {
    "SLURM_CLUSTERS": ("--clusters", "-M"),
    "SQUEUE_ACCOUNT": ("--account", "-A"),
    "SQUEUE_ARRAY": ("--array", "-r"),
    "SQUEUE_ARRAY_UNIQUE": ("--array-unique",),
    "SQUEUE_FORMAT": ("--format", *_FORMATS),
    "SQUEUE_FORMAT2": ("--Format", *_FORMATS),
    "SQUEUE_LICENSES": (),
    "SQUEUE_NAMES": ("--name", "-n"),
    "SQUEUE_PARTITION": ("--partition", "-p"),
    "SQUEUE_PRIORITY": (),
    "SQUEUE_QOS": ("--qos", "-q"),
    "SQUEUE_SORT": ("--sort", "-S"),
    "SQUEUE_STATES": ("--states", "-t"),
    "SQUEUE_USERS": ("--user", "-u", "--me"),
}
_NOTHING: Final = frozenset(
    ("-a", "-v", "--all", "--hide", "--local", "--federation", "--noconvert", "--verbose")
)
"""Options that change nothing: a site has no hidden partitions, and prints numbers as they are."""


def run_command(words: Sequence[str]) -> int:
    """Runs the command line and returns the exit status."""
    return run("squeue", squeue, words)


def squeue(words: Sequence[str]) -> int:
    """Prints jobs; returns 1 where the only one that is named is not there."""
    given, rest = parse("squeue", _with_jobs(list(words)), _LETTERS, _NAMES)
    if rest:
        raise UsageError(f"Unrecognized option: {rest[0]}")
    given = with_variables("squeue", given, _VARIABLES)
    wanted = Wanted([], states=OPEN)
    said: dict[str, str] = {}
    for option, value in given:
        name = option.lstrip("-")
        if option in _NOTHING:
            continue
        try:
            if wanted.take(_LONG_OF.get(name, name), value):
                continue
        except UsageError as error:
            if _LONG_OF.get(name, name) != "user":
                raise
            tell("squeue", str(error))  # Slurm says so, and shows no jobs
            wanted.users += ("",)
            continue
        if name in {"t", "states"}:
            wanted.take_states(value)
        else:
            said[_SHORTENED.get(name, name)] = value
    return _show(wanted, said)


_SHORTENED: Final = {
    "array": "r",
    "array-unique": "r",
    "format": "o",
    "Format": "O",
    "long": "l",
    "noheader": "h",
    "sort": "S",
}


def _with_jobs(words: list[str]) -> list[str]:
    # `-j` at the end has no value, and means all jobs; it may be the value of another option.
    is_value = words[-2:-1] in (["-S"], ["--sort"])
    return list(words[:-1] if words[-1:] in (["-j"], ["--jobs"]) and not is_value else words)


def _show(wanted: Wanted, said: dict[str, str]) -> int:
    columns, after = _columns(said)
    with Site() as site:
        only_open = wanted.states is not None and wanted.states <= OPEN
        rows = list(wanted.rows(site, only_open=only_open))
        is_alone = len(wanted.jobs) == 1 and not rows
        is_nowhere = is_alone and all(job is None for job in site.named(wanted.jobs))
    if is_nowhere:
        print_error()
        return 1
    shown = in_order(rows if "r" in said else list(together(rows)), said.get("S", ""))
    if "json" in said:
        from hanse_slurm.queue_json import as_json  # noqa: PLC0415  # few want it

        print(as_json(in_order(rows, said.get("S", ""))))
        return 0
    if "h" not in said:
        _print_above(wanted, shown, said)
    for line in lines(columns, after, shown, head="h" not in said):
        print(line)
    return 0


def print_error() -> None:
    """Says, as Slurm does, that there is no such job."""
    import sys  # noqa: PLC0415  # few commands have an error

    print("slurm_load_jobs error: Invalid job id specified", file=sys.stderr)


def _print_above(wanted: Wanted, rows: Sequence[Row], said: dict[str, str]) -> None:
    sites = sorted({row.site for row in rows} or wanted.clusters)
    if wanted.clusters and sites:
        print(f"CLUSTER: {sites[0]}")
    if "l" in said and not {"o", "O"} & said.keys():
        print(time.strftime("%a %b %d %H:%M:%S %Y"))


def _columns(said: dict[str, str]) -> tuple[list[Placed], str]:
    if {"O", "o"} <= said.keys():
        raise UsageError("-o and -O cannot be used together")
    if "json" in said and {"o", "O"} & said.keys():
        raise unknown("squeue", "--json with a format")
    if "O" in said:
        return read_names(said["O"])
    return read_letters(said.get("o") or (LONG if "l" in said else SHORT))
