"""Examples of the documentation can be had from wherever Hanse was installed."""

import tomllib
from importlib.metadata import PackagePath
from pathlib import Path
from types import SimpleNamespace

import pytest

from grms.cli.main import run_command
from lrms_sim.cli import examples as module
from lrms_sim.cli.examples import CHECKOUT, example_files

ROOT = Path(__file__).resolve().parents[3]


def test_a_wheel_has_every_example() -> None:
    """The patterns of pyproject.toml find all files, each in its folder."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = {
        f"{target.removeprefix('share/hanse/examples').lstrip('/')}/{path.name}".lstrip("/")
        for target, patterns in project["tool"]["setuptools"]["data-files"].items()
        if target.startswith("share/hanse/examples")
        for pattern in patterns
        for path in ROOT.glob(pattern)
        if path.is_file()
    }
    assert shipped == set(example_files())
    named = {
        "hanse-grms@.service",
        "hanse-grms@.service.d/sudo.conf",
        "sudoers",
        "sudoers-guests",
        "sudoers-users",
    }
    assert named | {"job_submit.lua", "monitoring/hanse.rules.yml", "site.toml"} <= shipped


def test_they_are_listed_printed_and_copied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name may be a folder; what is there already is not touched, and then nothing is copied."""
    assert run_command(["examples"]) == 0
    assert capsys.readouterr().out.split() == list(example_files())
    assert run_command(["examples", "sudoers"]) == 0
    assert capsys.readouterr().out == (CHECKOUT / "sudoers").read_text(encoding="utf-8")
    assert run_command(["examples", "monitoring/", "site.toml", "--output", str(tmp_path)]) == 0
    capsys.readouterr()
    copied = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert copied == {name for name in example_files() if name.startswith("monitoring/")} | {
        "site.toml"
    }
    (tmp_path / "site.toml").write_text("mine")
    assert run_command(["examples", "sudoers", "site.toml", "--output", str(tmp_path)]) != 0
    assert "site.toml is there already" in capsys.readouterr().err
    assert (tmp_path / "site.toml").read_text() == "mine"
    assert not (tmp_path / "sudoers").exists()
    assert run_command(["examples", "nothing"]) != 0
    assert "there is no example 'nothing'" in capsys.readouterr().err


def test_an_installation_is_asked_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the wheel's data went; what Python has compiled beside them is none."""
    names = ["lib/grms/cli/main.py", "../../../share/hanse/examples/monitoring/a.yml"]
    names += ["../../../share/hanse/examples/b.py", "../../../share/man/man1/grms.1"]
    names += ["../../../share/hanse/examples/__pycache__/b.cpython-311.pyc"]
    files = [PackagePath(name) for name in names]
    for file in files:
        file.dist = SimpleNamespace(locate_file=lambda name: tmp_path / "a/b/c" / name)  # type: ignore[assignment]  # it need only say where a file is
    monkeypatch.setattr(module, "CHECKOUT", tmp_path / "none")
    monkeypatch.setattr(module, "distribution", lambda _: SimpleNamespace(files=files))
    folder = tmp_path / "share/hanse/examples"
    assert example_files() == {
        "b.py": folder / "b.py",
        "monitoring/a.yml": folder / "monitoring/a.yml",
    }
