"""A job's folder, run by a real shell with hostile values."""

import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

from grms.daemon.job_files import JobFile, matching
from grms.daemon.shared_folders import SCRIPT as SCRIPT_NAME
from grms.daemon.shared_folders import SharedFile, SharedFolders
from grms.lrms.base import RESTARTS, JobInput, LrmsEnd, LrmsRefusedError, Program
from grms.lrms.batch.launcher import (
    ARGUMENTS_BYTES_MAX,
    ENVIRONMENT,
    HOME_BYTES_MAX,
    SCRIPT_BYTES_MAX,
    Spool,
    check_home,
    check_key,
    check_program,
    usable,
    values_text,
)
from grms.lrms.batch.subprocesses import Programs
from grms.lrms.exit_status import FENCED, LAUNCH, LAUNCH_ONCE, ScriptEnd, with_kept
from grms.lrms.gridengine.gridengine import GridEngine, GridEngineSettings
from grms.lrms.home_run import HomeRun
from grms.lrms.job_directories import Remains
from grms.lrms.job_notes import Marks
from grms.lrms.slurm.slurm import Slurm, SlurmSettings
from grms.site.model.jobs import lrms_key, next_lrms_key
from grms.util.outcomes import Outcome
from tests.programs import run_program

SCRIPT = '#!/bin/sh\nprintf "%s\\0" "$@"\nprintf "%s" "$VALUE"\n'
TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)


@pytest.mark.parametrize(
    ("variables", "own"),
    [
        ({"HANSE_JOB_ID": "kth-12", "HANSE_SLURM_TOLD_ID": "1"}, "12 12 77"),
        ({"HANSE_JOB_ID": "kth-12", "HANSE_SLURM_TOLD_ID": "0"}, "77 77 "),
        ({"HANSE_JOB_ID": "kth-12"}, "77 77 "),
        ({"HANSE_SLURM_TOLD_ID": "1"}, "77 77 "),
        ({"HANSE_JOB_ID": "kth-12_3", "HANSE_SLURM_TOLD_ID": "1"}, "77 77 "),
    ],
)
def test_a_job_may_find_the_number_that_its_user_knows(variables: dict[str, str], own: str) -> None:
    """Where Slurm's would be, if it is asked for and known; Slurm's is in another variable then."""
    text = values_text(Program("x", environment=variables))
    shows = 'echo "$SLURM_JOB_ID $SLURM_JOBID $HANSE_LRMS_JOB_ID"'

    def said(environment: dict[str, str]) -> str:
        words = ["/bin/sh", "-c", f"{text}{shows}", "sh", "/folder"]
        return run_program(words, env=environment, check=True).stdout.rstrip("\n")

    assert said({"SLURM_JOB_ID": "77", "SLURM_JOBID": "77"}) == own
    assert said({"JOB_ID": "77"}).strip() == ""  # of another batch system


def ran(folder: Path) -> str:
    done = subprocess.run(  # noqa: S603  # the folder's own launcher
        ["/bin/sh", str(folder / "launch")],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
        timeout=300,
    )
    return done.stdout.decode()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@drawn(value=TEXT, arguments=st.lists(TEXT, max_size=3))
def test_values_and_arguments_arrive_as_they_are(
    tmp_path: Path, value: str, arguments: list[str]
) -> None:
    """Whatever stands in them: nothing is expanded, split or run."""
    spool = Spool(tmp_path)
    program = Program(SCRIPT, tuple(arguments), {"VALUE": value})
    folder = spool.prepare("A/1/1", check_program(program), run=True, repeats=True)
    text = ran(folder)
    assert text == ("".join(f"{each}\0" for each in arguments) or "\0") + value


@pytest.mark.parametrize(
    "value", ["$(touch made)", "`touch made`", "'; touch made; '", "a\n#SBATCH --uid=0\ntouch made"]
)
def test_nothing_in_a_value_is_run(tmp_path: Path, value: str) -> None:
    """The shell has it as data, and no option of a batch system comes of it."""
    spool = Spool(tmp_path)
    program = Program(SCRIPT, (value,), {"VALUE": value})
    for repeats, launch in ((False, LAUNCH_ONCE), (True, LAUNCH)):
        folder = spool.prepare("A/1/1", program, run=True, repeats=repeats)
        ran(folder)
        assert not (folder / "made").exists()
        assert (folder / "launch").read_text() == launch
        assert "#SBATCH" not in launch


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LD_PRELOAD", "{folder}/none.so"),
        ("LD_LIBRARY_PATH", "{folder}"),
        ("BASH_ENV", "{folder}/trap"),
        ("ENV", "{folder}/trap"),
        ("PATH", "{folder}"),
        ("PS4", "$(touch {folder}/made)"),
    ],
)
def test_what_means_something_to_shells_and_loaders_is_data(
    tmp_path: Path, name: str, value: str
) -> None:
    """It reaches the job, and nothing that comes before the job heeds it."""
    spool = Spool(tmp_path)
    given = value.format(folder=tmp_path)
    script = f'#!/bin/sh\nprintf "%s|" "$@" "${name}"\n'
    (tmp_path / "trap").write_text(f"/usr/bin/touch {tmp_path}/made\n")
    program = check_program(Program(script, ("a b/c",), {name: given}))
    folder = spool.prepare("A/1/1", program, run=True)
    assert ran(folder) == f"a b/c|{given}|"
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("modules", "code", "printed", "said"),
    [
        (("gcc/12", "openmpi"), 0, "a gcc/12 openmpi", ""),
        (("gcc/12", "none"), 125, "", "there is no none"),
        ((), 0, "a", ""),
    ],
)
def test_modules_are_loaded_before_the_script_begins(
    tmp_path: Path, modules: tuple[str, ...], code: int, printed: str, said: str
) -> None:
    """Their variables are there; without one of them it does not begin."""
    (tmp_path / "init").mkdir()
    (tmp_path / "init/sh").write_text(
        "module() { set -- $2; test $1 != none || { echo there is no $1 >&2; return 1; }; "
        'export LOADED="$LOADED $1"; }\n'
    )
    program = Program('#!/bin/sh\nprintf "%s%s" "$1" "$LOADED"\n', ("a",))
    folder = Spool(tmp_path / "jobs").prepare("A/1/1", program, run=True, modules=modules)
    done = run_program(
        ["/bin/sh", str(folder / "launch")],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "MODULESHOME": str(tmp_path)},
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (code, printed)
    assert said in done.stderr


def test_the_folder_is_its_owners(tmp_path: Path) -> None:
    """Nobody else reads a job's script or values."""
    spool = Spool(tmp_path / "spool")
    spool.open()
    folder = spool.prepare("A/1f/17", Program(SCRIPT), run=False)
    assert folder.name == "A+1f+17"
    for path in (folder.parent, folder, *folder.iterdir()):
        assert not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    assert os.access(folder / "program", os.X_OK)


def test_no_link_is_followed(tmp_path: Path) -> None:
    """Somebody who could put a link into the folder would have nothing written elsewhere."""
    spool = Spool(tmp_path)
    folder = spool.prepare("A/1/1", Program(SCRIPT), run=True)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (folder / "program").unlink()
    (folder / "program").symlink_to(victim)
    spool.prepare("A/1/1", Program(SCRIPT), run=True)
    assert victim.read_text() == "mine"
    assert not (folder / "program").is_symlink()


@pytest.mark.parametrize(
    "key", ["", "A", "../1/1", "A/../1", "A/1/1\n", "A/1/1/x", "/1/1", "A/g/1"]
)
def test_a_key_is_one(tmp_path: Path, key: str) -> None:
    """Nothing else becomes a path or a name."""
    with pytest.raises(LrmsRefusedError, match="no key"):
        check_key(key)
    with pytest.raises(LrmsRefusedError, match="no key"):
        Spool(tmp_path).place(key)


def test_a_job_that_was_let_go_has_a_key_too(tmp_path: Path) -> None:
    """Its home site hands it in once more where the partner that was to have it has not taken it."""
    spool, key = Spool(tmp_path), next_lrms_key(next_lrms_key(lrms_key("A", 0x1F, 17)))
    assert check_key(key) == "A/1f/17/3"
    spool.prepare("A/1f/17", Program(SCRIPT), run=False)
    folder = spool.prepare(key, Program(SCRIPT), run=True)
    assert folder.name == "A+1f+17+3"
    assert spool.stale(time.time() + 10.0) == ["A/1f/17", "A/1f/17/3"]
    spool.remove(key)
    assert spool.stale(time.time() + 10.0) == ["A/1f/17"]
    for system in (
        GridEngine(Programs({}), GridEngineSettings("A", "grid", "")),
        Slurm(Programs({}), SlurmSettings("A", "grid")),
    ):
        assert system.decode(system.encode(key)) == key


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (None, "no script"),
        (Program(""), "no script"),
        (Program("x" * (SCRIPT_BYTES_MAX + 1)), "script has"),
        (Program(SCRIPT, ("x" * ARGUMENTS_BYTES_MAX,)), "arguments has"),
        (Program(SCRIPT, ("a\0b",)), "NUL"),
        (Program(SCRIPT, (), {"A": "a\0b"}), "NUL"),
        (Program(SCRIPT, (), {"A=B": "x"}), "no name"),
        (Program(SCRIPT, (), {"A;touch x": "x"}), "no name"),
        (Program(SCRIPT, (), {"SLURM_JOB_ID": "1"}), "set by the batch system"),
        (Program(SCRIPT, (), {RESTARTS: "many"}), "is no number"),
        (Program(SCRIPT, (), {RESTARTS: "\u0663"}), "is no number"),
        (Program(SCRIPT, outputs=("../x",)), "outputs: "),
        (Program(SCRIPT, outputs=("program",)), "the site itself"),
    ],
)
def test_what_cannot_be_run_is_refused(program: Program | None, text: str) -> None:
    """With what is wrong."""
    with pytest.raises(LrmsRefusedError, match=text):
        check_program(program)


def test_marks_outlive_the_process(tmp_path: Path) -> None:
    """What was wanted is read by another process; of an unknown job nothing is known."""
    spool = Spool(tmp_path)
    assert spool.marks("A/1/1") is None
    spool.prepare("A/1/1", Program(SCRIPT), run=False)
    assert Spool(tmp_path).marks("A/1/1") == Marks(run=False)
    spool.wanted("A/1/1")
    assert Spool(tmp_path).marks("A/1/1") == Marks(run=True)
    spool.released("A/1/1", "17")
    spool.wanted("A/1/1")
    assert Spool(tmp_path).marks("A/1/1") == Marks(run=True, released=True, number="17")
    spool.drop("A/1/1")
    assert spool.marks("A/1/1") is None


def test_what_two_lives_keep_at_once_is_kept(tmp_path: Path) -> None:
    """A thread of the life before still writes while the next one does; neither takes a word back."""
    keys = [f"A/1/{number}" for number in range(8)]
    before, after = Spool(tmp_path), Spool(tmp_path)
    for key in keys:
        before.prepare(key, Program(SCRIPT), run=False)
    with ThreadPoolExecutor(8) as threads:
        releases = threads.map(lambda key: before.released(key, "17"), keys)
        wants = threads.map(after.wanted, keys)
        assert [*releases, *wants] == [None] * 16
    marks = [Spool(tmp_path).marks(key) for key in keys]
    assert marks == [Marks(run=True, released=True, number="17")] * 8


def test_a_folder_that_is_gone_is_made_again(tmp_path: Path) -> None:
    """A job is followed by its name; what is wanted of it is kept all the same."""
    spool = Spool(tmp_path)
    spool.wanted("A/1/1")
    assert spool.marks("A/1/1") == Marks(run=True)


def test_marks_that_cannot_be_read_count_as_released(tmp_path: Path) -> None:
    """So that a job that may have run is not run again."""
    spool = Spool(tmp_path)
    spool.prepare("A/1/1", Program(SCRIPT), run=False)
    (tmp_path / ".marks/A+1+1.json").write_text("{")
    assert spool.marks("A/1/1") == Marks(run=True, released=True)


def test_what_a_job_leaves_is_known(tmp_path: Path) -> None:
    """Its streams and what it has declared; nothing of a job that was never here."""
    spool = Spool(tmp_path)
    assert spool.left("A/1/1") is None
    folder = spool.prepare("A/1/1", Program(SCRIPT, outputs=("a", "b/c")), run=True)
    left = spool.left("A/1/1")
    assert left is not None
    assert (left.path, left.names) == (folder, ("stdout", "stderr", "a", "b/c"))


@pytest.mark.parametrize(
    "said",
    ["{", "[1]", '["../x"]', '["x","x"]', "7", '"ab"', "x" * 10**6, "[" * 10**5, '{"outputs": []}'],
)
def test_a_list_that_the_job_has_written_itself_leads_nowhere(tmp_path: Path, said: str) -> None:
    """What is no list of names counts as none."""
    spool = Spool(tmp_path)
    folder = spool.prepare("A/1/1", Program(SCRIPT, outputs=("a",)), run=True)
    (folder / "outputs.json").unlink()
    (folder / "outputs.json").write_text(said)
    left = spool.left("A/1/1")
    assert left is not None
    assert all(name in {"stdout", "stderr", "a", "b"} for name in left.names)
    (folder / "outputs.json").unlink()
    (folder / "outputs.json").symlink_to("/etc/passwd")
    assert spool.left("A/1/1") is None


def test_what_a_job_leaves_is_cleared(tmp_path: Path) -> None:
    """Folders without rights too; what its links point to stays, and that it was here is kept."""
    spool = Spool(tmp_path / "spool")
    spool.open()
    folder = spool.prepare("A/1/1", Program(SCRIPT), run=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch(mode=0o600)
    (folder / "link").symlink_to(tmp_path / "mine")
    (folder / "stdout").write_text("said")
    (folder / "deep/er").mkdir(parents=True)
    (folder / "deep/er/file").touch()
    (folder / "deep/er").chmod(0)
    (folder / "deep").chmod(0o500)
    assert spool.clear("A/1/1", ["stdout", "deep/er/file", "link"]) == Remains()
    assert list(folder.iterdir()) == []
    assert spool.marks("A/1/1") == Marks(run=True)
    assert spool.left("A/1/1") is None
    assert (tmp_path / "mine/file").exists()
    assert spool.clear("A/1/2", []) == Remains()
    spool.remove("A/1/1")
    assert spool.marks("A/1/1") is None


def test_what_nobody_has_stays(tmp_path: Path) -> None:
    """What was not declared, was too large, or was an input and is another now; what was given and is as it was goes."""
    spool = Spool(tmp_path / "spool")
    spool.open()
    inputs = tuple(given(tmp_path, name, b"abc") for name in ("sub/kept", "changed"))
    program = Program(SCRIPT, inputs=inputs, outputs=("out",))
    folder = spool.prepare("A/1/1", program, run=True)
    assert spool.others("A/1/1", ["stdout", "out"]) == Remains()
    (folder / "stdout").write_text("said")
    (folder / "out").write_text("much")
    (folder / "more").write_text("more")
    (folder / "changed").write_text("changed")
    (folder / "gone").symlink_to(tmp_path / "nowhere")
    assert spool.others("A/1/1", ["stdout", "out"]) == Remains(2, 11)
    assert spool.clear("A/1/1", ["stdout"]) == Remains(3, 15)
    assert not (folder / "stdout").exists()
    assert (folder / "out").read_text() == "much"
    assert (folder / "sub/kept").read_text() == "abc"
    assert spool.left("A/1/1") is not None
    before = spool.changed("A/1/1")
    assert spool.stale(before) == []
    assert spool.stale(before + 1.0) == ["A/1/1"]
    assert spool.clear("A/1/1", ["out", "more", "changed"]) == Remains()
    assert list(folder.iterdir()) == []
    spool.remove("A/1/1")
    assert list((tmp_path / "spool/.marks").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_a_user_may_look_into_the_folder_of_his_own_job(tmp_path: Path) -> None:
    """And write nothing there; nobody else gets in, and nobody sees which jobs there are."""
    spool = Spool(tmp_path / "spool")
    spool.open()
    ann, bob = pwd.getpwnam("nobody"), pwd.getpwnam("daemon")
    for number, user in ((1, ann.pw_name), (2, ""), (3, "nobody-of-this-name")):
        folder = spool.prepare(f"A/1/{number}", Program(SCRIPT), run=True, user=user)
        (folder / "sub").mkdir()
        (folder / "sub/stdout").write_text("said")
    for path in (tmp_path, *tmp_path.parents):
        if "pytest-" in str(path):  # those above are the system's
            path.chmod(0o711)

    def may(who: pwd.struct_passwd, words: str) -> bool:
        done = subprocess.run(  # noqa: S603  # the test's own words
            ["/bin/sh", "-c", words],
            user=who.pw_uid,
            group=who.pw_gid,
            extra_groups=[],
            check=False,
        )
        return done.returncode == 0

    spool_folder, own = tmp_path / "spool", spool.place("A/1/1")
    assert may(ann, f"cd {own} && ls >/dev/null && cat sub/stdout >/dev/null")
    assert not may(ann, f": 2>/dev/null >{own}/new")
    assert not may(ann, f"cat {own}/values 2>/dev/null")
    assert not may(ann, f"ls {spool_folder} 2>/dev/null")
    assert not may(ann, f"cd {spool_folder}/.marks 2>/dev/null")
    for who, number in ((bob, 1), (ann, 2), (ann, 3)):
        assert not may(who, f"cd {spool.place(f'A/1/{number}')} 2>/dev/null")


def test_a_folder_knows_how_often_its_job_has_begun(tmp_path: Path) -> None:
    """With what the batch system said of restarts; also after it was cleared, and never without end."""
    spool = Spool(tmp_path)
    assert spool.runs("A/1/1") == []
    folder = spool.prepare("A/1/1", Program("#!/bin/sh\n"), run=True, repeats=True)
    assert spool.runs("A/1/1") == []
    for restarts in ("", "1"):
        values = {"PATH": "/usr/bin:/bin"} | ({"SLURM_RESTART_COUNT": restarts} if restarts else {})
        subprocess.run(["/bin/sh", "launch"], cwd=folder, env=values, check=True, timeout=300)
    assert spool.runs("A/1/1") == ["0", "1"]
    (folder / "stdout").touch()
    spool.clear("A/1/1", ["stdout"])
    assert spool.runs("A/1/1") == ["0"]
    assert spool.marks("A/1/1") == Marks(run=True, begun=True)
    (folder / "begun").write_text("0\n" * 10**6)
    assert spool.evidence("A/1/1").script is None
    assert len(spool.runs("A/1/1")) == 512


def test_a_second_run_is_turned_away(tmp_path: Path) -> None:
    """It leaves no trace, and the folder says of the first one what it said; where runs may repeat it runs."""
    spool = Spool(tmp_path)
    for number, repeats in ((1, False), (2, True)):
        key = f"A/1/{number}"
        program = Program("#!/bin/sh\necho ran >>runs\nexit 3\n")
        folder = spool.prepare(key, program, run=True, limit_s=60.0, repeats=repeats)
        before = spool.evidence(key)
        assert (before.begun, before.begun_at, before.script) == (False, None, None)
        codes, values = [], {"PATH": "/usr/bin:/bin"}
        for _ in range(2):
            done = subprocess.run(
                ["/bin/sh", "launch"], cwd=folder, env=values, check=False, timeout=300
            )
            codes.append(done.returncode)
        runs = 2 if repeats else 1
        assert codes == [3, 3 if repeats else FENCED]
        assert (folder / "runs").read_text() == "ran\n" * runs
        assert spool.runs(key) == ["0"] * runs
        after = spool.evidence(key)
        assert after.script is not None
        assert (after.script.code, after.limit_s, after.released) == (3, 60.0, False)
        assert after.begun_at is not None
        assert abs(after.begun_at - time.time()) < 3600


def test_a_run_that_was_cut_off_as_it_began_has_begun(tmp_path: Path) -> None:
    """It would be turned away, so that nobody lets it run once more."""
    spool = Spool(tmp_path)
    folder = spool.prepare("A/1/1", Program(SCRIPT), run=True)
    assert spool.evidence("A/1/1").begun is False
    (folder / "begun").touch()
    assert spool.runs("A/1/1") == []
    assert spool.evidence("A/1/1").begun is None, "a full disk takes a name and no line"
    (folder / "begun.once").touch()
    assert spool.runs("A/1/1") == ["0"]
    assert spool.evidence("A/1/1").begun


@pytest.mark.parametrize("last", ["rm -rf ./* ./.??*", 'rm -rf "$PWD"', "rm -f begun"])
def test_a_script_that_empties_its_folder_has_run_all_the_same(tmp_path: Path, last: str) -> None:
    """What was kept of the job stays, and nobody takes it for one that has not begun."""
    spool = Spool(tmp_path)
    folder = spool.prepare("A/1/1", Program(f"#!/bin/sh\n{last}\n"), run=True)
    spool.released("A/1/1", "7")
    values = {"PATH": "/usr/bin:/bin"}
    subprocess.run(["/bin/sh", "launch"], cwd=folder, env=values, check=False, timeout=300)
    assert Spool(tmp_path).marks("A/1/1") == Marks(run=True, released=True, number="7")
    assert len(spool.runs("A/1/1")) == 1
    spool.remove("A/1/1")
    assert spool.runs("A/1/1") == []


def test_nothing_beyond_a_folder_is_touched_when_it_goes(tmp_path: Path) -> None:
    """Whatever rights and links a job has left there: folders closed to their owner go, what links lead to stays."""
    spool, beyond = Spool(tmp_path / "jobs"), tmp_path / "beyond"
    spool.open()
    (beyond / "deep").mkdir(parents=True)
    (beyond / "deep").chmod(0o750)
    beyond.chmod(0o711)
    for clears in (False, True):
        place = spool.prepare("A/1/1", Program("#!/bin/sh\n"), run=True)
        (place / "a/b/c").mkdir(parents=True)
        (place / "a/b/link").symlink_to(beyond)
        (place / "link").symlink_to(beyond)
        for folder in (place / "a/b/c", place / "a/b", place / "a"):
            folder.chmod(0)
        if clears:
            spool.clear("A/1/1", ["a/b/link", "link"])
            assert list(place.iterdir()) == []
        else:
            place.chmod(0)
        spool.remove("A/1/1")
        assert not place.exists()
    assert [oct(path.stat().st_mode & 0o777) for path in (beyond, beyond / "deep")] == [
        "0o711",
        "0o750",
    ]
    spool.place("A/1/2").symlink_to(beyond)
    spool.remove("A/1/2")
    assert [oct(path.stat().st_mode & 0o777) for path in (beyond, beyond / "deep")] == [
        "0o711",
        "0o750",
    ]


def test_a_folder_knows_how_its_script_has_ended(tmp_path: Path) -> None:
    """With the requested time, which stays over a release; not any more when a further run has begun."""
    spool = Spool(tmp_path)

    def said(key: str) -> tuple[ScriptEnd | None, float]:
        evidence = spool.evidence(key)
        return evidence.script, evidence.limit_s

    folder = spool.prepare("A/1/1", Program("#!/bin/sh\nexit 3\n"), run=False, limit_s=60.0)
    spool.wanted("A/1/1")
    spool.released("A/1/1", "7")
    assert said("A/1/1") == (None, 60.0)
    subprocess.run(["/bin/sh", "launch"], cwd=folder, check=False, timeout=300)
    script, limit_s = said("A/1/1")
    assert script is not None
    assert (script.code, limit_s) == (3, 60.0)
    with (folder / "begun").open("a") as file:
        file.write("1 1795392239\n")
    assert said("A/1/1") == (None, 60.0)
    (folder / "begun").write_text("0\n" * 1000 + "ended 4 17\n")
    assert said("A/1/1") == (ScriptEnd(4, None), 60.0)
    spool.clear("A/1/1", [])
    assert said("A/1/1") == (None, 60.0)
    assert said("A/1/2") == (None, 0.0)


def test_old_folders_are_named(tmp_path: Path) -> None:
    """By their last change; what is no job's folder is not."""
    spool = Spool(tmp_path)
    for number in (1, 2):
        folder = spool.prepare(f"A/1/{number}", Program(SCRIPT), run=True)
        for path in (*folder.iterdir(), folder):
            os.utime(path, (1000.0, 1000.0))
    (tmp_path / "other").mkdir()
    os.utime(tmp_path / "other", (1000.0, 1000.0))
    (tmp_path / "A+1+2/stdout").touch()
    assert spool.stale(2000.0) == ["A/1/1"]
    assert spool.stale(500.0) == []
    spool.prepare("A/1/3", Program(SCRIPT), run=True)
    spool.prepare("A/1/4", Program(SCRIPT), run=True)
    for number in (3, 4):
        os.utime(tmp_path / f".marks/A+1+{number}.json", (1000.0, 1000.0))
    shutil.rmtree(tmp_path / "A+1+3")
    assert spool.stale(2000.0) == ["A/1/1", "A/1/3"]


def given(folder: Path, name: str, content: bytes, **said: Any) -> JobInput:
    """Returns a file that a job is given, with its content in a folder; `said` is what is told of it."""
    path = folder / "content"
    path.write_bytes(content)
    file = JobFile(name, len(content), hashlib.sha256(content).digest())
    return JobInput(replace(file, **said), str(path))


def test_a_job_finds_what_it_is_given(tmp_path: Path) -> None:
    """Under its name, folders on the way included, as a copy of its own."""
    spool = Spool(tmp_path / "spool")
    spool.open()
    program = Program(SCRIPT, inputs=(given(tmp_path, "data/in", b"a\0b" * 70_000),))
    for _ in range(2):
        folder = spool.prepare("A/1/1", check_program(program), run=True)
        assert (folder / "data/in").read_bytes() == b"a\0b" * 70_000
        (folder / "data/in").write_bytes(b"changed by the job")
    assert (tmp_path / "content").stat().st_size == 210_000


def test_an_input_can_be_run_where_it_could_be(tmp_path: Path) -> None:
    """Its owner's permissions are kept; it is the job's to read and write in any case."""
    spool = Spool(tmp_path / "spool")
    spool.open()
    inputs = (given(tmp_path, "tool", b"x", mode=0o555), given(tmp_path, "data", b"x", mode=0o444))
    folder = spool.prepare("A/1/1", check_program(Program(SCRIPT, inputs=inputs)), run=True)
    modes = [(folder / name).stat().st_mode & 0o777 for name in ("tool", "data")]
    assert modes == [0o700, 0o600]


def test_a_job_is_given_nothing_else_than_what_was_sent(tmp_path: Path) -> None:
    """Garbled, cut off or gone, the job is refused; a link that lay in its folder leads nowhere."""
    spool = Spool(tmp_path / "spool")
    spool.open()
    for each, text in (
        (given(tmp_path, "in", b"abc", sha256=bytes(32)), "not here as it was sent"),
        (given(tmp_path, "in", b"abc", size=4), "not here as it was sent"),
        (
            replace(given(tmp_path, "in", b"abc"), content=str(tmp_path / "none")),
            "not here any more",
        ),
        (replace(given(tmp_path, "in", b"abc"), content=""), "not here"),
    ):
        with pytest.raises(LrmsRefusedError, match=text):
            spool.prepare("A/1/1", Program(SCRIPT, inputs=(each,)), run=True)
        assert not spool.place("A/1/1").exists()
    spool.place("A/1/1").mkdir()
    (spool.place("A/1/1") / "out").symlink_to(tmp_path)
    program = Program(SCRIPT, inputs=(given(tmp_path, "out/in", b"abc"),))
    assert (spool.prepare("A/1/1", program, run=True) / "out/in").read_bytes() == b"abc"
    assert not (tmp_path / "in").exists()


@pytest.mark.parametrize("name", ["../in", "/in", "program", "a/./b", "outputs.json", ""])
def test_no_file_is_laid_elsewhere_or_over_the_sites_own(tmp_path: Path, name: str) -> None:
    """Such a name is refused before anything is written."""
    with pytest.raises(LrmsRefusedError, match=r"^inputs: "):
        check_program(Program(SCRIPT, inputs=(given(tmp_path, name, b"x"),)))


def test_files_are_used_in_place(tmp_path: Path) -> None:
    """By links of the job's folder: what is written goes where the link leads, and nothing is copied."""
    place = tmp_path / "shared"
    place.mkdir()
    (place / "job.sh").write_text('#!/bin/sh\ncat data/in; echo "$1" >out\n')
    (place / "job.sh").chmod(0o755)
    (place / "in").write_text("given")
    files = (
        SharedFile(SCRIPT_NAME, f"{place}/job.sh"),
        SharedFile("data/in", f"{place}/in"),
        SharedFile("out", f"{place}/result", written=True),
    )
    spool = Spool(tmp_path / "spool", SharedFolders([str(place)]))
    spool.open()
    program = check_program(Program("", ("made",), shared=files))
    folder = spool.prepare("A/1/1", program, run=True)
    assert ran(folder) == "given"
    assert (place / "result").read_text() == "made\n"
    spool.prepare("A/1/1", program, run=True)
    assert spool.clear("A/1/1", ["stdout"]) == Remains()
    spool.remove("A/1/1")
    assert sorted(path.name for path in place.iterdir()) == ["in", "job.sh", "result"]


def test_what_is_not_shared_is_not_laid(tmp_path: Path) -> None:
    """Whatever was seen of it before: a link that has come since is refused."""
    place = tmp_path / "shared"
    place.mkdir()
    (tmp_path / "secret").touch()
    (place / "in").symlink_to(tmp_path / "secret")
    spool = Spool(tmp_path / "spool", SharedFolders([str(place)]))
    spool.open()
    program = Program(SCRIPT, shared=(SharedFile("in", f"{place}/in"),))
    with pytest.raises(LrmsRefusedError, match=r"uses in place: .*a link leads to it"):
        spool.prepare("A/1/1", program, run=True)
    with pytest.raises(LrmsRefusedError, match="comes twice"):
        check_program(Program(SCRIPT, shared=program.shared * 2))
    with pytest.raises(LrmsRefusedError, match="no script"):
        check_program(Program("", shared=program.shared))


# --- jobs that begin where they were handed in ---------------------------------------------------


def ran_at_home(
    folder: Path,
    place: Path,
    script: str,
    outputs: Sequence[str] = ("made/here", "link", "absent", "dir"),
    **more: Any,
) -> tuple[Path, int]:
    """Runs a job in a user's folder as a batch system does, and returns its own folder and its status."""
    spool = Spool(folder)
    spool.open()
    program = check_program(Program(script, ("a b",), outputs=tuple(outputs)))
    variables = (b"VALUE=x\\xff", b"here=mine", b"code=mine", b"BASH_FUNC_f%%=() {  echo f\n}")
    home = check_home(HomeRun(str(place), variables))
    own = spool.prepare("A/1/1", program, run=True, home=home, **more)
    pairs = (each.split(b"=", 1) for each in (own / ENVIRONMENT).read_bytes().split(b"\0")[:-1])
    with (place / "out").open("ab") as out:
        done = subprocess.run(  # noqa: S603  # the folder's own launcher
            ["/bin/sh", str(own / "launch"), str(own)],
            cwd=place,
            env={
                **dict(pairs),
                b"PATH": b"/nowhere",
                b"SLURM_JOB_ID": b"7",
            },
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=300,
        )
    return own, done.returncode


MEMORY = "/dev/shm"  # noqa: S108  # another disk than that of the tests
MAKES = """#!/bin/bash
echo "$1|$#|$here|$code|$SLURM_JOB_NAME"; pwd; f
/bin/mkdir made dir; echo made >made/here; /bin/ln -s /etc/passwd link
exit 7
"""


def test_a_job_begins_where_it_was_handed_in(tmp_path: Path) -> None:
    """What it prints and makes lies there, and in its own folder under a second name, which is no copy."""
    place = tmp_path / "user's $own"
    place.mkdir()
    own, code = ran_at_home(tmp_path / "jobs", place, MAKES, name="my 'job'")
    assert code == 7
    assert (place / "out").read_text() == f"a b|1|mine|mine|my 'job'\n{place}\nf\n"
    assert (own / "stdout").samefile(place / "out")
    assert (own / "stderr").read_text() == ""
    assert (own / "made/here").samefile(place / "made/here")
    assert (own / "link").is_symlink()  # of which nothing is handed out
    assert not (own / "absent").exists()
    assert not (own / "dir").exists()
    assert [line.split()[0] for line in (own / "begun").read_text().splitlines()] == ["0", "ended"]


def test_a_job_goes_on_from_its_state_where_it_was_handed_in(tmp_path: Path) -> None:
    """What it has written elsewhere lies there before it begins, and it finds how often it has begun."""
    place = tmp_path / "own"
    place.mkdir()
    spool = Spool(tmp_path / "jobs")
    spool.open()
    program = Program(
        "#!/bin/sh\nread at <'a b/s'\necho $at $HANSE_RESTART_COUNT $SLURM_RESTART_COUNT >said\n",
        environment={RESTARTS: "2"},
        checkpoint=("a b/",),
        inputs=(given(tmp_path, "a b/s", b"17\n"),),
    )
    own = spool.prepare("A/1/1", check_program(program), run=True, home=HomeRun(str(place), ()))
    for restarts, said in (({}, "17 2 2"), ({"SLURM_RESTART_COUNT": "1"}, "17 2 3")):
        shutil.rmtree(own / "begun", ignore_errors=True)
        for name in ("begun", "begun.once"):
            (own / name).unlink(missing_ok=True)
        values = {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": "7", **restarts}
        words = ["/bin/sh", str(own / "launch"), str(own)]
        subprocess.run(words, cwd=place, env=values, check=True, timeout=300)  # noqa: S603  # the folder's own launcher
        assert (place / "said").read_text() == f"{said}\n"


def test_a_job_does_not_go_on_from_what_another_one_has_written(tmp_path: Path) -> None:
    """A job that goes on from its state, and submits another one, hands it its variables as well."""
    place = tmp_path / "own"
    place.mkdir()
    spool = Spool(tmp_path / "jobs")
    spool.open()
    program = check_program(Program('#!/bin/sh\necho "${HANSE_RESTART_COUNT:-0}" >said\n'))
    variables = (f"{RESTARTS}=2".encode(),)
    own = spool.prepare("A/1/1", program, run=True, home=HomeRun(str(place), variables))
    words = ["/bin/sh", str(own / "launch"), str(own)]
    values = {"PATH": "/usr/bin:/bin", RESTARTS: "2"}
    subprocess.run(words, cwd=place, env=values, check=True, timeout=300)  # noqa: S603  # the folder's own launcher
    assert (place / "said").read_text() == "0\n"


def test_a_folder_knows_when_its_job_has_written_its_state(tmp_path: Path) -> None:
    """What it was given is none of it; links are not; of what it says, it says nothing else."""
    spool = Spool(tmp_path / "jobs")
    spool.open()
    program = Program(
        SCRIPT, outputs=("out",), checkpoint=("s*",), inputs=(given(tmp_path, "s0", b"0"),)
    )
    folder = spool.prepare("A/1/1", program, run=True)
    (folder / "s-link").symlink_to("/etc/passwd")
    assert spool.evidence("A/1/1").written_at is None
    for at in (3000.0, 2000.0):
        (folder / f"s{at:.0f}").touch()
        os.utime(folder / f"s{at:.0f}", (at, at))
        assert spool.evidence("A/1/1").written_at == 3000.0
    left = spool.left("A/1/1")
    assert left is not None
    assert (left.wanted.declared, left.state().names) == (("out",), ())
    assert left.state().wanted.declared == ("s*",)
    assert spool.clear("A/1/1", ["s3000"], rest=True) == Remains()
    assert [*folder.iterdir()] == []


@pytest.mark.parametrize(
    ("outcome", "start", "written", "kept"),
    [
        (Outcome.PREEMPTED, 100.0, 130.0, 30.0),
        (Outcome.PREEMPTED, None, 130.0, 70.0),
        (Outcome.PREEMPTED, 100.0, 900.0, 40.0),
        (Outcome.PREEMPTED, 100.0, 20.0, 0.001),
        (Outcome.PREEMPTED, 100.0, None, 0.0),
        (Outcome.COMPLETED, 100.0, 130.0, 0.0),
    ],
)
def test_what_is_kept_is_no_more_than_it_has_run(
    outcome: Outcome, start: float | None, written: float | None, kept: float
) -> None:
    """Whatever the clocks of node and file server say."""
    end = LrmsEnd(outcome, 100.0 if start is None else 140.0, 40.0)
    assert with_kept(end, start, written) == replace(end, kept=min(kept, 40.0))


GLOBS = """#!/bin/sh
/bin/mkdir -p made/deep "odd ' name"; echo new >made/deep/new.csv; echo new >new.csv; echo new >"odd ' name/a b.csv"
echo mine >launch; echo mine >environ; /bin/ln -s /etc/passwd made/link.csv
/bin/touch "line
feed.csv"; echo changed >>changed.csv
"""


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        (["*.csv"], {"new.csv", "changed.csv"}),
        (["made/"], {"made/deep/new.csv"}),
        (["**/*.csv"], {"new.csv", "changed.csv", "made/deep/new.csv", "odd ' name/a b.csv"}),
        (["odd ' name/*"], {"odd ' name/a b.csv"}),
        (["./"], {"new.csv", "changed.csv", "made/deep/new.csv", "odd ' name/a b.csv"}),
        (["none/*", "$(touch run)*", "[';%+']$(touch run)*"], set()),
    ],
)
def test_what_a_pattern_stands_for_at_home_is_what_the_job_has_made(
    tmp_path: Path, outputs: list[str], names: set[str]
) -> None:
    """What was in its user's folder before stays out, and so does the site's own; nothing of a pattern is run."""
    place = tmp_path / "user"
    (place / "made").mkdir(parents=True)
    for name in ("old.csv", "changed.csv", "made/old"):
        (place / name).write_text("old")
        os.utime(place / name, (1.0, 1.0))
    until_older(place / "made/old")
    own, code = ran_at_home(tmp_path / "jobs", place, GLOBS, outputs)
    assert code == 0
    left = Spool(tmp_path / "jobs").left("A/1/1")
    assert left is not None
    assert set(matching(own, left.wanted, left.given).names) == names
    assert all((own / name).samefile(place / name) for name in names)
    assert (own / "environ").read_bytes().startswith(b"VALUE=")
    assert not (place / "run").exists()


def until_older(path: Path) -> None:
    """Waits until a file's last change is so old that nobody takes it for one of a job that begins now."""
    changed = path.stat().st_ctime
    while time.time() < changed + 1.1:
        time.sleep(0.05)


def test_what_lies_on_another_disk_is_copied(tmp_path: Path) -> None:
    """Where there can be no second name."""
    if not os.access(MEMORY, os.W_OK) or Path(MEMORY).stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other disk here")
    with tempfile.TemporaryDirectory(dir=MEMORY) as other:
        own, code = ran_at_home(tmp_path, Path(other), MAKES)
        assert code == 7
        assert (own / "stdout").read_bytes() == (Path(other) / "out").read_bytes() != b""
        assert (own / "made/here").read_text() == "made\n"


def test_variables_that_no_shell_could_set_arrive(tmp_path: Path) -> None:
    """Such as functions of bash, and those that are no text."""
    script = '#!/bin/bash\nf; printf %s "$VALUE"\n'
    ran_at_home(tmp_path / "jobs", tmp_path, script)
    assert (tmp_path / "out").read_bytes() == b"f\nx\\xff"


def test_a_folder_that_cannot_be_written_is_not_used(tmp_path: Path) -> None:
    """The job has its own then; and one of another account is none either."""
    (tmp_path / "there").mkdir()
    home = HomeRun(str(tmp_path / "there"), (b"A=b",), ("--mem=1",))
    assert usable(home) == home
    assert usable(None) is None
    absent = replace(home, folder=str(tmp_path / "absent"))
    assert usable(absent) == replace(home, folder="")


@pytest.mark.parametrize(
    ("home", "text"),
    [
        (HomeRun("there"), "begins with /"),
        (HomeRun("/a\0b"), "NUL"),
        (HomeRun("/a", (b"A",)), "NAME=value"),
        (HomeRun("/a", (b"=b",)), "NAME=value"),
        (HomeRun("/a", (b"A=\0",)), "NAME=value"),
        (HomeRun("/a", (), ("--mem=\0",)), "NUL"),
        (HomeRun("/a", (b"A=" + b"x" * HOME_BYTES_MAX,)), "environment has"),
    ],
)
def test_what_is_no_home_is_refused(home: HomeRun, text: str) -> None:
    """Before anything is written."""
    with pytest.raises(LrmsRefusedError, match=text):
        check_home(home)
