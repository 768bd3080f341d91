"""The program `scontrol`: what it shows of jobs, and lists of hosts; the rest is for Slurm's own."""

import os
from collections.abc import Iterator, Sequence
from typing import Final

from hanse_slurm.options import UsageError, leave, parse, run, tell, unknown
from hanse_slurm.rows import OPEN, Row
from hanse_slurm.site import Site, job_words, now_s
from hanse_slurm.squeue import print_error
from hanse_slurm.times import long_duration, minutes, moment
from hanse_slurm.users import group_of, uid_of
from hanse_slurm.wanted import Wanted

_LETTERS: Final = "adM:oQv"
_NAMES: Final = ("all", "clusters=", "details", "oneliner", "quiet", "verbose", "local", "hide")
_OF_JOBS: Final = frozenset(
    (
        *("cancel", "completing", "hold", "holdhost", "listpids", "notify", "release", "requeue"),
        *("requeuehold", "resume", "schedloglevel", "suspend", "top", "uhold", "wait_job", "write"),
    )
)
"""What changes jobs, or says more of one, than a site has; Slurm's own would take the number for that of another."""

_JOB_OBJECTS: Final = ("job", "jobs", "jobid")


def run_command(words: Sequence[str]) -> int:
    """Runs the command line and returns the exit status."""
    return run("scontrol", scontrol, words)


def scontrol(words: Sequence[str]) -> int:
    """Shows jobs of the site, or hosts; hands all else that is not about jobs to Slurm's own program."""
    plain = [word for word in words if not word.startswith("-")]
    if not plain:
        leave("scontrol", words)
    verb = plain[0].lower()
    if verb in _OF_JOBS or (verb == "update" and _is_of_job(plain[1:])):
        raise unknown("scontrol", plain[0])
    # Slurm takes any beginning of the word that is one of no other.
    if len(verb) < 2 or not "show".startswith(verb):
        leave("scontrol", words)
    thing = plain[1].lower().partition("=")[0] if len(plain) > 1 else ""
    if thing in {"step", "steps"}:
        raise unknown("scontrol", f"show {thing}")
    if thing not in {*_JOB_OBJECTS, "hostname", "hostnames"}:
        leave("scontrol", words)
    given, rest = parse("scontrol", words, _LETTERS, _NAMES)
    if thing not in _JOB_OBJECTS:
        return _hostnames(rest[2:])
    wanted = Wanted([])
    for option, value in given:
        wanted.take("clusters" if option == "-M" else option.lstrip("-"), value)
    number = rest[1].partition("=")[2] or " ".join(rest[2:])
    if number:
        wanted.jobs = job_words([number])
    return _jobs(wanted, one_line=any(option in {"-o", "--oneliner"} for option, _ in given))


def _is_of_job(words: Sequence[str]) -> bool:
    return any(word.lower().startswith("job") for word in words)


def _hostnames(lists: Sequence[str]) -> int:
    from grms.lrms.slurm.slurm_machine import node_names  # noqa: PLC0415  # of this alone

    text = ",".join(lists) or os.environ.get("SLURM_JOB_NODELIST", "")
    if not text:
        tell("scontrol", "host list is empty")
        return 0  # Slurm's own ends so
    try:
        names = node_names(text)
    except ValueError as error:
        raise UsageError(f"Invalid hostlist: {text}") from error
    print("\n".join(names))
    return 0


def _jobs(wanted: Wanted, *, one_line: bool) -> int:
    rows = list(wanted.rows(Site()))
    if not rows:
        if wanted.jobs:
            print_error()
            return 1
        print("No jobs in the system")
        return 0
    for row in rows:
        lines = list(_lines(row, now_s()))
        print(" ".join(lines) if one_line else "\n   ".join(lines) + "\n")
    return 0


def _lines(row: Row, now: float) -> Iterator[str]:
    array = ""
    if row.index:
        array = f" ArrayJobId={row.array} ArrayTaskId={row.index}"
    null = "(null)"
    yield f"JobId={row.array}{array} JobName={row.name or null}"
    group, gid = group_of(row.user)
    yield f"UserId={row.user}({uid_of(row.user)}) GroupId={group}({gid})"
    yield f"Account={row.account or null} QOS={row.qos or null}"
    yield f"JobState={row.state.word} Reason={row.reason} Dependency={row.dependency or null}"
    yield f"BatchFlag=1 ExitCode={row.exit}"
    limit = long_duration(60 * minutes(row.limit_s))
    yield f"RunTime={long_duration(row.elapsed_s)} TimeLimit={limit}"
    yield f"SubmitTime={moment(row.submit_s)} EligibleTime={moment(row.submit_s)}"
    end_s = row.end_s if row.state not in OPEN or row.end_s is None else max(row.end_s, now)
    yield f"StartTime={moment(row.start_s, 'Unknown')} EndTime={moment(end_s, 'Unknown')}"
    yield f"Partition={row.partition or null}"
    yield f"NodeList={row.ran_at or null}"
    yield f"NumNodes={row.nodes} NumCPUs={row.cpus} NumTasks={row.tasks}"
    yield f"Features={row.features or null} Licenses={row.licences or null}"
