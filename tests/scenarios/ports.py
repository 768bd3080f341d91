"""A small scenario with a broker: two ports, four resources, a handful of workflows."""

from pathlib import Path
from typing import Any

from lrms_sim.util.files import to_toml
from scenarios.spec.files import parse_spec
from scenarios.spec.spec import ScenarioSpec

SITES: list[dict[str, Any]] = [
    {
        "name": "visby",
        "processors": 16,
        "workload": {"model": "lublin", "jobs": 40, "load": 0.9},
        "reservable": [
            {"resource_id": "fast", "processors": 4, "speed": 2.0, "cost_per_hour": 3.0},
            {"resource_id": "slow", "processors": 2, "cost_per_hour": 1.0},
        ],
    },
    {
        "name": "riga",
        "processors": 24,
        "discipline": "easy",
        "workload": {"model": "lublin", "jobs": 40, "load": 0.8},
        "reservable": [{"resource_id": "cpu", "processors": 4, "speed": 1.5, "cost_per_hour": 2.0}],
    },
]

BROKER: dict[str, Any] = {
    "planning": {"evaluations": 60, "population": 10},
    "workflows": {
        "tasks": 30,
        "time_unit_s": 200,
        "processors_most": 3,
        "first_s": 100,
        "last_s": 6000,
    },
    "breakdowns": [{"site": "visby", "resource_id": "fast", "at_s": 2000, "until_s": 4000}],
    "cancels": [{"workflow": 2, "after_s": 600}],
}


def ports(seed: int = 1, **broker: Any) -> ScenarioSpec:
    """Returns the scenario, resolved.

    Args:
        seed: of everything.
        broker: replaces keys of its part of the file.
    """
    document = {"name": "ports", "seed": seed, "sites": SITES, "broker": BROKER | broker}
    return parse_spec(to_toml(document).encode(), folder=Path("/"), shown="ports").resolved()
