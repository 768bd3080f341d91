"""The columns of `squeue`: by letters, as `--format` has them, and by names, as `--Format` has them. Pure."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from grms.lrms.slurm.job_rows import PENDING, Row, minutes
from hanse_slurm.options import UsageError
from hanse_slurm.times import duration, moment
from hanse_slurm.users import group_of, uid_of

SHORT: Final = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG: Final = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"

WIDTH: Final = 20
"""Of a column that is named without one."""

_NULL: Final = "(null)"


class Column(NamedTuple):
    """A column: what stands above it, and what stands in it; to the right, Slurm cuts neither lists of nodes nor durations."""

    head: str
    text: Callable[[Row], str]
    has_nodes: bool = False
    is_duration: bool = False


class Placed(NamedTuple):
    """A column in a line: the text before it, its width (0: as wide as its text), and on which side it stands."""

    before: str
    column: Column
    width: int
    right: bool


_COLUMNS: Final = {
    "account": Column("ACCOUNT", lambda row: row.account or _NULL),
    "arrayjobid": Column("ARRAY_JOB_ID", lambda row: row.array),
    "arraytaskid": Column("ARRAY_TASK_ID", lambda row: row.index or "N/A"),
    "batchhost": Column("EXEC_HOST", lambda row: row.ran_at or "n/a"),
    "cluster": Column("CLUSTER", lambda row: row.site),
    "dependency": Column("DEPENDENCY", lambda row: row.dependency or _NULL),
    "eligibletime": Column("ELIGIBLE_TIME", lambda row: moment(row.submit_s)),
    "endtime": Column("END_TIME", lambda row: moment(row.end_s)),
    "exit_code": Column("EXIT_CODE", lambda row: str(row.code << 8 | row.signal)),
    "feature": Column("FEATURES", lambda row: row.features or _NULL),
    "groupname": Column("GROUP", lambda row: group_of(row.user)[0]),
    "groupid": Column("GROUP", lambda row: group_of(row.user)[1]),
    "jobarrayid": Column("JOBID", lambda row: row.number),
    "jobid": Column("JOBID", lambda row: row.raw),
    "licenses": Column("LICENSES", lambda row: row.licences or _NULL),
    "minmemory": Column("MIN_MEMORY", lambda row: row.memory),
    "name": Column("NAME", lambda row: row.name),
    "nodelist": Column("NODELIST", lambda row: row.ran_at, has_nodes=True),
    "numcpus": Column("CPUS", lambda row: str(row.cpus)),
    "numnodes": Column("NODES", lambda row: str(row.nodes)),
    "numtasks": Column("TASKS", lambda row: str(row.tasks)),
    "partition": Column("PARTITION", lambda row: row.partition or "n/a"),
    "qos": Column("QOS", lambda row: row.qos or _NULL),
    "reason": Column("REASON", lambda row: row.reason),
    "reasonlist": Column("NODELIST(REASON)", lambda row: row.place, has_nodes=True),
    "starttime": Column("START_TIME", lambda row: moment(row.start_s)),
    "state": Column("STATE", lambda row: row.state.word),
    "statecompact": Column("ST", lambda row: row.state.letters),
    "submittime": Column("SUBMIT_TIME", lambda row: moment(row.submit_s)),
    "timeleft": Column(
        "TIME_LEFT",
        lambda row: duration(60 * minutes(row.limit_s) - int(row.elapsed_s)),
        is_duration=True,
    ),
    "timelimit": Column(
        "TIME_LIMIT", lambda row: duration(60 * minutes(row.limit_s)), is_duration=True
    ),
    "timeused": Column("TIME", lambda row: duration(row.elapsed_s), is_duration=True),
    "userid": Column("UID", lambda row: uid_of(row.user)),
    "username": Column("USER", lambda row: row.user),
}
_COLUMNS["tres-alloc"] = Column(
    "TRES_ALLOC", lambda row: f"cpu={row.cpus},node={row.nodes},billing={row.cpus}"
)
_LETTERS: Final = {
    "a": "account",
    "A": "jobid",
    "B": "batchhost",
    "C": "numcpus",
    "D": "numnodes",
    "e": "endtime",
    "E": "dependency",
    "f": "feature",
    "F": "arrayjobid",
    "g": "groupname",
    "G": "groupid",
    "i": "jobarrayid",
    "j": "name",
    "K": "arraytaskid",
    "l": "timelimit",
    "L": "timeleft",
    "m": "minmemory",
    "M": "timeused",
    "N": "nodelist",
    "P": "partition",
    "q": "qos",
    "r": "reason",
    "R": "reasonlist",
    "S": "starttime",
    "t": "statecompact",
    "T": "state",
    "u": "username",
    "U": "userid",
    "V": "submittime",
    "W": "licenses",
}
_PIECE: Final = re.compile(r"%(\.?)(\d{0,4})([A-Za-z])")
_NAMED: Final = re.compile(r"([A-Za-z_-]+)(?::(\.?)(\d{0,4})(\D.*)?)?", re.DOTALL)


def read_letters(text: str) -> tuple[list[Placed], str]:
    """Returns the columns of a `--format`, and the text behind the last of them.

    Raises:
        UsageError: one is not known.
    """
    found: list[Placed] = []
    at = 0
    for piece in _PIECE.finditer(text):
        right, width, letter = piece.groups()
        if letter not in _LETTERS:
            raise UsageError(f"Invalid job format specification: {letter} is not known for a site")
        column = _COLUMNS[_LETTERS[letter]]
        found.append(Placed(text[at : piece.start()], column, int(width or 0), bool(right)))
        at = piece.end()
    if "%" in text[at:] or any("%" in each.before for each in found):
        raise UsageError(f"Invalid job format specification: {text}")
    return found, text[at:]


def read_names(text: str) -> tuple[list[Placed], str]:
    """Returns the columns of a `--Format`, and the text behind the last of them.

    Raises:
        UsageError: one is not known.
    """
    found: list[Placed] = []
    before = ""
    for word in text.split(","):
        piece = _NAMED.fullmatch(word)
        column = _COLUMNS.get(piece[1].lower()) if piece is not None else None
        if piece is None or column is None:
            raise UsageError(f"Invalid job format specification: {word} is not known for a site")
        # A colon without a width after it: the column is as wide as its text.
        width = WIDTH if piece[3] is None else int(piece[3] or 0)
        found.append(Placed(before, column, width, bool(piece[2])))
        before = piece[4] or ""
    return found, before


def lines(
    columns: Sequence[Placed], after: str, rows: Sequence[Row], *, head: bool
) -> Iterator[str]:
    """Yields the line above, if that is wanted, and a line for each row."""
    if head:
        yield _line(columns, after, [each.column.head for each in columns], is_head=True)
    for row in rows:
        yield _line(columns, after, [each.column.text(row) for each in columns])


def _line(
    columns: Sequence[Placed], after: str, texts: Sequence[str], *, is_head: bool = False
) -> str:
    parts = []
    for each, text in zip(columns, texts, strict=True):
        has_all = each.column.has_nodes or (each.column.is_duration and not is_head)
        is_whole = has_all and each.right and not text.startswith("(")
        short = text if is_whole or not each.width else text[: each.width]
        parts.append(each.before)
        parts.append(short.rjust(each.width) if each.right else short.ljust(each.width))
    return "".join(parts) + after


_SORTED: Final[dict[str, Callable[[Row], tuple[float, str]]]] = {
    "i": lambda row: (_number(row.array), row.index.rjust(9)),
    "j": lambda row: (0, row.name),
    "M": lambda row: (row.elapsed_s, ""),
    "P": lambda row: (0, row.partition),
    "S": lambda row: (row.start_s or float("inf"), ""),
    "t": lambda row: (0, row.state.word),
    "T": lambda row: (0, row.state.word),
    "u": lambda row: (0, row.user),
    "V": lambda row: (row.submit_s, ""),
    "e": lambda row: (row.end_s or float("inf"), ""),
}


def _number(text: str) -> float:
    return float(text) if text.isdecimal() else 0.0


def in_order(rows: Sequence[Row], text: str) -> list[Row]:
    """Returns rows in the order of `--sort`; by default that is by partition and state, and then as submitted.

    Raises:
        UsageError: a letter is not known.
    """
    found = sorted(rows, key=lambda row: row.state is not PENDING) if not text else list(rows)
    for word in reversed((text or "P,t").split(",")):
        letter = word.lstrip("+-")
        if letter not in _SORTED:
            raise UsageError(f"Invalid sort specification: {word} is not known for a site")
        found.sort(key=_SORTED[letter], reverse=word.startswith("-"))
    return found
