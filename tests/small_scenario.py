"""A scenario of two small sites, and where commands find it."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def small(jobs: int) -> str:
    """Returns the file of two sites with so many jobs each."""
    return f"""
name = "small"
title = "Two small sites"
[[sites]]
name = "a"
processors = 16
workload = {{ model = "lublin", jobs = {jobs}, load = 0.9 }}
[[sites]]
name = "b"
processors = 64
workload = {{ model = "lublin", jobs = {jobs}, load = 0.5 }}
"""


def go_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str) -> Path:
    """Goes into a folder that has only the file `small.toml`, without logs on this machine."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("HANSE_TRACES", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (folder / "small.toml").write_text(scenario)
    return folder


def environment() -> dict[str, str]:
    """Returns the environment of a process that has the packages of this checkout."""
    path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)])
    return os.environ | {"PYTHONPATH": path}
