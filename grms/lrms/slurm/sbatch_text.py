"""Parses Slurm's answers about a job submitted by a user with `sbatch`. Pure.

`sbatch --test-only --verbose --verbose` submits nothing and prints every option in force, whether from the command
line, a `#SBATCH` line of the script or a variable, and then the processors and the partition that the controller
would choose. So Slurm itself interprets the options, and nothing here reads a script. A job with an option that
cannot be passed to a partner stays at home.

If an eligible job stays at its site all the same, sbatch gets the user's variables, folder, and options of `AT_HOME`.
docs/operating.md says what the site sets itself.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from grms.lrms.slurm.sbatch_words import has_value
from grms.lrms.slurm.slurm_limits import read_limit
from grms.lrms.slurm.slurm_request import ASKED, UnsaidError, read_options
from lrms_sim.workload.requests import Request, RequestError

CARRIED: Final = ASKED | {"array", "job-name", "export", "chdir", "wrap"}
"""Options that travel with a job: what it asks for, and how it is run.

At a partner its folder is one of its own, whatever `--chdir` says.
"""

STREAMS: Final = frozenset(("output", "error", "open-mode"))
"""Options that say where output goes: at a partner into its own folder, and under these names when it is brought."""

OWN: Final = frozenset(("test-only", "verbose", "parsable", "wait", "ignore-pbs"))
"""Options of the command that submits, which are none of the job."""

HOME_ALONE: Final = frozenset(
    (
        *("acctg-freq", "comment", "exclude", "get-user-env", "kill-on-invalid-dep", "mail-type"),
        *("mail-user", "mcs-label", "nice", "profile", "propagate", "wckey"),
    )
)
"""Options that concern this cluster: its accounting, its mail, its order, its nodes, limits of the host of submission.

A partner is not told of them.
"""

HINTS: Final = frozenset(
    (
        *("contiguous", "cores-per-socket", "cpu-freq", "delay-boot", "distribution", "gpu-bind"),
        *("gpu-freq", "gres-flags", "hint", "mem-bind", "no-kill", "ntasks-per-core", "prefer"),
        *("ntasks-per-socket", "oversubscribe", "sockets-per-node", "spread-job", "switches"),
        *("threads-per-core", "time-min", "use-min-nodes", "wait-all-nodes"),
    )
)
"""Options by which a job has the same, laid out in another way or found sooner. A partner is not told of them."""

AT_HOME: Final = (
    (ASKED - {"time", "requeue", "no-requeue"}) | STREAMS | HOME_ALONE | HINTS | {"tmp"}
)
"""Options that the site passes to sbatch for a local job that stays; all others are the site's choice."""

_NO_VALUE: Final = frozenset(
    ("contiguous", "get-user-env", "no-kill", "oversubscribe", "spread-job", "use-min-nodes")
)

_WHY: Final = {
    "dependency": "it waits for jobs of this cluster that no site has; name those that grms submit has printed",
    "begin": "a partner is told no moment",
    "deadline": "a partner is told no moment",
    "hold": "it would be held where nobody can release it",
    "input": "a partner does not have the file",
    "export-file": "a partner does not have the file",
    "nodelist": "a partner has other nodes",
    "nodefile": "a partner has other nodes",
    "reservation": "it is this cluster's",
    "priority": "it is this cluster's",
    "clusters": "a partner is a cluster of its own",
    "bb": "a partner has other burst buffers",
    "bbf": "a partner has other burst buffers",
    "overcommit": "a partner gives every task its processors",
    "tmp": "a partner is not told of disks",
    "mincpus": "a partner is told cores per task, and not how many its nodes must have",
    "gpus-per-socket": "a partner is told GPUs of a node, a task or the job",
}
_WHY_OTHERWISE: Final = "a partner cannot be told"

ESSENTIAL: Final = frozenset(("array", "dependency", "begin", "hold", "input"))
"""Options without which a job would be another; it cannot be transferred without them."""

SINGLETON: Final = "singleton"
"""The dependency that names no job; sites know it, and so does Slurm."""

_NO_HINDRANCE: Final = {"dependency": SINGLETON, "input": "/dev/null"}
"""Values with which a job travels, though not with others; so Slurm prints `--input=none`, and every job has it."""

_SLURM_JOB: Final = r"\d+(_(\d+|\*))?"

_OPTION = r"sbatch: ([a-z][a-z0-9-]*) *: (.*)"
_ESTIMATE = (
    r"sbatch: Job \d+ to start at \S+ using (\d+) processors on (?:nodes )?\S+ in partition (\S+)"
)
_PROPAGATED = r"sbatch: debug: +propagating (RLIMIT_[A-Z]+|UMASK)=([0-9]+)"
NO_NODE: Final = "Requested node configuration is not available"
"""Slurm's message where no nodes have what a job asks for, or none of those that take jobs now."""

_TOO_MUCH: Final = (
    NO_NODE,
    "Invalid feature specification",
    "Invalid generic resource (gres) specification",
    "Invalid license specification",
    "Node count specification invalid",
    "More processors requested than permitted",
    "Requested time limit is invalid",
)
_BEGIN, _END = "sbatch: defined options", "sbatch: end of defined options"


def take_dependency(
    options: Sequence[str], *, numbers: bool = False
) -> tuple[tuple[str, ...], str]:
    """Returns the options without a dependency on jobs of a site, and that; it is empty where there is none.

    One on the cluster's own jobs stays: that is for Slurm. With `numbers` those of jobs alone are the site's.

    Raises:
        ValueError: jobs of both kinds are in it, or what Slurm alone knows.
    """
    kept: list[str] = []
    text = ""
    at = 0
    while at < len(options):
        word = options[at]
        width = 1 + (word.startswith("-") and has_value(word) and at + 1 < len(options))
        name, is_given, value = word.partition("=")
        if name == "--dependency":
            value = value if is_given else "".join(options[at + 1 : at + width])
        elif word.startswith("-d"):
            value = word[2:] or "".join(options[at + 1 : at + width])
        else:
            kept += options[at : at + width]
            at += width
            continue
        text, last = value, options[at : at + width]
        at += width
        if not _of_sites(value, numbers=numbers):
            kept, text = [*kept, *last], ""
    return tuple(kept), text


def _of_sites(text: str, *, numbers: bool) -> bool:
    # Whether a dependency names jobs of a site.
    jobs: list[str] = []
    for part in re.split(r"[,?]", text):
        kind, *names = part.split(":")
        jobs += (
            [kind, *names] if re.search(r"\d", kind) else names
        )  # a job may stand without a kind
    own = [word for word in jobs if numbers or not re.fullmatch(_SLURM_JOB, word.partition("+")[0])]
    if not own:
        return False
    if len(own) < len(jobs):
        raise ValueError(
            f"{text!r} names jobs of the site and of this cluster; one cannot wait for both"
        )
    from grms.util.dependencies import parse_dependencies  # noqa: PLC0415  # few jobs have some

    parse_dependencies(text)
    return True


def says_test_only(script: str) -> bool:
    """Returns whether a script says itself that it is not to be submitted."""
    lines = (line for line in script.splitlines() if line.startswith("#SBATCH"))
    return any("--test-only" in line.partition(" #")[0].split() for line in lines)


@dataclass(frozen=True, slots=True)
class DryRun:
    """Slurm's answer about a job without submitting it.

    Attributes:
        options: in force, by long names; values as Slurm prints them.
        processors: it would get; `None` if Slurm would refuse it.
        partition: likewise; empty if refused.
        several: a heterogeneous job with options per component.
        propagated: inherited from the submitter, by the names of Slurm's variables: limits and umask.
        problem: why Slurm would refuse it, in its words; empty if it would not.
        estimate: when and where it would start, in its words; empty if refused.
    """

    options: Mapping[str, str]
    processors: int | None = None
    partition: str = ""
    several: bool = False
    problem: str = ""
    propagated: Mapping[str, str] = field(default_factory=dict)
    estimate: str = ""

    @property
    def too_much(self) -> bool:
        """Whether Slurm refuses it only because this cluster does not have what it asks for."""
        return any(words in self.problem for words in _TOO_MUCH)

    @property
    def fits_no_node(self) -> bool:
        """Whether Slurm refuses it because no nodes have what it asks for, or none that take jobs now."""
        return NO_NODE in self.problem

    def request(self, without: frozenset[str] = frozenset()) -> Request:
        """Returns what it asks for, but for options that it may go without.

        Raises:
            RequestError: options contradict each other, or an `UnsaidError` where a request cannot say one.
        """
        options = {name: text for name, text in self.options.items() if name not in without}
        return read_options(options, self.processors)

    @property
    def limit_s(self) -> float | None:
        """Wall-time limit in seconds; `None` if there is none."""
        return read_limit(self.options["time"]) if "time" in self.options else None


def read_dry_run(text: str, code: int) -> DryRun:
    """Parses the standard error and exit status of `sbatch --test-only --verbose --verbose`."""
    lines = text.splitlines()
    begins = [number for number, line in enumerate(lines) if line == _BEGIN]
    ends = [number for number, line in enumerate(lines) if line == _END]
    options: dict[str, str] = {}
    if begins and ends:
        for line in lines[begins[0] : ends[-1]]:
            if (found := re.fullmatch(_OPTION, line)) is not None:
                options[found[1]] = found[2]
    rest = lines[ends[-1] + 1 :] if ends else lines
    several = len(begins) > 1
    estimates = [found for line in rest if (found := re.fullmatch(_ESTIMATE, line)) is not None]
    if code == 0 and begins and len(estimates) == 1:
        handed_on = (re.fullmatch(_PROPAGATED, line) for line in rest)
        propagated = {f"SLURM_{each[1]}": each[2] for each in handed_on if each is not None}
        first = estimates[0]
        return DryRun(
            options, int(first[1]), first[2], several, propagated=propagated, estimate=first[0]
        )
    said = [line for line in rest if "error" in line or "failure" in line] or rest[-1:]
    problem = " ".join(line.removeprefix("sbatch: ").removeprefix("error: ") for line in said)
    return DryRun(options, several=several, problem=problem or f"sbatch has ended with {code}")


def kept_at_home(trial: DryRun, without: frozenset[str] = frozenset()) -> dict[str, str]:
    """Returns the options that cannot be passed to a partner, each with its reason.

    `without` are options that may be dropped.
    """
    found: dict[str, str] = {}
    if trial.several:
        found["hetjob"] = "a partner is told of one part alone"
    known = CARRIED | STREAMS | OWN | HOME_ALONE | HINTS
    known |= {name for name, value in _NO_HINDRANCE.items() if trial.options.get(name) == value}
    for name in sorted(trial.options.keys() - known):
        if name not in without or name in ESSENTIAL:
            found[name] = _WHY.get(name, _WHY_OTHERWISE)
    try:
        trial.request(without)
    except UnsaidError as error:
        found[error.option] = error.reason
    except RequestError as error:
        found["nodes"] = str(error)
    if "array" in trial.options:
        from grms.util.job_arrays import ArraySpec  # noqa: PLC0415  # of few jobs

        try:
            ArraySpec.parse(trial.options["array"])
        except ValueError as error:
            found["array"] = str(error)
    if trial.options.get("time") in {"UNLIMITED", "infinite"}:
        found["time"] = "a partner has to be told a limit"
    if any(character in trial.options.get("export", "") for character in "\"'\\"):
        found["export"] = "its quotes cannot be read here; give --env instead"
    return found


def not_told(trial: DryRun, without: frozenset[str] = frozenset()) -> list[str]:
    """Returns the options that a job that travels leaves behind, sorted: those of the home alone, and hints."""
    return sorted(trial.options.keys() & (HOME_ALONE | HINTS | without) - ESSENTIAL)


# --- a job that its own site runs ----------------------------------------------------------------


class AtHome(NamedTuple):
    """Options of a job at home: those that redirect its output (`streams`), and the others."""

    others: tuple[str, ...]
    streams: tuple[str, ...]


def words_at_home(trial: DryRun) -> tuple[str, ...]:
    """Returns the words of sbatch options for a job that stays at its site."""
    words = []
    for name, value in sorted(trial.options.items()):
        if name in _NO_VALUE:
            words.append(f"--{name}")
        elif name == "exclusive":
            words.append("--exclusive" if value == "exclusive" else f"--exclusive={value}")
        elif name in AT_HOME:
            words.append(f"--{name}={_given(name, value)}")
    return tuple(words)


def _given(name: str, value: str) -> str:
    # In the form in which sbatch accepts a value that it has printed.
    if name == "gres":
        return ",".join(each.removeprefix("gres:") for each in value.split(","))
    if name.startswith("mem") and name != "mem-bind":
        return value.removesuffix("?")  # behind a zero
    return {"a": "append", "t": "truncate"}.get(value, value) if name == "open-mode" else value


_NAME_IN_PATTERN: Final = r"%(%|\d*x)"
_NUMBER_IN_PATTERN: Final = r"%(?:(%)|(\d{0,2})[jJA])"
_ARRAY_IN_PATTERN: Final = r"%(?:(%)|(\d{0,2})([Aa]))"


def _with_name(pattern: str, name: str) -> str:
    plain = name.replace("%", "%%").replace("/", "_")
    return re.sub(_NAME_IN_PATTERN, lambda found: found[0] if found[1] == "%" else plain, pattern)


def with_element(pattern: str, array: tuple[str, str]) -> str:
    """Returns a pattern of sbatch in which array and index of an element stand for `%A` and `%a`."""
    number, index = array

    def put(found: re.Match[str]) -> str:
        if found[1]:
            return found[0]
        return (number if found[3] == "A" else index).zfill(min(int(found[2] or 0), 10))

    return re.sub(_ARRAY_IN_PATTERN, put, pattern)


def with_number(pattern: str, number: str) -> str:
    """Returns a pattern of sbatch in which a number stands for `%j`, `%J` and `%A`."""

    def put(found: re.Match[str]) -> str:
        return found[0] if found[1] else number.zfill(min(int(found[2] or 0), 10))

    return re.sub(_NUMBER_IN_PATTERN, put, pattern)


def options_at_home(
    words: Sequence[str],
    name: str,
    processors: int,
    array: tuple[str, str] | None = None,
    number: str = "",
) -> AtHome:
    """Returns the options of a job as its site passes them to sbatch.

    `words` should come from `words_at_home`, but a client could send others. `name` is the job's for `%x`, as the
    batch system's is longer; `processors` are those that the site has counted; `array` the number of its array and the
    index in it, for `%A` and `%a`; `number` is to stand for Slurm's own, unless it is empty.

    Raises:
        LrmsRefusedError: users may not set one of them.
    """
    from grms.lrms.base import LrmsRefusedError  # noqa: PLC0415  # the commands of users need it not

    others: list[str] = []
    streams: list[str] = []
    for word in words:
        option, is_given, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or option not in AT_HOME or "\n" in word:
            raise LrmsRefusedError(f"{word[:80]!r} is no option that a job has at home")
        if option == "ntasks" and not (value.isdecimal() and int(value) <= processors):
            raise LrmsRefusedError(f"{word[:80]}: the job asks for {processors} processors")
        if option == "nice" and not value.isdecimal():
            raise LrmsRefusedError(f"{word[:80]}: a job can only come behind others")
        if option in {"output", "error"} and is_given and "\\" not in value:
            pattern = value if array is None else with_element(value, array)
            if number and array is None:
                pattern = with_number(pattern, number)
            streams.append(f"--{option}={_with_name(pattern, name)}")
        else:
            (streams if option in STREAMS else others).append(word)
    return AtHome(tuple(others), tuple(streams))


def is_all(value: str) -> bool:
    """Returns whether `--export` includes all variables, as by default."""
    return not value or "ALL" in value.upper().split(",")


def exported(value: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables named by `--export` (value without quotes); none for `ALL` and `NONE`.

    Like sbatch, it omits names missing in the user's environment.
    """
    found = {}
    for word in value.split(","):
        name, is_given, text = word.partition("=")
        if is_given:
            found[name] = text
        elif name in environment and name not in {"ALL", "NONE", "NIL"}:
            found[name] = environment[name]
    return found


def read_default_limit(text: str) -> float | None:
    """Returns the default time limit in `sinfo -h -o '%L|%l'`, seconds; `None` if unlimited.

    Raises:
        ValueError: it is unreadable.
    """
    first = (text.splitlines() or [""])[0]
    default, _, longest = first.partition("|")
    return read_limit(longest if default in {"n/a", "N/A"} else default)
