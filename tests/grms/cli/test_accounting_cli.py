"""What exchange has brought and what other policies would, as operators see it in a terminal."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from grms.cli.main import run_command
from grms.policy.files import save_rule_base
from grms.policy.transfer import Gaussian, Rule, RuleBase
from grms.site.model import records
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import Record
from grms.site.runtime.journal import Journal
from tests.grms.site.accounting.stories import at_home, at_partner, guest, received
from tests.schemas import printed

SITE = """
name = "home"
processors = 8
[clock]
kind = "{clock}"
[lrms]
kind = "simulated"
discipline = "easy"
[listen]
users = "home.sock"
[journal]
path = "home.journal"
"""
DAY = 86400.0
BEGIN = 1_767_225_600.0
"""The first second of 2026."""

LONG = "a-partner-with-a-long-name"


def site(folder: Path, story: Sequence[Record], clock: str = "virtual") -> str:
    """Returns the path of a site's configuration, with a journal beside it."""
    path = folder / "site.toml"
    path.write_text(SITE.format(clock=clock))
    with Journal(folder / "home.journal", "home", durability="process") as journal:
        journal.append(story)
    return str(path)


def week(begin: float = 0.0) -> list[Record]:
    """Returns the story of a site that gives and takes."""
    never = records.JobEnded(begin + 9.0, 4, Outcome.CANCELLED, begin + 9.0, 0.0, "")
    return [
        *at_home(1, begin, begin, 3600.0, 8),
        *at_partner(2, begin, begin + 60.0, 7200.0, 4, partner=LONG),
        *guest(1, begin + 100.0, begin + 3600.0, 1800.0, 8),
        *at_home(3, begin + 200.0, begin + 5400.0, 3600.0, 8),
        received(4, begin),
        never,
        received(5, begin + DAY),
    ]


def test_what_exchange_has_brought_fits_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows by place, rows by partner, and what the figures cannot say."""
    assert run_command(["exchange", site(tmp_path, week())]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 79
    assert lines == [
        "Site home, 0 s to 86,400 s",
        "",
        "Own users' jobs that have ended, as it was and alone",
        "",
        "RAN AT            JOBS     PROC-H   WAIT/s  ALONE/s    AWRT/s   ALONE/s  BETTER",
        "home                 2       16.0    2,600    5,300     6,200     8,900  +30.3%",
        "a-partner-wi…        1        8.0       60    3,600     7,260    10,800  +32.8%",
        "all                  3       24.0    1,753    4,733     6,553     9,533  +31.3%",
        "",
        "PARTNER          GIVEN     PROC-H    TAKEN     PROC-H  TAKEN - GIVEN",
        "a-partner-wi…        1        8.0        0        0.0           -8.0",
        "near                 0        0.0        1        4.0           +4.0",
        "",
        "Alone: the same jobs on 8 processors with easy, as if there were no partners.",
        "1 own job has not ended and cannot be replayed; without them the machine alone",
        "is a little too empty, and looks a little too good.",
        "Not compared: 1 never ran.",
        "How well the simulator does: of what ran here it makes an AWRT of 6,200 s for",
        "own jobs at home (±0.0%).",
        "Run times at partners are what these have reported.",
    ]


def test_programs_get_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With units in their names."""
    assert run_command(["exchange", site(tmp_path, week()), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["discipline"] == "easy"
    assert [row["place"] for row in found["places"]] == ["", LONG]
    assert found["total"]["jobs"] == 3
    assert found["total"]["improvement_percent"] == pytest.approx(31.26, abs=0.01)
    assert found["partners"][1] == {
        "name": "near",
        "given": 0,
        "given_work": 0.0,
        "taken": 1,
        "taken_work": 14400.0,
    }
    assert (found["open"], found["never_ran"], found["too_wide"]) == (1, 1, 0)


def test_the_window_is_as_long_as_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In days or hours before the last record, which on a real clock has a date."""
    path = site(tmp_path, week(BEGIN), clock="wall")
    assert run_command(["exchange", path, "--since", "23h"]) == 0
    out = capsys.readouterr().out
    assert "Site home, 2026-01-01 01:00:00 UTC to 2026-01-02 00:00:00 UTC" in out
    assert run_command(["exchange", path, "--since", "1h", "--discipline", "fcfs", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["total"]["jobs"], found["total"]["awrt_s"]) == (0, None)
    assert found["discipline"] == "fcfs"


def test_a_shortened_journal_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is gone cannot be compared."""
    story = [
        *at_home(7, 10.0, 20.0, 30.0),
        records.SiteTally(60.0, 8),
        *at_home(8, 70.0, 70.0, 9.0),
    ]
    assert run_command(["exchange", site(tmp_path, story)]) == 0
    out = capsys.readouterr().out
    assert "since 50 s ([limits] ended_jobs keeps more)" in " ".join(out.split())
    assert "Of partners' jobs that ended before 60 s some or all are gone." in out


def test_a_journal_without_jobs_is_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new site has nothing to say."""
    path = site(tmp_path, [])
    assert run_command(["exchange", path]) == 0
    assert capsys.readouterr().out == "Site home: its journal has no jobs yet\n"
    assert run_command(["exchange", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["end_s"] is None


def test_mistakes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A span that is none, an unknown discipline, a site that has never run."""
    path = site(tmp_path, [])
    for words, problem in (
        (["--since", "a week"], "is no span of time"),
        (["--since", "0h"], "'0h' is no time at all"),
        (["--discipline", "eazy"], "eazy"),
    ):
        assert run_command(["exchange", path, *words]) == 2
        assert problem in capsys.readouterr().err
    (tmp_path / "home.journal").unlink()
    assert run_command(["exchange", path]) == 2
    assert "has the site's daemon ever run?" in capsys.readouterr().err


PARTNER = """
[[partners]]
name = "near"
address = "127.0.0.1:7001"
transfer = "{transfer}"
"""


def days() -> list[Record]:
    """Returns the story of a site that gives the second of two wide jobs each day."""
    story: list[Record] = []
    for day in range(3):
        begin = day * DAY
        story += at_home(2 * day + 1, begin, begin, 3600.0, 8)
        story += at_partner(2 * day + 2, begin, begin, 1800.0 * (1 + day), 8)
    return story


def trading(folder: Path, transfer: str = "awf") -> str:
    """Returns the path of the configuration of a site with one partner, and a journal beside it."""
    path = Path(site(folder, days()))
    path.write_text(path.read_text() + PARTNER.format(transfer=transfer))
    return str(path)


def test_policies_stand_beside_the_constants_in_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The policy of now, the words for constraints, and what was; with intervals."""
    assert run_command(["advise", trading(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 79
    assert [line[:18].rstrip() for line in lines[2:10]] == [
        "POLICY",
        "alone",
        "as it was",
        "now",
        "awf",
        "start-now",
        "short-guests",
        "fair-exchange",
    ]
    assert lines[10].startswith("strict-exchange ")
    assert " ".join(lines[-3:]).endswith(
        "Recommended: nothing yet. 6 own jobs of the window have ended; 100, on at least two days, are needed."
    )
    assert lines[3:6] == [
        "alone                   0      0     1,800     5,700   ±0.0%",
        "as it was               3      0         0     3,900  +31.6%   +28.6% to +33.3%",
        "now                     3      0         0     3,900  +31.6%   +28.6% to +33.3%",
    ]


def test_a_candidate_brings_its_own_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A site file as it may become; policies that are named are those that are judged."""
    path = trading(tmp_path)
    candidate = tmp_path / "strict.toml"
    text = Path(path).read_text().replace('transfer = "awf"', 'transfer = "none"')
    candidate.write_text(text)
    words = ["--policy", "keep", "--candidate", str(candidate), "--seed", "4", "--json"]
    assert run_command(["advise", path, *words]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = {row["policy"]: row for row in found["policies"]}
    assert list(rows) == ["alone", "as it was", "now", "awf", "keep", "strict.toml"]
    assert found["seed"] == 4
    assert found["recommendation"] == ""
    assert {row["jobs"] for row in found["policies"]} == {6}
    assert rows["strict.toml"]["given"] == rows["keep"]["given"] == 0
    assert rows["strict.toml"]["improvement_percent"] == 0.0
    assert rows["awf"]["improvement_percent"] == pytest.approx(31.58, abs=0.01)


def test_under_a_discipline_without_an_account_strict_exchange_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who asks for it is told why it is not there."""
    path = trading(tmp_path)
    assert run_command(["advise", path, "--discipline", "conservative"]) == 0
    out = capsys.readouterr().out
    assert "fair-exchange" in out
    assert "strict-exchange" not in out
    words = ["--discipline", "conservative", "--policy", "strict-exchange"]
    assert run_command(["advise", path, *words]) == 2
    assert "keeps an account, which conservative cannot" in capsys.readouterr().err


def test_what_cannot_be_advised_on_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No partners, or a policy that is none."""
    assert run_command(["advise", site(tmp_path, [])]) == 2
    assert "the site exchanges jobs with no partner" in capsys.readouterr().err
    (tmp_path / "home.journal").unlink()
    path = trading(tmp_path)
    assert run_command(["advise", path, "--candidate", path, "--candidate", path]) == 2
    assert "site.toml comes twice" in capsys.readouterr().err
    (tmp_path / "home.journal").unlink()
    assert run_command(["advise", trading(tmp_path), "--policy", "nice.json"]) == 2
    assert "nice.json" in capsys.readouterr().err
    (tmp_path / "home.journal").unlink()
    near, file = Gaussian(0, 1), tmp_path / "learned.json"
    save_rule_base(RuleBase((Rule(near, near, accept=True, starts_now=near),), "mine"), file)
    assert run_command(["advise", trading(tmp_path), "--policy", str(file)]) == 2
    assert "the rule base mine looks at starts_now" in capsys.readouterr().err


# --- the account of strict exchange --------------------------------------------------------------


def strict_site(folder: Path, story: Sequence[Record]) -> str:
    """Returns the same for a site that keeps an account of itself."""
    path = Path(site(folder, story))
    text = path.read_text(encoding="utf-8").replace(
        "[clock]", 'rails = "strict-exchange"\n[clock]', 1
    )
    partner = f'[[partners]]\nname = "{LONG}"\naddress = "127.0.0.1:7001"\n'
    path.write_text(text + partner, encoding="utf-8")
    return str(path)


def looks(last: float) -> list[Record]:
    """Returns a look at every multiple of the period."""
    return [records.AccountLooked(900.0 * number) for number in range(int(last / 900) + 1)]


def in_order(story: Sequence[Record]) -> list[Record]:
    """Returns records as a daemon writes them."""
    return sorted(story, key=lambda record: record.time)


def test_the_account_of_a_site_in_sentences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # It waits though its machine is idle, and so would have run alone.
    waits = [received(6, 20_000.0), records.JobKept(20_000.0, 6)]
    story = in_order([*week()[:-1], *waits, *looks(21_600.0)])
    config = strict_site(tmp_path, story)
    assert run_command(["exchange", config]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Account: the site is not in credit since" in out
    assert "own jobs waited before any had ended that exchange could have saved" in out
    assert (
        "Guests that run here: 0 protected, 0 that go when an own job needs their processors" in out
    )
    assert "4.0 lent to partners' jobs" in out
    assert "8.0 got from partners" in out
    assert "It is too early for a sentence: the account has compared 3 own jobs" in out
    assert run_command(["exchange", config, "--chart"]) == 0
    chart = capsys.readouterr().out
    assert max(map(len, chart.splitlines())) <= 80
    assert "Account, hours of own users' waiting, 30 days to 21,600 s" in chart
    assert run_command(["exchange", config, "--json"]) == 0
    account = printed("grms-exchange", capsys.readouterr().out)["account"]
    assert account["in_credit"] is False
    assert account["turned_owed_hours"] is None
    assert account["owed_hours"] > 0
    assert account["balance_hours"] == account["saved_hours"] - account["owed_hours"]
    assert account["sentence"] in out
    assert [point["looks"] for point in account["history"]] == [8, 8, 8, 1]
    assert account["history"][-1]["balance_hours"] == account["balance_hours"]
    assert account["history"][-1]["late"] == 1
    assert (account["waiting"], account["guests"]) == (1, "preempt")
    assert (account["lent"], account["given"]) == (4 * 3600.0, 8 * 3600.0)


def test_the_account_of_a_site_that_has_seen_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = strict_site(tmp_path, [received(1, 0.0), records.JobKept(0.0, 1), *looks(0.0)])
    assert run_command(["exchange", config]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Account: the site is in credit, as it was from the beginning." in out
    assert "the account has compared 0 own jobs" in out
    assert "In hours of own users' waiting" not in out
    assert run_command(["exchange", config, "--json"]) == 0
    account = json.loads(capsys.readouterr().out)["account"]
    assert (account["since_s"], account["gain_percent"], account["last_look_s"]) == (
        None,
        None,
        0.0,
    )


def test_a_site_without_strict_exchange_has_no_account(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = site(tmp_path, week())
    assert run_command(["exchange", config]) == 0
    assert "Account" not in capsys.readouterr().out
    assert run_command(["exchange", config, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["account"] is None
    assert run_command(["exchange", config, "--chart"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "the site keeps no account of itself, so there is nothing to draw" in said
