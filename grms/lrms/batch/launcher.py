"""The folder in which a job runs: its content, and what it tells after a restart of the site.

The batch system gets `launch`, a constant text independent of the job. It reads `values`, in which arguments and
variables are quoted, and runs `program`, the job's script unchanged. So neither passes through a shell except as
data, or through a batch system at all (Grid Engine cuts arguments at a line feed), and lines of the script that a
batch system would take for options (`#SBATCH`, `#$`, `#PBS`) are comments again. Variables such as LD_PRELOAD or
BASH_ENV reach only the job's own process.

`begun` has a line for the begin and end of each run (`grms.lrms.exit_status`): the restart count according to the
batch system, and the exit code. A batch system that forgets a run in a crash reports fewer restarts than there are
lines; one that forgets an end reports another. If jobs may not run again, `launch` runs no script that has begun by
`begun`, whoever starts it.

The wanted state of the job, and whether it was released, survive a restart (`job_notes`): a released job that is
missing from the queue and all records may have run.
"""

import hashlib
import json
import os
import re
import secrets
import shlex
import shutil
import stat
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from grms.daemon.job_files import (
    CHUNK_BYTES,
    OWN_NAMES,
    RESULTS_MAX,
    STREAMS,
    FileProblemError,
    WantedFiles,
    check_inputs,
    check_wanted,
    created,
    find_words,
    matching,
    opened,
    remove_below,
    word_of,
)
from grms.daemon.shared_folders import NotSharedError, SharedFile, SharedFolders
from grms.daemon.user_names import user_number
from grms.lrms.account_mapping import (
    NOTED,
    WRITTEN,
    account_number,
    common_group,
    has_lists,
    lend,
    let_in,
    own_group,
)
from grms.lrms.base import RESTARTS, JobInput, LrmsDiskError, LrmsRefusedError, Program
from grms.lrms.batch.queue_snapshot import Evidence
from grms.lrms.exit_status import (
    ASIDE,
    ASKED,
    BEGUN,
    EVICTED,
    FORWARD,
    LAUNCH,
    LAUNCH_ONCE,
    ONCE,
    read_begun_at,
    read_runs,
    read_script_end,
)
from grms.lrms.home_run import HomeRun
from grms.lrms.job_directories import JobFolder, Remains
from grms.lrms.job_notes import JobNotes, KeptPlace, Marks
from grms.lrms.told_number import LRMS_ID, told_number
from grms.util.job_arrays import VARIABLES
from grms.util.names import VARIABLE

BEGUN_BYTES_MAX: Final = 1024
"""Bytes read of the runs that a job has begun; the job itself could write more."""

HOME_BYTES_MAX: Final = 256 << 10
"""Most bytes of a job's variables at home; with its script they are one message."""

SCRIPT_BYTES_MAX: Final = 4 << 20
"""Longest script: Slurm's default (slurm.conf(5), "max_script_size")."""

ARGUMENTS_BYTES_MAX: Final = 64 << 10
ENVIRONMENT_BYTES_MAX: Final = 64 << 10
"""Most bytes of each; the kernel takes some 128 KB per argument and 2 MB in all."""

ENVIRONMENT: Final = "environ"
"""In a job's folder: its variables at home, each terminated by NUL."""

KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}/[0-9a-f]{1,16}/[0-9]{1,20}(/[0-9]{1,9})?")
"""A job's key: home site, epoch, number, and the count of submissions after the batch system had lost it."""

OUTPUTS_BYTES_MAX: Final = 128 << 10
"""Most bytes of the list of a job's outputs; the job itself could write more."""

# Per process: a thread outlives the task that was cancelled while waiting for it, and would otherwise write
# concurrently with that of the next task. Notes of different jobs do not wait for each other's way to the disk.
_changes = tuple(threading.Lock() for _ in range(64))


def _changing(key: str) -> threading.Lock:
    return _changes[hash(key) % len(_changes)]


NOTED_AT_ONCE: Final = 16
"""Notes of so many jobs are on their way to the disk together, which takes little longer than one."""

BLOCK_BYTES: Final = 512
"""Unit of the blocks of a file (stat(2))."""

PROBE_BYTES: Final = 64 << 10
"""Size of the write test: a job's folder without its input."""

_SITES_OWN: Final = OWN_NAMES - frozenset(STREAMS)

_HALF: Final = ".half-"
"""Prefix of folders that are being created or deleted."""

_log = structlog.get_logger()

_COUNT = re.compile(r"[0-9]{1,9}")
_RESTARTS_SAID = f"{RESTARTS}=".encode()
_RESERVED = re.compile(r"(SLURM|SBATCH|SRUN|SGE|PBS)_.*|JOB_ID|NSLOTS|PE_HOSTFILE")


def check_key(key: str) -> str:
    """Returns a valid key; `LrmsRefusedError` if it is invalid."""
    if KEY.fullmatch(key) is None:
        raise LrmsRefusedError(f"{key!r} is no key of a job")
    return key


def place_key(key: str) -> str:
    """Returns the key under which a job's place is kept, that of its first submission; the key may be a later one."""
    return "/".join(check_key(key).split("/")[:3])


def check_program(program: Program | None) -> Program:
    """Returns a valid program; `LrmsRefusedError` if there is none, or it cannot be passed on unchanged."""
    if program is None or not (program.script or any(each.runs for each in program.shared)):
        raise LrmsRefusedError("the job has no script, and this site runs real jobs alone")
    _check_size("script", len(program.script.encode()), SCRIPT_BYTES_MAX)
    arguments = sum(len(word.encode()) + 1 for word in program.arguments)
    _check_size("arguments", arguments, ARGUMENTS_BYTES_MAX)
    pairs = program.environment.items()
    size = sum(len(name.encode()) + len(value.encode()) + 2 for name, value in pairs)
    _check_size("environment", size, ENVIRONMENT_BYTES_MAX)
    for name in program.environment:
        if VARIABLE.fullmatch(name) is None:
            raise LrmsRefusedError(f"{name[:80]!r} is no name of an environment variable")
        if _RESERVED.fullmatch(name) is not None:
            raise LrmsRefusedError(f"{name} is set by the batch system, and by nobody else")
    if _COUNT.fullmatch(program.environment.get(RESTARTS, "0")) is None:
        raise LrmsRefusedError(f"{RESTARTS} is no number; it is set by sites, and by nobody else")
    if any("\0" in text for text in (*program.arguments, *program.environment.values())):
        raise LrmsRefusedError("arguments and environment must have no NUL character")
    try:
        check_wanted(program.outputs)
    except ValueError as error:
        raise LrmsRefusedError(f"outputs: {error}") from error
    try:
        check_wanted(program.checkpoint)
    except ValueError as error:
        raise LrmsRefusedError(f"checkpoint: {error}") from error
    try:
        check_inputs(_names(program))
    except ValueError as error:
        raise LrmsRefusedError(f"inputs: {error}") from error
    return program


def _names(program: Program) -> list[str]:
    given = [each.file.name for each in program.inputs]
    return given + [each.name for each in program.shared if not each.runs]


def _check_size(what: str, size: int, most: int) -> None:
    if size > most:
        raise LrmsRefusedError(f"the job's {what} has {size} bytes; at most {most} are taken")


def check_home(home: HomeRun) -> HomeRun:
    """Returns valid settings of a job at home; `LrmsRefusedError` if they cannot be passed on unchanged."""
    if not home.folder.startswith("/") or any(
        "\0" in word for word in (home.folder, *home.options)
    ):
        raise LrmsRefusedError(
            "a job's folder is a path that begins with /, and has no NUL character"
        )
    _check_size("environment", sum(len(each) + 1 for each in home.environment), HOME_BYTES_MAX)
    if any(each.find(b"=") < 1 or b"\0" in each for each in home.environment):
        raise LrmsRefusedError("each of a job's variables is NAME=value, without a NUL character")
    return home


def usable(home: HomeRun | None) -> HomeRun | None:
    """Returns a job's settings at home, in its own folder if this process cannot write to its user's.

    Accesses the disk.
    """
    if home is None or not home.folder or os.access(home.folder, os.R_OK | os.W_OK | os.X_OK):
        return home
    return replace(home, folder="")


_MODULES: Final = """\
if ! command -v module >/dev/null 2>&1; then
	for init in "${MODULESHOME:-/none}/init/sh" /etc/profile.d/lmod.sh /etc/profile.d/modules.sh /usr/share/modules/init/sh; do
		test ! -r "$init" || { . "$init"; break; }
	done
fi
"""
# Where Environment Modules and Lmod are, unless they were there from the beginning.


def values_text(
    program: Program,
    *,
    lent: bool = False,
    umask: int = -1,
    name: str = "",
    home: HomeRun | None = None,
    modules: Sequence[str] = (),
) -> str:
    """Returns the file by which a POSIX shell sets a job's arguments and variables.

    The shell's first word is then the program, in the folder that was its first word before.

    With `lent` the job runs as another account, with `umask` unless that is negative. `name` is the job's name for
    the script; empty for the batch system's. `modules` of software are loaded first; a job without one of them does
    not begin.
    """
    lines = [f"export {word}={shlex.quote(value)}" for word, value in program.environment.items()]
    # sudo changes the umask, adds variables, and starts sbatch in a folder of the daemon's.
    first = [f"umask {umask:03o}"] if lent and umask >= 0 else []
    if lent and home is None:
        first.append("unset SUDO_COMMAND SUDO_GID SUDO_UID SUDO_USER")
    if lent and home is not None and home.folder:
        first.append(
            f'test -z "${{SLURM_JOB_ID-}}" || export SLURM_SUBMIT_DIR={shlex.quote(home.folder)}'
        )
    if name:
        word = shlex.quote(name)
        first.append(f'test -z "${{SLURM_JOB_ID-}}" || export SLURM_JOB_NAME={word}')
        first.append(
            f'test -n "${{SLURM_JOB_ID-}}" || test -z "${{JOB_ID-}}" || export JOB_NAME={word}'
        )
    first += _array_lines(program.environment) + _told_lines(program.environment)
    if RESTARTS in program.environment:
        first += _restart_lines(program, elsewhere=home is not None and bool(home.folder))
    elif home is not None and any(each.startswith(_RESTARTS_SAID) for each in home.environment):
        first.append(f"unset {RESTARTS}")  # of the job that has submitted this one
    # A shell drops variables that it could not set itself, such as functions of bash.
    given = [os.fsdecode(each) for each in home.environment] if home is not None else []
    odd = [each for each in given if VARIABLE.fullmatch(each.partition("=")[0]) is None]
    words = [*map(shlex.quote, ["/usr/bin/env", *odd] if odd else []), '"$1/program"']
    words += [shlex.quote(word) for word in program.arguments]
    loads = "".join(f"module load {shlex.quote(each)} || exit 125\n" for each in modules)
    text = "".join(f"{line}\n" for line in [*first, *sorted(lines), f"set -- {' '.join(words)}"])
    # Before the words are set, as a module's own script may have words of its own.
    return f"{_MODULES}{loads}{text}" if modules else text


def _array_lines(environment: Mapping[str, str]) -> list[str]:
    # An element finds what it would find in an array of the batch system's own.
    lines = []
    for own, (slurm, sge) in VARIABLES.items():
        value = environment.get(own)
        if value is None:
            continue
        # Batch systems name jobs by numbers alone.
        word = shlex.quote(value.rpartition("-")[2] if own == "HANSE_ARRAY_JOB_ID" else value)
        lines.append(f'test -z "${{SLURM_JOB_ID-}}" || export {slurm}={word}')
        if sge:
            lines.append(
                f'test -n "${{SLURM_JOB_ID-}}" || test -z "${{JOB_ID-}}" || export {sge}={word}'
            )
    return lines


def _restart_lines(program: Program, *, elsewhere: bool) -> list[str]:
    # A job that goes on from its state finds how often it has begun before, here and elsewhere, and the state where it
    # runs: an array of the batch system's own counts from 0.
    before = program.environment[RESTARTS]
    lines = [
        f'test -z "${{SLURM_JOB_ID-}}" || export SLURM_RESTART_COUNT=$(({int(before)} + ${{SLURM_RESTART_COUNT:-0}}))'
    ]
    if elsewhere:
        wanted = check_wanted(program.checkpoint)
        for each in program.inputs:
            name = each.file.name
            if name not in wanted.names and not wanted.matches(name):
                continue
            folder = name.rpartition("/")[0]
            made = f"command -p mkdir -p -- {shlex.quote(folder)} && " if folder else ""
            word = shlex.quote(name)
            lines.append(f'{made}command -p cp -- "$1"/{word} {word} || exit 125')
    return lines


def _told_lines(environment: Mapping[str, str]) -> list[str]:
    number = told_number(environment)
    if not number:
        return []
    return [
        f'test -z "${{SLURM_JOB_ID-}}" || export {LRMS_ID}="$SLURM_JOB_ID" SLURM_JOB_ID={number} SLURM_JOBID={number}'
    ]


def run_files(program: Program, values: str) -> list[tuple[str, bytes, int]]:
    """Returns the files that a run needs in its folder: name, content and mode.

    `values` is as `values_text` returns it.
    """
    said: object = program.outputs
    if program.checkpoint:
        said = {"outputs": program.outputs, "checkpoint": program.checkpoint}
    files = [
        ("values", os.fsencode(values), 0o400),
        ("outputs.json", json.dumps(said).encode(), 0o400),
    ]
    if program.script:
        files.append(("program", program.script.encode(), 0o500))
    return files


def collect_text(program: Program) -> str:
    """Returns the file by which a POSIX shell links a job's outputs into its folder.

    For folders and patterns these are the files that have changed since the job began.
    """
    lines = []
    wanted = check_wanted(program.outputs)
    for name in wanted.names:
        folder = shlex.quote(f"/{name}".rpartition("/")[0])
        lines.append(f'command -p mkdir -p -- "$1"{folder}')
        # A link is linked, too, and never served.
        word = shlex.quote(name)
        lines.append(f'! {{ test -e {word} || test -h {word}; }} || keep {word} "$1/"{word}')
    lines += [_COLLECT.format(find_words(each)) for each in wanted.patterns]
    return "".join(f"{line}\n" for line in lines)


# Its own names are the site's: a user's file of such a name stays where it is.
_COLLECT: Final = f"""\
command -p find {{}} -cnewer "$1/begun.since" 2>/dev/null | command -p head -n {RESULTS_MAX} | while IFS= read -r each; do
	each=${{{{each#./}}}}
	case $each in {"|".join(sorted(OWN_NAMES))}) continue ;; esac
	test "$each" -ef "$1/stdout" || test "$each" -ef "$1/stderr" && continue
	case $each in */*) command -p mkdir -p -- "$1/${{{{each%/*}}}}" ;; esac
	keep "./$each" "$1/$each"
done"""


class Spool:
    """The folders of all jobs; all methods access the disk.

    `folder` has one for each job; all nodes must see it under this path. `shared` are folders whose files jobs use in
    place; `JobNotes` explains `known`.
    """

    def __init__(
        self, folder: Path, shared: SharedFolders | None = None, known: Path | None = None
    ) -> None:
        self._folder = folder
        self._shared = shared or SharedFolders()
        self._notes = JobNotes(folder, known)

    def open(self) -> None:
        """Creates the private folder if missing, and removes incomplete entries.

        Raises:
            OSError: it cannot be created.
        """
        self._make()
        for left in self._folder.glob(f"{_HALF}*"):
            _remove(left)

    def _make(self) -> None:
        # Once: if it is missing later, the disk is away, and nothing may be created in its place.
        if self._notes.is_open:
            self._notes.check_there()
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._notes.open()

    def probe(self) -> None:
        """Writes a test file, and deletes it; `OSError` if writing is impossible now."""
        self._make()
        path = self._half()
        try:
            with path.open("xb") as file:
                file.write(bytes(PROBE_BYTES))
                file.flush()
                os.fsync(file.fileno())
        finally:
            path.unlink(missing_ok=True)

    def account(self, key: str) -> str:
        """Returns the account as which a job runs; empty for this process's own.

        The note is outside the job's folder, so that the job cannot change it. An invalid key, as other jobs may
        have any name, is no job's.

        Raises:
            LrmsDiskError: the note cannot be read.
        """
        known = KEY.fullmatch(key) is not None
        try:
            return self._notes.account(self.place(key).name) if known else ""
        except OSError as error:
            raise LrmsDiskError(f"the jobs' accounts cannot be read: {error}") from error

    def place(self, key: str) -> Path:
        """Returns a job's folder; `LrmsRefusedError` if the key is invalid."""
        return self._folder / check_key(key).replace("/", "+")

    def prepare(
        self,
        key: str,
        program: Program,
        *,
        run: bool,
        limit_s: float = 0.0,
        account: str = "",
        user: str = "",
        name: str = "",
        home: HomeRun | None = None,
        repeats: bool = False,
        signal: str = "",
        modules: Sequence[str] = (),
        preemptible: bool = False,
        aside: bool = False,
    ) -> Path:
        """Creates a job's folder anew and returns it.

        Args:
            key: of the job.
            program: what it runs.
            run: whether it should run at once.
            limit_s: its requested time.
            account: as which it runs; empty for this process's own.
            user: local account that may read its folder if the file system has access lists; empty for none. It may
                be the one as which the job runs.
            name: of the job for its script; empty for the batch system's.
            home: settings at home, from `usable`; `None` for guests, or if not given.
            repeats: it may run again once it has begun; else `launch` does not run the script twice.
            modules: of software that it needs.
            preemptible: it may be ended for another job.
            aside: it does not begin before `lift_aside`.
            signal: sent by the batch system, as `USR1`; after `B:` to `launch` alone, which then passes it on.

        Raises:
            LrmsRefusedError: an input file is missing or differs, or the account may not run jobs.
            OSError: there is no room; an existing folder stays, a new one is removed.
        """
        prints_elsewhere = home is not None and bool(home.folder)
        place = self.place(key)
        self._make()
        group, uid = self._shared_with(account, user)
        # A folder with access lists needs no umask, and elsewhere a user's group may be everybody's.
        umask = 0o007
        if account == user and (group is None or prints_elsewhere):
            umask = -1 if home is None else home.umask
        known = self.marks(key) is not None
        self._notes.runs_as(place.name, account)
        try:
            values = values_text(
                program, lent=bool(account), umask=umask, name=name, home=home, modules=modules
            )
            own: list[tuple[str, str | bytes, int]] = [
                ("launch", LAUNCH if repeats else LAUNCH_ONCE, 0o500),
                *run_files(program, values),
            ]
            if home is not None:
                variables = b"".join(each + b"\0" for each in home.environment)
                own += [(ENVIRONMENT, variables, 0o400), ("collect", collect_text(program), 0o400)]
            if signal.startswith("B:"):
                own.append((FORWARD, f"{signal.removeprefix('B:')}\n", 0o400))
            if aside:
                own.append((ASIDE, "", 0o444))
            if program.merged and not prints_elsewhere:
                own.append(("stderr", "", 0o600))  # nothing else makes it
            lend_it = None
            if account:
                written = NOTED if prints_elsewhere else WRITTEN
                lend_it = partial(lend, group=group, uid=uid, written=written)
            self._lay_out(place, own, program, lend_it=lend_it, user="" if account else user)
            names = [each.file.name for each in program.inputs]
            given = {name: word_of((place / name).lstat()) for name in names}
            self._notes.keep_given(place.name, given)
            with _changing(key):
                self._keep(key, Marks(run, limit_s=limit_s, preemptible=preemptible))
        except BaseException:
            if not known:  # else it may be there, and about to run
                with suppress(OSError):
                    self.drop(key)
            raise
        if account or user:
            self._folder.chmod(0o711)  # to be passed through, and not to be looked into
        return place

    def _shared_with(self, account: str, user: str) -> tuple[int | None, int]:
        # The group and user numbers of `lend`: a local user's folder is lent by access lists, or through the user's
        # group where the file system has none.
        if not account:
            return None, -1
        if account != user:
            return common_group(account), -1
        uid, _ = account_number(account)
        return (None if has_lists(self._folder) else own_group(account)), uid

    def _lay_out(
        self,
        place: Path,
        own: Iterable[tuple[str, str | bytes, int]],
        program: Program,
        *,
        lend_it: Callable[[Path], None] | None,
        user: str,
    ) -> None:
        # In a temporary folder first: the old one stays intact if the disk is full.
        half = self._half()
        try:
            half.mkdir(mode=0o700)
            if user:
                with suppress(OSError, KeyError):  # else its user has `grms fetch`
                    let_in(half, user_number(user))
            for name, content, mode in own:
                _write(half / name, content, mode)
            for each in program.inputs:
                _lay(half, each)
            for shared in program.shared:
                self._link(half, shared)
            if lend_it is not None:
                lend_it(half)
            # An account may have placed links in the old folder: nothing is written through them.
            old = self._half()
            with suppress(FileNotFoundError):
                place.rename(old)
            half.rename(place)
        except BaseException:
            _remove(half)
            raise
        _remove(old)

    def _half(self) -> Path:
        return self._folder / f"{_HALF}{secrets.token_hex(8)}"

    def _link(self, place: Path, file: SharedFile) -> None:
        # Checked here as well: a hold, or a partner's work, may have taken days since the last check.
        try:
            self._shared.look(file)
            os.close(created(place, file.name))  # its folders, and nothing else in its place
        except NotSharedError as error:
            raise LrmsRefusedError(f"what the job uses in place: {error}") from error
        except FileProblemError as error:
            raise LrmsRefusedError(f"{file.name} cannot be laid into the job's folder") from error
        link = place / file.name
        link.unlink()
        link.symlink_to(file.path)

    def marks(self, key: str) -> Marks | None:
        """Returns the marks of a job; `None` if it was never submitted here."""
        return self._notes.marks(self.place(key).name)

    def wanted(self, key: str) -> None:
        """Keeps that a job is to run; it is on the disk when this returns."""
        with _changing(key):
            marks = self.marks(key) or Marks(run=True)
            self._keep(key, replace(marks, run=True))

    def runs(self, key: str) -> list[str]:
        """Returns the runs that a job has begun: of each how often it had been started anew by then."""
        try:
            descriptor = opened(self.place(key), BEGUN)
        except FileProblemError:
            marks = self.marks(key)
            if marks is None:
                return []
            # Only the job itself removes files from its folder.
            emptied = not (self.place(key) / "launch").exists()
            # A full disk may accept a file's name but no content.
            return ["0"] * (marks.begun or emptied or (self.place(key) / ONCE).exists())
        with os.fdopen(descriptor, "rb") as file:
            runs = read_runs(file.read(BEGUN_BYTES_MAX).decode("ascii", "replace"))
        # A run may have been interrupted before it could record its begin.
        return runs or ["0"] * (self.place(key) / ONCE).exists()

    def evidence(self, key: str) -> Evidence:
        """Returns what a job's folder, and what was kept of it, say about its run."""
        marks, last, runs = self.marks(key), self._last_begun(key), self.runs(key)
        # A full disk accepts the name but no content; for another account an empty file exists from the beginning.
        half_said = (self.place(key) / BEGUN).exists() and not self.account(key)
        unknown = not runs and (marks is None or half_said)
        return Evidence(
            script=read_script_end(last),
            begun=None if unknown else bool(runs),
            begun_at=read_begun_at(last),
            released=marks is not None and marks.released,
            limit_s=0.0 if marks is None else marks.limit_s,
            evicted=self._is_evicted(key, marks),
            preemptible=marks is not None and marks.preemptible,
            written_at=self._written_at(key),
        )

    def _is_evicted(self, key: str, marks: Marks | None) -> bool:
        # By this process, or by the batch system's own word in the folder.
        if marks is None or not marks.preemptible:
            return False
        return marks.evicted or (self.place(key) / EVICTED).exists()

    def _written_at(self, key: str) -> float | None:
        # When a job has last written its state, by the clock of the file server; None if it has not.
        folder = self.left(key)
        if folder is None or not folder.checkpoint.declared:
            return None
        latest: float | None = None
        with suppress(OSError):  # what cannot be read cannot be brought home either
            more = matching(folder.path, folder.checkpoint, folder.given).names
            for name in (*folder.checkpoint.names, *more):
                with suppress(FileProblemError):
                    status = _status(folder.path, name)
                    if folder.given.get(name) != word_of(status):
                        latest = max(latest or 0.0, status.st_mtime)
        return latest

    def _last_begun(self, key: str) -> str:
        try:
            descriptor = opened(self.place(key), BEGUN)
        except FileProblemError:
            return ""
        with os.fdopen(descriptor, "rb") as file:
            file.seek(max(0, os.fstat(descriptor).st_size - BEGUN_BYTES_MAX))
            return file.read(BEGUN_BYTES_MAX).decode("ascii", "replace")

    def released(self, key: str, number: str) -> None:
        """Records durably that a job's hold is about to be lifted."""
        with _changing(key):
            marks = self.marks(key) or Marks(run=True)
            self._keep(key, replace(marks, run=True, released=True, number=number))

    def released_all(self, numbers: Mapping[str, str]) -> set[str]:
        """Records the same of several jobs, by their keys.

        Returns the keys of those of which it is recorded now.
        """
        with ThreadPoolExecutor(NOTED_AT_ONCE, thread_name_prefix="notes") as threads:
            done = {key: threads.submit(self.released, key, numbers[key]) for key in numbers}
        return {key for key, each in done.items() if each.exception() is None}

    def begun_of(self, keys: Iterable[str]) -> set[str]:
        """Returns which of several jobs have begun to run."""
        return {key for key in keys if self.runs(key)}

    def evicting(self, key: str) -> bool:
        """Records durably that a job is about to be ended for another one; returns whether it may be."""
        with _changing(key):
            marks = self.marks(key)
            if marks is None or not marks.preemptible:
                return False
            if not marks.evicted:
                self._keep(key, replace(marks, evicted=True))
            return True

    def holds(self, key: str, is_to: bool) -> None:
        """Records durably that the site is about to hold a job again, or that it has lifted that hold."""
        with _changing(key):
            marks = self.marks(key)
            if marks is not None and marks.held is not is_to:
                self._keep(key, replace(marks, held=is_to))

    def can_be_aside(self, key: str) -> bool:
        """Returns whether a job's launcher can wait; one of an older version would begin."""
        try:
            launcher = (self.place(key) / "launch").read_text()
        except FileNotFoundError:
            self._notes.check_there()
            return False
        return ASIDE in launcher and f"= {ASKED};" in launcher

    def ask_aside(self, key: str) -> None:
        """Has a job's launcher wait until it is decided whether it is set aside (`set_aside`, `lift_aside`), unless it is."""
        if not (self.place(key) / ASIDE).exists():
            self._notes.check_there()
            self._mark_aside(key, f"{ASKED}\n")

    def is_asked_aside(self, key: str) -> bool:
        """Returns whether it is still to be decided whether a job is set aside; so it is of one that was not asked yet."""
        try:
            descriptor = opened(self.place(key), ASIDE)
        except FileProblemError:
            self._notes.check_there()
            return (self.place(key) / "launch").exists()
        with os.fdopen(descriptor, "rb") as file:
            return file.read(len(ASKED) + 1) == f"{ASKED}\n".encode()

    def set_aside(self, key: str) -> None:
        """Has a job's launcher end before the script."""
        self._mark_aside(key, "")

    def _mark_aside(self, at: str, text: str) -> None:
        # In one step, as a launcher may be looking.
        mark = self.place(at) / ASIDE
        half = mark.with_name(f"{ASIDE}{secrets.token_hex(4)}")
        _write(half, text, 0o444)
        half.rename(mark)

    def lift_aside(self, at: str, key: str) -> None:
        """Lets a job begin that waits in the folder of one of its keys, `at`, and has come back under another, or the same."""
        if at != key:
            self._mark_aside(at, f"{self.place(key)}\n")
        (self.place(key) / ASIDE).unlink(missing_ok=True)

    def keep_place(self, key: str, place: KeptPlace) -> None:
        """Keeps the place of a job; `key` is that of its first submission. It is on the disk when this returns."""
        self._notes.runs_as(self.place(key).name, self.account(place.key))
        self._notes.keep_place(self.place(key).name, place)

    def forget_place(self, key: str) -> None:
        """Deletes the place of a job."""
        self._notes.forget_place(self.place(key).name)

    def places(self) -> dict[str, KeptPlace]:
        """Returns the places of all jobs that are elsewhere, by the keys of their first submissions.

        A note that is damaged, or is not of the job whose name it has, is left out.
        """
        found = {}
        for name, place in self._notes.places().items():
            key = name.replace("+", "/")
            if _is_place(key, place):
                found[key] = place
            else:
                _log.warning("lrms.place_unreadable", job=key, problem="it is not what was noted")
        return found

    def _keep(self, key: str, marks: Marks) -> None:
        self._notes.keep(self.place(key).name, marks)

    def drop(self, key: str) -> None:
        """Deletes the folder of a job that was not taken."""
        # Marks first: a job with marks but no folder would count as begun.
        self._notes.forget(self.place(key).name)
        shutil.rmtree(self.place(key), ignore_errors=True)

    # --- what jobs leave -------------------------------------------------------------------------

    def left(self, key: str) -> JobFolder | None:
        """Returns the folder of a job with its results."""
        place = self.place(key)
        try:
            descriptor = opened(place, "outputs.json")
        except FileProblemError:
            self._notes.check_there()
            return None
        with os.fdopen(descriptor, "rb") as file:
            text = file.read(OUTPUTS_BYTES_MAX)
        try:
            said = json.loads(text)
            said = said if isinstance(said, dict) else {"outputs": said, "checkpoint": ()}
            wanted, state = check_wanted(said["outputs"]), check_wanted(said["checkpoint"])
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            wanted = state = WantedFiles()  # the job has written it
        return JobFolder(place, wanted, self._notes.given(place.name), state)

    def others(self, key: str, listed: Collection[str]) -> Remains:
        """Returns the files of a job that are not listed."""
        folder = self.left(key)
        return Remains() if folder is None else self._remains(folder.path, listed)

    def changed(self, key: str) -> float:
        """Returns when a job's folder last changed."""
        return _changed(self.place(key))

    def clear(self, key: str, copied: Collection[str], *, rest: bool = False) -> Remains:
        """Deletes copied results of a job, or all."""
        place = self.place(key)
        try:
            entries = list(place.iterdir())
        except FileNotFoundError:
            self._notes.check_there()
            return Remains()
        if self.runs(key):
            with _changing(key):
                marks = self.marks(key) or Marks(run=True)
                self._keep(key, replace(marks, begun=True))
        _open_all(place)
        for name in copied:
            remove_below(place, name)
        remains = Remains() if rest else self._remains(place, ())
        if remains.files:
            return remains
        for entry in entries:
            if entry.is_dir() and not entry.is_symlink():
                _remove(entry)
            else:
                entry.unlink(missing_ok=True)
        return remains

    def _remains(self, place: Path, names: Collection[str]) -> Remains:
        given = self._notes.given(place.name)
        unreadable: list[OSError] = []
        files = size = 0
        for folder, _, names_there in os.walk(place, onerror=unreadable.append):
            for name in names_there:
                path = Path(folder, name)
                with suppress(FileNotFoundError):
                    known, status = str(path.relative_to(place)), path.lstat()
                    if not stat.S_ISREG(status.st_mode):
                        continue  # a link has no content of its own
                    if known in _SITES_OWN or known in names or given.get(known) == word_of(status):
                        continue
                    files, size = files + 1, size + status.st_size
        # What is unreadable may be anything.
        return Remains(files + len(unreadable), size)

    def held(self, prefix: str) -> int:
        """Returns how many bytes the folders of some jobs have."""
        begin = prefix.replace("/", "+")
        places = (each for each in self._folder.iterdir() if each.name.startswith(begin))
        total = 0
        for place in places:
            for _, _, names, folder in os.fwalk(place):
                for name in names:
                    with suppress(OSError):
                        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                        total += min(status.st_size, status.st_blocks * BLOCK_BYTES)
        return total

    def remove(self, key: str) -> None:
        """Deletes a job's folder."""
        _remove(self.place(key))
        self._notes.forget(self.place(key).name)

    def stale(self, before: float) -> list[str]:
        """Returns the keys of unchanged folders."""
        found = []
        for place in self._folder.iterdir():
            key = place.name.replace("+", "/")
            if KEY.fullmatch(key) is None or not place.is_dir():
                continue
            with suppress(OSError):  # one that cannot be read, or has changed now, keeps no other
                if _changed(place) < before:
                    found.append(key)
        gone = (name for name in self._notes.names(before) if not (self._folder / name).exists())
        return sorted([*found, *(name.replace("+", "/") for name in gone)])


def _is_place(key: str, place: KeptPlace) -> bool:
    keys = [key, place.key, *([] if place.back == "" else [place.back])]
    if not all(isinstance(each, str) for each in (*keys, place.number)):
        return False
    return all(KEY.fullmatch(each) and place_key(each) == key for each in keys)


def _status(place: Path, name: str) -> os.stat_result:
    descriptor = opened(place, name)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _changed(place: Path) -> float:
    entries = (entry.lstat().st_mtime for entry in place.iterdir())
    return max(place.lstat().st_mtime, *entries, 0.0)


def _remove(place: Path) -> None:
    # A job may have removed permissions from its own folders. What another account keeps private stays; it may also
    # replace folders by links meanwhile, so that each folder is opened by itself without following links.
    if not place.is_dir() or place.is_symlink():
        with suppress(OSError):
            place.unlink()
        return
    _open_all(place)
    shutil.rmtree(place, ignore_errors=True)


def _open_all(place: Path) -> None:
    with suppress(OSError):
        _open_up(place, None)
        for _, names, _, descriptor in os.fwalk(place):
            for name in names:
                with suppress(OSError):
                    _open_up(name, descriptor)


def _open_up(name: str | Path, within: int | None) -> None:
    # Grants the owner access to a folder whatever its mode; fails for a link.
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    found = os.open(name, flags, dir_fd=within)
    try:
        # A lent folder is known by its sticky bit, also once nobody else has access.
        lent = os.fstat(found).st_mode & stat.S_ISVTX
        Path(f"/proc/self/fd/{found}").chmod(0o700 | lent)
    finally:
        os.close(found)


def _lay(place: Path, wanted: JobInput) -> None:
    # A copy, checked again: the job may change it without affecting others.
    name, digest, size = wanted.file.name, hashlib.sha256(), 0
    if not wanted.content:
        raise LrmsRefusedError(f"{name}, which the job is given, is not here")
    try:
        with (
            Path(wanted.content).open("rb") as source,
            os.fdopen(created(place, name, mode=0o600 | wanted.file.mode & 0o700), "wb") as file,
        ):
            while some := source.read(CHUNK_BYTES):
                digest.update(some)
                size += len(some)
                file.write(some)
    except FileNotFoundError as error:
        raise LrmsRefusedError(f"{name}, which the job is given, is not here any more") from error
    except FileProblemError as error:
        raise LrmsRefusedError(f"{name} cannot be laid into the job's folder: {error}") from error
    if size != wanted.file.size or digest.digest() != wanted.file.sha256:
        raise LrmsRefusedError(f"{name}, which the job is given, is not here as it was sent")


def _write(path: Path, text: str | bytes, mode: int) -> None:
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(path, flags, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
