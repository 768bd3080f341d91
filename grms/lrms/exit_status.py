"""The launcher of a job, and its record of each run: begin and end of the script.

The script has a process of its own below the one started by the batch system, which waits, records exit code and
time, and ends as the script has. A signal that ended the script ends it, too, so that the batch system sees the
same end. A shell distinguishes a signal from an exit code above 128 only by a message on standard error (POSIX
gives both the same status), which is a file here; SIGINT and SIGPIPE yield no message, and become exit codes.
Signals sent to it are ignored, as the script gets them, too. One that the batch system sends to the batch script alone
(`--signal=B:USR1`) does not get there: the launcher passes on the one that `FORWARD` names. For that it waits beside the
script, which has a shell of its own that notes its exit code in a file: a wait that a signal interrupts may lose it
(bash 5.2). Such a script cannot trap SIGINT and SIGQUIT.

It runs in the job's folder, or where its user has submitted it, with the path of that folder as its argument. Then
output and declared files are where the user wants them, and linked into the folder, or copied at the end if that is
on another disk; `begun.since` is as old as the run, so that files of the job can be told from older ones. No variable is set before the script has ended, as the user could have one of the same name.

As an element of an array of Slurm, in which jobs were submitted together (`slurm_arrays`), it has two arguments, by which and by its
index it finds its folder. What Slurm says of the array is not for the script, to which its job is one alone.

If a job may not run twice, a second run ends before its script starts, as `begun` says that one has begun. `ONCE`
is created atomically (`O_EXCL`, which file servers honour as well), so that of two concurrent runs one continues.
If the node cannot see the job's folder, another one is not mistaken for it.

A job that is elsewhere and of which only the place in the queue is kept (`kept_places`) does not begin, whoever starts it.
One that starts while the batch system is asked to set it aside waits in its launcher until that is decided.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from grms.lrms.base import LrmsEnd
from grms.util.outcomes import Outcome

ASIDE: Final = "begun.aside"
"""Exists while a job is elsewhere and only its place is kept: then its launcher ends at once (`NOT_HERE`). With content, the
folder of the job that has come back to this place, which begins there."""

ASKED: Final = "asked"
"""Content of `ASIDE` while the batch system is asked to set the job aside."""

BEGUN: Final = "begun"
"""A line for each begin (the restart count by the batch system, and the time) and each end."""

DIED: Final = "begun.died"
"""The shell's message on the script's end."""

EVICTED: Final = "begun.evicted"
"""Exists once a batch system has begun to end the job for another one, where its own records do not say so."""

FENCED: Final = 113
"""Exit code of a run that skipped the script, as one had begun before."""

FORWARD: Final = "forward"
"""Names the signal that is passed on to the script, if there is one; beside it are its process and its exit code."""

NOT_HERE: Final = 114
"""Exit code of a launcher that has not begun, as its job is elsewhere."""

ONCE: Final = "begun.once"
"""Exists once a run has begun that must be the only one."""

_FIRST = """\
#!/bin/sh
keep() { command -p ln -f -- "$1" "$2" || { test -f "$1" && command -p cp -P -- "$1" "$2"; }; } 2>/dev/null
stream() { command -p readlink "/proc/$$/fd/$1"; }
streams() {
	keep "$(stream 1)" "$1/stdout"
	test "$(stream 1)" = "$(stream 2)" || keep "$(stream 2)" "$1/stderr"
	: >>"$1/stdout" >>"$1/stderr"
}
if test "$#" -eq 2; then
	case $2 in
	"") set -- "$1$SLURM_ARRAY_TASK_ID" "$SLURM_ARRAY_TASK_ID" ;;
	*)
		set -- "$1" "$(($2 + SLURM_ARRAY_TASK_ID))"
		set -- "$1${2#1}" "${2#1}"
		;;
	esac
	cd "$1" || exit 125
	case $SLURM_JOB_NAME in *\\*) export SLURM_JOB_NAME="${SLURM_JOB_NAME%?}$2" ;; esac
	export SLURM_SUBMIT_DIR="$1"
	unset SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_COUNT SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_STEP
	set -- .
fi
test "$#" -gt 0 || set -- .
"""

_ASIDE = f"""\
while test -e "$1/{ASIDE}"; do
	test -s "$1/{ASIDE}" || {{ test ! -e "$1/{ASIDE}" && continue; exit {NOT_HERE}; }}
	set -- "$1" "$(command -p cat "$1/{ASIDE}" 2>/dev/null)"
	if test "${{2:-{ASKED}}}" = {ASKED}; then
		set -- "$1"
		command -p sleep 1
	elif test "$1" = .; then
		test ! -e stdout || keep stdout "$2/stdout"
		test ! -e stderr || keep stderr "$2/stderr"
		cd "$2" || exit 125
		set -- .
	else
		set -- "$2"
	fi
done
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
if test "$1" != .; then
	# A clock has ticks, and a file of the first one belongs to the job.
	: >"$1/begun.since"
	command -p touch -r "$1/begun.since" -d "-1 second" "$1/begun.since" 2>/dev/null
	streams "$1"
fi
exec 3>&2 2>"$1/begun.died"
if test -s "$1/forward"; then
	set -- "$1" "$(command -p cat "$1/forward")"
	: >"$1/forward.pid" >"$1/forward.end"
	trap 'kill -s "$2" "$(command -p cat "$1/forward.pid")" 2>/dev/null' "$2"
	{
		trap : HUP INT QUIT TERM USR1 USR2
		(exec 2>&3 3>&-; command -p sh -c 'echo $PPID' >"$1/forward.pid"; . "$1/values" || exit 125; exec "$@")
		echo $? >"$1/forward.end"
	} &
	until test -s "$1/forward.end"; do
		wait $!
		kill -0 $! 2>/dev/null || break
	done
	trap : "$2"
	code=$(command -p cat "$1/forward.end")
	code=${code:-137}
else
	(exec 2>&3 3>&-; . "$1/values" || exit 125; exec "$@")
	code=$?
fi
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

LAUNCH: Final = _FIRST + _ASIDE + _LAUNCH
"""Run by the batch system; independent of the job."""

LAUNCH_ONCE: Final = _FIRST + _ASIDE + _FENCE + _LAUNCH
"""The same for a job that may not run twice."""

UNBEGUN: Final = "it was cancelled before its script began, or its node could not be prepared (as where a prolog fails)"
"""Why a job without an own word for it was cancelled that had a node, and whose script never began: batch systems cancel
a job that may not be requeued where its prolog fails, and do not tell that from anybody's cancel."""

NOT_LAUNCHED: Final = "JobLaunchFailure"
"""Slurm's reason for a failure where a node has turned a job away, or has it no more; its exit code 1 is not the script's."""

_NOT_SET_UP: Final = 53
"""What Slurm has in the place of a signal where its node could not open a job's output."""

_LINE = re.compile(r"(\d+)(?: (\d+))?")
KEPT_LEAST_S: Final = 0.001
"""What is kept at least of a job that has written its state, seconds."""

KILLED: Final = frozenset((128 + 9, 128 + 15))
"""Exit codes of a shell whose last command was ended by SIGKILL or SIGTERM."""

_KILLS: Final = frozenset((9, 15))
"""SIGKILL, SIGTERM."""

_KILLING_S: Final = 60.0
"""How long a batch system may take to end a job, seconds: it terminates, and kills after a while."""

_STILLBORN_S: Final = 1.0
"""Longest run that may be none: the moments are whole seconds, and one may have begun meanwhile."""

_CLOCKS_S: Final = 2.0
"""By which the times of node and batch system may differ, seconds; both are whole."""

_END = re.compile(r"ended (\d{1,3}) (\d+)")


@dataclass(frozen=True, slots=True)
class ScriptEnd:
    """The end of a job's script, by its own folder.

    `run_time` is in seconds, by the node's clock; `None` if unknown.
    """

    code: int
    run_time: float | None


def read_runs(text: str) -> list[str]:
    """Returns the restart count at each run in `begun`, to which the job itself could have written."""
    words = [word for line in text.splitlines() for word in line.split()[:1]]
    runs = [word for word in words if word != "ended"]
    return runs or ["0"] * ("ended" in words)  # a script may have emptied its folder


def read_begun_at(text: str) -> float | None:
    """Returns when the last run in `begun` began, by its node's clock, seconds; `None` if unknown."""
    begins = [line for line in map(_LINE.fullmatch, text.splitlines()) if line is not None]
    return float(begins[-1][2]) if begins and begins[-1][2] else None


def is_fenced(
    end: LrmsEnd,
    script: ScriptEnd | None,
    *,
    begun: bool | None,
    begun_at: float | None = None,
    once: bool = False,
) -> bool:
    """Returns whether what has ended is a second run without the script.

    Its launcher skipped the script, or the batch system did not even start that: a controller that has forgotten a run
    in a crash may start the job anew, be turned away by the node, and record a failure at the very start.

    Args:
        end: by the batch system.
        script: how the script has ended, by the job's folder; it may have returned the launcher's code itself.
        begun: whether it has begun; `None` if the folder does not say.
        begun_at: when, by its node's clock, seconds; `None` if unknown.
        once: the script cannot run a second time.
    """
    if not begun:
        return False
    if end.exit_code == FENCED:
        return script is None or script.code != FENCED
    later = is_later_start(end.end_time - end.run_time, begun_at)
    if end.outcome is Outcome.PREEMPTED:
        # Slurm says so also of a job that it has started anew, and whose node has turned it away as it runs the first
        # run (JobLaunchFailure in a partition of guests). None that may be preempted runs its script twice.
        return later and (script is None or script.code not in KILLED)
    return once and _is_failed_start(end, script, later=later)


def is_later_start(start_time: float, begun_at: float | None) -> bool:
    """Returns whether a start cannot be that of a run which has begun at `begun_at`, by its node's clock; both in seconds."""
    return begun_at is not None and start_time > begun_at + _CLOCKS_S


def _is_failed_start(end: LrmsEnd, script: ScriptEnd | None, *, later: bool) -> bool:
    if end.outcome is not Outcome.FAILED or end.signal is not None:
        return False
    if end.exit_code is None:
        return later  # no record says whether the launcher has skipped the script
    if script is None:
        return later  # a launcher that ends with a code has written it
    return is_stillborn(end) and script.code != end.exit_code


def is_stillborn(end: LrmsEnd) -> bool:
    """Returns whether a job failed at the moment of its start, as far as the batch system remembers."""
    return end.outcome is Outcome.FAILED and end.run_time <= _STILLBORN_S


def read_script_end(text: str) -> ScriptEnd | None:
    """Returns the end of the last run in `begun`; `None` if it is not there."""
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
    """Corrects the end of a job that the batch system reports as ended at its limit, or with its node.

    A batch system that forgets an end in a crash considers the job running, and later ends it this way. If it
    forgets the start as well, the job waits again until that copy is cancelled. And a job that a dying node has
    never received runs for the batch system until its limit.

    Args:
        end: by the batch system.
        script: how its script has ended; `None` if unknown.
        limit_s: its requested time, seconds; 0 if unknown.
        begun: whether the script has begun, by its folder; `None` if unknown.
        once: its script cannot run a second time.
    """
    if script is not None and once and is_unstarted(end) and script.code not in KILLED:
        return replace(
            ended_itself(script, end.end_time),
            reason="the batch system says cancelled before its start; its script had run to its end",
        )
    failed = end.outcome is Outcome.FAILED and end.reason == NOT_LAUNCHED
    if begun is False and (failed or end.outcome is Outcome.TIMEOUT):
        return _never_started(end, failed=failed)
    if begun and failed and end.signal not in {None, _NOT_SET_UP}:
        end = replace(end, reason="")  # Slurm's word for any batch script that a signal has ended
    if script is None or end.outcome not in {Outcome.TIMEOUT, Outcome.NODE_FAIL}:
        return end
    early = script.run_time is not None and script.run_time < limit_s - 1.0
    if script.run_time is not None and script.code in KILLED:
        # Its child was ended a moment before the script itself: the limit may have been lowered since.
        early = early and end.run_time - script.run_time > _KILLING_S
    if end.outcome is Outcome.TIMEOUT and not early:
        return end  # it may have ended as it was told that its time is over
    if end.outcome is Outcome.NODE_FAIL and script.code in KILLED:
        return end  # what it ran was killed with the node, a moment before the script itself
    ran = end.run_time if script.run_time is None else script.run_time
    return replace(
        ended_itself(script, end.end_time),
        end_time=end.end_time - max(0.0, end.run_time - ran),
        run_time=min(ran, end.run_time),
        reason=f"the batch system says {end.outcome.value}; its script had ended before",
    )


def _never_started(end: LrmsEnd, *, failed: bool) -> LrmsEnd:
    if failed and end.signal == _NOT_SET_UP:
        # Mostly a folder that is not there, for which its user has to do something. Any node fails so.
        text = "it was not started, as its node could not open the files for its output (0:53)"
        return replace(end, reason=text)
    reason = f"the batch system says {end.outcome.value}; the script was never started on its node"
    code = None if failed else end.exit_code
    return replace(end, outcome=Outcome.NODE_FAIL, exit_code=code, reason=reason)


def as_evicted(end: LrmsEnd) -> LrmsEnd:
    """Returns the end of a job that its site has ended for another one.

    Not every batch system distinguishes a cancelled job from one that died of a signal.
    """
    killed = end.outcome is Outcome.FAILED and end.signal in _KILLS
    if end.outcome is not Outcome.CANCELLED and not killed:
        return end
    return replace(
        end, outcome=Outcome.PREEMPTED, signal=None, reason="this site has ended it for another job"
    )


def with_unbegun(end: LrmsEnd, start_time: float | None, *, begun: bool | None) -> LrmsEnd:
    """Returns the end of a job with what may be behind a cancel that has no reason, if its script has not begun.

    `start_time` is when it has started, seconds; `None` if it has not. `begun`: whether its script has; `None` if unknown.
    """
    unsaid = end.outcome is Outcome.CANCELLED and not end.reason
    if not unsaid or start_time is None or begun is not False:
        return end
    return replace(end, reason=UNBEGUN)


def with_kept(end: LrmsEnd, start_time: float | None, written_at: float | None) -> LrmsEnd:
    """Returns the end of a job with how long it had run when it last wrote its state, if it was ended for another one.

    `start_time` is when it has started, `written_at` when it wrote, seconds; `None` if unknown, or never.
    """
    if end.outcome is not Outcome.PREEMPTED or written_at is None:
        return end
    began = end.end_time - end.run_time if start_time is None else start_time
    # What was written within its first second is something, too; the clocks may differ.
    return replace(end, kept=min(max(written_at - began, KEPT_LEAST_S), end.run_time))


def ended_itself(script: ScriptEnd, at: float) -> LrmsEnd:
    """Returns the end of a job known only by its folder, no later than `at` (seconds)."""
    outcome = Outcome.FAILED if script.code else Outcome.COMPLETED
    reason = "no record of the batch system says it; its folder does"
    return LrmsEnd(outcome, at, script.run_time or 0.0, script.code, reason=reason)
