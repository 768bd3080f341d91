"""Users' scripts give by `grms submit` what they give by `sbatch`: output, files and exit status, over a real Slurm.

What a site cannot run so stays with sbatch, and what neither takes is refused in the words of sbatch.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from lrms_sim.util.files import to_toml
from tests.clusters.slurm import PATH, SlurmCluster, need_slurm, wait_for
from tests.forks import Nursery, forked
from tests.grms.site.daemons import document

pytestmark = pytest.mark.services

GRMS: Final = (sys.executable, "-c", "from grms.command import main; main()")
TIMEOUT_S: Final = 300.0
FILES_MAX: Final = 4096
"""Whoever submits may open so many: another limit than the daemons of Slurm and of the site have."""
BASH: Final = "#!/bin/bash\n#SBATCH -t 5\n"
SHOWS: Final = (
    "echo sub=$SLURM_SUBMIT_DIR name=$SLURM_JOB_NAME nt=$SLURM_NTASKS part=$SLURM_JOB_PARTITION "
    "cpus=$SLURM_CPUS_ON_NODE nodes=$SLURM_NNODES; pwd\n"
)


@dataclass(frozen=True)
class Case:
    """A script, and how it is handed in.

    Attributes:
        script: what it is.
        options: of both commands.
        arguments: of the script.
        own: options of `grms submit` alone.
        files: that lie beside it.
        said: what `grms submit` says of it; where it is for sbatch alone, why.
        stays: it is handed to sbatch.
        status: that both end with.
        or_status: that `sbatch --wait` may end with as well: which of two it is, is a race within Slurm.
        stdin: the script comes by standard input.
    """

    script: str | bytes
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    said: str = ""
    stays: bool = False
    status: int = 0
    or_status: int | None = None
    stdin: bool = False


def stays(script: str | bytes, why: str, *options: str, status: int = 0) -> Case:
    """Returns a case that is for sbatch alone."""
    return Case(script, options, said=why, stays=True, status=status)


HI: Final = BASH + "echo hi\n"
ARRAY: Final = "echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN-$SLURM_ARRAY_TASK_MAX:$SLURM_ARRAY_TASK_STEP\n"
SIZES: Final = BASH + "srun --overlap hostname | wc -l; echo $SLURM_NNODES $SLURM_TASKS_PER_NODE\n"
CASES: Final = {
    # --- what the site runs: in the folder in which it was handed in, with its user's variables
    "who": Case(BASH + "id -un; id -gn; umask; echo $HOME $USER; f=~/made-$$; touch $f && rm $f\n"),
    "environment": Case(BASH + "env | grep -av '^_=' | sort\n"),
    "function": Case(BASH + "given; echo $MARKS\n"),
    "variables": Case(BASH + SHOWS, ("-n", "2")),
    "variables of nothing": Case(BASH + SHOWS),
    "named": Case(BASH + SHOWS, ("-J", "a name: with\tmarks/é")),
    "folder": Case(BASH + "wc -l data.txt; cp data.txt made.txt\n", files={"data.txt": "a\nb\n"}),
    "inputs": Case(
        BASH + "cat data.txt >made.txt; echo done\n",
        own=("--input", "data.txt", "--result", "made.txt"),
        files={"data.txt": "a\n"},
    ),
    "no result": Case(HI, own=("--result", "never.txt")),
    "big result": Case(BASH + "head -c 50000000 /dev/zero >big\n", own=("--result", "big")),
    "output": Case(
        BASH + "#SBATCH -o %x-%j.out -e out/%%x%x.err\necho out; echo err >&2\n",
        files={"out/here": ""},
        said="at a partner --error, --output: for grms fetch",
    ),
    "error alone": Case(BASH + "echo out; echo err >&2\n", ("-e", "errors")),
    "no output": Case(BASH + "echo out; echo err >&2\n", ("-o", "/dev/null")),
    "appends": Case(
        BASH + "echo more\n", ("--output=log", "--open-mode=append"), files={"log": "before\n"}
    ),
    "export none": Case(BASH + "env | grep -av '^_=' | sort; echo A=$MARKS\n", ("--export=NONE",)),
    "export some": Case(BASH + "echo A=$A M=$MARKS N=$NOT H=$HOME\n", ("--export=A=1,MARKS,NOT",)),
    "export all": Case(
        BASH + "echo A=$A M=$MARKS; env | grep EXPORT\n",
        ("--export=ALL,A=1",),
        said="at a partner it has no variables but those named: --export=ALL,A=1",
    ),
    "export just all": Case(BASH + "env | grep -av '^_=' | sort\n", ("--export=ALL",)),
    "a day": Case("#!/bin/sh\n#SBATCH --time=23:59:00\nscontrol show job $SLURM_JOB_ID | grep -o 'TimeLimit=[^ ]*'\n"),
    "seconds": Case("#!/bin/sh\n#SBATCH -t 0:30\nscontrol show job $SLURM_JOB_ID | grep -o 'TimeLimit=[^ ]*'\n"),
    "no time": Case("#!/bin/sh\nscontrol show job $SLURM_JOB_ID | grep -o 'TimeLimit=[^ ]*'\n"),
    "tasks": Case(BASH + "#SBATCH -n 4\nsrun -l echo r | sort; echo $SLURM_NPROCS\n"),
    "one of each": Case(BASH + "#SBATCH -N 1 -n 1 -c 1 --ntasks-per-node=1\n" + SHOWS + "echo $SLURM_CPUS_PER_TASK\n"),
    "without": Case(
        BASH + "echo $SLURM_MEM_PER_NODE $SLURM_CPUS_PER_TASK $SLURM_NNODES\n",
        ("--mem=100M", "-N", "2", "-n", "2", "-c", "2"),
        own=("--without", "mem,nodes,cpus-per-task"),
        said="at a partner it goes without --cpus-per-task=2, --mem=100, --nodes=2",
    ),
    "utf-8": Case(BASH + 'echo "größe 日本 €"\n'),
    "any bytes": Case(BASH + "printf '\\033[31mred\\0nul \\xff\\n'\n"),
    "python": Case("#!/usr/bin/env python3\n#SBATCH -t 5\nimport os, sys\nprint(os.getcwd(), sys.argv[1:])\n", arguments=("a", "b")),
    "login shell": Case("#!/bin/bash -l\n#SBATCH -t 5\nshopt login_shell; echo $PATH\n"),
    "200 KB": Case(BASH + ("# " + "x" * 98 + "\n") * 2000 + "echo big\n"),
    "here": Case(BASH + "cat <<E\nh $((1+1))\nE\n"),
    "arguments": Case(BASH + 'printf "<%s>" "$@"\n', arguments=("a b", "*", "", "'", '"', "$HOME", "-n", "a\nb")),
    "exit 3": Case(BASH + "echo x; exit 3\n", status=3),
    "exit 200": Case(BASH + "exit 200\n", status=200),
    "signal": Case(BASH + "echo x; kill -SEGV $$\n", status=1),
    "killed": Case(BASH + "kill -KILL $$\n", status=1),
    "cancelled": Case(BASH + "echo x; scancel $SLURM_JOB_ID; sleep 300\n", status=1, or_status=143),
    "child goes on": Case(BASH + "sleep 300 &\necho parent done\n"),
    "reads": Case(BASH + 'read x; echo "$? $x"\n'),
    "limits": Case(BASH + "ulimit -n; ulimit -c; ulimit -s; echo ${SCRATCH:-unset} ${TMPDIR:-unset}; ulimit -v\n"),
    "in its own words": Case(BASH + "scontrol show job $SLURM_JOB_ID | grep -oE '(UserId|WorkDir|StdOut|StdErr)=.*'\n"),
    "quiet": Case(HI, ("-Q",)),
    "quiet beside others": Case(HI, ("-Qn2", "--quiet")),
    "waits": Case("#!/bin/sh\n#SBATCH -t 5 --wait\nexit 4\n", status=4),
    "wrapped": Case("", ("--wrap=echo hi",)),
    "by standard input": Case(BASH + "pwd; echo $SLURM_NTASKS\n", ("-n", "2"), stdin=True),
    # --- what is the site's to hold, or to make many jobs of
    "array": Case(BASH + ARRAY, ("--array=1-3%2",)),
    "array with steps": Case("#!/bin/sh\n#SBATCH -t 5 --array=0-6:3\n#SBATCH -o out-%4a.txt -e %x_%a%%a.err\n" + ARRAY),
    "array that fails": Case(BASH + "exit $SLURM_ARRAY_TASK_ID\n", ("-a", "0,4,2"), status=4),
    "one of a name": Case(HI, ("--dependency=singleton",)),
    # --- what asks for more than processors
    "memory": Case(BASH + "echo $SLURM_MEM_PER_NODE\n", ("--mem=100M",)),
    "memory each": Case(BASH + "echo $SLURM_MEM_PER_CPU\n", ("--mem-per-cpu=50M", "-n2")),
    "exclusive": Case(BASH + SHOWS, ("--exclusive",)),
    "nodes": Case(SIZES, ("-N2", "--ntasks-per-node=2")),
    "on one node": Case(SIZES, ("-N", "1", "-n", "3")),
    "one on each": Case(SIZES, ("-n3", "--ntasks-per-node=1")),
    "per task": Case(BASH + "echo $SLURM_CPUS_PER_TASK $SLURM_NNODES\n", ("-n1", "-c", "4")),
    "one per task": Case(BASH + "echo $SLURM_CPUS_PER_TASK\n", ("-n2", "-c1")),
    "warned": Case(BASH + 'trap "echo got; exit 0" USR1\nsleep 290 & wait\n', ("--signal=B:USR1@290",)),
    "partition": Case(BASH + SHOWS, ("-p", "main")),
    # --- what concerns the home alone
    "mail": Case(HI, ("--mail-user=a@example.org", "--mail-type=END"), said="at a partner it goes without --mail-type=END, --mail-user=a@example.org"),
    "comment": Case(BASH + "scontrol show job $SLURM_JOB_ID | grep -o 'Comment=.*'\n", ("--comment=x",), said="goes without --comment=x"),
    "nice": Case(BASH + "scontrol show job $SLURM_JOB_ID | grep -o 'Nice=[^ ]*'\n", ("--nice=10",), said="goes without --nice=10"),
    "again": Case(HI, ("--requeue",)),
    "not again": Case(HI, ("--no-requeue",)),
    "own limits": Case(BASH + "ulimit -Sn | tee limit\n", ("--propagate=NONE",), said="goes without --propagate=NONE"),
    "some limits": Case(BASH + "ulimit -Sn | tee limit\n", ("--propagate=NOFILE",), said="goes without --propagate=NOFILE"),
    "reads nothing": Case(BASH + '#SBATCH --input=none\nread x; echo "$? $x"\n'),
    "no other's lines": Case(BASH + "#PBS -N other\necho $SLURM_JOB_NAME\n", ("--ignore-pbs",)),
    "no resource": Case(HI, ("--gres=none",)),
    "elsewhere": Case(BASH + "pwd\n", ("-D", "/", "-o", "/dev/null")),
    # --- what is not submitted
    "tried": Case(HI, ("--test-only",), said="sbatch: Job"),
    "tried by itself": Case(BASH + "#SBATCH --test-only\necho hi\n", said="sbatch: Job"),
    # --- what is for sbatch alone, and why
    "later": stays(HI, "--begin=", "--begin=now+1"),
    "after": stays(HI, "--dependency=", "--dependency=afterany:1"),
    "1 MB": stays(BASH + ("# " + "x" * 98 + "\n") * 10500 + "echo big\n", "its script: it has"),
    "not UTF-8": stays(BASH.encode() + b"echo \xff\n", "its script: it, or an argument, is not UTF-8"),
    "quiet inside": Case(BASH + "#SBATCH -Q\necho hi\n"),
    # --- what neither takes
    "CRLF": stays(b"#!/bin/bash\r\n#SBATCH -t 5\r\necho hi\r\n", "DOS line breaks", status=1),
    "no first line": stays("#SBATCH -t 5\necho hi\n", "line must start with #!", status=1),
    "empty": stays("\n", "contains only whitespace", status=1),
    "no such device": stays(HI, "Invalid generic resource (gres) specification", "--gres=gpu:1", status=1),
    "no such feature": stays(HI, "Invalid feature specification", "-C", "skylake", status=1),
    "no such partition": stays(HI, "invalid partition specified", "-p", "none", status=1),
}  # fmt: skip

SBATCH_ANSWER = re.compile(r"^(sbatch: )?Submitted batch job \d+\n", re.MULTILINE)


@dataclass(frozen=True)
class Came:
    """What came of a case.

    Attributes:
        status: of the command.
        error: what it has said on standard error.
        files: in the folder, by name; numbers of jobs and names of nodes are masked.
    """

    status: int
    error: str
    files: Mapping[str, str]


def masked(text: str, folder: Path) -> str:
    """Returns text without what differs from run to run."""
    text = text.replace(str(folder), "FOLDER")
    text = re.sub(
        r"(?m)^(SLURM_JOB_?ID|SLURM_TASK_PID|HOSTNAME|SLURMD_NODENAME|SLURM_\w*ADDR|SLURM_\w*NODELIST)=.*",
        r"\1=",
        text,
    )
    text = re.sub(r"(?m)^HANSE_JOB_ID=.*\n", "", text)  # the site tells it alone
    text = re.sub(r"(?m)^slurmstepd\S*: .*\n|^Terminated\n", "", text)  # whoever is faster
    return re.sub(r"(slurm|-)[-_]?\d+(_\d+)?\.out", r"\1-N\2.out", text)


def came(words: list[str], case: Case, folder: Path, environment: Mapping[str, str]) -> Came:
    """Hands a case in, waits for its end, and returns what came of it."""
    (folder).mkdir()
    script = case.script if isinstance(case.script, bytes) else case.script.encode()
    for name, text in case.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    if not case.stdin:
        (folder / "job.sh").write_bytes(script)
    ended = subprocess.run(  # noqa: S603  # the commands that are compared
        [
            *words,
            *(
                []
                if case.stdin or "--wrap=echo hi" in case.options
                else ["job.sh", *case.arguments]
            ),
        ],
        cwd=folder,
        env=environment,
        input=script if case.stdin else b"",
        capture_output=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    files = {
        masked(str(path.relative_to(folder)), folder): masked(
            path.read_bytes().decode("latin1"), folder
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "job.sh"
    }
    return Came(ended.returncode, ended.stderr.decode(), files)


@contextmanager
def limited() -> Iterator[None]:
    """Lets what is started meanwhile open `FILES_MAX` files, unless it raises that itself."""
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_MAX, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))


@pytest.fixture(scope="module")
def outcomes(
    tmp_path_factory: pytest.TempPathFactory, nursery: Nursery
) -> Iterator[dict[tuple[str, str], Came]]:
    """What came of all cases by both commands, which run side by side over one cluster."""
    need_slurm()
    folder = tmp_path_factory.mktemp("like")
    cluster = SlurmCluster(folder / "cluster", nodes=3, cpus=8)
    cluster.up()
    table = {"kind": "slurm", "poll_s": 0.4, "settle_s": 0.0, "spool": str(folder / "jobs")}
    table |= {"completion_log": cluster.completion_log, "commands": 4}
    table["configuration"] = cluster.environment["SLURM_CONF"]
    site = folder / "home.toml"
    site.write_text(to_toml(document(folder, processors=24, lrms=table)))
    environment = {
        **cluster.environment,
        "PATH": f"{Path(sys.executable).parent}:{PATH}",
        # What decides how an interpreter begins is as here, so that a fork will do.
        **{name: value for name, value in os.environ.items() if name.startswith("PYTHON")},
        "HOME": str(folder / "home"),
        "USER": "somebody",
        "LANG": "C.UTF-8",
        "HANSE_SOCKET": str(folder / "home.sock"),
        "MARKS": "a 'b' \"c\" $d `e`\nf\té",
        "BASH_FUNC_given%%": "() {  echo given by a function\n}",
        "TMPDIR": "/tmp",  # noqa: S108  # as it is
        "here": "mine",
        "code": "mine",
        "PWD": "/",
    }
    (folder / "home").mkdir()
    with (folder / "daemon.log").open("wb") as log:
        daemon = subprocess.Popen(  # noqa: S603  # the site
            [*GRMS, "serve", str(site)],
            env=os.environ | cluster.environment,
            stdout=log,
            stderr=log,
        )
    try:
        wait_for((folder / "home.sock").exists() for _ in iter(int, 1))
        found: dict[tuple[str, str], Came] = {}

        def hand_in(work: tuple[str, str]) -> None:
            name, by = work
            case = CASES[name]
            words = [shutil.which("sbatch", path=PATH) or "", "--wait", *case.options]
            if by == "grms":
                words = [*GRMS, "submit", "--timeout", "200", "--wait", *case.own, *case.options]
            place = folder / by / re.sub(r"\W", "-", name)
            found[work] = came(words, case, place, environment)

        for by in ("sbatch", "grms"):
            (folder / by).mkdir()
        # One by one, a hundred and fifty starts of Python would take longer than all else.
        with limited(), forked(nursery), ThreadPoolExecutor(12) as threads:
            list(threads.map(hand_in, [(name, by) for name in CASES for by in ("sbatch", "grms")]))
        yield found
    finally:
        daemon.terminate()
        daemon.wait(TIMEOUT_S)
        cluster.down()


@pytest.mark.parametrize("name", CASES)
def test_a_script_gives_what_it_gives_by_sbatch(
    name: str, outcomes: dict[tuple[str, str], Came]
) -> None:
    """Status, output and files are the same; what a site does not run is said, with its reason."""
    case, plain, ours = CASES[name], outcomes[name, "sbatch"], outcomes[name, "grms"]
    assert ours.files == plain.files, ours.error
    assert plain.status in {case.status, case.or_status}, plain.error
    assert ours.status == case.status, ours.error
    assert case.said in ours.error
    assert ("it stays at home" in ours.error) == case.stays
    if case.stays and case.status:
        assert SBATCH_ANSWER.sub("", plain.error) in ours.error


def test_limits_are_those_of_whom_they_are_asked_of(
    outcomes: dict[tuple[str, str], Came],
) -> None:
    """Of who submits where `--propagate` names them, and else of the node."""
    assert outcomes["some limits", "grms"].files["limit"] == "4096\n"
    assert outcomes["own limits", "grms"].files["limit"] != "4096\n"
