"""Distributions of a test's own on Python's path, with entry points."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    points: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, str],
    name: str = "my-plugins",
) -> None:
    """Puts a distribution onto Python's path for the time of the test.

    Args:
        folder: for its files.
        monkeypatch: of the test.
        points: by group, the entry points: `module:object` by name.
        modules: the code of each module.
        name: of the distribution, version 1.0.
    """
    described = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        line
        for group, objects in points.items()
        for line in (f"[{group}]", *(f"{point} = {value}" for point, value in objects.items()))
    ]
    (described / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for module, code in modules.items():
        (folder / f"{module}.py").write_text(code)
        # Whatever the test imports under this name is gone afterwards.
        monkeypatch.setitem(sys.modules, module, ModuleType(module))
        del sys.modules[module]
    monkeypatch.syspath_prepend(folder)
