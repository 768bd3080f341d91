"""What starts a job in its folder, and what that says there of each run: that it began, and how its script ended.

The script has a process of its own, below the one that the batch system has started: that one waits, writes down
the exit code with the time, and ends as the script has. A signal that ended the script ends it too, so that the
batch system sees what it would have seen. A shell tells a signal from an exit code above 128 by saying so on
standard error alone (POSIX gives both the same status), which here is a file; of SIGINT and SIGPIPE it says
nothing, and these two become exit codes. What it is sent itself it passes over, as the script is sent it too.

It runs in the job's folder, or where its user has handed it in, with the path of that folder as its argument. Then
what the job prints, and the files that it declares, lie where its user wants them, and in its folder under a second
name; a copy, made at the end, where that is on another disk. No variable is set before the script has ended: one of
the same name could be the user's, and the script would find it changed.

Where a job is not to run twice, a second run ends before its script does anything: `begun` says that one has begun.
A file beside it (`ONCE`) is made in one step that fails where it is there (`O_EXCL`, of which file servers keep the
promise as well), so that of two runs at one time one goes on. Where the node cannot see the job's folder, another one
is not taken for it.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from grms.lrms.port import LrmsEnd
from grms.outcomes import Outcome

BEGUN: Final = "begun"
"""A line for each beginning (how often the batch system had started the job anew, and when) and each end."""

DIED: Final = "begun.died"
"""What the shell says of the script's end."""

FENCED: Final = 113
"""Exit code of a run that has not run the script, as one had begun before."""

ONCE: Final = "begun.once"
"""Is there when a run has begun that is to be the only one."""

_FIRST = """\
#!/bin/sh
keep() { command -p ln -f -- "$1" "$2" || { test -f "$1" && command -p cp -P -- "$1" "$2"; }; } 2>/dev/null
stream() { command -p readlink "/proc/$$/fd/$1"; }
streams() {
	keep "$(stream 1)" "$1/stdout"
	test "$(stream 1)" = "$(stream 2)" || keep "$(stream 2)" "$1/stderr"
	: >>"$1/stdout" >>"$1/stderr"
}
test "$#" -gt 0 || set -- .
"""

_FENCE = f"""\
test -e "$1/values" || exit 125
test -s "$1/{BEGUN}" && exit {FENCED}
if ! (set -C; : >"$1/{ONCE}") 2>/dev/null && test -e "$1/{ONCE}"; then
	exit {FENCED}
fi
"""

_LAUNCH = """\
echo "${SLURM_RESTART_COUNT:-${RESTARTED:-0}} $(command -p date +%s)" >>"$1/begun"
trap : HUP INT QUIT TERM USR1 USR2
test "$1" = . || streams "$1"
exec 3>&2 2>"$1/begun.died"
(exec 2>&3 3>&-; . "$1/values" || exit 125; exec "$@")
code=$?
exec 2>&3 3>&-
test "$1" = . || { streams "$1"; . "$1/collect"; }
if test "$code" -gt 128 && test -s "$1/begun.died"; then
	trap - HUP INT QUIT TERM USR1 USR2
	ulimit -c 0
	kill -"$((code - 128))" $$
fi
echo "ended $code $(command -p date +%s)" >>"$1/begun"
exit "$code"
"""

LAUNCH: Final = _FIRST + _LAUNCH
"""What the batch system runs, nothing of the job stands in it."""

LAUNCH_ONCE: Final = _FIRST + _FENCE + _LAUNCH
"""The same for a job that is not to run twice, whoever starts it a second time."""

_LINE = re.compile(r"(\d+)(?: (\d+))?")
_KILLED: Final = frozenset((128 + 9, 128 + 15))
"""Exit codes of a shell whose last command was ended by SIGKILL or SIGTERM."""

_KILLING_S: Final = 60.0
"""So long a batch system may take to end a job, seconds: it asks first, and insists after a while."""

_END = re.compile(r"ended (\d{1,3}) (\d+)")


@dataclass(frozen=True, slots=True)
class ScriptEnd:
    """How a job's script has ended, by its own folder.

    Attributes:
        code: exit code.
        run_time: seconds, by the clock of the node; None where it has not said.
    """

    code: int
    run_time: float | None


def read_runs(text: str) -> list[str]:
    """Returns the runs that a job has begun: of each how often it had been started anew by then.

    Args:
        text: of `begun`; the job itself could have written more.
    """
    words = [word for line in text.splitlines() for word in line.split()[:1]]
    runs = [word for word in words if word != "ended"]
    return runs or ["0"] * ("ended" in words)  # a script may have emptied its folder


def read_begun_at(text: str) -> float | None:
    """Returns when the last run has begun, by the clock of its node, seconds; None where it has not said.

    Args:
        text: of `begun`, its last lines.
    """
    begins = [line for line in map(_LINE.fullmatch, text.splitlines()) if line is not None]
    return float(begins[-1][2]) if begins and begins[-1][2] else None


def is_fenced(end: LrmsEnd, script: ScriptEnd | None, *, begun: bool | None) -> bool:
    """Returns whether what has ended is a second run that has not run the script.

    Args:
        end: as the batch system has it.
        script: how the script has ended, by the job's folder; it may have returned that code itself.
        begun: the folder says that the script has begun; None where that says nothing.
    """
    return bool(begun) and end.exit_code == FENCED and (script is None or script.code != FENCED)


def read_script_end(text: str) -> ScriptEnd | None:
    """Returns how the last run has ended, by its own word; None where it has not said.

    Args:
        text: of `begun`, its last lines.
    """
    *before, last = text.splitlines() or [""]
    end = _END.fullmatch(last)
    if end is None or not text.endswith("\n") or int(end[1]) > 255:
        return None
    begin = _LINE.fullmatch(before[-1]) if before else None
    took = None if begin is None or begin[2] is None else float(int(end[2]) - int(begin[2]))
    return ScriptEnd(int(end[1]), None if took is None or took < 0 else took)


def is_unstarted(end: LrmsEnd) -> bool:
    """Returns whether a job was cancelled before its start, as far as the batch system remembers."""
    return end.outcome is Outcome.CANCELLED and end.run_time == 0.0


def true_end(
    end: LrmsEnd,
    script: ScriptEnd | None,
    limit_s: float,
    *,
    begun: bool | None = None,
    once: bool = False,
) -> LrmsEnd:
    """Returns how a job has ended that the batch system says to have been ended at its limit, or with its node.

    A batch system that forgets an end in a crash of its own takes the job for running, and ends it so later. One that
    forgets its start as well has the job wait again, until that copy is cancelled. And what a node that dies has never
    heard of runs for the batch system until its limit is over.

    Args:
        end: as the batch system has it.
        script: how its script has ended; None where it has not said.
        limit_s: its requested time, seconds; 0 where that is not known any more.
        begun: its folder says that the script has begun; None where that says nothing.
        once: its script does not run a second time, whoever starts it.
    """
    if script is not None and once and is_unstarted(end) and script.code not in _KILLED:
        return replace(
            ended_itself(script, end.end_time),
            reason="the batch system says cancelled before its start; its script had run to its end",
        )
    if begun is False and end.outcome is Outcome.TIMEOUT:
        reason = "the batch system says timeout; the script was never started on its node"
        return replace(end, outcome=Outcome.NODE_FAIL, reason=reason)
    if script is None or end.outcome not in {Outcome.TIMEOUT, Outcome.NODE_FAIL}:
        return end
    early = script.run_time is not None and script.run_time < limit_s - 1.0
    if script.run_time is not None and script.code in _KILLED:
        # What it ran was ended a moment before the script itself: the limit may have been lowered since.
        early = early and end.run_time - script.run_time > _KILLING_S
    if end.outcome is Outcome.TIMEOUT and not early:
        return end  # it may have ended as it was told that its time is over
    if end.outcome is Outcome.NODE_FAIL and script.code in _KILLED:
        return end  # what it ran was killed with the node, a moment before the script itself
    ran = end.run_time if script.run_time is None else script.run_time
    return replace(
        ended_itself(script, end.end_time),
        end_time=end.end_time - max(0.0, end.run_time - ran),
        run_time=min(ran, end.run_time),
        reason=f"the batch system says {end.outcome.value}; its script had ended before",
    )


def ended_itself(script: ScriptEnd, at: float) -> LrmsEnd:
    """Returns the end of a job of which its folder alone knows.

    Args:
        script: how its script has ended.
        at: no later than this, seconds.
    """
    outcome = Outcome.FAILED if script.code else Outcome.COMPLETED
    reason = "no record of the batch system says it; its folder does"
    return LrmsEnd(outcome, at, script.run_time or 0.0, script.code, reason=reason)
