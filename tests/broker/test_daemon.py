"""The daemon as a process: a live cycle, and every way in which it can end."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog

from broker.client import BrokerClient, CallError
from broker.daemon import DaemonError, serve
from broker.model.additions import Addition
from broker.model.resources import Resource
from broker.model.workflow import Alternative, OpenWorkflow, Task
from broker.runtime.journal import Journal, JournalError
from broker.scheduler.records import ResourceSet, Supply
from broker.v1 import workflow_pb2
from grms.daemon.logs import configure_logs
from tests.broker.brokers import (
    Process,
    check_history,
    configure,
    diamond,
    register,
    serving,
    until_back,
    until_running,
)
from tests.grms.keys import new_federation

pytestmark = pytest.mark.usefixtures("forks")

SIMULATED = workflow_pb2.WORKFLOW_STATE_SIMULATED
CANCELLED = workflow_pb2.WORKFLOW_STATE_CANCELLED
POOL = tuple(Supply(Resource(name, capacity=2)) for name in ("alpha", "beta", "gamma"))
NAMES = tuple(supply.name for supply in POOL)


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    """Puts this process's log back as it was: others read theirs at every level."""
    yield
    structlog.reset_defaults()


def test_a_live_cycle_with_a_breakdown_a_cancel_and_a_kill(tmp_path: Path) -> None:
    """All that was taken is done once, in order, over a kill -9 of the broker.

    Workflows arrive one after another; a resource breaks under a task that runs, one workflow is
    cancelled, and the broker is killed in the middle of it all.
    """
    config = configure(tmp_path, "[simulation]\nshortest = 0.5\n")
    with serving(config) as (process, client):
        register(client, *POOL)
        client.submit(diamond("first", 0.5, *NAMES, first=4.0))
        client.submit(diamond("second", 1.0, *NAMES))
        place = until_running(client, "first")
        client.update(Supply(Resource(place, capacity=2), broken=True))
        client.submit(diamond("third", 0.5, *NAMES))
        later = client.plan().now_s + 600.0
        client.submit(replace(diamond("unwanted", 5.0, *NAMES), earliest_start=later))
        client.cancel("unwanted")
        process.end(signal.SIGKILL)
        process.start()
        until_back(client)
        client.submit(diamond("fourth", 0.5, *NAMES))
        ended = {name: client.wait(name) for name in ("first", "second", "third", "fourth")}
        assert {name: message.state for name, message in ended.items()} == dict.fromkeys(
            ended, SIMULATED
        )
        assert client.wait("unwanted").state == CANCELLED
        assert process.end(signal.SIGTERM) == 0
    launches = check_history(tmp_path / "broker.journal")
    assert sum(name.startswith("first/") for name in launches) == 4
    assert not any(name.startswith("unwanted/") for name in launches)
    assert sum(launches.values()) >= 17, "the task on the broken resource has run twice"


def test_what_ran_over_a_kill_is_taken_up_by_its_id(tmp_path: Path) -> None:
    """A task that runs when the broker is killed is not launched a second time."""
    config = configure(tmp_path, margin=1.5)
    with serving(config) as (process, client):
        register(client, *POOL)
        taken = client.submit(diamond("flow", 1.0, *NAMES, first=6.0), key="once")
        until_running(client, "flow")
        process.end(signal.SIGKILL)
        process.start()
        until_back(client)
        again = client.submit(diamond("flow", 1.0, *NAMES, first=6.0), key="once")
        assert again.workflow_id == taken.workflow_id
        ended = client.wait("flow")
        assert ended.state == SIMULATED
        assert [task.runs for task in ended.tasks] == [1, 1, 1, 1]
        assert len(client.workflows()) == 1
        process.end(signal.SIGTERM)
    assert set(check_history(tmp_path / "broker.journal").values()) == {1}


def test_what_is_added_while_the_broker_is_killed_is_there_once(tmp_path: Path) -> None:
    """Two add to one workflow, one by one, over two kills; each task is taken once, and runs once.

    No reservation is over before a slow machine has launched into it: that would be one more launch.
    """
    config = configure(tmp_path, "[simulation]\nshortest = 0.5\n", margin=60.0)
    alternatives = tuple(Alternative.of(name) for name in NAMES)

    def added(which: str) -> None:
        with BrokerClient(tmp_path / "gorba.sock", timeout_s=300) as own:
            for number in range(40):
                before = (f"{which}{number - 1}",) if number % 4 else ()
                own.add("flow", [Addition(Task(f"{which}{number}", 0.05, alternatives, before))])

    with serving(config) as (process, client), ThreadPoolExecutor(2) as pool:
        register(client, *POOL)
        opened = client.open(OpenWorkflow("flow", ()), key="once")
        adding = [pool.submit(added, which) for which in "xy"]
        for some in (10, 30):
            assert any(seen.tasks_total >= some for seen in client.watch("flow"))
            process.end(signal.SIGKILL)
            process.start()
            until_back(client)
        for each in adding:
            each.result(300)
        assert client.open(OpenWorkflow("flow", ()), key="once").workflow_id == opened.workflow_id
        seen = client.get("flow")
        assert (seen.tasks_total, seen.open, len(client.workflows())) == (80, True, 1)
        client.close("flow")
        assert client.wait("flow").state == SIMULATED
        process.end(signal.SIGTERM)
    launches = check_history(tmp_path / "broker.journal")
    assert set(launches) == {f"flow/{which}{number}" for which in "xy" for number in range(40)}
    assert set(launches.values()) == {1}


def test_failed_runs_and_refused_bookings_are_tried_again(tmp_path: Path) -> None:
    """With much going wrong the workflow is done all the same.

    By this seed the first booking is refused, and the first runs fail.
    """
    chance = "[simulation]\nseed = 227\nfailing = 0.5\nrefusing = 0.3\n[limits]\nruns = 50\n"
    with serving(configure(tmp_path, chance)) as (process, client):
        register(client, *POOL)
        ended = client.wait(client.submit(diamond("flow", 0.2, *NAMES)).workflow_id)
        assert ended.state == SIMULATED
        process.end(signal.SIGTERM)
    launches = check_history(tmp_path / "broker.journal")
    assert sum(launches.values()) > 4


def test_a_workflow_fails_where_a_task_fails_too_often(tmp_path: Path) -> None:
    """The reason names the task."""
    chance = "[simulation]\nfailing = 1.0\n[limits]\nruns = 2\n"
    with serving(configure(tmp_path, chance)) as (_, client):
        register(client, *POOL)
        ended = client.wait(client.submit(diamond("flow", 0.2, *NAMES)).workflow_id)
        assert ended.state == workflow_pb2.WORKFLOW_STATE_FAILED
        assert [task.runs for task in ended.tasks] == [2, 0, 0, 0]


def test_the_search_and_the_plan_can_be_watched(tmp_path: Path) -> None:
    """Progress comes while a search runs, then the figures of the plan; the plan has all places."""
    # Long tasks and a long cycle: the plan is looked at before anything in it has changed. A long
    # search: it is not over before its first generation is.
    with serving(configure(tmp_path, every=600.0, slot=12.0)) as (_, client):
        register(client, *POOL)
        news = client.watch_plan()
        client.submit(diamond("flow", 600.0, *NAMES))
        seen = []
        for each in news:
            seen.append(each.WhichOneof("news"))
            if seen[-1] == "end":
                assert (each.end.planned, each.end.unplanned) == (3, 0), "the first one runs"
                assert each.end.fitness > 0
                break
        assert "progress" in seen
        plan = client.plan()
        assert plan.number == 1
        assert plan.placements[0].task == "a"
        assert len(plan.placements) == 4
        assert client.replan() == 2


def test_errors_have_a_code_and_name_what_is_wrong(tmp_path: Path) -> None:
    """A caller learns what it can put right."""
    with serving(configure(tmp_path)) as (_, client):
        register(client, *POOL)
        with pytest.raises(CallError, match="delta") as refused:
            client.submit(diamond("flow", 1.0, "delta"))
        assert refused.value.code == "INVALID_ARGUMENT"
        with pytest.raises(CallError, match="nobody"):
            client.get("nobody")
        with pytest.raises(CallError, match="no site 'riga'") as refused:
            client.register(Supply(Resource("delta"), "riga"))
        assert refused.value.code == "INVALID_ARGUMENT"
        with pytest.raises(CallError, match="update it instead") as refused:
            client.register(replace(POOL[0], resource=Resource("alpha", price=1.0)))
        assert refused.value.code == "FAILED_PRECONDITION"


def test_bytes_that_are_no_message_are_the_caller_s_fault(tmp_path: Path) -> None:
    """They are INVALID_ARGUMENT, as at a site, and the broker goes on."""
    with serving(configure(tmp_path)) as (_, client):
        with grpc.insecure_channel(f"unix:{tmp_path}/gorba.sock") as channel:
            raw: Any = channel.unary_unary("/broker.v1.WorkflowService/Submit")
            with pytest.raises(grpc.RpcError) as refused:
                raw(b"\xff\xff\xff", timeout=300)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert client.workflows() == []
        # Commands that ask once need neither gRPC's library nor numpy.
        program = (
            "import sys; from broker.cli.main import run_command\n"
            "status = run_command(['status', '--socket', sys.argv[1]])\n"
            "print(status, {'asyncio', 'grpc', 'numpy', 'ssl'} & set(sys.modules))"
        )
        words = [sys.executable, "-B", "-c", program, str(tmp_path / "gorba.sock")]  # no fork
        assert subprocess.check_output(words, text=True).endswith("0 set()\n")  # noqa: S603  # this very interpreter


def test_the_first_signal_drains_and_leaves_no_socket(tmp_path: Path) -> None:
    """It ends with status 0, those who watch are told, and the journal goes on with the next."""
    config = configure(tmp_path)
    with serving(config) as (process, client):
        register(client, *POOL)
        assert process.end(signal.SIGTERM) == 0
        assert not (tmp_path / "gorba.sock").exists()
        with (
            BrokerClient(tmp_path / "gorba.sock", timeout_s=0.2) as other,
            pytest.raises(CallError, match="is it running"),
        ):
            other.workflows()
        process.start()
        until_back(client)
        assert [supply.name for supply in client.resources()] == list(NAMES)


def test_a_broker_goes_on_after_its_clock_was_ahead(tmp_path: Path) -> None:
    """An hour is said and gone on from; a month takes the word of who runs it."""
    config = configure(tmp_path)
    ahead = time.time() + 3600.0
    with Journal(tmp_path / "broker.journal") as journal:
        journal.append([ResourceSet(ahead, POOL[0])])
    with serving(config) as (process, client):
        assert 3500 < process.logged("clock_behind_journal")["ahead_s"] <= 3600
        client.submit(diamond("flow", 0.3, POOL[0].name))
        ended = client.wait("flow")
        assert ended.state == SIMULATED
        assert ahead <= ended.submit_time_s <= ended.end_time_s
        assert process.end(signal.SIGTERM) == 0
    with Journal(tmp_path / "broker.journal") as journal:
        journal.append([ResourceSet(ahead + 30 * 86_400.0, POOL[1])])
    with pytest.raises(JournalError, match="start once with --behind"):
        serve(config, configure_logs())


def test_only_one_broker_has_a_journal(tmp_path: Path) -> None:
    """A second one says so, and does not touch the socket of the first."""
    config = configure(tmp_path)
    with serving(config) as (_, client):
        with pytest.raises(JournalError, match="only one broker"):
            serve(config, configure_logs())
        assert client.workflows() == []


def test_a_broker_does_not_take_the_socket_of_another(tmp_path: Path) -> None:
    """With another journal and the same socket it does not start, and the first goes on."""
    config = configure(tmp_path)
    with serving(config) as (process, client):
        other = tmp_path / "other.toml"
        other.write_text(config.read_text().replace("broker.journal", "other.journal"))
        with pytest.raises(DaemonError, match="another process listens on"):
            serve(other, configure_logs())
        assert client.workflows() == []
        process.end(signal.SIGKILL)
        assert (tmp_path / "gorba.sock").exists(), "left behind by the kill"
        process.start()
        until_back(client)
        assert client.workflows() == []


def test_a_socket_without_a_folder_is_said(tmp_path: Path) -> None:
    """Nothing is made there."""
    config = configure(tmp_path)
    config.write_text(config.read_text().replace("gorba.sock", "none/gorba.sock"))
    with pytest.raises(DaemonError, match="folder must exist"):
        serve(config, configure_logs())
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", ["plain", "plain/x", "gone/x"])
def test_a_folder_in_which_no_file_can_be_kept_is_said_at_the_start(
    name: str, tmp_path: Path
) -> None:
    """The daemon does not start; nothing is made there."""
    (tmp_path / "plain").write_text("no folder")
    (tmp_path / "gone").symlink_to(tmp_path / "none")
    first = tmp_path / name.partition("/")[0]
    config = configure(tmp_path, f'[files]\nfolder = "{name}"\n')
    with pytest.raises(DaemonError) as caught:
        serve(config, configure_logs())
    assert str(caught.value) == f"files.folder: {first} is no folder"
    assert not (tmp_path / "none").exists()


def test_a_file_in_the_socket_s_place_is_left_alone(tmp_path: Path) -> None:
    """The daemon does not start and names the file."""
    config = configure(tmp_path)
    (tmp_path / "gorba.sock").write_text("mine")
    with pytest.raises(DaemonError, match=r"gorba\.sock"):
        serve(config, configure_logs())
    assert (tmp_path / "gorba.sock").read_text() == "mine"


def test_keys_that_cannot_be_used_are_said_at_the_start(tmp_path: Path) -> None:
    """A file that is not there, a key that is another's, and a certificate that has ended."""
    before = datetime.now(UTC) - timedelta(days=90)
    federation = new_federation(tmp_path, now=before)
    good = federation.site("hanse-broker")
    old = federation.site("old", now=before)
    for files, words in (
        (replace(good, certificate=tmp_path / "none.crt"), "none.crt"),
        (replace(good, key=old.key), "is not the key of"),
        (old, "renew it"),
    ):
        entry = (
            f'[[sites]]\nname = "riga"\naddress = "127.0.0.1:1"\n[sites.tls]\n'
            f'authority = "{files.authority}"\ncertificate = "{files.certificate}"\n'
            f'key = "{files.key}"\n'
        )
        with pytest.raises(DaemonError, match=f"site riga: .*{words}"):
            serve(configure(tmp_path, entry), configure_logs())


def test_the_socket_is_the_daemon_s_own(tmp_path: Path) -> None:
    """Nobody else may open it."""
    with serving(configure(tmp_path)):
        assert (tmp_path / "gorba.sock").stat().st_mode & 0o777 == 0o600


def test_a_process_without_configuration_ends(tmp_path: Path) -> None:
    """Its status is not 0."""
    process = Process(tmp_path / "missing.toml")
    process.start()
    assert process.wait() != 0
