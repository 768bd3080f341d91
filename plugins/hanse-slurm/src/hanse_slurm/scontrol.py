"""The program `scontrol`: what it shows of jobs; the rest is for Slurm's own, but for lists of hosts where that is not."""

import os
from collections.abc import Sequence
from typing import Final

from hanse_slurm.options import UsageError, leave, parse, run, tell, unknown
from hanse_slurm.programs import real

_LETTERS: Final = "adM:oQv"
_NAMES: Final = ("all", "clusters=", "details", "oneliner", "quiet", "verbose", "local", "hide")
_OF_JOBS: Final = frozenset(
    (
        *("cancel", "completing", "hold", "holdhost", "listpids", "notify", "release", "requeue"),
        *("requeuehold", "resume", "schedloglevel", "suspend", "top", "uhold", "wait_job", "write"),
    )
)
"""What changes jobs, or says more of one, than a site has; Slurm's own would take the number for that of another."""

_JOB_OBJECTS: Final = ("jobs", "jobid")
_WITH_VALUES: Final = ("-M", "-u", "--cluster", "--clusters", "--uid")


def run_command(words: Sequence[str]) -> int:
    """Runs the command line and returns the exit status."""
    return run("scontrol", scontrol, words)


def scontrol(words: Sequence[str]) -> int:
    """Shows jobs of the site, or hosts; hands all else that is not about jobs to Slurm's own program."""
    plain = _plain(words)
    if not plain:
        leave("scontrol", words)
    # Slurm takes a beginning of any of its words, so what may be one of these is.
    verb = plain[0].lower()
    is_update = "update".startswith(verb) and _is_of_job(plain[1:])
    if is_update or any(each.startswith(verb) for each in _OF_JOBS):
        raise unknown("scontrol", plain[0])
    if len(verb) < 2 or not "show".startswith(verb):
        leave("scontrol", words)
    thing = plain[1].lower().partition("=")[0] if len(plain) > 1 else ""
    if len(thing) > 1 and "steps".startswith(thing):
        raise unknown("scontrol", f"show {thing}")
    is_of_hosts = thing in {"hostname", "hostnames"} and not real("scontrol")
    is_of_jobs = bool(thing) and any(each.startswith(thing) for each in _JOB_OBJECTS)
    if not is_of_jobs and not is_of_hosts:
        leave("scontrol", words)
    given, rest = parse("scontrol", words, _LETTERS, _NAMES)
    if is_of_hosts:
        return _hostnames(rest[2:])
    from hanse_slurm.job_records import show_jobs  # noqa: PLC0415  # slow to import, and not for hosts

    return show_jobs(given, rest[1].partition("=")[2] or " ".join(rest[2:]))


def _plain(words: Sequence[str]) -> list[str]:
    # Those that are neither options nor values of options.
    found: list[str] = []
    is_value = False
    for word in words:
        if not is_value and not word.startswith("-"):
            found.append(word)
        is_value = not is_value and word in _WITH_VALUES
    return found


def _is_of_job(words: Sequence[str]) -> bool:
    return any(word.lower().startswith(("job", "step")) for word in words)


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
