"""The programs beside Slurm's own, over a real cluster: formats, statuses, and the calls of engines."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from slurm_lab import Lab, lab_in, moment
from tests.clusters.slurm import need_slurm

pytestmark = pytest.mark.services

ENGINES: Final = tomllib.loads((Path(__file__).parent / "engines.toml").read_text("utf-8"))
LETTERS: Final = "aABCDeEfFgGijKlLmMNPqrRStTuUVW"
NAMES: Final = (
    *(
        "Account",
        "ArrayJobID",
        "ArrayTaskID",
        "BatchHost",
        "Cluster",
        "Dependency",
        "EligibleTime",
        "EndTime",
    ),
    *("exit_code", "Feature", "GroupName", "GroupID", "JobArrayID", "JobID", "Licenses"),
    *("MinMemory", "Name", "NodeList", "NumCPUs", "NumNodes", "NumTasks", "Partition", "QOS"),
    *("Reason", "ReasonList", "StartTime", "State", "StateCompact", "SubmitTime", "TimeLeft"),
    *("TimeLimit", "TimeUsed", "tres-alloc", "UserID", "UserName"),
)


@dataclass(frozen=True)
class Jobs:
    """Jobs of a cluster, by what becomes of each: their numbers at the site."""

    lab: Lab
    numbers: dict[str, str]

    def ended_for_time(self) -> None:
        """Returns when the one that runs over its limit has been ended."""
        self.lab.until("TIMEOUT", self.numbers["over"])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    need_slurm()
    with lab_in(tmp_path_factory.mktemp("lab")) as made:
        yield made


@pytest.fixture(scope="module")
def jobs(lab: Lab) -> Jobs:
    """One that has completed, failed, been cancelled, runs; an array; one that waits for another; and one over its limit.

    Slurm takes a minute and more to end the last, so those who look at its end wait (`ended_for_time`), and are
    the last of the module.
    """
    over = lab.submitted("-t", "1", "-J", "over", "--wrap", "sleep 600")
    numbers = {
        "over": over,
        "good": lab.submitted("-t", "5", "-J", "good", "-p", "main", "--wrap", "exit 0"),
        "bad": lab.submitted("-t", "5", "-J", "bad", "-p", "main", "--wrap", "exit 3"),
        "gone": lab.submitted("-t", "5", "-J", "gone", "-p", "main", "--wrap", "sleep 600"),
        "runs": lab.submitted(
            *("-t", "1-02:03:04", "-J", "runs", "-p", "urgent", "-n", "2", "-N", "1"),
            *("--mem=100M", "--wrap", "sleep 900"),
        ),
    }
    numbers["array"] = lab.submitted("-t", "9", "-J", "array", "-a", "1-4%1", "--wrap", "sleep 900")
    after = f"--dependency=afterok:{numbers['runs']}"
    numbers["after"] = lab.submitted("-t", "9", "-J", "after", after, "--wrap", "exit 0")
    lab.until("RUNNING", numbers["gone"], numbers["runs"], f"{numbers['array']}_1")
    assert lab.ours("scancel", numbers["gone"]).status == 0
    lab.until("CANCELLED", numbers["gone"])
    lab.until("COMPLETED", numbers["good"])
    lab.until("FAILED", numbers["bad"])
    return Jobs(lab, numbers)


# --- what is printed -----------------------------------------------------------------------------


@pytest.mark.parametrize("width", ["", "7", ".13"])
def test_every_column_of_squeue_has_slurms_head_and_width(jobs: Jobs, width: str) -> None:
    """By letter and by name, whatever stands in it."""
    text = "|".join(f"%{width}{letter}" for letter in LETTERS)
    ours = jobs.lab.ours("squeue", "-t", "all", "-o", f"<{text}>")
    assert (
        ours.out.splitlines()[0] == jobs.lab.slurms("squeue", "-o", f"<{text}>").out.splitlines()[0]
    )
    assert len(ours.lines) > 6
    names = ",".join(f"{name}:{width}" if width else name for name in NAMES)
    ours = jobs.lab.ours("squeue", "-t", "all", "-O", names)
    assert ours.out.splitlines()[0] == jobs.lab.slurms("squeue", "-O", names).out.splitlines()[0]
    if width == "7":
        assert {len(line) for line in ours.out.splitlines()} == {len(ours.out.splitlines()[0])}


def slurms_number(lab: Lab, number: str) -> str:
    """Returns the number that Slurm has given to a job of the site, whose name at Slurm ends with the site's."""
    for line in lab.slurms("squeue", "-h", "-t", "all", "-o", "%A %j").lines:
        if line.endswith(f"/{number}"):
            return line.split()[0]
    raise AssertionError(number)


def test_jobs_are_shown_as_slurm_shows_the_same(jobs: Jobs) -> None:
    """State, limit, size, reason, user, partition, memory and exit code, and times within some polls."""
    lab = jobs.lab
    text = "%t %T %l %C %D %u %U %r %P %g %G %m %a %q %f %W %K"
    names = "State,StateCompact,NumCPUs,NumTasks,NumNodes,UserName,TimeLimit,Partition,Reason"
    for what in ("bad", "good", "gone", "runs"):
        own, number = jobs.numbers[what], slurms_number(lab, jobs.numbers[what])
        # Slurm names the signal by which it has ended a job that was cancelled; sites do not.
        codes = ",exit_code" if what != "gone" else ""
        for form in (("-o", text), ("-O", names + codes)):
            words = ("squeue", "-h", "-t", "all", *form, "-j")
            assert lab.ours(*words, own).out == lab.slurms(*words, number).out
        words = ("squeue", "-h", "-t", "all", "-o", "%V %S %e", "-j")
        ours, theirs = lab.ours(*words, own), lab.slurms(*words, number)
        for one, other in zip(ours.out.split(), theirs.out.split(), strict=True):
            assert abs(moment(one) - moment(other)) <= 10


def test_the_lists_are_slurms(jobs: Jobs) -> None:
    """Heads, widths and order; elements that wait for the same in one line, unless --array is said."""
    numbers = jobs.numbers
    for more in ((), ("-l",)):
        ours, theirs = jobs.lab.ours("squeue", *more), jobs.lab.slurms("squeue", *more)
        assert ours.out.splitlines()[len(more)] == theirs.out.splitlines()[len(more)]
    lines = [line.split() for line in jobs.lab.ours("squeue", "-h").lines]
    assert [(line[0], line[4], line[7]) for line in lines if line[0] != numbers["over"]] == [
        (f"{numbers['array']}_[2-4]", "PD", "(JobArrayTaskLimit)"),
        (numbers["after"], "PD", "(Dependency)"),
        (f"{numbers['array']}_1", "R", "home"),
        (numbers["runs"], "R", "home"),
    ]
    assert len(jobs.lab.ours("squeue", "-h", "-r", "-j", numbers["array"]).lines) == 4
    assert jobs.lab.ours("squeue", "-h", "-j", f"{numbers['array']}_3", "-o", "%i %K %F").lines == [
        f"{numbers['array']}_[3] 3 {numbers['array']}"
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("squeue", "--nothing"),
        ("squeue", "-t", "foo"),
        ("squeue", "-j", "x"),
        ("squeue", "--format"),
        ("squeue", "-h", "-j", "99999"),
        ("squeue", "-h", "-j", "99998,99999"),
        ("squeue", "-h", "-u", "no-such-user"),
        ("scancel",),
        ("scancel", "x"),
        ("scancel", "99999"),
        ("scancel", "-Q", "99999"),
        ("scancel", "--nothing"),
        ("scontrol", "show", "job", "99999"),
        ("scontrol", "show", "hostnames"),
        ("scontrol", "show", "nothing"),
        ("sbatch", "no-such-file"),
        ("sbatch", "--wrap=true", "--partition=none"),
    ],
)
def test_errors_have_slurms_statuses(jobs: Jobs, words: tuple[str, ...]) -> None:
    """And say something where Slurm does; an unknown job among several, or to cancel, is none."""
    ours, theirs = jobs.lab.ours(*words), jobs.lab.slurms(*words)
    assert ours.status == theirs.status, ours
    assert bool(ours.error) == bool(theirs.error), ours
    assert ours.out == theirs.out


@pytest.mark.parametrize(
    "words", [("-o", "%!"), ("-o", "%Z"), ("-O", "foo"), ("-S", "!"), ("-O", "a b")]
)
def test_columns_that_no_site_knows_are_refused(lab: Lab, words: tuple[str, ...]) -> None:
    """Slurm leaves out what it does not know, so that engines would read another column."""
    said = lab.ours("squeue", *words)
    assert (said.status, said.out) == (1, "")
    assert said.error.startswith("squeue: error: Invalid ")


@pytest.mark.parametrize(
    "words",
    [
        ("scontrol", "show", "hostnames", "n[1-3]"),
        ("scontrol", "show", "hostnames", "x[1-2],y[01-03,7],z"),
        ("scontrol", "show", "hostnames", "a1,b2"),
        ("scontrol", "show", "hostname", "a1"),
        ("scontrol", "show", "hostlist", "n1,n2,n7"),
        ("scontrol", "show", "partition", "urgent"),
        ("scontrol", "-o", "show", "node", "n2"),
        ("scontrol", "ping"),
        ("sinfo", "-h", "-a", "-o", "%P %G %l %p %c %m"),
        ("sinfo", "-V"),
        ("squeue", "--version"),
        ("sbatch", "--usage"),
    ],
)
def test_what_is_not_about_jobs_is_slurms(lab: Lab, words: tuple[str, ...]) -> None:
    """Hosts, partitions, nodes and versions are asked of its own programs; hosts are listed without them as well."""
    assert lab.ours(*words) == lab.slurms(*words)
    if words[2:3] == ("hostnames",):
        assert lab.ours(*words, PATH=str(lab.programs)) == lab.slurms(*words)


def test_the_configuration_is_slurms(lab: Lab) -> None:
    """All but the moment at which it is shown."""
    ours, theirs = (show("scontrol", "show", "config") for show in (lab.ours, lab.slurms))
    assert "MinJobAge               = 300 sec" in ours.lines
    assert len(ours.lines) == len(theirs.lines)


# --- jobs ----------------------------------------------------------------------------------------


def test_a_job_knows_both_of_its_numbers(lab: Lab) -> None:
    """Slurm's as Slurm sets it, and the site's; by Slurm's a job asks for itself alone."""
    text = 'echo "$HANSE_JOB_ID $SLURM_JOB_ID"; squeue -h -j $SLURM_JOB_ID -o %i; scancel $SLURM_JOB_ID; sleep 600'
    # So many that the numbers differ.
    lab.submitted("-t", "5", "-a", "1-3", "--wrap", "exit 0")
    number = lab.submitted("-t", "5", "-o", "ids.txt", "--wrap", text)
    lab.until("CANCELLED", number)
    own, asked = (lab.folder / "work" / "ids.txt").read_text().splitlines()[:2]
    assert own.split()[0] == f"home-{number}"
    assert own.split()[1] != number
    assert asked == number


def test_a_job_finds_the_told_number_where_that_is_wanted(lab: Lab) -> None:
    """In its script, and in tasks that srun starts; others find what Slurm has set."""
    text = (
        "#!/bin/bash\n#SBATCH -t 5 -n 2 -o told-%x-%j.txt\n"
        f'export PATH={lab.programs}:"$PATH"\n'
        "echo $SLURM_JOB_ID $SLURM_JOBID\nsrun bash -c 'echo $SLURM_JOB_ID $SLURM_JOBID $SLURM_PROCID' | sort\n"
        "echo $HANSE_JOB_ID $HANSE_LRMS_JOB_ID\n"
    )
    (lab.folder / "work" / "told.sh").write_text(text)
    lab.submitted("-t", "5", "-a", "1-3", "--wrap", "exit 0")  # so that the numbers differ
    said = lab.ours("sbatch", "-J", "told", "--parsable", "told.sh", HANSE_SLURM_TOLD_ID="1")
    number = said.out.strip()
    plain = lab.submitted("-J", "plain", "told.sh")
    lab.until("COMPLETED", number, plain)
    lines = (lab.folder / "work" / f"told-told-{number}.txt").read_text().splitlines()
    assert lines[:3] == [f"{number} {number}", f"{number} {number} 0", f"{number} {number} 1"]
    assert lines[3].split()[0] == f"home-{number}"
    assert lines[3].split()[1] == slurms_number(lab, number)
    its = slurms_number(lab, plain)
    lines = (lab.folder / "work" / f"told-plain-{its}.txt").read_text().splitlines()
    assert lines == [f"{its} {its}", f"{its} {its} 0", f"{its} {its} 1", f"home-{plain}"]


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 1)])
def test_wait_ends_as_the_script(lab: Lab, script: str, status: int) -> None:
    """With the status of Slurm's; the number is printed at once."""
    words = ("sbatch", "--wait", "-t", "5", "-o", "/dev/null", "--wrap", script)
    ours, theirs = lab.ours(*words), lab.slurms(*words)
    assert (ours.status, theirs.status) == (status, status)
    assert re.fullmatch(r"Submitted batch job \d+\n", ours.out)


def test_scripts_come_by_file_and_by_standard_input(lab: Lab) -> None:
    """With the options of their lines and those of the command line, which count more, and with arguments."""
    text = '#!/bin/bash\n#SBATCH -t 7\n#SBATCH -J written\n#SBATCH -o out-%x.txt\necho "$@" $SLURM_JOB_NAME\n'
    (lab.folder / "work" / "job.sh").write_text(text)
    first = lab.submitted("job.sh", "a b", "c")
    second = lab.ours("sbatch", "-J", "given", "-n", "2", stdin=text).out.split()[-1]
    assert lab.ours("sbatch", "-Q", "-J", "quiet", "job.sh").out == ""
    lab.until("COMPLETED", first, second)
    assert (lab.folder / "work" / "out-written.txt").read_text().endswith("a b c written\n")
    assert (lab.folder / "work" / "out-given.txt").read_text() == "given\n"
    shown = lab.ours(
        "squeue", "-h", "-t", "all", "-j", f"{first},{second}", "-o", "%j %C %l", "-S", "i"
    )
    assert shown.lines == ["written 1 7:00", "given 2 7:00"]


def test_nothing_is_submitted_by_a_trial(lab: Lab) -> None:
    """What would become of the job is said on standard error, Slurm's estimate first."""
    before = lab.ours("squeue", "-h", "-t", "all", "-o", "%i").lines
    said = lab.ours("sbatch", "--test-only", "-t", "5", "--wrap", "exit 0")
    assert (said.status, said.out) == (0, "")
    assert re.match(r"sbatch: Job \d+ to start at \S+ using 1 processors on nodes n\d", said.error)
    assert "sbatch: home: " in said.error
    assert lab.ours("squeue", "-h", "-t", "all", "-o", "%i").lines == before


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--begin=now+1hour",), "--begin"),
        (("-w", "n1"), "--nodelist=n1"),
        (("--hold",), "--hold"),
        (("--dependency=after:1",), "after"),
        (("--dependency=afterok:99999",), "99999"),
        (("-M", "other"), ""),
    ],
)
def test_a_job_that_no_site_can_be_given_is_refused_by_name(
    lab: Lab, words: tuple[str, ...], why: str
) -> None:
    """Neither the site nor Slurm has it then."""
    before = lab.slurms("squeue", "-h", "-t", "all", "-o", "%i").lines
    said = lab.ours("sbatch", "-J", "refused", *words, "-t", "5", "--wrap", "exit 0")
    assert (said.status, said.out) == (1, "")
    assert why in said.error
    assert "sbatch: error: " in said.error
    assert lab.ours("squeue", "-h", "-t", "all", "-n", "refused").out == ""
    assert lab.slurms("squeue", "-h", "-t", "all", "-n", "refused").out == ""
    assert set(before) <= set(lab.slurms("squeue", "-h", "-t", "all", "-o", "%i").lines)


@pytest.mark.parametrize("verb", ["hold", "requeue", "update job", "suspend"])
def test_what_no_site_does_to_jobs_is_refused(jobs: Jobs, verb: str) -> None:
    """Slurm's own would do it to another job of that number."""
    said = jobs.lab.ours("scontrol", *verb.split(), jobs.numbers["runs"])
    assert said.status == 1
    assert f"{verb.split(maxsplit=1)[0]} is not known for the jobs of a site" in said.error
    said = jobs.lab.ours("scancel", "--signal=USR1", jobs.numbers["runs"])
    assert said.status == 1
    assert "--signal USR1 is not known" in said.error


def test_jobs_are_cancelled_by_name_and_element(lab: Lab) -> None:
    """The others go on."""
    array = lab.submitted("-t", "5", "-J", "some", "-a", "1-3", "--wrap", "sleep 600")
    other = lab.submitted("-t", "5", "-J", "other", "--wrap", "sleep 600")
    lab.until("RUNNING", array, other)
    assert lab.ours("scancel", f"{array}_[1-2]").status == 0
    lab.until("CANCELLED", f"{array}_[1-2]")
    lab.until("RUNNING", f"{array}_3", other)
    assert lab.ours("scancel", "-v", "--name=some", "--me").error.splitlines() == [
        f"scancel: Terminating job home-{array}_3"
    ]
    lab.until("CANCELLED", array)
    lab.until("RUNNING", other)
    assert lab.ours("scancel", "-t", "RUNNING", "-n", "other").status == 0
    lab.until("CANCELLED", other)


def test_states_and_exit_codes(jobs: Jobs) -> None:
    """Of each job, by sacct and by scontrol, as Slurm's words have them."""
    numbers = jobs.numbers
    jobs.ended_for_time()
    said = jobs.lab.ours("sacct", "-X", "-n", "-P", "-o", "JobID,JobName,State,ExitCode")
    expected = {
        f"{numbers['good']}|good|COMPLETED|0:0",
        f"{numbers['bad']}|bad|FAILED|3:0",
        f"{numbers['runs']}|runs|RUNNING|0:0",
        f"{numbers['after']}|after|PENDING|0:0",
        f"{numbers['array']}_1|array|RUNNING|0:0",
        f"{numbers['array']}_[2-4]|array|PENDING|0:0",
    }
    assert expected <= set(said.lines)
    states = {line.split("|")[1]: line.split("|")[2] for line in said.lines}
    assert (states["gone"], states["over"]) == ("CANCELLED", "TIMEOUT")
    theirs = slurms_number(jobs.lab, numbers["bad"])
    keys = ("JobState", "Reason", "ExitCode", "TimeLimit", "NumCPUs", "Partition", "UserId")
    found = []
    for show, number in ((jobs.lab.ours, numbers["bad"]), (jobs.lab.slurms, theirs)):
        for more in ((), ("-o",)):
            shown = show("scontrol", *more, "show", "job", number)
            assert shown.status == 0
            assert ("\n  " in shown.out) == (more == ())
            pairs = dict(word.split("=", 1) for word in shown.out.split() if "=" in word)
            found.append({key: pairs[key] for key in keys})
    assert found == [found[0]] * 4


# --- engines -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call", ENGINES["call"], ids=lambda call: f"{call['engine']}: {call['does']}"
)
def test_calls_of_engines_are_answered(jobs: Jobs, call: dict[str, Any]) -> None:
    """With the status, the head and the lines that the engine reads."""
    numbers = {**jobs.numbers, "script": "engine.sh", "folder": str(jobs.lab.folder / "work")}
    if "script" in call:
        (jobs.lab.folder / "work" / "engine.sh").write_text(call["script"].format(**numbers))
    words = [word.format(**numbers) for word in call["words"]]
    asked_for = numbers["over"] in " ".join(words).replace(",", " ").split()
    if asked_for or any("TIMEOUT" in line for line in call["lines"]):
        jobs.ended_for_time()
    said = jobs.lab.ours(*words)
    assert said.status == call.get("status", 0), said.error
    assert said.error == "" or "error" in call
    expected = [line.format(**numbers) for line in call["lines"]]
    for line in expected:
        assert any(re.fullmatch(line, each) for each in said.lines), (line, said.out)
    if not call.get("more", False):
        assert len(said.lines) == len(expected), said.out
