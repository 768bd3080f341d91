"""What CI and containers install: releases that pyproject.toml allows, each with its hashes."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PYTHONS = ("3.11.2", "3.12.1", "3.13.0")
LOCKS = {"core": (), "all": ("all",), "dev": ("dev", "docs")}
"""Extras of each file."""

KNOWN_BAD = {
    "cryptography": "46.0.5",  # CVE-2026-26007, points of small order
    "dask": "2026.1",  # CVE-2026-23528, pages of the scheduler
    "jinja2": "3.1.6",  # CVE-2025-27516, the sandbox, which is not used here
    "protobuf": "6.33.5",  # CVE-2025-4565 and CVE-2026-0994, recursion without a bound
    "pyarrow": "23.0.1",  # CVE-2026-25087, files of others
    "pyjwt": "2.12",  # CVE-2026-32597, critical headers that are not understood
    "pytest": "9.0.3",  # CVE-2025-71176, folders of a known name
    "setuptools": "78.1.1",  # CVE-2025-47273, names of downloads
    "starlette": "0.49.1",  # CVE-2025-54121 and CVE-2025-62727, uploads and ranges
    "wheel": "0.46.2",  # CVE-2026-24049, modes of unpacked files
}
"""Releases before these have published advisories; of ours no lower bound may allow one."""


def locked(name: str, python: str) -> dict[str, Version]:
    """Returns the release of each distribution that a file installs under a Python."""
    environment = {"python_full_version": python, "python_version": python.rpartition(".")[0]}
    found: dict[str, Version] = {}
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line[:1] in {"", "#", " "}:
            continue
        requirement = Requirement(line.removesuffix("\\").strip())
        if requirement.marker is None or requirement.marker.evaluate(environment):
            assert str(requirement.specifier).startswith("=="), line
            key = canonicalize_name(requirement.name)
            assert key not in found, f"{key} comes twice under {python}"
            found[key] = Version(str(requirement.specifier).removeprefix("=="))
    return found


def wanted(extras: tuple[str, ...]) -> list[Requirement]:
    """Returns what pyproject.toml asks for, with these extras and those in them."""
    lines, left = list(PROJECT["project"]["dependencies"]), list(extras)
    while left:
        for line in PROJECT["project"]["optional-dependencies"][left.pop()]:
            own = Requirement(line)
            if own.name == "hanse":
                left += own.extras
            else:
                lines.append(line)
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("name", [*LOCKS, "tools"])
def test_every_file_has_hashes_and_names_no_index(name: str) -> None:
    """Any index will do that has these very files."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    releases = re.findall(r"^\S+==.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    assert releases
    assert [each for each in releases if "--hash=sha256:" not in each] == []
    assert re.search(r"https?:|--(extra-)?index|--find-links|--trusted|@ ", text) is None


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", LOCKS)
def test_what_is_locked_is_what_the_project_asks_for(name: str, python: str) -> None:
    """Each dependency is there, in a release that is allowed; `make lock` writes the files anew."""
    releases = locked(name, python)
    for requirement in wanted(LOCKS[name]):
        release = releases[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(release), f"{requirement}: {release} is locked"


def test_no_lower_bound_has_a_known_advisory() -> None:
    """A release with one may not be what somebody has, and pip leaves."""
    asked = [
        *wanted(("dev", "docs", "cluster", "frames")),
        *map(Requirement, PROJECT["build-system"]["requires"]),
    ]
    bounded = {requirement.name for requirement in asked}
    assert set(KNOWN_BAD) <= bounded
    for requirement in asked:
        fixed = KNOWN_BAD.get(requirement.name)
        if fixed is not None:
            (lower,) = [
                each.version for each in requirement.specifier if each.operator in {">=", "=="}
            ]
            assert Version(lower) >= Version(fixed), requirement
