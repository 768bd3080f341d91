"""Every command has a manual page, and a shell completes words by what is packaged."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.main import cli as gorba
from share.generate import PROGRAMS, main, pages, paragraphs, roff
from tests.programs import run_program

ROOT = Path(__file__).resolve().parents[2]
SHELLS = (
    ("bash-completion/completions", "{}"),
    ("zsh/site-functions", "_{}"),
    ("fish/vendor_completions.d", "{}.fish"),
)
PAGES = pages()
MACROS = {"TH", "SH", "B", "BR", "PP", "TP", "nf", "fi"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with all that is written."""
    folder = tmp_path_factory.mktemp("share")
    assert main(folder) == 0
    return folder


def commands(path: str, command: click.Command) -> Iterator[str]:
    """Yields what is typed for a command and for all below it that help shows."""
    yield path
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from commands(f"{path} {name}", below)


def test_every_command_has_a_page(folder: Path) -> None:
    """Also those of two words that are no groups; what is gone leaves no page behind."""
    (folder / "man/man1/gone.1").touch()
    main(folder)
    written = {path.name for path in folder.glob("man/man1/*")}
    typed = {each for name, group in PROGRAMS.items() for each in commands(name, group)}
    assert {f"{each.replace(' ', '-')}.1" for each in typed} | {"gorba-plan-show.1"} == written
    assert {"grms.1", "grms-pki-show.1", "scenario-run.1", "lrms-sim-run.1"} <= written


@pytest.mark.parametrize(("name", "text"), PAGES.items())
def test_a_page_is_well_formed(name: str, text: str) -> None:
    """Its parts come in their order, and every line that begins as a command of troff is one."""
    title = name.removesuffix(".1").replace("-", "\\-")
    assert text.startswith(f'.TH {title.upper()} 1 "" Hanse "Hanse"\n.SH NAME\n{title} \\- ')
    parts = re.findall(r"^\.SH (.*)", text, re.MULTILINE)
    assert parts[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"]
    assert set(re.findall(r"^[.'](\S*)", text, re.MULTILINE)) <= MACROS
    assert text.count("\n.nf\n") == text.count("\n.fi\n")
    assert text.endswith("\n")
    for other in re.findall(r"^\.BR (\S+) \(1\)", text, re.MULTILINE):
        assert f"{other}.1".replace("\\-", "-") in PAGES


def test_a_page_has_what_help_has() -> None:
    """Examples keep their lines, options say what they are for, and a command leads to its group."""
    page = pages()["lrms-sim-info.1"]
    assert ".nf\nExample:\n  lrms\\-sim info" in page
    assert ".B \\-\\-json\nPrint JSON, for programs" in page
    assert page.endswith(".SH SEE ALSO\n.BR lrms\\-sim (1)\n")
    assert ".BR lrms\\-sim\\-info (1)\n" in pages()["lrms-sim.1"]


@given(st.text(alphabet=".'\\- a\n", max_size=20))
def test_no_text_is_a_command_of_troff(text: str) -> None:
    """No line of it begins with a dot or a quote, and a backslash is printed."""
    lines = roff(text).split("\n")
    assert not any(line.startswith((".", "'")) for line in lines)
    plain = "\n".join(lines).replace("\\&", "").replace("\\-", "-").replace("\\e", "\\")
    assert plain == text


def test_parts_of_a_help_text_are_paragraphs() -> None:
    """Lines are joined, but for those that are to stay."""
    assert list(paragraphs("One\ntwo.\n\n\b\na\n  b\n")) == [
        ".PP\nOne two.",
        ".PP\n.nf\na\n  b\n.fi",
    ]


def test_words_that_are_files_or_commands(folder: Path) -> None:
    """The second word of `gorba plan` may be `show`, a later one is a file; no shell hides either."""

    def offered(*typed: str) -> list[tuple[str, str]]:
        completion = ShellComplete(gorba, {}, "gorba", "_GORBA_COMPLETE")
        found = completion.get_completions(["plan", *typed[:-1]], typed[-1])
        return [(item.type, item.value) for item in found]

    assert offered("") == [("file", ""), ("plain", "show")]
    assert offered("sh") == [("file", "sh"), ("plain", "show")]
    assert offered("w") == [("file", "w")]
    assert offered("flow.json", "") == [("file", "")]
    for path in (folder / "zsh/site-functions").iterdir():
        # Unquoted, an empty beginning of a name would shift all that follows.
        assert 'for type key descr in "${(@)response}"' in path.read_text(encoding="utf-8")
    for path in (folder / "bash-completion/completions").iterdir():
        files = path.read_text(encoding="utf-8").split("== 'file'")[1].split("elif")[0]
        assert "COMPREPLY+=" in files
        assert "COMPREPLY=()" not in files


def test_bash_completes_words(folder: Path, tmp_path: Path) -> None:
    """By the packaged script, which asks the command; also the one that shows its help without words."""
    program = tmp_path / "lrms-sim"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m lrms_sim "$@"\n')
    program.chmod(0o755)
    script = (
        f". {folder}/bash-completion/completions/lrms-sim; COMP_WORDS=(lrms-sim di) COMP_CWORD=1; "
        '_lrms_sim_completion lrms-sim; echo "${COMPREPLY[@]}"'
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = run_program(
        ["/bin/bash", "-c", script], env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    )
    assert (done.stdout, done.returncode) == ("disciplines\n", 0), done.stderr


def test_every_shell_has_a_script_for_every_program(folder: Path) -> None:
    """Called as each shell wants it."""
    for place, form in SHELLS:
        names = {form.format(name) for name in ("lrms-sim", "grms", "gorba", "scenario")}
        assert {path.name for path in (folder / place).iterdir()} == names


def test_fish_shows_whole_help_texts(folder: Path) -> None:
    """What a command says of a word may have commas; the first one alone parts it from its kind."""
    for path in (folder / "fish/vendor_completions.d").iterdir():
        assert 'string split --max 1 "," $completion' in path.read_text(encoding="utf-8")
