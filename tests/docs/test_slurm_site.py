"""The page about two Slurm clusters: what it says to type can be typed, what it says to write is taken.

That its other commands can be typed is tested with those of all pages, in `test_how_tos.py`. A real cluster is checked, and runs and brings home jobs by these commands, in
`tests/grms/site/test_real_batch.py`.
"""

from pathlib import Path

import pytest

from grms.cli.main import run_command
from grms.lrms.slurm.slurm_adapter import SlurmTable
from grms.site.config.load import load_config
from tests.docs.typed import blocks, commands, page

PAGE = page("slurm-site.md")


def test_the_sites_file_is_taken(tmp_path: Path) -> None:
    """As it stands on the page; every key is one."""
    text, names = blocks(PAGE, "toml")
    path = tmp_path / "north.toml"
    path.write_text(f"{text}\n{names}")
    config = load_config(path)
    assert isinstance(config.lrms, SlurmTable)
    assert (config.lrms.spool, config.lrms.guest_nice) == ("/shared/hanse", 1000)
    assert config.guests.translate.partitions == {"*": ""}


def test_keys_are_made_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In its order, with its words, in a folder of the test."""
    monkeypatch.chdir(tmp_path)
    here = [
        [word.replace("/etc/hanse", str(tmp_path)) for word in words] for words in commands(PAGE)
    ]
    pki = [words[1:] for words in here if words[1] == "pki"]
    assert [words[1] for words in pki] == ["init", "request", "show", "issue"]
    for words in pki:
        assert run_command(words) == 0, capsys.readouterr().err
    for name in ("hanse-ca/ca.crt", "north.key", "north.crt"):
        assert (tmp_path / name).exists()
