import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from scenarios.report.terminal import print_result
from scenarios.run.results import ScenarioResult
from scenarios.run.user_groups import GroupResult
from tests.scenarios.towns import HOSTILE, random_towns, two_towns


def printed(result: ScenarioResult, *, width: int = 80, encoding: str = "utf-8") -> str:
    """Returns what a pipe receives."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="")
    print_result(Console(file=file, width=width), result)
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.fixture(scope="module")
def towns() -> ScenarioResult:
    """Returns three months of three towns."""
    return random_towns(["Lübeck", "Wismar", "Rostock"], 3000)


def test_terminal_shows_the_figures_of_every_site() -> None:
    """The tables hold what the issue of a run is: AWRT, its change, U, ΔSA, makespan, exchange."""
    lines = printed(two_towns()).splitlines()
    assert lines[1].startswith("Lübeck gains, Wismar loses")
    rows = [line.split() for line in lines[4:] if line.startswith(("Lübeck ", "Wismar "))]
    assert rows == [
        ["Lübeck", "150.00", "100.00", "+33.3%", "2", "1", "1"],
        ["Wismar", "55.00", "136.67", "−148.5%", "2", "1", "1"],
        ["Lübeck", "100.0%", "85.7%", "−40.0%", "200", "140", "1"],
        ["Wismar", "66.7%", "66.7%", "+66.7%", "100", "150", "1"],
        ["Lübeck", "1", "1"],
        ["Wismar", "1", "1"],
    ]
    assert "Lübeck: 7 dropped: run time 0 s" in lines


def test_terminal_shows_user_groups_where_a_queue_looks_at_them() -> None:
    """A row for each group of each site, within 80 columns."""
    groups = (
        GroupResult("Lübeck", 1, 2, 150.0, 100.0, 1 / 3),
        GroupResult("Wismar", 5, 1, 12345678.9, 66.0, -0.2),
    )
    text = printed(replace(two_towns(), user_groups=groups))
    lines = text[text.index("User groups") :].splitlines()
    assert lines[3].split() == ["Lübeck", "1", "2", "150.00", "100.00", "+33.3%"]
    assert lines[4].split() == ["Wismar", "5", "1", "12,345,678.90", "66.00", "−20.0%"]
    assert max(map(len, text.splitlines())) <= 80
    assert "User groups" not in printed(two_towns())


@pytest.mark.parametrize("sites", [1, 2, 4, 8, 30])
def test_terminal_fits_80_columns(sites: int) -> None:
    """No line is wider than 80 characters, and no figure is cut."""
    result = random_towns([f"a town of some length {k}" for k in range(sites)], 3000, away=0.9)
    text = printed(result)
    assert max(map(len, text.splitlines())) <= 80
    for site in result.sites:
        assert f"{site.awrt:,.2f}" in text
        assert f"{site.makespan:,.0f}" in text


def test_terminal_turns_a_wide_matrix_into_a_list() -> None:
    """Where the matrix does not fit, the largest flows are listed, largest first."""
    result = random_towns([f"a town of some length {k}" for k in range(9)], 3000, away=0.9)
    text = printed(result)
    assert "the 20 largest of 72 flows" in text
    start = text.index("20 largest")
    jobs = [int(n) for n in re.findall(r"^a town\S* .*?…\s+(\d+)\s", text[start:], re.MULTILINE)]
    assert len(jobs) == 20
    assert jobs == sorted(jobs, reverse=True)
    assert "ran at (columns)" in printed(result, width=250)


def test_terminal_writes_no_escape_codes_into_a_pipe(towns: ScenarioResult) -> None:
    """Colours are for terminals."""
    assert "\x1b" not in printed(towns)


def test_terminal_obeys_no_color(monkeypatch: pytest.MonkeyPatch, towns: ScenarioResult) -> None:
    """With NO_COLOR a terminal gets no colour, and the text is the same."""
    monkeypatch.setenv("NO_COLOR", "1")
    file = io.StringIO()
    print_result(Console(file=file, width=80, force_terminal=True, color_system="standard"), towns)
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", file.getvalue())
    assert re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue()) == printed(towns)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_terminal_copes_with_any_encoding(encoding: str) -> None:
    """A terminal without UTF-8 gets what it can show."""
    text = printed(random_towns(HOSTILE, 300), encoding=encoding)
    assert max(map(len, text.splitlines())) <= 80
    assert "improved" in text
    assert "dSA" in text


def test_terminal_takes_names_literally() -> None:
    """Square brackets in a name are not obeyed as markup."""
    assert "[red]Riga[/red]" in printed(random_towns(["[red]Riga[/red]", "b"], 50), width=120)


def test_terminal_copes_with_little() -> None:
    """One site, or no job at all, is no reason for empty tables of exchange."""
    single = printed(random_towns(["Visby"], 10))
    assert "Visby works alone" in single
    assert "ran at" not in single.replace("ran at home", "")
    assert "There was no job to run." in printed(random_towns(["a", "b"], 0))


def test_of_very_many_sites_the_most_important_are_shown() -> None:
    """A thousand lines would scroll by; the rest is in a file, which is named."""
    result = random_towns([f"town {k}" for k in range(120)], 4000, away=0.9)
    text = printed(result)
    assert len(text.splitlines()) < 140
    assert "40 of 120 sites" in text
    assert "sites.csv" in text
    assert max(map(len, text.splitlines())) <= 80
