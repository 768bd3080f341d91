import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from grms.cli import main as cli
from grms.cli import train_cli as training_cli
from grms.learning.evolution.catalog import STRATEGIES
from grms.learning.evolution.strategies import StrategySettings
from grms.learning.transfer.encoding import RuleBaseSettings
from grms.learning.transfer.fitness import OBJECTIVES
from grms.policy.constraints import CONSTRAINTS_WORDS
from grms.policy.files import load_rule_base, save_rule_base
from lrms_sim.cli.running import EXIT_INTERRUPTED
from tests.small_scenario import environment, go_elsewhere, small
from tests.training_grids import YES

ROOT = Path(__file__).parents[3]
COMMAND = (sys.executable, "-c", "from grms.command import main; main()")

SMALL = small(400)
TRAIN = ["train", "small.toml", "--site", "a", "--partner", "b"]
SHORT = ["--rules", "3", "--parents", "4", "--offspring", "12", "--generations", "3"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Works in an empty folder, without logs on this machine."""
    return go_elsewhere(tmp_path, monkeypatch, SMALL)


def test_train_writes_the_folder_and_says_where(
    elsewhere: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Progress on standard error, figures and paths on standard output."""
    assert cli.run_command([*TRAIN, *SHORT]) == 0
    out, error = capfd.readouterr()
    assert error.startswith("generation 0/3  best ")
    assert "generation 3/3" in error
    assert "small: a, b" in out
    assert out.endswith("Page:      out/train-a-for-b/training.html\n")
    folder = elsewhere / "out" / "train-a-for-b"
    assert {path.name for path in folder.iterdir()} == {
        "a-for-b.json",
        "checkpoint.json",
        "convergence.svg",
        "decision-map.svg",
        "training.html",
    }
    said = load_rule_base(folder / "a-for-b.json").provenance
    assert said["cases"][0]["sites"][0]["origin"]["workload"]["jobs"] == 400
    assert said["strategy"]["settings"]["rules"] == 3


def test_the_learned_file_is_a_transfer_policy(
    elsewhere: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A scenario that uses it gives, digit by digit, what the training says."""
    from scenarios.cli.main import run_command  # noqa: PLC0415  # one floor up, for this test alone

    assert cli.run_command([*TRAIN, *SHORT, "--output", "o"]) == 0
    sites = load_rule_base(elsewhere / "o" / "a-for-b.json").provenance["cases"][0]["sites"]
    capfd.readouterr()
    with_policy = SMALL.replace(
        'name = "a"\n', 'name = "a"\ntransfer = { b = "o/a-for-b.json" }\n', 1
    )
    (elsewhere / "learned.toml").write_text(with_policy)
    assert run_command(["run", "learned.toml", "--json", "--no-html"]) == 0
    document = json.loads(capfd.readouterr().out)
    text = json.dumps(document)
    for site in sites:
        assert repr(site["awrt_alone_s"])[:12] in text
        assert repr(site["awrt_after_s"])[:12] in text


@pytest.mark.parametrize(
    "extra",
    [
        ["--strategy", "cma"],
        ["--strategy", "self-adaptive", "--objective", "no-loser"],
        ["--together", "--workers", "2", "--executor", "processes"],
        ["--stagnation", "2", "--time-limit", "60", "--evaluations", "30", "--target", "1e9"],
        ["--nwp-step", "0.5", "--njp-step", "5", "--flip", "0.3", "--seed", "0"],
    ],
)
def test_every_option_is_taken(extra: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """Each kind of strategy, objective, executor and limit."""
    assert cli.run_command([*TRAIN, *SHORT, *extra]) == 0
    assert "* learned; stopped: " in capfd.readouterr().out


def test_the_same_seed_gives_the_same_file(
    elsewhere: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Byte for byte, also with other workers; another seed gives another."""
    for folder, seed, workers in (("one", "4", "1"), ("two", "4", "3"), ("three", "5", "1")):
        arguments = [*TRAIN, *SHORT, "--seed", seed, "--workers", workers, "--output", folder]
        assert cli.run_command(arguments) == 0
    capfd.readouterr()
    one, two, three = (
        (elsewhere / folder / "a-for-b.json").read_bytes() for folder in ("one", "two", "three")
    )
    assert one == two != three


def test_self_play_trains_all_sites_and_says_what_it_is_worth(
    elsewhere: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Within constraints; a scenario refuses what was learned where it has none."""
    (elsewhere / "other.toml").write_text(SMALL.replace("jobs = 400", "jobs = 300"))
    words = ["--rails", "fair-exchange", "--self-play", "--unseen", "other.toml", "--output", "o"]
    assert cli.run_command([*TRAIN, *SHORT, *words]) == 0
    out = capfd.readouterr().out
    assert "Learned from: small: a, b" in out
    assert "fair-exchange alone on unseen workloads" in " ".join(out.split())
    assert "Rule base: o/b-for-a.json\n" in out
    assert cli.run_command(["policy", "show", "o/a-for-b.json"]) == 0
    assert "guests that would start now" in capfd.readouterr().out
    learned = SMALL.replace('name = "a"', 'name = "a"\ntransfer = { b = "o/a-for-b.json" }', 1)
    (elsewhere / "bare.toml").write_text(learned)
    assert cli.run_command(["train", "bare.toml", *TRAIN[2:]]) == 2
    assert "sites.a.transfer: the rule base a in self-play looks at" in capfd.readouterr().err


def test_choices_and_defaults_are_those_of_the_library() -> None:
    """The command line repeats them, so that help needs no import."""
    options = {
        parameter.name: parameter
        for parameter in training_cli.train.params
        if isinstance(parameter, click.Option)
    }
    strategy, objective = options["strategy"].type, options["objective"].type
    rails = options["rails"].type
    assert isinstance(strategy, click.Choice)
    assert isinstance(rails, click.Choice)
    assert isinstance(objective, click.Choice)
    assert tuple(strategy.choices) == STRATEGIES
    assert set(rails.choices) == set(CONSTRAINTS_WORDS)
    assert tuple(name.replace("-", "_") for name in objective.choices) == OBJECTIVES
    settings, rules = StrategySettings(), RuleBaseSettings()
    for name, value in (
        ("rules", rules.rules),
        ("parents", settings.parents),
        ("offspring", settings.offspring),
        ("nwp_step", rules.nwp_step),
        ("njp_step", rules.njp_step),
        ("flip", settings.flip_probability),
    ):
        assert options[name].default == value


def test_a_policy_is_shown(elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its rules and a map; a name that looks like markup is a name."""
    path = elsewhere / "rules.json"
    save_rule_base(YES, path)
    text = path.read_text().replace('"yes"', '"[/red] [bold]x"')
    path.write_text(text)
    assert cli.run_command(["policy", "show", "rules.json", "--nwp-max", "2.5"]) == 0
    out = capfd.readouterr().out
    assert "[/red] [bold]x" in out
    assert "run here" in out
    assert "█" * 60 in out


MODEL = '{ model = "lublin", jobs = 400, load = 0.9 }'
JOBLESS = SMALL.replace("jobs = 400, load = 0.9", "jobs = 0, load = 0.9")


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ([*TRAIN[:2], "--site", "z", "--partner", "b"], ["no site 'z'; its sites are a, b"]),
        ([*TRAIN[:4], "--partner", "z"], ["no site 'z'; its sites are a, b"]),
        ([*TRAIN[:4], "--partner", "a"], ["a, a: a site is named twice"]),
        ([*TRAIN, "--partner", "b"], ["a, b, b: a site is named twice"]),
        ([*TRAIN[:4]], ["Missing option '--partner'"]),
        (["train", "--site", "a", "--partner", "b"], ["Missing argument 'SCENARIO...'"]),
        (["train", "smal.toml", *TRAIN[2:]], ["'smal.toml' is neither a file nor a bundled"]),
        (["train", "bad.toml", *TRAIN[2:]], ["sites.a.workload.job: 'job' is no key"]),
        (["train", "jobless.toml", *TRAIN[2:]], ["jobless.toml", "'a' has no jobs"]),
        (["train", "traced.toml", *TRAIN[2:]], ["KTH-SP2-1996-2.swf.gz", "`scenario fetch kth`"]),
        ([*TRAIN, "small.toml", "other.toml"], ["[16, 17] processors"]),
        ([*TRAIN, "--generations", "0"], ["the generation limit is 0"]),
        ([*TRAIN, "--generations", "-5"], ["the generation limit is -5"]),
        ([*TRAIN, "--generations", "x"], ["'x' is not a valid integer"]),
        ([*TRAIN, "--evaluations", "-1"], ["the evaluation limit is -1"]),
        ([*TRAIN, "--time-limit", "-1"], ["the time limit is -1.0 s"]),
        ([*TRAIN, "--time-limit", "inf"], ["'--time-limit': inf is no finite"]),
        ([*TRAIN, "--stagnation", "0"], ["without gain is 0"]),
        ([*TRAIN, "--target", "nan"], ["'--target': nan is no finite"]),
        ([*TRAIN, "--rules", "-1"], ["rules is -1; it must be from 1 to 1000"]),
        ([*TRAIN, "--rules", "100000"], ["rules is 100000"]),
        ([*TRAIN, "--parents", "0"], ["parents is 0"]),
        ([*TRAIN, "--offspring", "-91"], ["offspring is -91"]),
        ([*TRAIN, "--offspring", "1", "--strategy", "cma"], ["CMA-ES needs at least 2"]),
        ([*TRAIN, "--nwp-step", "-1"], ["nwp_step is -1.0"]),
        ([*TRAIN, "--njp-step", "nan"], ["'--njp-step': nan is no finite"]),
        ([*TRAIN, "--flip", "1.5"], ["flip_probability is 1.5"]),
        ([*TRAIN, "--seed", "-1"], ["Invalid value for '--seed'"]),
        ([*TRAIN, "--workers", "0"], ["0 workers; between 1 and"]),
        ([*TRAIN, "--workers", "-2"], ["-2 workers"]),
        ([*TRAIN, "--scheduler", "tcp://127.0.0.1:1"], ["--scheduler goes with --executor dask"]),
        ([*TRAIN, "--executor", "dask", "--scheduler", "x"], ["no dask scheduler at x"]),
        ([*TRAIN, "--strategy", "papr"], ["'papr' is not one of"]),
        ([*TRAIN, "--self-play"], ["--self-play needs constraints", "add --rails fair-exchange"]),
        (
            [*TRAIN, "--feature", "starts-now"],
            ["starts_now cannot be looked at without constraints"],
        ),
        ([*TRAIN, "--feature", "load"], ["'load' is not one of 'requested-time', 'memory-share'"]),
        (
            [*TRAIN, "--rails", "start-now", "--feature", "none", "--feature", "starts-now"],
            ["--feature none means no further feature"],
        ),
        (
            [*TRAIN, "--rails", "start-now", "--feature", "requested-time", "--self-play"],
            ["--self-play begins with rules that always agree", "--feature starts-now"],
        ),
        ([*TRAIN, "--rails", "start-now", "--archive", "3"], ["--archive goes with --self-play"]),
        (
            [*TRAIN, "--rails", "start-now", "--self-play", "--archive", "0"],
            ["an archive of 0 sets; between 1 and 100"],
        ),
        ([*TRAIN, "--unseen", "nowhere.toml"], ["'nowhere.toml' is neither a file nor"]),
        ([*TRAIN, "--output", "small.toml"], ["small.toml: is a file; name a folder"]),
        ([*TRAIN, "--output", "small.toml/x"], ["the folder cannot be made: Not a directory"]),
        ([*TRAIN, "--resume", "--output", "new"], ["new/checkpoint.json: is not there"]),
        ([*TRAIN, "--output", "half"], ["a training run was interrupted; go on with --resume"]),
        ([*TRAIN, "--output", "half", "--resume"], ["half/checkpoint.json: is damaged"]),
        ([*TRAIN, "--output", "rubbish"], ["rubbish/checkpoint.json: is no checkpoint"]),
        (
            [*TRAIN, "--output", "rubbish", "--resume"],
            ["rubbish/checkpoint.json: is no checkpoint"],
        ),
        (["policy", "show", "nowhere.json"], ["nowhere.json: cannot be read"]),
        (["policy", "show", "damaged.json"], ["damaged.json: rules[0].nwp: sigma is 0"]),
        (["policy", "show", "small.toml"], ["small.toml:2:1: no JSON"]),
        (["policy", "show", "damaged.json", "--nwp-max", "nan"], ["'--nwp-max': nan is no finite"]),
        (["policy", "show"], ["Missing argument 'FILE'"]),
        (["bogus"], ["'bogus' is no command"]),
    ],
)
def test_what_a_user_can_put_right_ends_with_status_2_and_words(
    elsewhere: Path, arguments: list[str], texts: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """What, where, what to do; nothing on standard output or in the folder, never a traceback."""
    (elsewhere / "bad.toml").write_text(SMALL.replace("jobs = 400", "job = 400"))
    (elsewhere / "jobless.toml").write_text(JOBLESS)
    (elsewhere / "traced.toml").write_text(SMALL.replace(MODEL, '{ trace = "kth" }', 1))
    (elsewhere / "other.toml").write_text(SMALL.replace("processors = 16", "processors = 17"))
    save_rule_base(YES, elsewhere / "damaged.json")
    damaged = (elsewhere / "damaged.json").read_text().replace("1000000000.0", "0", 1)
    (elsewhere / "damaged.json").write_text(damaged)
    for folder, content in (("half", '{"schema":"hanse.training/2"}'), ("rubbish", "{")):
        (elsewhere / folder).mkdir()
        (elsewhere / folder / "checkpoint.json").write_text(content)
    before = sorted(elsewhere.rglob("*"))
    assert cli.run_command(arguments) == 2
    out, error = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in error
    for text in texts:
        assert text in error
    assert sorted(elsewhere.rglob("*")) == before


def interrupted(arguments: list[str], after: Callable[[str], bool]) -> tuple[int, str, str]:
    """Runs the command in a process, sends Ctrl-C once a line of progress is right."""
    # Shells have background jobs ignore Ctrl-C, and children inherit that.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    with (
        subprocess.Popen(  # noqa: S603  # this very interpreter
            [*COMMAND[:2], listening + COMMAND[2], *arguments],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process
    ):
        assert process.stderr is not None
        first = process.stderr.readline()
        assert after(first), first
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=300)
    return process.returncode, out, error


@pytest.mark.usefixtures("forks")
@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_ctrl_c_leaves_a_checkpoint_that_leads_to_the_same_result(
    elsewhere: Path, executor: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A real signal to a real process; what is said to type then goes on to the very same files."""
    long = [*TRAIN, *SHORT[:-2], "--generations", "60", "--executor", executor, "--workers", "2"]
    status, out, error = interrupted(
        [*long, "--output", "parts"], lambda line: line.startswith("generation 0/60")
    )
    assert status == EXIT_INTERRUPTED
    assert out == ""
    assert "Traceback" not in error
    assert "interrupted after generation " in error
    assert [path.name for path in (elsewhere / "parts").iterdir()] == ["checkpoint.json"]
    advice = next(line for line in error.splitlines() if line.startswith("go on with: grms "))
    assert cli.run_command(advice.removeprefix("go on with: grms ").split()) == 0
    assert cli.run_command([*long, "--output", "whole", "--executor", "threads"]) == 0
    capfd.readouterr()
    for name in ("a-for-b.json", "convergence.svg", "decision-map.svg"):
        parts, whole = (elsewhere / folder / name for folder in ("parts", "whole"))
        assert parts.read_bytes() == whole.read_bytes()


@pytest.mark.usefixtures("forks")
def test_ctrl_c_before_the_first_generation_leaves_nothing(elsewhere: Path) -> None:
    """No checkpoint, no advice that would not work."""
    # Founders that take far longer than any test.
    (elsewhere / "small.toml").write_text(SMALL.replace("jobs = 400", "jobs = 30000"))
    arguments = [*TRAIN, "--parents", "5000", "--output", "o"]
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from lrms_sim.util import executors; really = executors.ThreadExecutor.evaluate\n"
        "def evaluate(self, fitness, genomes, bound):\n"
        "    print('begun', file=sys.stderr, flush=True)\n"
        "    return really(self, fitness, genomes, bound)\n"
        "executors.ThreadExecutor.evaluate = evaluate\n"
        "from grms.command import main; main()"
    )
    with subprocess.Popen(  # noqa: S603  # this very interpreter
        [sys.executable, "-c", program, *arguments],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=300)
    assert process.returncode == EXIT_INTERRUPTED
    assert out == ""
    assert error == "\ninterrupted before the first generation was done: nothing to resume\n"
    assert list((elsewhere / "o").iterdir()) == []
