"""Where the command that prints a link takes a daemon's socket from."""

import click
import pytest
from click.testing import CliRunner

from grms.daemon.web.link_command import link_command


def a_command() -> click.Command:
    """Returns one whose links say of whom they were asked, and for how long."""
    return link_command(
        "site",
        "pages",
        variable="A_SOCKET",
        socket_in=lambda config: f"{config.stem}.sock",
        link=lambda socket, timeout_s: f"{socket} {timeout_s:g}",
    )


@pytest.mark.parametrize(
    ("words", "variable", "link"),
    [
        (["home.toml"], None, "home.sock 10"),
        (["home.toml", "--timeout", "3"], "other.sock", "home.sock 3"),
        (["--socket", "home.sock"], "other.sock", "home.sock 10"),
        (["--site", "home.sock"], None, "home.sock 10"),
        ([], "other.sock", "other.sock 10"),
    ],
)
def test_what_names_the_socket(words: list[str], variable: str | None, link: str) -> None:
    """CONFIG or the option goes before the variable, which is for all commands."""
    done = CliRunner().invoke(a_command(), words, env={"A_SOCKET": variable})
    assert (done.exit_code, done.output) == (0, f"{link}\n")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["home.toml", "--socket", "home.sock"], "CONFIG and --socket exclude each other"),
        (["home.toml", "--site", "home.sock"], "CONFIG and --socket exclude each other"),
        ([], "name the site's configuration, or its --socket"),
    ],
)
def test_one_socket_is_named(words: list[str], text: str) -> None:
    """Neither none nor two."""
    refused = CliRunner().invoke(a_command(), words, env={"A_SOCKET": None})
    assert refused.exit_code == 2
    assert text in refused.output


def test_it_is_shown_in_the_browser_where_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """And printed all the same."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    for words, wanted in (([], []), (["--open"], ["home.sock 10"])):
        done = CliRunner().invoke(a_command(), ["home.toml", *words])
        assert done.output == "home.sock 10\n"
        assert opened == wanted
