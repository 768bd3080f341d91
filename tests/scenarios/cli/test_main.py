import hashlib
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scenarios.cli import main as cli
from scenarios.spec.traces import TRACES, Trace
from tests.schemas import printed
from tests.small_scenario import environment, go_elsewhere, small

ROOT = Path(__file__).parents[3]
COMMAND = (sys.executable, "-c", "from scenarios.command import main; main()")

SMALL = small(200)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Works in an empty folder, without logs on this machine."""
    return go_elsewhere(tmp_path, monkeypatch, SMALL)


def test_run_writes_the_folder_and_says_where(
    elsewhere: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The default folder is out/NAME; figures go to standard output."""
    assert cli.run_command(["run", "small.toml"]) == 0
    out, error = capfd.readouterr()
    assert error == ""
    assert "AWRT" in out
    assert out.endswith("Written to out/small/report.html\n")
    assert {path.name for path in (elsewhere / "out" / "small").iterdir()} == {
        "schedule.csv",
        "schedule-alone.csv",
        "result.json",
        "scenario.toml",
        "sites.csv",
        "flows.csv",
        "report.html",
    }


def test_run_takes_bundled_names_and_gives_json(
    elsewhere: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With --json nothing but the document is on standard output."""
    arguments = ["run", "synthetic-three-sites", "--json", "--no-html", "--output", "o"]
    assert cli.run_command(arguments) == 0
    document = printed("scenario-run", capfd.readouterr().out)
    assert document["name"] == "synthetic-three-sites"
    assert document == json.loads((elsewhere / "o" / "result.json").read_text())
    assert not (elsewhere / "o" / "report.html").exists()


def test_a_seed_replaces_the_scenarios(elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Same seed, same bytes; another seed, other jobs; the saved scenario has it."""
    for folder, seed in (("one", "1"), ("again", "1"), ("two", "2")):
        arguments = ["run", "small.toml", "--no-html", "--output", folder, "--seed", seed]
        assert cli.run_command(arguments) == 0
    one, again, two = (
        (elsewhere / folder / "schedule.csv").read_bytes() for folder in ("one", "again", "two")
    )
    assert one == again != two
    assert "seed = 2\n" in (elsewhere / "two" / "scenario.toml").read_text()
    capfd.readouterr()
    assert cli.run_command(["run", "two", "--no-html", "--output", "three", "--seed", "5"]) == 0
    assert "the seed changes nothing" in capfd.readouterr().err
    assert (elsewhere / "three" / "schedule.csv").read_bytes() == two


def test_a_run_can_be_bound_to_its_first_arrivals(
    elsewhere: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The bound is in the saved scenario, so that the run can be repeated; 0 is refused."""
    assert cli.run_command(["run", "small.toml", "--no-html", "--first", "7", "--json"]) == 0
    figures = json.loads(capfd.readouterr().out)
    assert sum(site["jobs"] for site in figures["sites"]) == 7
    (saved,) = elsewhere.glob("out/*/scenario.toml")
    assert "first_arrivals = 7\n" in saved.read_text()
    assert cli.run_command(["run", "small.toml", "--first", "0"]) == 2


def test_verbose_runs_log_events(capfd: pytest.CaptureFixture[str]) -> None:
    """Events go to standard error, as JSON if asked for."""
    arguments = ["run", "small.toml", "--no-html", "-v", "--log-format", "json"]
    assert cli.run_command(arguments) == 0
    events = [json.loads(line)["event"] for line in capfd.readouterr().err.splitlines()]
    assert events == ["workload_loaded"] * 2 + ["replayed"] * 2 + ["saved"]


def test_report_shows_a_saved_run_again(elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Tables and page are those of the run, byte for byte."""
    assert cli.run_command(["run", "small.toml"]) == 0
    first = capfd.readouterr().out
    page = elsewhere / "out" / "small" / "report.html"
    before = page.read_bytes()
    page.unlink()
    assert cli.run_command(["report", "out/small"]) == 0
    assert capfd.readouterr().out == first
    assert page.read_bytes() == before
    page.write_text("mine")
    assert cli.run_command(["report", "out/small", "--no-html", "--json"]) == 0
    assert printed("scenario-run", capfd.readouterr().out)["name"] == "small"
    assert page.read_text() == "mine"


def test_list_show_and_validate(capfd: pytest.CaptureFixture[str]) -> None:
    """What there is, what it is about, whether it holds, and what it needs."""
    assert cli.run_command(["list"]) == 0
    assert "* needs a download: scenario fetch kth ctc sdsc05 sdsc00" in capfd.readouterr().out
    assert cli.run_command(["show", "three-sites-6"]) == 0
    assert "Needs a download: scenario fetch kth ctc sdsc05" in capfd.readouterr().out
    assert cli.run_command(["show", "small.toml", "--toml"]) == 0
    assert capfd.readouterr().out == SMALL
    assert cli.run_command(["validate", "small.toml"]) == 0
    assert capfd.readouterr().out == "small.toml: valid, 2 sites\n"
    assert cli.run_command(["validate", "setup-1-kth-ctc"]) == 0
    lack = "valid, 2 sites; to run it, get its logs with: scenario fetch kth ctc\n"
    assert capfd.readouterr().out.endswith(lack)


BAD_TOML = SMALL.replace("jobs = 200", "job = 200").replace('"b"', '"a"')


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (["run", "smal.toml"], ["'smal.toml' is neither a file nor a bundled scenario"]),
        (["run", "three-site"], ["did you mean 'three-sites-6'?"]),
        (
            ["run", "three-sites-6"],
            ["KTH-SP2-1996-2.swf.gz", "`scenario fetch kth`", "HANSE_TRACES"],
        ),
        (["run", "bad.toml"], ["sites[0].workload.job: ", "sites[1].name: "]),
        (["validate", "bad.toml"], ["Error: bad.toml: sites[0].workload.job: 'job' is no key"]),
        (["show", "bad.toml"], ["did you mean 'jobs'?"]),
        (["run", "swf.toml"], ["sites.a.workload: ", "rubbish.swf:1: "]),
        (["validate", "rules.toml"], ["sites.a.transfer.default: ", "no.json: cannot be read"]),
        (["run", "small.toml", "--output", "full"], ["full has files that are not of a run"]),
        (["run", "small.toml", "--output", "small.toml"], ["small.toml is a file; name a folder"]),
        (["run", "small.toml", "--seed", "-1"], ["Invalid value for '--seed'"]),
        (["run", "small.toml", "--sed", "1"], ["No such option", "--seed"]),
        (["report", "nowhere"], ["result.json cannot be read", "`scenario run`"]),
        (["fetch", "khth"], ["'khth' is not one of"]),
        (["fetch", "kth", "--from", "file:///x"], ["must begin with http://"]),
        (["fetch"], ["Missing argument"]),
        (["bogus"], ["No such command"]),
    ],
)
def test_what_a_user_can_put_right_ends_with_status_2_and_words(
    elsewhere: Path, arguments: list[str], texts: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """What, where, what to do; nothing on standard output, and never a traceback."""
    (elsewhere / "bad.toml").write_text(BAD_TOML)
    (elsewhere / "rubbish.swf").write_bytes(bytes(range(256)))
    model = '{ model = "lublin", jobs = 200, load = 0.9 }'
    (elsewhere / "swf.toml").write_text(SMALL.replace(model, '{ swf = "rubbish.swf" }'))
    rules = SMALL.replace(model, f'{model}\ntransfer = {{ default = "no.json" }}')
    (elsewhere / "rules.toml").write_text(rules)
    (elsewhere / "full").mkdir()
    (elsewhere / "full" / "notes").write_text("mine")
    before = sorted(elsewhere.rglob("*"))
    assert cli.run_command(arguments) == 2
    out, error = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in error
    for text in texts:
        assert text in error
    assert sorted(elsewhere.rglob("*")) == before


def test_every_command_and_option_is_documented() -> None:
    """docs/scenarios.md names them all, in the commands' own words."""
    text = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
    common = {"--help", "--version", "--verbose"}
    wanted = {f"`scenario {name} " for name in cli.cli.commands if name not in ("list", "paper")}
    for name, command in cli.cli.commands.items():
        if name != "paper":  # it has a document of its own
            wanted |= {word for option in command.params for word in option.opts if "--" in word}
    assert {"--speed", "`scenario down "} <= wanted
    words = set(re.findall(r"--[a-z-]+", text)) | set(re.findall("`scenario [a-z]+ ", text))
    assert wanted - words - common == set()


@pytest.mark.usefixtures("forks")
def test_ctrl_c_ends_with_130_and_leaves_nothing(elsewhere: Path) -> None:
    """Interrupted while it works, a run leaves the folder as it was."""
    # Shells have background jobs ignore Ctrl-C, and children inherit that.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    (elsewhere / "big.toml").write_text(SMALL.replace("jobs = 200", "jobs = 1000000"))
    with (
        subprocess.Popen(  # noqa: S603  # this very interpreter
            [*COMMAND[:2], listening + COMMAND[2], "run", "big.toml", "-v"],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process
    ):
        assert process.stderr is not None
        first = process.stderr.readline()
        assert "workload_loaded" in first
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=300)
    assert process.returncode == 130
    assert out == ""
    assert error.endswith("interrupted\n")
    assert "Traceback" not in error
    left = sorted(path.name for path in elsewhere.iterdir() if path.name != "out")
    assert left == ["big.toml", "small.toml"]
    assert list(elsewhere.rglob("out/*")) == []


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serves a log called `kth` that is short, and none of the others."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Keeps the test's output clean."""

    content = b"; a log\n" * 100
    kth = TRACES["kth"]
    monkeypatch.setitem(
        TRACES,
        "kth",
        Trace(
            key=kth.key,
            file=kth.file,
            archive_folder=kth.archive_folder,
            sha256=hashlib.sha256(content).hexdigest(),
            size_bytes=len(content),
            machine=kth.machine,
            processors=kth.processors,
        ),
    )
    folder = tmp_path / "mirror" / "logs" / kth.archive_folder
    folder.mkdir(parents=True)
    (folder / kth.file).write_bytes(content)
    handler = partial(Quiet, directory=str(tmp_path / "mirror"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/logs"
        server.shutdown()
        thread.join()


def test_fetch_fills_the_cache_from_a_mirror(
    tmp_path: Path, mirror: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The second time there is nothing to do."""
    path = tmp_path / "cache" / "hanse" / "traces" / TRACES["kth"].file
    assert cli.run_command(["fetch", "kth", "kth", "--from", mirror]) == 0
    assert capfd.readouterr().out == f"kth: {path} (downloaded, checksum right)\n"
    assert cli.run_command(["fetch", "kth", "--from", mirror]) == 0
    assert capfd.readouterr().out == f"kth: {path} (already there)\n"


def test_fetch_uses_the_folder_it_is_given(elsewhere: Path, mirror: str) -> None:
    """--folder wins over the cache and over HANSE_TRACES."""
    assert cli.run_command(["fetch", "kth", "--from", mirror, "--folder", "mine"]) == 0
    assert [path.name for path in (elsewhere / "mine").iterdir()] == [TRACES["kth"].file]


def test_fetch_leaves_the_users_own_folder_as_it_is(
    tmp_path: Path, mirror: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A log in HANSE_TRACES is found there; a missing one goes to the cache."""
    monkeypatch.setenv("HANSE_TRACES", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    assert cli.run_command(["fetch", "kth", "--from", mirror]) == 0
    cached = tmp_path / "cache" / "hanse" / "traces" / TRACES["kth"].file
    cached.rename(tmp_path / "own" / cached.name)
    capfd.readouterr()
    assert cli.run_command(["fetch", "kth", "--from", mirror]) == 0
    assert capfd.readouterr().out == f"kth: {tmp_path / 'own' / cached.name} (already there)\n"


def test_fetch_gets_what_it_can(mirror: str, capfd: pytest.CaptureFixture[str]) -> None:
    """One log that is not on the server does not keep the others away."""
    assert cli.run_command(["fetch", "all", "--from", mirror]) == 2
    out, error = capfd.readouterr()
    assert out.startswith("kth: ")
    assert error.count("the server answers 404") == 3
    assert error.count("\n") == 3


def test_every_transfer_policy_can_be_replaced(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `keep` nobody exchanges jobs; the folder says with which policies it was run."""
    assert cli.run_command(["run", "small.toml", "--transfer", "keep", "--output", "kept"]) == 0
    assert "No job was exchanged" in capsys.readouterr().out
    assert 'default = "keep"' in (elsewhere / "kept" / "scenario.toml").read_text()
    assert cli.run_command(["run", "small.toml", "--transfer", "awff"]) == 2
    assert "did you mean 'awf'?" in capsys.readouterr().err
    assert cli.run_command(["run", "small.toml", "--transfer", "none.json"]) == 2
    assert "none.json: cannot be read" in capsys.readouterr().err
