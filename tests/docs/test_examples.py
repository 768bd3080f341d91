"""The examples in docs/examples run as they are."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from grms.site.config.load import load_config
from tests.grms.federation.strict_cases import drawn_case, outcome
from tests.grms.site.daemons import document, running
from tests.programs import run_program

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        ("submit_and_wait.py", ["home-1 was taken", "home-1 completed on home"]),
        ("many_jobs.py", ["50 ran on home"]),
    ],
)
async def test_an_example_does_what_it_says(
    tmp_path: Path, example: str, expected: list[str]
) -> None:
    """Against a daemon of four processors."""
    async with running(document(tmp_path), tmp_path):
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, str(EXAMPLES / example)],
            env={**os.environ, "HANSE_SOCKET": str(tmp_path / "home.sock")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        assert done.stdout.splitlines() == expected


def test_the_example_of_a_configuration_is_one() -> None:
    """A daemon takes it as it is, with telemetry and figures."""
    config = load_config(EXAMPLES / "site.toml")
    assert config.publishes
    assert config.mqtt is not None
    assert config.mqtt.discovery
    assert config.metrics is not None
    assert [partner.name for partner in config.partners] == ["CTC", "SDSC"]


def test_the_plain_program_of_strict_exchange_reads_cases_and_prints_what_becomes_of_them(
    tmp_path: Path,
) -> None:
    """One line for each, the same as the kernel's."""
    cases = [drawn_case(seed) for seed in (1, 2)]
    file = tmp_path / "cases.json"
    file.write_text(json.dumps(cases), encoding="utf-8")
    done = run_program(
        [sys.executable, "-I", str(EXAMPLES / "strict_exchange.py"), str(file)], check=True
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        outcome(case) for case in cases
    ]


def test_every_example_is_run() -> None:
    """An example that nobody runs would rot."""
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "submit_and_wait.py",
        "many_jobs.py",
        "my_policies.py",
        "other_readings.py",
        "strict_exchange.py",
    }
