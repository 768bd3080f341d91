"""What releases have written is read by this program: journals, messages of the wire, files (docs/compatibility.md)."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pool import Default
from google.protobuf.message_factory import GetMessageClass

import broker.cli.main
from broker.io.plans import read_plan
from broker.runtime.journal import Journal as BrokerJournal
from broker.scheduler.state_tables import StateTables
from grms.daemon.journal_lines import checked, lines
from grms.daemon.ports import free_port
from grms.policy.files import load_rule_base
from grms.v1 import job_pb2, request_pb2
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Easy
from lrms_sim.util.version import __version__
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.schedule import MachineInfo
from lrms_sim.workload.schedule_files import read_csv
from lrms_sim.workload.swf import read_swf
from tests.grms.site.daemons import document, running
from tests.release.record import JOURNALS, plain
from tests.waiting import TIME_OUT_S

RECORDED = sorted(path for path in Path(__file__).parent.iterdir() if (path / "commit").exists())

each_release = pytest.mark.parametrize("folder", RECORDED, ids=lambda path: path.name)


def has(later: Any, recorded: Any) -> bool:
    """Returns whether something says all that was recorded; it may say more."""
    if isinstance(recorded, dict) and isinstance(later, dict):
        return all(name in later and has(later[name], recorded[name]) for name in recorded)
    if isinstance(recorded, list) and isinstance(later, list):
        return len(later) == len(recorded) and all(map(has, later, recorded))
    return bool(later == recorded)


def test_this_version_is_recorded() -> None:
    """With the commit that wrote it."""
    assert __version__ in {path.name for path in RECORDED}
    for path in RECORDED:
        assert len((path / "commit").read_text().strip()) == 40


@each_release
@pytest.mark.parametrize("name", JOURNALS)
def test_journals_are_read(folder: Path, name: str) -> None:
    """Every kind of record, with every value; more may have come to it."""
    path = folder / f"{name}.journal"
    found = [json.loads(line) for line in lines(path, JOURNALS[name])]
    recorded = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    assert len(found) == len(recorded)
    for later, before in zip(found, recorded, strict=True):
        assert has(later, before), before
    assert checked(path, JOURNALS[name]).written_by == folder.name


@each_release
async def test_a_daemon_goes_on_with_the_journal_of_a_site(folder: Path, tmp_path: Path) -> None:
    """Its jobs are there, and it takes new ones."""
    shutil.copy(folder / "site.journal", tmp_path / "home.journal")
    configuration = document(tmp_path, partners={"away": free_port()}, port=free_port())
    async with running(configuration, tmp_path) as site:
        for number, where in ((1, "home"), (2, "away")):
            asked = job_pb2.GetRequest(job_id=f"home-{number}")
            job = await site.jobs.Get(asked, timeout=TIME_OUT_S)
            assert (job.outcome, job.executed_on) == (request_pb2.OUTCOME_COMPLETED, where)
        again = await site.submit("stays", processors=4, run_time_s=0.2)
        assert again.job_id == "home-1"
        new = await site.submit("new")
        assert int(new.job_id.removeprefix("home-")) > 3


@each_release
def test_a_broker_goes_on_with_its_journal(folder: Path, tmp_path: Path) -> None:
    """All records can be applied, and others be written behind them."""
    shutil.copy(folder / "broker.journal", tmp_path / "broker.journal")
    with BrokerJournal(tmp_path / "broker.journal") as journal:
        records = list(journal.records())
        memory = StateTables()
        for record in records:
            memory.apply(record)
        assert memory.workflows
        journal.append(records[-1:])


@each_release
def test_messages_of_the_wire_are_read(folder: Path) -> None:
    """They say what they said, nothing of it is unknown, and they are the same bytes again."""
    recorded = json.loads((folder / "wire.json").read_text(encoding="utf-8"))
    assert len(recorded) > 80
    for name, before in recorded.items():
        message = GetMessageClass(Default().FindMessageTypeByName(name))()
        packed = base64.b64decode(before["bytes"])
        message.ParseFromString(packed)
        assert plain(message) == before["says"], name
        assert message.SerializeToString(deterministic=True) == packed, name


@each_release
def test_files_are_read(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A rule base, a plan, a log, and a schedule, which is made again."""
    assert load_rule_base(folder / "rule-base.json").rules
    plan = read_plan(folder / "plan.json")
    assert len(plan.placements) == 8
    words = ["plan", str(folder / "problem.json"), "--evaluations", "50", "--now", "1"]
    words += ["--old", str(folder / "plan.json"), "--json", str(tmp_path / "again.json")]
    assert broker.cli.main.run_command(words) == 0, capsys.readouterr().err
    schedule = read_csv(folder / "schedule.csv", [MachineInfo("log", 8)])
    log = prepare(read_swf(folder / "log.swf"), 8).jobs
    assert simulate(log, 8, Easy()).start_time.tolist() == schedule.start_time.tolist()
