"""The commands for workflows that grow, with a broker that serves."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from broker.cli.main import cli
from broker.io.documents import read_document
from broker.io.wfformat import parse_wfformat
from tests.broker.brokers import check_history, configure, serving, until_back

pytestmark = pytest.mark.usefixtures("forks")

POOL = """
[[resources]]
name = "alpha"
capacity = 2
[[resources]]
name = "beta"
performance = 2.0
"""

MORE = """
[[tasks]]
name = "last"
work = 0.2
predecessors = ["fit", "second"]
[[tasks]]
name = "second"
work = 0.2
elements = 2
on_failure = "continue"
"""


def gorba(folder: Path, *arguments: str, **more: Any) -> Result:
    """Runs a command with the socket of the broker."""
    environment = {"GORBA_SOCKET": str(folder / "gorba.sock")}
    return CliRunner().invoke(cli, arguments, env=environment, **more)


def test_a_workflow_grows_over_a_kill_and_is_recorded_and_planned_again(tmp_path: Path) -> None:
    """Opened, added to one by one, as an array and from a file, each twice; closed, waited for, recorded, planned."""
    pool, more, lines = tmp_path / "pool.toml", tmp_path / "more.toml", tmp_path / "lines"
    pool.write_text(POOL)
    more.write_text(MORE)
    lines.write_text("1 'two words'\n\n3\n")
    config = configure(tmp_path, "[simulation]\nshortest = 0.5\n")
    with serving(config) as (process, client):
        gorba(tmp_path, "resources", "add", str(pool))
        opening = ("open", "sweep", "--key", "k", "--budget", "50", "--on-failure", "continue")
        assert [gorba(tmp_path, *opening).output for _ in range(2)] == ["w1\n", "w1\n"]
        first = ("add", "sweep", "--name", "prepare", "--work", "0.4s", "--", "./prepare")
        assert gorba(tmp_path, *first).output == "1 task added to w1, which has 1\n"
        many = ["add", "w1", "--name", "fit", "--work", "0.2s", "--after", "prepare"]
        many += ["--each-line", str(lines), "--", "./fit", "-x"]
        assert gorba(tmp_path, *many).output == "2 tasks added to w1, which has 3\n"
        process.end(signal.SIGKILL)
        process.start()
        until_back(client)
        assert gorba(tmp_path, *first).output == "0 tasks added to w1, which has 3\n"
        for expected in (
            "3 tasks added to w1, which has 6\n",
            "0 tasks added to w1, which has 6\n",
        ):
            assert gorba(tmp_path, "add", "sweep", str(more)).output == expected
        assert ", open" in gorba(tmp_path, "list").output
        spec = client.describe("sweep")
        assert {task.name: list(task.program.arguments) for task in spec.tasks[:3]} == {
            "prepare": ["./prepare"],
            "fit/1": ["./fit", "-x", "1", "two words"],
            "fit/2": ["./fit", "-x", "3"],
        }
        assert list(spec.tasks[-1].predecessors) == ["fit/1", "fit/2", "second/1", "second/2"]
        assert client.get("sweep").open
        assert ", open" not in gorba(tmp_path, "close", "sweep").output
        ended = gorba(tmp_path, "wait", "sweep")
        assert (ended.exit_code, "simulated" in ended.stderr) == (3, True)
        assert "6/6 tasks" in ended.stderr
        recorded = tmp_path / "sweep.json"
        said = gorba(tmp_path, "record", "sweep", "--output", str(recorded))
        assert said.stderr == f"written to {recorded}\n"
        assert json.loads(gorba(tmp_path, "record", "w1").stdout) == read_document(recorded)
        closed = gorba(tmp_path, "add", "sweep", "--name", "x", "--work", "1s", "--", "x")
        assert closed.exit_code != 0
        assert "was closed, and takes no more tasks" in str(closed.exception)
    launches = check_history(tmp_path / "broker.journal")
    assert set(launches) == {
        f"sweep/{name}" for name in ("prepare", "fit/1", "fit/2", "second/1", "second/2", "last")
    }
    again = parse_wfformat(read_document(recorded), file="x")
    assert [task.id for task in again.tasks][:3] == ["prepare", "fit_1", "fit_2"]
    assert again.tasks[-1].predecessors == ("fit_1", "fit_2", "second_1", "second_2")
    assert again.tasks[1].arguments == ("-x", "1", "two words")
    plan = tmp_path / "plan.json"
    words = ("plan", str(recorded), "-r", str(pool), "--evaluations", "200", "--json", str(plan))
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert len(read_document(plan)["placements"]) == 6


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "flow", "--work", "1s", "--", "x"), "--name says what the task is called"),
        (("add", "flow", "--after", "a", "more.toml"), "--after goes with --work and a command"),
        (("add", "flow", "--on-failure", "finish", "more.toml"), "--on-failure goes with --work"),
        (("add", "flow", "--work", "1s", "--name", "b", "--after", "?", "--", "x"), "waits for '?'"),
        (("add", "flow", "--work", "1s", "--name", "b", "--on", "?", "--", "x"), "--on: "),
        (("add", "flow", "--work", "2s", "--name", "a", "--", "x"), "and it is another one"),
        (("add", "flow", "--work", "1s", "--name", "b", "--each-line", "none", "--", "x"), "--each-line: none"),
        (("add", "flow", "--work", "1s", "--name", "b", "--each-line", "empty", "--", "x"), "no line with a word"),
        (("add", "flow", "--work", "1s", "--name", "b", "--input", "a/o", "--", "x"), "whose outputs are: none"),
        (("add", "flow", "whole.toml"), "gorba submit hands in whole workflows"),
        (("add", "flow", "circle.toml"), "tasks wait for each other"),
        (("add", "flow", "wrong.toml"), "a list with the arguments of each element"),
        (("add", "nobody", "more.toml"), "nobody"),
        (("open", "flow"), "has the name 'flow' and has not ended"),
        (("open", "x", "--due", "1", "--due-in", "1s"), "say the same"),
        (("record", "flow"), "there is nothing to record"),
    ],
)  # fmt: skip
def test_mistakes_are_told(
    words: tuple[str, ...], said: str, flow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is added."""
    monkeypatch.chdir(flow)
    done = gorba(flow, *words)
    assert done.exit_code != 0
    assert said in done.output + str(done.exception)
    assert "0/1 tasks" in gorba(flow, "list").output


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Yields the folder of a broker with an open workflow, of which one task waits for a far morning."""
    folder = tmp_path_factory.mktemp("broker")
    tasks = '[[tasks]]\nname = "{}"\nwork = 1\npredecessors = ["{}"]\n'
    (folder / "circle.toml").write_text(tasks.format("x", "y") + tasks.format("y", "x"))
    (folder / "wrong.toml").write_text('[[tasks]]\nname = "x"\nwork = 1\nelements = 0\n')
    (folder / "more.toml").write_text(MORE)
    (folder / "whole.toml").write_text(
        '[[workflows]]\nname = "w"\n[[workflows.tasks]]\nname = "a"\nwork = 1\n'
    )
    (folder / "empty").write_text("\n")
    (folder / "pool.toml").write_text(POOL)
    with serving(configure(folder)):
        gorba(folder, "resources", "add", str(folder / "pool.toml"))
        gorba(folder, "open", "flow", "--earliest", "2090-01-01T00:00Z")
        gorba(folder, "add", "flow", "--name", "a", "--work", "1s", "--", "x")
        yield folder
