"""What starts a job: what the batch system sees of its end, and what the job's folder says of it."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from grms.lrms.base import LrmsEnd
from grms.lrms.exit_status import (
    FENCED,
    LAUNCH,
    LAUNCH_ONCE,
    NOT_LAUNCHED,
    UNBEGUN,
    ScriptEnd,
    as_evicted,
    ended_itself,
    is_fenced,
    read_begun_at,
    read_runs,
    read_script_end,
    true_end,
    with_unbegun,
)
from grms.util.outcomes import Outcome
from tests.programs import run_program
from tests.waiting import TIME_OUT_S

LAUNCHER = "LAUNCHER=$(cut -d' ' -f4 /proc/$PPID/stat)"
"""Sets a variable of a script to the process that waits for the one that has the script."""

SHELLS = [shell for shell in ("/bin/sh", "/bin/bash") if os.access(shell, os.X_OK)]


def launched(folder: Path, shell: str, script: str, launch: str = LAUNCH) -> tuple[int, str, str]:
    """Runs a script as a batch system does, and returns its status and what it has printed."""
    (folder / "values").write_text("umask 027\nexport VALUE='x y'\nset -- \"$1/program\" 'a b' c\n")
    for name, text in (("launch", launch), ("program", f"#!/bin/sh\n{script}\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o700)
    done = run_program(
        [shell, str(folder / "launch")],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        timeout=TIME_OUT_S,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("exit 0", 0, 0),
        ("exit 3", 3, 3),
        ("exit 139", 139, 139),
        ("kill -SEGV $$", -11, None),
        ("kill -KILL $$", -9, None),
        ("kill -TERM 0", -15, None),
        ("trap 'exit 5' TERM; kill -TERM 0; exit 6", 5, 5),
        ("kill -KILL 0", -9, None),
    ],
)
def test_the_end_is_the_scripts(
    tmp_path: Path, shell: str, script: str, status: int, said: int | None
) -> None:
    """Exit code or signal, whoever sends it; only an end of its own is written down."""
    assert launched(tmp_path, shell, script)[0] == status
    text = (tmp_path / "begun").read_text()
    end = read_script_end(text)
    assert (end.code if end is not None else None) == said
    assert read_runs(text) == ["0"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_has_what_it_is_given(tmp_path: Path, shell: str) -> None:
    """Arguments, variables, and the streams; nobody else sees its variables, and it has no other files open."""
    script = (
        'echo "$1|$2|$#|$VALUE"; echo wrong >&2; umask; test -e /proc/$$/fd/3 || echo closed; trap'
    )
    status, out, error = launched(tmp_path, shell, script)
    assert (status, error) == (0, "wrong\n")
    first, mask, third, *traps = out.splitlines()
    assert (first, mask, traps) == ("a b|c|2|x y", "0027", [])
    assert third == "closed"
    (tmp_path / "values").unlink()
    done = subprocess.run(  # noqa: S603  # same
        [shell, "launch"], cwd=tmp_path, capture_output=True, check=False, timeout=TIME_OUT_S
    )
    assert done.returncode != 0


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        (
            "trap 'echo got; exit 4' USR1; kill -USR1 $LAUNCHER; while :; do sleep 0.05; done",
            4,
            "got\n",
        ),
        (
            "trap 'echo got; on=1' USR1; kill -USR1 $LAUNCHER; until test $on; do sleep 0.05; done; exit 3",
            3,
            "got\n",
        ),
        ("kill -USR2 $LAUNCHER; echo on; exit 0", 0, "on\n"),  # another one is not passed on
        ("trap 'exit 127' USR1; kill -USR1 $LAUNCHER; while :; do sleep 0.05; done", 127, ""),
        ("kill -TERM $LAUNCHER; sleep 0.2; kill -USR2 $LAUNCHER; exit 6", 6, ""),
        ("exit 200", 200, ""),
        ("exit 0", 0, ""),
    ],
)
def test_a_signal_for_the_batch_script_reaches_the_script(
    tmp_path: Path, shell: str, script: str, status: int, said: str
) -> None:
    """The batch system sends it to what it has started; the script ends by itself, and is waited for."""
    (tmp_path / "forward").write_text("USR1\n")
    ended, out, _ = launched(tmp_path, shell, f"{LAUNCHER}\n{script}")
    assert (ended, out) == (status, said)
    end = read_script_end((tmp_path / "begun").read_text())
    assert end is not None
    assert end.code == status


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_that_does_not_expect_the_signal_ends_by_it(tmp_path: Path, shell: str) -> None:
    """The batch system sees the same end."""
    (tmp_path / "forward").write_text("USR1\n")
    ended, _, _ = launched(tmp_path, shell, f"{LAUNCHER}\nkill -USR1 $LAUNCHER; exec sleep 60")
    assert ended == -10


def test_what_folders_say() -> None:
    """Also those of an older version, and those into which the job has written."""
    assert read_runs("0\n1\n0\n") == ["0", "1", "0"]
    assert read_runs("0 1000\nended 3 1020\n1 1030\n") == ["0", "1"]
    assert read_script_end("0 1000\nended 3 1020\n") == ScriptEnd(3, 20.0)
    assert read_script_end("0\nended 3 1020\n") == ScriptEnd(3, None)
    assert read_script_end("ended 3 1020\n") == ScriptEnd(3, None)
    assert read_script_end("0 1030\nended 3 1020\n") == ScriptEnd(3, None)  # a clock went back
    for text in (
        "",
        "0 1000\n",
        "0 1000\nended 3 1020\n1 1030\n",
        "0 1000\nended 3 10",
        "ended 256 1020\n",
        "ended x 1020\n",
        "ended 3 +%s\n",
        "\0" * 20,
    ):
        assert read_script_end(text) is None


TIMEOUT = LrmsEnd(Outcome.TIMEOUT, 1100.0, 100.0, reason="TimeLimit")


def test_an_end_at_the_limit_is_looked_at() -> None:
    """A script that ended before its time was over was not ended for that."""
    found = true_end(TIMEOUT, ScriptEnd(0, 20.0), 60.0)
    assert (found.outcome, found.exit_code, found.run_time) == (Outcome.COMPLETED, 0, 20.0)
    assert found.end_time == 1020.0
    assert "its script had ended before" in found.reason
    assert true_end(TIMEOUT, ScriptEnd(3, 20.0), 60.0).outcome is Outcome.FAILED
    for script in (None, ScriptEnd(0, None), ScriptEnd(0, 60.0), ScriptEnd(0, 59.5)):
        assert true_end(TIMEOUT, script, 60.0) is TIMEOUT
    assert true_end(TIMEOUT, ScriptEnd(0, 20.0), 0.0) is TIMEOUT  # nobody knows its limit
    # An operator has lowered the limit: what the script ran was ended a moment before the script itself.
    lowered = replace(TIMEOUT, run_time=22.0, end_time=1022.0)
    for code in (128 + 15, 128 + 9):
        assert true_end(lowered, ScriptEnd(code, 20.0), 60.0) is lowered
        assert true_end(TIMEOUT, ScriptEnd(code, 20.0), 60.0).exit_code == code
    assert true_end(lowered, ScriptEnd(3, 20.0), 60.0).exit_code == 3


def test_what_was_never_started_did_not_run_out_of_time() -> None:
    """The batch system believes that it ran; its folder, which is as it was made, knows better."""
    found = true_end(TIMEOUT, None, 60.0, begun=False)
    assert (found.outcome, found.end_time) == (Outcome.NODE_FAIL, TIMEOUT.end_time)
    assert "was never started" in found.reason
    for begun in (True, None):
        assert true_end(TIMEOUT, None, 60.0, begun=begun) is TIMEOUT
    for outcome in set(Outcome) - {Outcome.TIMEOUT}:
        end = replace(TIMEOUT, outcome=outcome)
        assert true_end(end, None, 60.0, begun=False) is end


def test_a_cancel_before_the_script_may_be_a_prolog() -> None:
    """Slurm cancels a job that may not be requeued where its prolog fails, and has no word for it."""
    end = LrmsEnd(Outcome.CANCELLED, 50.0, 0.0)
    assert with_unbegun(end, 50.0, begun=False) == replace(end, reason=UNBEGUN)
    for begun in (True, None):
        assert with_unbegun(end, 50.0, begun=begun) is end
    assert with_unbegun(end, None, begun=False) is end
    for known in (replace(end, reason="by 0"), replace(end, outcome=Outcome.FAILED)):
        assert with_unbegun(known, 50.0, begun=False) is known


def test_a_script_that_a_signal_has_ended_was_launched() -> None:
    """Slurm has `JobLaunchFailure` as the reason of each, which says nothing of a script that has begun."""
    end = replace(TIMEOUT, outcome=Outcome.FAILED, signal=15, reason="JobLaunchFailure")
    assert true_end(end, ScriptEnd(143, 2.0), 60.0, begun=True) == replace(end, reason="")
    assert true_end(end, None, 60.0, begun=None) is end
    unlucky = replace(end, signal=None, exit_code=1)
    assert true_end(unlucky, None, 60.0, begun=True) is unlucky


def test_other_ends() -> None:
    """A script that has ended was there to the end, whatever became of its node; a cancel stays one."""
    failed = replace(TIMEOUT, outcome=Outcome.NODE_FAIL)
    assert true_end(failed, ScriptEnd(0, 90.0), 60.0).outcome is Outcome.COMPLETED
    found = true_end(failed, ScriptEnd(2, None), 60.0)
    assert (found.exit_code, found.run_time, found.end_time) == (2, 100.0, 1100.0)
    assert true_end(failed, ScriptEnd(0, 500.0), 0.0).run_time == 100.0
    for code in (137, 143):  # its command was killed a moment before it
        assert true_end(failed, ScriptEnd(code, 100.0), 60.0) is failed
    for outcome in set(Outcome) - {Outcome.NODE_FAIL, Outcome.TIMEOUT}:
        end = replace(TIMEOUT, outcome=outcome)
        assert true_end(end, ScriptEnd(0, 1.0), 60.0) is end
    # A copy that waits, of a job that has run and may not run again, has been cancelled and not the job.
    copy = replace(TIMEOUT, outcome=Outcome.CANCELLED, run_time=0.0)
    found = true_end(copy, ScriptEnd(3, 7.0), 60.0, once=True)
    assert (found.outcome, found.exit_code, found.run_time) == (Outcome.FAILED, 3, 7.0)
    assert true_end(copy, ScriptEnd(3, 7.0), 60.0) is copy
    assert true_end(copy, ScriptEnd(143, 7.0), 60.0, once=True) is copy
    assert true_end(copy, None, 60.0, once=True) is copy
    cut = replace(copy, run_time=5.0)
    assert true_end(cut, ScriptEnd(0, 5.0), 60.0, once=True) is cut
    found = ended_itself(ScriptEnd(4, 7.0), 50.0)
    assert (found.outcome, found.exit_code, found.run_time) == (Outcome.FAILED, 4, 7.0)


@pytest.mark.parametrize("shell", SHELLS)
def test_of_two_runs_at_one_time_one_runs_the_script(tmp_path: Path, shell: str) -> None:
    """The others end with a code of their own, say nothing, and leave what the first says of itself."""
    launched(tmp_path, shell, "true", "#!/bin/sh\ntrue\n")  # lays the files
    (tmp_path / "program").write_text("#!/bin/sh\necho ran >>runs\nexit 7\n")
    (tmp_path / "launch").write_text(LAUNCH_ONCE)
    (tmp_path / "gate").mkdir()
    # All wait for the gate to be gone, so that they begin at one moment.
    wait = f"while test -e gate; do :; done; exec {shell} launch"
    processes = [
        subprocess.Popen(  # noqa: S603  # a script of the test's
            [shell, "-c", wait],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        for _ in range(8)
    ]
    (tmp_path / "gate").rmdir()
    said = [process.communicate(timeout=TIME_OUT_S) for process in processes]
    assert sorted(process.returncode for process in processes) == [7, *[FENCED] * 7]
    assert said == [(b"", b"")] * 8
    assert (tmp_path / "runs").read_text() == "ran\n"
    text = (tmp_path / "begun").read_text()
    assert read_runs(text) == ["0"]
    end = read_script_end(text)
    assert end is not None
    assert end.code == 7


@pytest.mark.parametrize("shell", SHELLS)
def test_a_run_of_which_only_the_beginning_is_known_is_not_repeated(
    tmp_path: Path, shell: str
) -> None:
    """Its node was lost; even one that came no further than to begin."""
    for begun, once in (("0 1795392239\n", False), ("0 1795392239\n", True), ("", True)):
        (tmp_path / "begun").write_text(begun)
        if once:
            (tmp_path / "begun.once").touch()
        assert launched(tmp_path, shell, "echo ran", LAUNCH_ONCE) == (FENCED, "", "")
        assert (tmp_path / "begun").read_text() == begun


@pytest.mark.parametrize("shell", SHELLS)
def test_another_folder_is_not_taken_for_the_jobs(tmp_path: Path, shell: str) -> None:
    """A batch system that cannot go to the job's folder goes elsewhere, where `begun` may be anybody's."""
    (tmp_path / "begun").write_text("0 1795392239\n")
    (tmp_path / "launch").write_text(LAUNCH_ONCE)
    done = subprocess.run(  # noqa: S603  # a script of the test's
        [shell, "launch"], cwd=tmp_path, check=False, timeout=TIME_OUT_S
    )
    assert done.returncode == 125
    (tmp_path / "begun").write_text("")  # as it lies ready for another account
    assert launched(tmp_path, shell, "echo ran", LAUNCH_ONCE) == (0, "ran\n", "")


def test_a_run_that_was_turned_away_is_told_from_a_script_that_says_the_same() -> None:
    """By what the first run has written down, if there was one."""
    end = LrmsEnd(Outcome.FAILED, 50.0, 1.0, FENCED)
    assert is_fenced(end, None, begun=True)
    assert is_fenced(end, ScriptEnd(0, 20.0), begun=True)
    assert not is_fenced(end, ScriptEnd(FENCED, 20.0), begun=True)
    assert not is_fenced(end, None, begun=False)
    assert not is_fenced(replace(end, exit_code=3), None, begun=True)


def test_a_failed_start_after_the_run_is_not_the_runs_end() -> None:
    """A controller that has forgotten a run starts the job anew, and fails; what the folder says of the run counts."""
    end = LrmsEnd(Outcome.FAILED, 50.0, 0.0, 1)

    def fenced(end: LrmsEnd, script: ScriptEnd | None, begun_at: float | None = 40.0) -> bool:
        return is_fenced(end, script, begun=True, begun_at=begun_at, once=True)

    assert fenced(end, ScriptEnd(0, 2.0))
    assert fenced(end, None)  # it may run on
    # Its moments are whole seconds, and a node may take its time to say no.
    assert fenced(replace(end, run_time=1.0), ScriptEnd(0, 2.0))
    assert fenced(replace(end, run_time=1.0), None)
    assert fenced(replace(end, run_time=5.0), None)
    assert not fenced(end, ScriptEnd(1, 0.0))  # it was so quick
    assert not fenced(replace(end, run_time=1.0), ScriptEnd(1, 1.0))
    assert not fenced(end, None, 49.0)
    assert not fenced(end, None, None)
    assert not fenced(replace(end, run_time=2.0), ScriptEnd(0, 2.0))
    assert not fenced(replace(end, outcome=Outcome.COMPLETED, exit_code=0), ScriptEnd(3, 2.0))
    assert not fenced(replace(end, exit_code=None, signal=9), ScriptEnd(0, 2.0))
    assert not is_fenced(end, ScriptEnd(0, 2.0), begun=True, begun_at=40.0)  # it may run again
    assert not is_fenced(end, ScriptEnd(0, 2.0), begun=False, once=True)


def test_what_no_node_has_launched_has_not_failed_itself() -> None:
    """Slurm gives it exit code 1; only what has not begun by its folder is certainly not the script's."""
    end = LrmsEnd(Outcome.FAILED, 50.0, 1.0, 1, reason=NOT_LAUNCHED)
    told = true_end(end, None, 60.0, begun=False)
    assert (told.outcome, told.exit_code) == (Outcome.NODE_FAIL, None)
    assert told.reason.endswith("the script was never started on its node")
    for begun in (True, None):
        assert true_end(end, None, 60.0, begun=begun) == end
    said = replace(end, reason="NonZeroExitCode")
    assert true_end(said, None, 60.0, begun=False) == said


def test_a_job_whose_output_cannot_be_opened_has_failed() -> None:
    """As Slurm says: its user has named a folder that is not there, and would find no better node."""
    end = LrmsEnd(Outcome.FAILED, 50.0, 1.0, None, 53, reason=NOT_LAUNCHED)
    told = true_end(end, None, 60.0, begun=False)
    assert (told.outcome, told.exit_code, told.signal) == (Outcome.FAILED, None, 53)
    assert "its node could not open the files for its output" in told.reason
    for begun in (True, None):
        assert true_end(end, None, 60.0, begun=begun) == end


@pytest.mark.parametrize("script", [None, ScriptEnd(0, 2.0), ScriptEnd(3, 2.0)])
@pytest.mark.parametrize("run_time", [0.0, 1.0])
def test_a_failure_without_a_code_is_not_the_end_of_an_earlier_run(
    run_time: float, script: ScriptEnd | None
) -> None:
    """The table has no codes, and the record may be forgotten: what started after the script is a second run."""
    end = LrmsEnd(Outcome.FAILED, 50.0, run_time)

    def fenced(begun_at: float | None, *, once: bool = True) -> bool:
        return is_fenced(end, script, begun=True, begun_at=begun_at, once=once)

    assert fenced(40.0)
    assert not fenced(49.0)  # that run
    assert not fenced(None)
    assert not fenced(40.0, once=False)


@pytest.mark.parametrize("once", [False, True])
def test_a_preempted_start_after_the_run_is_not_the_runs_end(*, once: bool) -> None:
    """Unless the run has ended by a signal itself: then it is what the batch system says of it."""
    end = LrmsEnd(Outcome.PREEMPTED, 50.0, 0.0)

    def fenced(script: ScriptEnd | None, begun_at: float | None = 40.0) -> bool:
        return is_fenced(end, script, begun=True, begun_at=begun_at, once=once)

    assert fenced(None)
    assert fenced(ScriptEnd(0, 2.0))
    assert not fenced(ScriptEnd(143, 2.0))
    assert not fenced(None, 49.0)  # that run
    assert not fenced(None, None)
    assert not is_fenced(end, None, begun=False, begun_at=40.0, once=once)


def test_the_last_begin_is_read() -> None:
    """Where it has one; an older one may have said no time."""
    assert read_begun_at("0 100\nended 1 120\n1 130\n") == 130.0
    assert read_begun_at("0 100\n1\n") is None
    assert read_begun_at("nonsense\n") is None
    assert read_begun_at("") is None


@pytest.mark.parametrize("begun", [None, True])
def test_a_limit_that_was_reached_is_believed_where_nothing_speaks_against_it(
    begun: bool | None,
) -> None:
    """Only a folder that knows that its script never began does."""
    end = LrmsEnd(Outcome.TIMEOUT, 100.0, 60.0)
    assert true_end(end, None, 60.0, begun=begun) == end
    assert true_end(end, None, 60.0, begun=False).outcome is Outcome.NODE_FAIL


def test_an_end_that_its_site_has_brought_about() -> None:
    """Cancelled for another job is preempted; what had ended before that is what it was."""
    end = LrmsEnd(Outcome.CANCELLED, 50.0, 10.0)
    assert as_evicted(end).outcome is Outcome.PREEMPTED
    assert (as_evicted(end).end_time, as_evicted(end).run_time) == (50.0, 10.0)
    done = LrmsEnd(Outcome.COMPLETED, 50.0, 10.0, 0)
    assert as_evicted(done) is done
    for outcome, signal, expected in (
        (Outcome.FAILED, 9, Outcome.PREEMPTED),  # as Grid Engine tells of what was deleted
        (Outcome.FAILED, 15, Outcome.PREEMPTED),
        (Outcome.FAILED, 11, Outcome.FAILED),
        (Outcome.TIMEOUT, 9, Outcome.TIMEOUT),
    ):
        assert as_evicted(LrmsEnd(outcome, 50.0, 10.0, None, signal)).outcome is expected
