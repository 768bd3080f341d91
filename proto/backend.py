"""What builds the distribution: setuptools, which finds the code of the wire contract written.

An sdist has that code. A checkout may not: then what writes it is asked for, at the releases of `pyproject.toml`.
"""

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parents[1]
WRITERS = ("grpcio-tools", "mypy-protobuf")

Settings = Mapping[str, Any] | None


def unwritten(root: Path) -> bool:
    """Returns whether a source of the contract has no code, or is newer than that."""
    for source in (root / "proto").glob("*/v*/*.proto"):
        folder = root / source.relative_to(root / "proto").parent
        code = folder / f"{source.stem}_pb2.py"
        if not code.exists() or code.stat().st_mtime < source.stat().st_mtime:
            return True
    return False


def writers(root: Path) -> list[str]:
    """Returns the requirements of what writes the code, if it has to be written."""
    if not unwritten(root):
        return []
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [line for line in project["optional-dependencies"]["dev"] if line.startswith(WRITERS)]


def write(root: Path) -> None:
    """Writes the code if that is still to be done.

    Raises:
        subprocess.CalledProcessError: it has said why it could not.
    """
    if unwritten(root):
        # A process of its own: it imports what may be missing where there is nothing to write.
        subprocess.run([sys.executable, str(root / "proto" / "generate.py"), "--code"], check=True)


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    """Returns what is needed beside `build-system.requires` to make an sdist."""
    return [*build_meta.get_requires_for_build_sdist(config_settings), *writers(ROOT)]


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Returns what is needed beside `build-system.requires` to make a wheel."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *writers(ROOT)]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """Returns what is needed beside `build-system.requires` to install a checkout as it is."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *writers(ROOT)]


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Makes an sdist; returns its name."""
    write(ROOT)
    made: str = build_meta.build_sdist(sdist_directory, config_settings)
    return made


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Makes a wheel; returns its name."""
    write(ROOT)
    made: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    return made


def build_editable(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Makes the wheel that stands for a checkout; returns its name.

    The Makefile does so before the writers are installed, and has the code written afterwards.
    """
    if not os.environ.get("HANSE_WITHOUT_KERNELS"):
        write(ROOT)
    made: str = build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
    return made
