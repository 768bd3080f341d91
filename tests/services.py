"""What takes long to start: programs of the machine (batch systems, a message broker, a browser, checkers), and daemons as processes.

A test that starts or asks one has the mark `services`. `make test` leaves those tests out, `make test-services` runs
them and no others; where a program of the machine is missing they are skipped, and say so.
"""

import os
import shutil
from typing import Final

import pytest

FIXTURES: Final = frozenset({"chromium", "mosquitto", "nursery"})
"""Fixtures that start them, the last by `forks`; `tests/conftest.py` marks the tests that use them."""

PATH: Final = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
"""Where programs are looked for: Debian has daemons where only root looks."""

_running: list[pytest.Item] = []


def begins(item: pytest.Item) -> None:
    """Says which test asks from now on."""
    _running[:] = [item]


def need(packages: str, *programs: str, path: str = PATH) -> str:
    """Returns the path of the first of these programs; skips the test if one of them is missing.

    A test that is not marked fails, whether they are there or not: `make test` would start them.

    Args:
        packages: those of Debian that have the programs.
        programs: all that are needed.
        path: where to look.
    """
    for item in _running:
        if item.get_closest_marker("services") is None:
            pytest.fail(
                f"{item.nodeid} needs {programs[0]} and is not marked: pytest.mark.services"
            )
    found = [shutil.which(program, path=path) for program in programs]
    for program, place in zip(programs, found, strict=True):
        if place is None:
            pytest.skip(f"there is no {program}; on Debian: apt install {packages}")
    return str(found[0])
