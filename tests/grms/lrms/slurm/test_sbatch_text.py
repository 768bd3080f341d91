"""What sbatch 22.05 has printed for a trial is read as it was meant; options are told from the script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.slurm.sbatch_text import (
    exported,
    is_all,
    kept_at_home,
    not_told,
    options_at_home,
    read_default_limit,
    read_dry_run,
    says_test_only,
    take_dependency,
    with_element,
    words_at_home,
)
from grms.lrms.slurm.sbatch_words import (
    SbatchWords,
    UnknownOptionError,
    has_option,
    split_words,
    without_quiet,
)
from lrms_sim.workload.requests import Memory, Request

RULE = "sbatch: -------------------- --------------------\n"
PLUGINS = "sbatch: select/cons_tres: common_init: select/cons_tres loaded\n"


def printed(options: str, rest: str) -> str:
    """Returns what sbatch prints of options, a line each, and then."""
    lines = "".join(f"sbatch: {line}\n" for line in options.splitlines())
    head = f"sbatch: defined options\n{RULE}{lines}{RULE}sbatch: end of defined options\n"
    return head + PLUGINS + rest


ESTIMATE = (
    "sbatch: Job 1 to start at 2026-11-22T17:01:56 using 8 processors on nodes n1 in partition main"
)
TASKS = """cpus-per-task       : 2
export              : A=b
job-name            : my job: a
ntasks              : 4
test-only           : set
time                : 1-00:02:00
verbose             : 1"""


def test_a_trial_is_read() -> None:
    """Options by name, with what Slurm makes of their values, and what the job would be given."""
    trial = read_dry_run(printed(TASKS, ESTIMATE), 0)
    assert trial.options["job-name"] == "my job: a"
    assert trial.options["time"] == "1-00:02:00"
    assert (trial.processors, trial.partition, trial.problem) == (8, "main", "")
    assert trial.limit_s == 86400 + 120
    assert read_dry_run(printed("ntasks    : 1", ESTIMATE), 0).limit_s is None


@pytest.mark.parametrize(
    ("text", "code", "problem"),
    [
        (
            printed("constraint : gpu", "allocation failure: Invalid feature specification\n"),
            1,
            "allocation failure: Invalid feature specification",
        ),
        (
            "sbatch: error: Unable to open file job.sh\n",
            1,
            "Unable to open file job.sh",
        ),
        (
            "sbatch: error: don't specify both --verbose (-v) and --quiet (-Q)\n",
            255,
            "don't specify both --verbose (-v) and --quiet (-Q)",
        ),
        (printed("ntasks : 1", ""), 0, "sbatch: select/cons_tres: common_init"),
        ("", 1, "sbatch has ended with 1"),
    ],
)
def test_what_slurm_does_not_take_is_said_in_its_words(text: str, code: int, problem: str) -> None:
    """And nothing is believed of it."""
    trial = read_dry_run(text, code)
    assert trial.processors is None
    assert problem.removeprefix("sbatch: ") in trial.problem


def test_what_slurm_hands_on_is_read() -> None:
    """Limits and mask of who submits, as Slurm's settings have it."""
    lines = "sbatch: debug:  propagating RLIMIT_CORE=0\nsbatch: debug:  propagating UMASK=0022\n"
    lines += "sbatch: debug:  propagating SLURM_PRIO_PROCESS=0\n"
    trial = read_dry_run(printed("ntasks : 1", lines + ESTIMATE), 0)
    assert trial.propagated == {"SLURM_RLIMIT_CORE": "0", "SLURM_UMASK": "0022"}


def test_every_line_of_a_refusal_is_told() -> None:
    """Some things take several."""
    text = (
        "sbatch: error: Batch script contains DOS line breaks\nsbatch: error: instead of others.\n"
    )
    assert read_dry_run(text, 1).problem == (
        "Batch script contains DOS line breaks instead of others."
    )


def test_a_name_of_several_lines_forges_no_processors() -> None:
    """They are read behind the options, from the one line that is Slurm's."""
    name = f"job-name : a\n{ESTIMATE.replace('using 8', 'using 1').removeprefix('sbatch: ')}"
    assert read_dry_run(printed(name, ESTIMATE), 0).processors == 8
    assert read_dry_run(printed("ntasks : 1", f"{ESTIMATE}\n{ESTIMATE}"), 0).processors is None


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ("ntasks : 4\ntime : 00:02:00\njob-name : a\nexport : NONE\noutput : /a/b", []),
        ("array : 1-5%2\nconstraint : gpu\nlicenses : foo:2\ndependency : singleton", []),
        ("array : 1-5,x", ["array"]),
        ("dependency : afterok:1\nmem-per-cpu : 100", ["dependency"]),
        ("something-new : 1", ["something-new"]),
        ("cpus-per-task : 2\nnodes : 1\nntasks-per-node : 1\nmem : 0?\nexclusive : user", []),
        ("partition : gpu\naccount : p\nqos : q\nsignal : B:USR1@60\nrequeue : requeue", []),
        ("comment : x y\nmail-type : END\nnice : 10\nwckey : k\nexclude : n1", []),
        ("distribution : cyclic\nhint : nomultithread\nprefer : skylake\nchdir : /a", []),
        ("nodelist : n1\ntmp : 10G\nreservation : r", ["nodelist", "reservation", "tmp"]),
        ("constraint : a|b", ["constraint"]),
        ("gres : gres:disk:1", ["gres"]),
        ("gpus : a100:1,v100:1", ["gpus"]),
        ("nodes : 2\nntasks : 8\nntasks-per-node : 2", ["nodes"]),
        ("ntasks : 1\nwait : set\nignore-pbs : set", []),
        ("input : /dev/null\npropagate : NONE", []),
        ("input : /dev/zero", ["input"]),
        ("time : UNLIMITED", ["time"]),
        ('export : A="1,2"', ["export"]),
    ],
)
def test_what_a_partner_cannot_be_told_keeps_a_job_at_home(options: str, kept: list[str]) -> None:
    """Everything does that is neither known to travel nor of no account there, each with its reason."""
    found = kept_at_home(read_dry_run(printed(options, ESTIMATE), 0))
    assert sorted(found) == kept
    assert all(found.values())


def test_what_a_job_leaves_behind_is_told() -> None:
    """What is of the home alone, and how it would have been laid out."""
    text = "comment : x\ndistribution : cyclic\nmem : 1G\nbegin : now+1"
    trial = read_dry_run(printed(text, ESTIMATE), 0)
    assert not_told(trial) == ["comment", "distribution"]
    assert not_told(trial, frozenset(("mem", "begin"))) == ["comment", "distribution", "mem"]


def test_what_a_job_asks_for_is_read_without_what_it_may_go_without() -> None:
    """Processors are Slurm's count of them, where it asks for nothing else."""
    trial = read_dry_run(printed("ntasks : 4\nmem : 1G\ntime : 00:02:00", ESTIMATE), 0)
    assert trial.request() == Request(4, memory=Memory(1024, "node"), wall_time=120.0)
    assert trial.request(frozenset(("mem",))) == Request(8, wall_time=120.0)


def test_a_job_that_is_too_much_for_this_cluster_is_told_from_a_mistake() -> None:
    """Another cluster may have what it asks for."""
    wide = printed(
        "ntasks : 9999", "allocation failure: Requested node configuration is not available\n"
    )
    assert read_dry_run(wide, 1).too_much
    assert read_dry_run(wide, 1).request() == Request(9999)
    wrong = printed("partition : nope", "sbatch: error: invalid partition specified: nope\n")
    assert not read_dry_run(wrong, 1).too_much


def test_a_job_may_go_without_an_option_unless_it_would_be_another() -> None:
    """One that begins at once is not what was asked for."""
    trial = read_dry_run(printed("begin : now+1\ntmp : 100M\nconstraint : a|b", ESTIMATE), 0)
    assert sorted(kept_at_home(trial, frozenset(("tmp", "begin")))) == ["begin", "constraint"]
    assert list(kept_at_home(trial, frozenset(("tmp", "constraint")))) == ["begin"]


def test_a_job_of_several_parts_stays_at_home() -> None:
    """Slurm prints the options of each."""
    text = printed("ntasks : 2", "") + printed("ntasks : 3", ESTIMATE)
    assert list(kept_at_home(read_dry_run(text, 0))) == ["hetjob"]


OWN = {"--wait": False, "--env": True}


@pytest.mark.parametrize(
    ("line", "mine", "options", "script", "arguments"),
    [
        ("-n 4 job.sh a", "", "-n 4", "job.sh", "a"),
        ("-n4 -Hp debug --env A=b job.sh --env x", "--env A=b", "-n4 -Hp debug", "job.sh", "--env x"),
        ("--time 5 --exclusive --wait --mem=1G j -n 2", "--wait", "--time 5 --exclusive --mem=1G", "j", "-n 2"),
        ("--nice job.sh", "", "--nice", "job.sh", ""),
        ("--later=1 -- job.sh --", "", "--later=1", "job.sh", "--"),
    ],
)  # fmt: skip
def test_words_are_told_apart_as_getopt_does(
    line: str, mine: str, options: str, script: str, arguments: str
) -> None:
    """What is behind the script is the script's."""
    expected = SbatchWords(tuple(options.split()), script, tuple(arguments.split()))
    assert split_words(line.split(), OWN) == (mine.split(), expected)


def test_without_a_script_there_is_nothing_for_slurm() -> None:
    """Whatever the options are; one whose value may come behind is asked for in one word."""
    assert split_words(["-n", "4"], OWN) == ([], SbatchWords(("-n", "4"), "", ()))
    assert split_words(["--env"], OWN) == (["--env"], SbatchWords((), "", ()))
    with pytest.raises(UnknownOptionError, match="--later=VALUE"):
        split_words(["--later", "1", "job.sh"], OWN)


@given(st.lists(st.text(max_size=8), max_size=6), st.lists(st.sampled_from(["-H", "--hold"])))
def test_no_argument_of_a_script_is_an_option(arguments: list[str], options: list[str]) -> None:
    """All of them come through as they are."""
    _, found = split_words([*options, "job.sh", *arguments], OWN)
    assert found == SbatchWords(tuple(options), "job.sh", tuple(arguments))


def test_exported_variables_are_named_or_given() -> None:
    """`ALL` takes nothing along; a name that is not set is left out, as by sbatch."""
    assert exported("ALL,A=b=c,HERE,NOT", {"HERE": "1", "ALL": "2"}) == {"A": "b=c", "HERE": "1"}


@pytest.mark.parametrize(
    ("text", "limit_s"),
    [("1:00:00|infinite\n", 3600.0), ("n/a|2:00\n", 120.0), ("n/a|infinite\n", None)],
)
def test_the_partition_says_how_long_a_job_may_run(text: str, limit_s: float | None) -> None:
    """Its default, else its limit."""
    assert read_default_limit(text) == limit_s


def test_a_limit_that_cannot_be_read_is_no_limit() -> None:
    """Nobody guesses."""
    for text in ("", "soon|later"):
        with pytest.raises(ValueError, match="no time limit"):
            read_default_limit(text)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-Q -n 4", "-n 4"),
        ("--quiet --time 5", "--time 5"),
        ("-Qn4 -HQ", "-n4 -H"),
        ("-J -Q -JQ -n 4", "-J -Q -JQ -n 4"),
        ("--job-name --quiet", "--job-name --quiet"),
    ],
)
def test_a_trial_is_not_quiet(line: str, expected: str) -> None:
    """Where a word is the value of an option it stays."""
    assert without_quiet(line.split()) == expected.split()


def test_a_script_may_say_that_it_is_not_to_be_submitted() -> None:
    """In a line for sbatch, and nowhere else."""
    assert says_test_only("#!/bin/sh\n#SBATCH -n 2 --test-only\n")
    assert not says_test_only("#!/bin/sh\n#SBATCH -n 2 # --test-only\nsbatch --test-only x\n")
    assert not says_test_only("")
    assert has_option(["-n", "4", "--wrap=a b"], "wrap")
    assert not has_option(["--wrapped"], "wrap")


@pytest.mark.parametrize("value", ["", "ALL", "all", "ALL,A=b", "A=b,ALL"])
def test_all_variables_go_along(value: str) -> None:
    """Also where nothing is said."""
    assert is_all(value)


@pytest.mark.parametrize("value", ["NONE", "NIL", "A=b", "A", "A=ALL"])
def test_only_named_variables_go_along(value: str) -> None:
    """And Slurm adds those of a login."""
    assert not is_all(value)


OPTIONS = """contiguous          : set
cpus-per-task       : 1
exclusive           : exclusive
export              : A=b
gres                : gres:gpu:1,gres:disk:2
job-name            : mine
nodes               : 1-2
ntasks              : 4
open-mode           : a
output              : /users/ann/%x-%j
partition           : main
time                : 00:02:00"""


def test_what_is_said_reaches_sbatch_at_home_as_it_was_said() -> None:
    """The value 1 as well; what the site says itself is not among it."""
    words = words_at_home(read_dry_run(printed(OPTIONS, ESTIMATE), 0))
    assert words == (
        *("--contiguous", "--cpus-per-task=1", "--exclusive", "--gres=gpu:1,disk:2"),
        *("--nodes=1-2", "--ntasks=4", "--open-mode=append", "--output=/users/ann/%x-%j"),
        "--partition=main",
    )
    found = options_at_home(words, "a%b/c", 8)
    assert found.streams == ("--open-mode=append", "--output=/users/ann/a%%b_c-%j")
    assert found.others == (*words[:6], "--partition=main")
    assert options_at_home(["--error=/a/b\\\\%x"], "n", 1).streams == ("--error=/a/b\\\\%x",)
    array = ("12", "7")
    words = ("--output=%A_%4a-%%a%x", "--error=%20a", "--mem=1")
    found = options_at_home(words, "n%a", 1, array)
    assert found.streams == ("--output=12_0007-%%an%%a", "--error=0000000007")
    assert options_at_home(["--error=%5x%%x"], "n", 1).streams == ("--error=n%%x",)
    # The number that a user has been told stands for Slurm's, but for what is an element of an array.
    word = "--output=%j/%4J-%A_%a%%j"
    assert options_at_home([word], "n", 1, number="12").streams == ("--output=12/0012-12_%a%%j",)
    assert options_at_home([word], "n", 1, array, "12").streams == (with_element(word, array),)
    assert words_at_home(read_dry_run(printed("exclusive : user", ESTIMATE), 0)) == (
        "--exclusive=user",
    )
    assert words_at_home(read_dry_run(printed("mem : 0?", ESTIMATE), 0)) == ("--mem=0",)


@pytest.mark.parametrize(
    ("words", "kept", "text"),
    [
        (["-n", "2"], ["-n", "2"], ""),
        (["-n", "2", "-d", "afterok:a-1", "--mem=1"], ["-n", "2", "--mem=1"], "afterok:a-1"),
        (["-dafterok:a-1", "-J", "-d"], ["-J", "-d"], "afterok:a-1"),
        (["--dependency=afterok:a-1_3,singleton"], [], "afterok:a-1_3,singleton"),
        (["--dependency", "afterany:a-1"], [], "afterany:a-1"),
        (["-d", "a-1,a-3_4"], [], "a-1,a-3_4"),
        (["-d", "12:13,14"], ["-d", "12:13,14"], ""),
        (["--dependency=afterok:12:13_1+5"], ["--dependency=afterok:12:13_1+5"], ""),
        (["-d", "singleton"], ["-d", "singleton"], ""),
        (["-d", "afterok:a-1", "-d", "afterok:7"], ["-d", "afterok:7"], ""),
    ],
)
def test_a_dependency_on_jobs_of_a_site_is_not_for_slurm(
    words: list[str], kept: list[str], text: str
) -> None:
    """One on its own jobs is; the last that is given counts, as with sbatch."""
    assert take_dependency(words) == (tuple(kept), text)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("afterok:a-1:12", "cannot wait for both"),
        ("afterok:a-1?afterok:a-2", "alternatives"),
        ("after:a-1", "none that a site knows"),
    ],
)
def test_what_a_site_cannot_wait_for_is_said(word: str, says: str) -> None:
    """Slurm would only say that there is no such job."""
    with pytest.raises(ValueError, match=says):
        take_dependency([f"--dependency={word}"])
