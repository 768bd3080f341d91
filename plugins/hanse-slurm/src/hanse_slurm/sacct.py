"""The program `sacct`: jobs that the site remembers, a line each; steps of jobs are not the site's."""

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from grms.lrms.slurm.job_rows import OPEN, PENDING, Row, minutes, together
from hanse_slurm.options import UsageError, parse, run, unknown, with_variables
from hanse_slurm.site import Site, now_s
from hanse_slurm.times import long_duration, moment, read_moment
from hanse_slurm.users import group_of, uid_of
from hanse_slurm.wanted import Wanted

DEFAULT: Final = "jobid,jobname,partition,account,alloccpus,state,exitcode"
BRIEF: Final = "jobid,state,exitcode"


class Field(NamedTuple):
    """A field: its name, its width, and what stands in it."""

    name: str
    width: int
    text: Callable[[Row], str]


def _tres(row: Row) -> str:
    return f"billing={row.cpus},cpu={row.cpus},node={row.nodes}"


def _end(row: Row) -> str:
    return moment(None if row.state in OPEN else row.end_s, "Unknown")


_FIELDS: Final = {
    field.name.lower(): field
    for field in (
        Field("Account", 10, lambda row: row.account),
        Field("AllocCPUS", 10, lambda row: str(0 if row.state is PENDING else row.cpus)),
        Field("AllocNodes", 10, lambda row: str(0 if row.state is PENDING else row.nodes)),
        Field("AllocTRES", 10, lambda row: "" if row.state is PENDING else _tres(row)),
        Field("Cluster", 10, lambda row: row.site),
        Field("CPUTime", 10, lambda row: long_duration(row.elapsed_s * row.cpus)),
        Field("CPUTimeRAW", 10, lambda row: str(int(row.elapsed_s) * row.cpus)),
        Field("DerivedExitCode", 15, lambda row: row.exit),
        Field("Elapsed", 10, lambda row: long_duration(row.elapsed_s)),
        Field("ElapsedRaw", 10, lambda row: str(int(row.elapsed_s))),
        Field("Eligible", 19, lambda row: moment(row.submit_s)),
        Field("End", 19, _end),
        Field("ExitCode", 8, lambda row: row.exit),
        Field("GID", 6, lambda row: group_of(row.user)[1]),
        Field("Group", 9, lambda row: group_of(row.user)[0]),
        Field("JobID", 12, lambda row: row.number),
        Field("JobIDRaw", 12, lambda row: row.raw),
        Field("JobName", 10, lambda row: row.name),
        Field("NCPUS", 10, lambda row: str(row.cpus)),
        Field("NNodes", 8, lambda row: str(row.nodes)),
        Field("NodeList", 15, lambda row: row.ran_at or "None assigned"),
        Field("NTasks", 8, lambda _: ""),
        Field("Partition", 10, lambda row: row.partition),
        Field("QOS", 10, lambda row: row.qos),
        Field("Reason", 22, lambda row: row.reason),
        Field("ReqCPUS", 8, lambda row: str(row.cpus)),
        Field("ReqMem", 10, lambda row: "" if row.memory == "0" else row.memory),
        Field("ReqNodes", 8, lambda row: str(row.nodes)),
        Field("ReqTRES", 10, _tres),
        Field("Start", 19, lambda row: moment(row.start_s, "Unknown")),
        Field("State", 10, lambda row: row.state.word),
        Field("Submit", 19, lambda row: moment(row.submit_s)),
        Field("Timelimit", 10, lambda row: long_duration(60 * minutes(row.limit_s))),
        Field("TimelimitRaw", 10, lambda row: str(minutes(row.limit_s))),
        Field("UID", 6, lambda row: uid_of(row.user)),
        Field("User", 9, lambda row: row.user),
        # Of steps alone: Slurm, too, leaves them empty in the line of a job.
        *(Field(name, 10, lambda _: "") for name in ("AveCPU", "AveRSS", "AveVMSize", "MaxRSS")),
        *(Field(name, 10, lambda _: "") for name in ("MaxVMSize", "MaxDiskRead", "MaxDiskWrite")),
    )
}
_LETTERS: Final = "aA:bDE:j:M:no:pPq:r:s:S:u:X"
_NAMES: Final = (
    *("accounts=", "allocations", "allusers", "brief", "clusters=", "delimiter=", "duplicates"),
    *("endtime=", "format=", "jobs=", "local", "name=", "noconvert", "noheader", "parsable"),
    *("parsable2", "partition=", "qos=", "starttime=", "state=", "uid=", "user="),
)
_LONG_OF: Final = {
    "A": "accounts",
    "M": "clusters",
    "j": "jobs",
    "q": "qos",
    "r": "partition",
    "u": "user",
}
_STEP: Final = re.compile(r"\d+(?:_\d+)?\.(?:\d+|batch|extern)", re.ASCII)
_NOTHING: Final = frozenset(("-D", "-X", "--duplicates", "--allocations", "--local", "--noconvert"))
"""Options that change nothing: a site has jobs alone, each once."""
_VARIABLES: Final = {
    "SACCT_FORMAT": ("--format", "-o", "-b", "--brief"),
    "SLURM_CLUSTERS": ("--clusters", "-M"),
}
_SHORTENED: Final = {
    "brief": "b",
    "endtime": "E",
    "format": "o",
    "noheader": "n",
    "parsable": "p",
    "parsable2": "P",
    "starttime": "S",
}


def run_command(words: Sequence[str]) -> int:
    """Runs the command line and returns the exit status."""
    return run("sacct", _list if {"-e", "--helpformat"} & set(words) else sacct, words)


def sacct(words: Sequence[str]) -> int:
    """Prints jobs of the past and present."""
    if {"-h", "-V"} & set(words):
        words = ["--version" if "-V" in words else "--help"]
    given, rest = parse("sacct", words, _LETTERS, _NAMES)
    if rest:
        raise UsageError(f"Unknown arguments: {' '.join(rest)}")
    given = with_variables("sacct", given, _VARIABLES)
    wanted = Wanted([])
    said: dict[str, str] = {}
    steps = False
    for option, value in given:
        name = option.lstrip("-")
        if _LONG_OF.get(name, name) == "jobs":
            # A site has no steps, so nothing is said of those that are named.
            jobs = _without_steps(value)
            steps = steps or jobs != value
            if jobs or jobs == value:
                wanted.take("jobs", jobs)
            continue
        if option in _NOTHING or wanted.take(_LONG_OF.get(name, name), value):
            continue
        if name in {"s", "state"}:
            wanted.take_states(value)
        elif name in {"a", "allusers"}:
            wanted.everybody = True
        else:
            said[_SHORTENED.get(name, name)] = value
    now = now_s()
    default = "1970-01-02" if wanted.jobs else "today"
    begin = read_moment(said.get("S", default), now)
    end = read_moment(said.get("E", "now"), now)
    fields = _fields(said.get("o") or (BRIEF if "b" in said else DEFAULT))
    if steps and not wanted.jobs:
        _print(fields, [], said)
        return 0
    with Site() as site:
        rows = [
            row
            for row in wanted.rows(site)
            if (row.state in OPEN or row.end_s is None or row.end_s >= begin)
            and row.submit_s <= end
        ]
    _print(fields, list(together(rows)), said)
    return 0


def _list(_: Sequence[str]) -> int:
    # Four in a line, as Slurm has its own; engines ask for all that are there.
    names = [field.name for field in _FIELDS.values()]
    for first in range(0, len(names), 4):
        print(" ".join(f"{name:<19}" for name in names[first : first + 4]))
    return 0


def _without_steps(text: str) -> str:
    words = re.split(r",(?![^\[]*\])", text)
    return ",".join(word for word in words if _STEP.fullmatch(word) is None)


def _fields(text: str) -> list[tuple[Field, int]]:
    found = []
    # Slurm takes a comma at the end as well.
    for word in text.removesuffix(",").split(","):
        name, _, width = word.partition("%")
        field = _FIELDS.get(name.strip().lower())
        if field is None:
            raise unknown("sacct", f"Invalid field requested: {name!r}")
        if not re.fullmatch(r"(-?\d{1,4})?", width):
            raise UsageError(f"Invalid width of field {name!r}: {width!r}")
        found.append((field, int(width) if width else field.width))
    return found


def _print(fields: Sequence[tuple[Field, int]], rows: Sequence[Row], said: dict[str, str]) -> None:
    if {"p", "P"} & said.keys():
        between = said.get("delimiter", "|")
        behind = between if "p" in said and "P" not in said else ""
        lines = [] if "n" in said else [[field.name for field, _ in fields]]
        lines += [[field.text(row) for field, _ in fields] for row in rows]
        for line in lines:
            print(between.join(line) + behind)
        return
    if "n" not in said:
        print("".join(f"{_short(field.name, width)} " for field, width in fields))
        print("".join(f"{'-' * abs(width)} " for _, width in fields))
    for row in rows:
        print("".join(f"{_short(field.text(row), width)} " for field, width in fields))


def _short(text: str, width: int) -> str:
    # To the left of a column with a negative width; what is longer has a + at its end.
    size = abs(width)
    text = text if len(text) <= size else f"{text[: size - 1]}+"
    return text.ljust(size) if width < 0 else text.rjust(size)
