"""`grms journal` and `gorba journal`."""

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from broker.cli.main import cli as gorba
from broker.runtime.journal import Journal as BrokerJournal
from broker.scheduler.records import KINDS as BROKER_KINDS
from grms.cli.main import cli as grms
from grms.cli.main import run_command
from grms.daemon.journal import Batch, JournalDamagedError, JournalError, Scan
from grms.daemon.journal_lines import checked, lines
from grms.site.model.jobs import GuestRef, OfferId, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import (
    KINDS,
    EpochBegun,
    GuestWithdrawn,
    JobEnded,
    JobKept,
    JobReceived,
    Record,
)
from grms.site.runtime.journal import KIND, Journal
from lrms_sim.util.version import __version__
from tests.broker.runtime.test_codec import lived
from tests.schemas import printed

RECORDS: list[Record] = [
    JobReceived(1.0, 1, "ann", "k", "ü\n", Request(2, 60.0), b"\xff\x00"),
    JobKept(2.0, 1),
    GuestWithdrawn(3.0, GuestRef("away", OfferId(4, 5))),
    JobEnded(math.inf, 1, Outcome.COMPLETED, math.nan, 2.0, ""),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Returns a journal with some records."""
    with Journal(tmp_path / "j", "home") as journal:
        journal.append(RECORDS[:1])
        journal.append(RECORDS[1:])
    return tmp_path / "j"


def grms_journal(*words: str) -> Result:
    """Runs `grms journal`."""
    return CliRunner().invoke(grms, ["journal", *words])


def test_records_are_printed_a_line_each(path: Path) -> None:
    """With their names, whole, and by the names of their fields; a daemon may have the file."""
    with Journal(path, "home"):
        done = grms_journal("show", str(path))
    assert done.exit_code == 0, done.output
    first, second, third, last = map(json.loads, done.output.splitlines())
    assert first == {
        "record": 1,
        "kind": "JobReceived",
        "time": 1.0,
        "job": 1,
        "user": "ann",
        "idempotency_key": "k",
        "name": "ü\n",
        "request": {"processors": 2, "requested_time": 60.0, "needs": None},
        "payload": "/wA=",
        "unfit": "",
        "array": 0,
        "index": 0,
        "dependencies": [],
        "here": False,
        "sites": [],
        "checkpoint": 0.0,
    }
    assert second == {"record": 2, "kind": "JobKept", "time": 2.0, "job": 1}
    assert third["job"] == ["away", {"epoch": 4, "number": 5}]
    assert (last["outcome"], last["time"], last["end_time"]) == ("completed", None, None)


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (("--last", "2"), [3, 4]),
        (("--last", "9"), [1, 2, 3, 4]),
        (("--kind", "JobKept", "--kind", "JobEnded"), [2, 4]),
        (("--kind", "JobKept", "--kind", "JobEnded", "--last", "1"), [4]),
    ],
)
def test_some_records_can_be_asked_for(
    path: Path, words: tuple[str, ...], numbers: list[int]
) -> None:
    """By their kinds, and the last ones."""
    done = grms_journal("show", str(path), *words)
    assert [json.loads(line)["record"] for line in done.output.splitlines()] == numbers


def test_a_kind_that_is_none_is_refused(path: Path) -> None:
    """The message has the likeliest one."""
    done = grms_journal("show", str(path), "--kind", "JobKepd")
    assert isinstance(done.exception, JournalError)
    assert "'JobKepd' is no kind of record, did you mean 'JobKept'?" in str(done.exception)


def test_no_field_hides_the_place_of_a_record() -> None:
    """Nor its kind: a number that a record has is its own."""
    for kind in (*KINDS, *BROKER_KINDS):
        assert not {"record", "kind"} & set(kind.__struct_fields__), kind


def test_what_strangers_have_written_does_not_steer_the_terminal(tmp_path: Path) -> None:
    """It is the same value, as an escape of JSON."""
    name = "\x9b31m\u202e"
    with Journal(tmp_path / "j", "home") as journal:
        journal.append([JobReceived(1.0, 1, "ann", "k", name, Request(2, 60.0), b"")])
    text = grms_journal("show", str(tmp_path / "j")).output
    assert text.rstrip("\n").isprintable()
    assert json.loads(text)["name"] == name


def test_the_last_ones_are_those_of_one_moment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is written meanwhile, or written anew."""
    with Journal(path, "home") as journal:
        decoded = Scan.decoded

        def meanwhile(scan: Scan[Record], batch: Batch) -> list[Record]:
            if scan.count == len(RECORDS):
                journal.replace([JobKept(9.0, 9)])
            return decoded(scan, batch)

        monkeypatch.setattr(Scan, "decoded", meanwhile)
        shown = grms_journal("show", str(path), "--last", "2").output.splitlines()
        assert [json.loads(line)["record"] for line in shown] == [3, 4]
        journal.replace(RECORDS)
        assert checked(path, KIND).unfinished_bytes == 0


def test_all_of_a_journal_is_read(path: Path) -> None:
    """What was never acknowledged is counted, and stays; what is damaged is said with its byte."""
    size = path.stat().st_size
    done = grms_journal("check", str(path))
    assert done.output == (
        f"{path}: 4 records, {size} bytes, all as written; last opened by Hanse {__version__}\n"
    )
    with path.open("ab") as file:
        file.write(bytes(700))
    assert "; 700 bytes more were never acknowledged;" in grms_journal("check", str(path)).output
    done = grms_journal("check", str(path), "--json")
    assert printed("journal-check", done.output)["unfinished_bytes"] == 700
    assert path.stat().st_size == size + 700
    data = path.read_bytes()
    path.write_bytes(data[:200] + b"x" + data[201:size])
    assert run_command(["journal", "check", str(path)]) == 2
    with pytest.raises(JournalDamagedError, match=r"byte \d+: "):
        checked(path, KIND)
    with pytest.raises(JournalDamagedError, match=r"byte \d+: "):
        list(lines(path, KIND))


def test_a_brokers_journal_has_the_same_commands(tmp_path: Path) -> None:
    """Each program reads its own."""
    records = lived(3).journal
    with BrokerJournal(tmp_path / "b") as journal:
        journal.append(records)
    runner = CliRunner()
    shown = runner.invoke(gorba, ["journal", "show", str(tmp_path / "b")])
    assert shown.exit_code == 0, shown.output
    kinds = [json.loads(line)["kind"] for line in shown.output.splitlines()]
    assert kinds == [type(record).__name__ for record in records]
    assert (
        "all as written" in runner.invoke(gorba, ["journal", "check", str(tmp_path / "b")]).output
    )
    other = grms_journal("check", str(tmp_path / "b"))
    assert "the journal of a broker, not of a daemon" in str(other.exception)


def test_numbers_of_a_copy_start_over(path: Path) -> None:
    """Each time with a later epoch; what was in the journal is there, and time does not go on."""
    epochs: list[int] = []
    for _ in range(2):
        done = grms_journal("renumber", str(path))
        assert done.exit_code == 0, done.output
        with Journal(path, "home") as journal:
            *before, last = journal.records()
            assert isinstance(last, EpochBegun)
            assert last.time == 3.0
            assert last.epoch > max([journal.epoch, *epochs])
            assert before[:3] == RECORDS[:3]
        epochs.append(last.epoch)
        assert f"home are named by epoch {last.epoch} " in done.output


def test_numbers_start_over_only_in_a_journal_that_no_daemon_has(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor is a file made that was not there."""
    with Journal(path, "home"):
        assert run_command(["journal", "renumber", str(path)]) == 2
    assert "only one daemon" in capsys.readouterr().err
    missing = path.with_name("missing")
    assert run_command(["journal", "renumber", str(missing)]) == 2
    assert "No such file" in capsys.readouterr().err
    assert not missing.exists()
