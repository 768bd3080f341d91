"""Programs from the command line: handed in, looked at while they run, and what they leave brought."""

import io
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.cli.files_cli import task_folders
from broker.cli.main import run_command
from broker.client import BrokerClient
from grms.daemon.ports import free_port
from lrms_sim.util.files import to_toml
from tests.broker.brokers import configure, serving
from tests.broker.site_processes import SiteProcess
from tests.broker.site_processes import running as sites_running
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.slurm import wait_for
from tests.grms.site.daemons import document
from tests.schemas import printed

pytestmark = pytest.mark.usefixtures("forks")


@dataclass(frozen=True)
class Done:
    """A command that has ended, and all that it has printed."""

    exit_code: int
    output: str


def gorba(folder: Path, *arguments: str) -> Done:
    """Runs a command with the socket of the broker, in the folder."""
    before, printed = Path.cwd(), io.BytesIO()
    os.chdir(folder)
    try:
        with (
            io.TextIOWrapper(printed, write_through=True) as stream,
            redirect_stdout(stream),
            redirect_stderr(stream),
        ):
            code = run_command([*arguments[:1], "--socket", "gorba.sock", *arguments[1:]])
            return Done(code, printed.getvalue().decode())
    finally:
        os.chdir(before)


@contextmanager
def broker_with_jobs(folder: Path) -> Iterator[BrokerClient]:
    """Yields a broker that runs programs at a site over made up programs of Slurm."""
    cluster = FakeSlurm(folder / "slurm", nodes=1, cpus=4)
    cluster.up()
    (folder / "spool").mkdir()
    lrms: dict[str, Any] = {
        "kind": "slurm",
        "poll_s": 0.1,
        "settle_s": 0.0,
        "spool": str(folder / "spool"),
        "completion_log": cluster.completion_log,
        "programs": cluster.programs,
    }
    site = SiteProcess(folder, "north")
    site.config.write_text(to_toml(document(folder, "north", lrms=lrms)))
    try:
        config = configure(folder, site.entry() + "jobs = { processors = 4 }\n")
        with sites_running([site]), serving(config) as (_, client):
            wait_for(bool(client.resources()) for _ in iter(int, 1))
            yield client
    finally:
        cluster.down()


FLOW = """
[[workflows]]
name = "flow/1"
[[workflows.tasks]]
name = "first"
work = 0.2
limit = 60
command = "cat data >out; echo begun; until [ -e {folder}/go ]; do sleep 0.05; done; echo ended; echo bad >&2"
inputs = ["data"]
outputs = ["out"]
[[workflows.tasks]]
name = "second"
work = 0.2
limit = 60
command = ["wc", "-c", "given"]
inputs = {{ given = "first/out" }}
"""


def test_a_workflow_of_programs_from_file_to_files(tmp_path: Path) -> None:
    """It is handed in, its output is shown while it runs, and its files are brought."""
    (tmp_path / "data").write_text("12345")
    (tmp_path / "flow.toml").write_text(FLOW.format(folder=tmp_path))
    with broker_with_jobs(tmp_path) as client:
        assert gorba(tmp_path, "submit", "flow.toml").output == "w1\n"
        shown = gorba(tmp_path, "logs", "w1", "second")
        assert shown.exit_code == 2
        assert "no program of flow/1/second has begun" in shown.output
        wait_for(gorba(tmp_path, "logs", "w1", "first").output == "begun\n" for _ in iter(int, 1))
        early = gorba(tmp_path, "fetch", "w1")
        assert "no program of workflow 'flow/1' has ended" in early.output
        early = gorba(tmp_path, "fetch", "w1", "first")
        assert (early.exit_code, "first: it has not ended" in early.output) == (1, True)
        (tmp_path / "go").touch()
        followed = gorba(tmp_path, "logs", "flow/1", "first", "--follow")
        assert followed.output == "begun\nended\n"
        client.wait("w1")
        assert gorba(tmp_path, "logs", "w1", "first", "--stderr").output == "bad\n"
        fetched = gorba(tmp_path, "fetch", "w1")
        assert fetched.exit_code == 0, fetched.output
        assert (tmp_path / "flow_1/first/out").read_text() == "12345"
        assert (tmp_path / "flow_1/second/stdout").read_text() == "5 given\n"
        assert gorba(tmp_path, "fetch", "w1", "first").exit_code == 0  # all of it is here
        (tmp_path / "flow_1/first/out").write_text("mine")
        again = gorba(tmp_path, "fetch", "w1", "first")
        assert (again.exit_code, "--force replaces it" in again.output) == (1, True)
        assert gorba(tmp_path, "fetch", "w1", "first", "--force").exit_code == 0
        lines = gorba(tmp_path, "status", "w1").output.splitlines()
        assert lines[1].split()[:2] == ["first", "completed"]
        assert lines[1].endswith("exit code 0")
        told = printed("gorba-status", gorba(tmp_path, "status", "w1", "--json").output)
        assert [each["outcome"] for each in told["tasks"]] == ["completed", "completed"]
        assert [each["name"] for each in told["tasks"][0]["outputs"]] == ["out"]
        for words, said in (
            (("logs", "w1", "third"), "no task 'third'"),
            (("fetch", "w1", "third"), "'third' is no task"),
            (("logs", "w2", "first"), "'w2' is no workflow"),
        ):
            refused = gorba(tmp_path, *words)
            assert refused.exit_code != 0
            assert said in refused.output


@given(st.lists(st.text("ab/:._2", min_size=1), unique=True, max_size=8))
@example(["a/b", "a_b", "a:b", "a_b.2"])
def test_each_task_has_a_folder_of_its_own(tasks: list[str]) -> None:
    """Also where names differ only in what a folder's cannot have; tasks that come later change none."""
    folders = task_folders(tasks)
    assert list(folders) == tasks
    assert len(set(folders.values())) == len(tasks)
    assert not any("/" in folder or folder in {".", ".."} for folder in folders.values())
    assert list(task_folders(tasks[:-1]).items()) == list(folders.items())[: max(0, len(tasks) - 1)]
    assert task_folders(["fit/1", "fit_1", ".."]) == {
        "fit/1": "fit_1",
        "fit_1": "fit_1.2",
        "..": "_",
    }


def test_thousands_of_names_that_make_the_same_folder_are_numbered_in_their_order() -> None:
    """Each from the last one on: with all before it looked at, this took half a minute."""
    tasks = ["".join(signs) for signs in product("/:", repeat=14)]
    numbered = ["_" * 14, *(f"{'_' * 14}.{number}" for number in range(2, len(tasks) + 1))]
    assert list(task_folders(tasks).values()) == numbered


def test_one_command_is_a_workflow(tmp_path: Path) -> None:
    """With its files, variables and limit; the status says what came of it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/data").write_text("given")
    with broker_with_jobs(tmp_path) as client:
        words = ["submit", "--work", "1s", "--time", "60", "--wait"]
        done = gorba(
            tmp_path, *words, "--key", "k", "--input", "in/data", "--input", f"abs={tmp_path}/in/data",
            "--result", "out", "--env", "NAME=x y", "--", "sh", "-c", 'cat in/data abs >out; echo "$NAME"',
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        (task,) = client.get("w1").tasks
        assert b"".join(client.fetch("w1", task.name, "out")) == b"givengiven"
        assert b"".join(client.fetch("w1", task.name, "stdout")) == b"x y\n"
        bad = gorba(tmp_path, *words, "--", "sh", "-c", "exit 7")
        assert bad.exit_code == 1
        assert "  command: failed: it has ended with exit code 7" in bad.output
        lost = gorba(tmp_path, *words, "--result", "absent", "--", "true")
        assert (lost.exit_code, "'absent': it is not there" in lost.output) == (1, True)
        same = gorba(
            tmp_path, *words, "--key", "again", "--name", "mine", "--", "true",
        )  # fmt: skip
        assert same.output == gorba(
            tmp_path, *words, "--key", "again", "--name", "mine", "--", "true",
        ).output  # fmt: skip
        for more, said in (
            (("--on", "absent"), "'absent' is no resource"),
            (("-p", "9"), "no resource of kind 'cpu' has 9 processors"),
            (("--memory", "much"), "no amount of memory"),
            (("--input", "absent"), "absent"),
            (("--env", "NOT_THERE"), "no variable 'NOT_THERE'"),
            (("--result", "../x"), "no name of a file"),
        ):
            refused = gorba(tmp_path, *words, *more, "--", "true")
            assert refused.exit_code != 0
            assert said in refused.output, refused.output
        refused = gorba(tmp_path, "submit", "--result", "x", "flow.toml")
        assert (refused.exit_code, "--result goes with --work" in refused.output) == (2, True)


def test_what_a_url_has_is_given_as_a_file(tmp_path: Path) -> None:
    """It is fetched once, where the workflow is handed in; one that has nothing is said."""
    (tmp_path / "page").write_text("from afar")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, broker_with_jobs(tmp_path):
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            for name, code in (("page", 0), ("absent", 2)):
                url = f"http://127.0.0.1:{server.server_port}/{name}"
                task = {"name": "t", "work": 0.2, "command": f"cat {name}", "inputs": [url]}
                flow = {"workflows": [{"name": name, "tasks": [task]}]}
                (tmp_path / "flow.json").write_text(json.dumps(flow))
                done = gorba(tmp_path, "submit", "flow.json", "--wait")
                assert done.exit_code == code, done.output
            assert f"{url} cannot be fetched: HTTP Error 404" in done.output
            url = f"http://127.0.0.1:{free_port()}/nobody"
            task = {"name": "t", "work": 0.2, "command": "cat nobody", "inputs": [url]}
            (tmp_path / "flow.json").write_text(
                json.dumps({"workflows": [{"name": "nobody", "tasks": [task]}]})
            )
            done = gorba(tmp_path, "submit", "flow.json")
            assert done.output == f"Error: {url} cannot be fetched: Connection refused\n"
        finally:
            server.shutdown()
            thread.join()
        assert gorba(tmp_path, "logs", "page", "t").output == "from afar"
