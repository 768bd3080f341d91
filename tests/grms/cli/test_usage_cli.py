"""What jobs have used, as operators see it and hand it on."""

import csv
import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from grms.cli.main import run_command
from grms.site.model.lifecycle import Outcome
from grms.site.model.usage import UsageRecord
from grms.site.peers.pseudonyms import Pseudonyms
from grms.site.runtime.usage_log import UsageLog, told_folder, usage_folder
from tests.grms.cli.test_accounting_cli import SITE
from tests.schemas import printed

NEW_YEAR = 1_767_225_600.0
DAY = 86400.0
PSEUDONYM = "0f" * 16
KEY = bytes(range(32))


def record(
    number: int,
    end: float,
    *,
    home: str = "home",
    user: str = "ann",
    site: str = "home",
    run: float = 3600.0,
) -> UsageRecord:
    """Returns the record of a job of 4 processors, 8 GiB and 2 GPUs."""
    key = f"{home}/1f/{number}"
    name = '=cmd, "quoted"\n' if home == "home" else ""
    return UsageRecord(
        number=0,
        time=end + 1.0,
        home=home,
        key=key,
        job_id=f"{home}-{number}",
        name=name,
        user=user,
        account="physics",
        partition="gpu",
        site=site if run else "",
        offer=key if home != site else "",
        processors=4,
        memory_mib=8192,
        gpus=2,
        requested_time=7200.0,
        submit_time=end - run - 60.0,
        start_time=end - run if run else None,
        end_time=end,
        run_time=run,
        outcome=Outcome.COMPLETED if run else Outcome.CANCELLED,
        exit_code=0 if run else None,
        signal=None,
    )


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Returns the configuration of a site with some usage."""
    path = tmp_path / "site.toml"
    path.write_text(
        SITE.format(clock="wall") + "[usage.weights]\nprocessors = 1\nmemory_gib = 0.5\ngpus = 10\n"
    )
    records = [
        record(1, NEW_YEAR - 60.0),
        record(2, NEW_YEAR + 60.0, site="south"),
        record(3, NEW_YEAR + DAY, user="bob"),
        record(4, NEW_YEAR + DAY, home="south", user=PSEUDONYM),
        record(5, NEW_YEAR + DAY, home="south", user=""),
        record(6, NEW_YEAR + 2 * DAY, run=0.0),
        record(7, NEW_YEAR + 40 * DAY),
    ]
    log = UsageLog(usage_folder(tmp_path / "home.journal", "home"), "home")
    log.catch_up(records, NEW_YEAR + 50 * DAY, 24)
    told = [
        replace(records[1], job_id="", user=PSEUDONYM, account="", name="", told_number=1),
        replace(
            record(8, NEW_YEAR + DAY, site="south", run=2700.0),
            user=Pseudonyms(KEY).of("south", "bob"),
            job_id="",
            told_number=2,
        ),
    ]
    theirs = UsageLog(told_folder(log.folder, "south"), "south")
    theirs.catch_up(told, NEW_YEAR + 50 * DAY, 24)
    (tmp_path / "home.pseudonyms.key").write_bytes(KEY)
    (tmp_path / "home.pseudonyms.key").chmod(0o600)
    return str(path)


def test_what_partners_have_told_is_under_own_users_names(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the job that had the offer, or else by whoever has the pseudonym; without the key it stays."""
    for _ in range(2):
        lines = said(capsys, config, "--since", "2000-01", "--told", "--json").splitlines()
        first, second = [printed("grms-usage", line) for line in lines]
        assert (first["user"], first["job_id"], first["account"]) == ("ann", "home-2", "physics")
        assert first["recorded_by"] == second["recorded_by"] == "south"
        if (key := Path(config).parent / "home.pseudonyms.key").exists():
            assert second["user"] == "bob"
            key.unlink()
    assert len(second["user"]) == 32
    assert not key.exists()
    assert "ann" in said(capsys, config, "--month", "2026-01", "--told")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Returns what the command says."""
    assert run_command(["usage", *words]) == 0
    return capsys.readouterr().out


def test_sums_are_by_user_and_site(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Own users' and partners', of one month, with weighted costs; no line is longer than 79 columns."""
    text = said(capsys, config, "--month", "2026-01")
    assert text.splitlines() == [
        "Site home, jobs that have ended in 2026-01",
        "",
        "Own users' jobs, wherever they ran",
        "",
        "USER          ACCOUNT    RAN AT      JOBS    PROC-H     GIB-H   GPU-H    COST-H",
        "ann           physics    south          1       4.0       8.0     2.0      28.0",
        "bob           physics    home           1       4.0       8.0     2.0      28.0",
        "all                                     2       8.0      16.0     4.0      56.0",
        "",
        "Partners' jobs that ran here",
        "",
        "USER THERE    ACCOUNT    HOME        JOBS    PROC-H     GIB-H   GPU-H    COST-H",
        "unknown       physics    south          1       4.0       8.0     2.0      28.0",
        "0f0f0f0f0f0f… physics    south          1       4.0       8.0     2.0      28.0",
        "all                                     2       8.0      16.0     4.0      56.0",
        "",
        "1 job has ended without having run; --csv and --json have them.",
        "",
        "Own users' jobs at partners, by own records and by the partner's",
        "",
        "PARTNER              JOBS       PROC-H   JOBS THERE       PROC-H   DIFFERENCE",
        "south                   1          4.0            2          7.0         +3.0",
    ]
    assert max(map(len, text.splitlines())) <= 79


def test_records_are_the_same_as_csv_and_as_json(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every field, whatever users write into names; times are of UTC."""
    lines = said(capsys, config, "--since", "2025-12", "--until", "2026-01", "--json").splitlines()
    documents = [printed("grms-usage", line) for line in lines]
    rows = list(csv.DictReader(io.StringIO(said(capsys, config, "--until", "2026-01", "--csv"))))
    assert [row["job_id"] for row in rows] == [one["job_id"] for one in documents]
    for row, document in zip(rows, documents, strict=True):
        for field, value in document.items():
            text = "" if value is None else str(value)
            same = row[field] == text or float(row[field]) == value
            assert same, field
    assert [one["month"] for one in documents] == ["2025-12", *["2026-01"] * 5]
    first, second = documents[:2]
    assert first["end_time"] == "2025-12-31T23:59:00Z"
    assert first["start_time"] == "2025-12-31T22:59:00Z"
    assert first["cost"] == 28 * 3600.0
    assert first["record_id"] == "home:home/1f/1"
    assert second["global_job_id"] == "south:home/1f/2"
    assert documents[5]["start_time"] is None
    assert json.loads(lines[0])["job_name"] == '=cmd, "quoted"\n'


@pytest.mark.parametrize(
    ("words", "jobs"),
    [
        (("--user", "ann"), ["home-1", "home-2", "home-6", "home-7"]),
        (("--site", "south"), ["home-2"]),
        (("--home", "south"), ["south-4", "south-5"]),
        (("--user", PSEUDONYM, "--account", "physics"), ["south-4"]),
        (("--account", "chemistry"), []),
        (("--until", "2025-12"), ["home-1"]),
    ],
)
def test_records_can_be_chosen(
    config: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], jobs: list[str]
) -> None:
    """By who, where and when; all conditions have to hold."""
    text = said(capsys, config, "--since", "2000-01", *words, "--json")
    assert [json.loads(line)["job_id"] for line in text.splitlines()] == jobs


def test_a_month_without_jobs_says_so(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """So does a site whose daemon has never run; the present month is the default."""
    assert "No job that has run." in said(capsys, config, "--month", "2031-07")
    assert said(capsys, config, "--month", "2031-07", "--csv").count("\n") == 1
    assert "jobs that have ended in 20" in said(capsys, config)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--month", "2026-13"), "'2026-13' is no month, as 2026-11"),
        (("--since", "last"), "'last' is no month"),
        (("--csv", "--json"), "exclude each other"),
        (("--month", "2026-01", "--since", "2026-01"), "--month excludes"),
    ],
)
def test_what_cannot_be_is_said(
    config: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], text: str
) -> None:
    """With the value, and what is possible."""
    assert run_command(["usage", config, *words]) == 2
    assert text in " ".join(capsys.readouterr().err.split())


def test_a_damaged_log_is_named(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With what to do."""
    path = next((Path(config).parent / "home.usage").glob("*.usage"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert run_command(["usage", config, "--since", "2000-01"]) == 2
    assert "move this file away" in " ".join(capsys.readouterr().err.split())
