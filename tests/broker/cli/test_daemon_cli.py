"""The commands around a broker, with one that serves."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from broker.cli.daemon_cli import _changes, worse_status
from broker.cli.main import cli
from broker.client import BrokerClient
from broker.io.plans import read_plan
from broker.v1 import workflow_pb2
from tests.broker.brokers import configure, serving
from tests.broker.io.test_wfformat import diamond
from tests.schemas import printed, printed_lines

pytestmark = pytest.mark.usefixtures("forks")

FILES = """
[[resources]]
name = "alpha"
[[resources]]
name = "beta"
performance = 2.0
[[workflows]]
name = "flow"
[[workflows.tasks]]
name = "a"
work = 0.4
alternatives = ["alpha", "beta"]
[[workflows.tasks]]
name = "b"
work = 0.4
predecessors = ["a"]
alternatives = ["alpha", "beta"]
"""


def gorba(folder: Path, *arguments: str) -> Result:
    """Runs a command with the socket of the broker."""
    return CliRunner().invoke(cli, arguments, env={"GORBA_SOCKET": str(folder / "gorba.sock")})


def test_a_workflow_from_file_to_end(tmp_path: Path) -> None:
    """Resources are added, a workflow handed in, followed, listed, and its plan shown."""
    path = tmp_path / "all.toml"
    path.write_text(FILES)
    with serving(configure(tmp_path)):
        assert gorba(tmp_path, "plan", "show").output == "there is no plan yet\n"
        added = gorba(tmp_path, "resources", "add", str(path))
        assert added.output.split() == ["alpha", "beta"]
        head, first, second = gorba(tmp_path, "resources", "list").output.splitlines()
        assert head.split() == ["RESOURCE", "KIND", "SPEED", "UNITS", "PRICE", "SITE"]
        assert first.split() == ["alpha", "cpu", "1", "1", "0", "simulated"]
        assert second.split() == ["beta", "cpu", "2", "1", "0", "simulated"]
        told = printed(
            "gorba-resources-list", gorba(tmp_path, "resources", "list", "--json").output
        )
        assert [each["performance"] for each in told["resources"]] == [1.0, 2.0]
        taken = gorba(tmp_path, "submit", str(path), "--key", "k")
        assert taken.output == "w1\n"
        assert gorba(tmp_path, "submit", str(path), "--key", "k").output == "w1\n"
        followed = gorba(tmp_path, "watch", "flow")
        assert "b: simulated" in followed.output
        assert followed.output.rstrip().splitlines()[-1].startswith("w1 ")
        chart = gorba(tmp_path, "watch", "flow", "--chart").output.splitlines()
        assert chart[0].startswith("w1 ")
        assert [line.split()[0] for line in chart[3:]] == ["a", "b"]
        assert all("█" in line for line in chart[3:])
        for words in (["--chart"], ["flow", "--chart", "--json"]):
            assert "--chart shows one workflow" in gorba(tmp_path, "watch", *words).output
        assert "simulated  2/2 tasks" in gorba(tmp_path, "list").output
        assert gorba(tmp_path, "list", "--open").output == ""
        (ended,) = printed("gorba-list", gorba(tmp_path, "list", "--json").output)["workflows"]
        assert (ended["name"], ended["state"], ended["tasks_completed"]) == ("flow", "simulated", 0)
        assert ended["tasks_simulated"] == 2
        seen = printed_lines("gorba-watch", gorba(tmp_path, "watch", "flow", "--json").output)
        assert [task["state"] for task in seen[-1]["tasks"]] == ["simulated", "simulated"]
        assert gorba(tmp_path, "plan", "show").output.startswith("plan ")
        assert int(gorba(tmp_path, "replan").output) >= 2
        again = gorba(tmp_path, "submit", str(path), "--wait")
        assert (again.exit_code, "simulated  2/2 tasks" in again.output) == (3, True)


def test_a_file_without_workflows_is_not_handed_in(tmp_path: Path) -> None:
    """Nothing was, and a script would wait for nothing."""
    (tmp_path / "none.toml").write_text('[[resources]]\nname = "alpha"\n')
    with serving(configure(tmp_path)):
        refused = gorba(tmp_path, "submit", str(tmp_path / "none.toml"), "--wait")
    assert refused.exit_code == 2
    assert "there is no workflow in " in refused.output
    assert "none.toml" in refused.output


def test_a_folder_in_which_no_file_can_be_kept_is_named(tmp_path: Path) -> None:
    """With the key that says where it is; nothing is handed in."""
    (tmp_path / "one.toml").write_text('[[resources]]\nname = "alpha"\n')
    with serving(configure(tmp_path, '[files]\nfolder = "plain/x"\n')):
        (tmp_path / "plain").write_text("no folder")
        gorba(tmp_path, "resources", "add", str(tmp_path / "one.toml"))
        given = str(tmp_path / "one.toml")
        refused = gorba(
            tmp_path, "submit", "--work", "1s", "--input", given, "--", "cat", "one.toml"
        )
        assert gorba(tmp_path, "list").output == ""
    said = str(refused.exception)
    assert f"(files.folder): {tmp_path}/plain/x/" in said
    assert "Not a directory" in said
    assert "Errno" not in said


def test_commands_of_a_recording_are_said_not_to_be_run(tmp_path: Path) -> None:
    """A recording whose tasks name programs says that none of them is run; one without says nothing."""
    pool, recording = tmp_path / "all.toml", tmp_path / "made.json"
    pool.write_text(FILES.replace('name = "beta"', 'name = "beta"\ncapacity = 4'))
    document = diamond()
    for run in document["workflow"]["execution"]["tasks"]:
        run["runtimeInSeconds"] = 0.4
        run["command"] = {"program": "fold", "arguments": ["-n", "3"]}
    recording.write_text(json.dumps(document))
    with serving(configure(tmp_path)):
        gorba(tmp_path, "resources", "add", str(pool))
        said = gorba(tmp_path, "submit", str(recording))
        tasks = len(document["workflow"]["execution"]["tasks"])
        assert f"made.json: the commands of {tasks} tasks are not run" in said.stderr
        assert said.stdout == "w1\n"
        assert gorba(tmp_path, "submit", str(pool)).stderr == ""


@pytest.mark.parametrize(
    ("states", "status"),
    [
        (["completed"], 0),
        (["completed", "simulated"], 3),
        (["simulated", "failed"], 1),
        (["cancelled", "simulated", "completed"], 1),
    ],
)
def test_the_status_after_waiting_says_the_worst(states: list[str], status: int) -> None:
    """Only where every program was run to a good end it is 0."""
    found = 0
    for state in states:
        found = worse_status(found, state)
    assert found == status


def test_limits_of_a_workflow_and_its_plan_as_files(tmp_path: Path) -> None:
    """Due date, budget and preference are handed in; the plan is written as JSON and as a page."""
    path = tmp_path / "all.toml"
    path.write_text(FILES.replace("work = 0.4", "work = 900"))
    with serving(configure(tmp_path)):
        gorba(tmp_path, "resources", "add", str(path))
        both = gorba(tmp_path, "submit", str(path), "--due", "5", "--due-in", "5s")
        assert both.exit_code == 2
        assert "give one of them" in both.output
        limits = ("--due-in", "2h", "--budget", "12.5", "--preference", "cheap")
        assert gorba(tmp_path, "submit", str(path), *limits).output == "w1\n"
        with BrokerClient(tmp_path / "gorba.sock") as broker:
            (workflow,) = broker.workflows()
            assert workflow.budget == 12.5
            assert 7100 < workflow.due_date_s - broker.plan().now_s <= 7200
        json_path, html_path = tmp_path / "plan.json", tmp_path / "plan.html"
        written = gorba(
            tmp_path, "plan", "show", "--json", str(json_path), "--html", str(html_path)
        )
        # The first task begins before there is a plan, the other one has a place then.
        while written.exit_code or {each.task for each in read_plan(json_path)} != {"a", "b"}:
            assert not written.exit_code or "nothing to draw" in str(written.exception)
            written = gorba(
                tmp_path, "plan", "show", "--json", str(json_path), "--html", str(html_path)
            )
        assert "flow" in html_path.read_text()
        wrong = gorba(tmp_path, "plan", "show", "--workflow", "w9")
        assert "'w9'" in str(wrong.exception)
        said = gorba(tmp_path, "plan", "show", "--workflow", "w1", "--json", "-")
        assert printed("gorba-plan", said.stdout)["format"] == "hanse plan 1"


def test_watching_tells_why_a_site_does_not_begin_a_task() -> None:
    """Each reason once, and that nothing hinders it any more."""
    message, shown = workflow_pb2.Workflow(), dict[str, str]()
    (task,) = [message.tasks.add(name="t", state=workflow_pb2.TASK_STATE_LAUNCHED)]
    told = []
    for reason in ("", "main is closed", "main is closed", "main is down", ""):
        task.reason = reason
        told += _changes(message, shown)
    task.state = workflow_pb2.TASK_STATE_RUNNING
    told += _changes(message, shown)
    plain = "  t: launched (no place)"
    reasons = [f"{plain}: main is closed", f"{plain}: main is down"]
    assert told == [plain, *reasons, plain, "  t: running (no place)"]
