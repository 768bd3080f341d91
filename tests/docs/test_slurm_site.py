"""The page about two Slurm clusters: what it says to type can be typed, what it says to write is taken.

A real cluster is checked, and runs and brings home jobs by these commands, in
`tests/grms/site/test_real_batch.py`.
"""

import re
import shlex
from pathlib import Path

import click
import pytest

from grms.cli import cli, run_command
from grms.lrms.batch.kinds import SlurmTable
from grms.site.configuration.files import load_config

PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/slurm-site.md").read_text("utf-8")
BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """Returns the words of every `grms` command of the page, without `grms`, in order."""
    outside = BLOCK.sub("", PAGE)
    found = re.findall(r"^    (?:sudo -u hanse )?grms (.*)$", outside, re.MULTILINE)
    return [shlex.split(line) for line in found]


def test_the_sites_file_is_taken(tmp_path: Path) -> None:
    """As it stands on the page; every key is one."""
    (text,) = (block["text"] for block in BLOCK.finditer(PAGE) if block["kind"] == "toml")
    path = tmp_path / "north.toml"
    path.write_text(text)
    config = load_config(path)
    assert isinstance(config.lrms, SlurmTable)
    assert (config.lrms.spool, config.lrms.guest_nice) == ("/shared/hanse", 1000)


def test_keys_are_made_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In its order, with its words, in a folder of the test."""
    monkeypatch.chdir(tmp_path)
    here = [[word.replace("/etc/hanse", str(tmp_path)) for word in words] for words in commands()]
    pki = [words for words in here if words[0] == "pki"]
    assert [words[1] for words in pki] == ["init", "request", "show", "issue"]
    for words in pki:
        assert run_command(words) == 0, capsys.readouterr().err
    for name in ("hanse-ca/ca.crt", "north.key", "north.crt"):
        assert (tmp_path / name).exists()


def test_all_other_commands_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is one, with options and arguments that it takes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HANSE_SOCKET", "users.sock")
    scripts = [block["text"] for block in BLOCK.finditer(PAGE) if block["kind"] == "sh"]
    for name, text in zip(("hello.sh", "wait.sh"), scripts, strict=True):
        Path(name).write_text(text)
    others = [words for words in commands() if words[0] != "pki"]
    assert len(others) >= 8
    for words in others:
        command: click.Command = cli
        # A command keeps the options for help that it was asked with first.
        context = click.Context(cli, info_name="grms", **cli.context_settings)
        left = words
        while isinstance(command, click.Group):
            found = command.get_command(context, left[0])
            assert found is not None, words
            command, left = found, left[1:]
        command.make_context(command.name, list(left), parent=context)
