from pathlib import Path
from typing import Any

import pytest

from lrms_sim.util.files import to_toml
from scenarios.spec.broker import SLOT_S, TAKES_S, BrokerSpec
from scenarios.spec.files import parse_spec
from scenarios.util.errors import SpecError
from tests.scenarios.ports import BROKER, SITES


def said(broker: dict[str, Any] | None, *sites: dict[str, Any]) -> list[str]:
    """Returns what is said of a scenario with such a broker, without the file's name."""
    document: dict[str, Any] = {"name": "x", "sites": list(sites or SITES)}
    if broker is not None:
        document["broker"] = broker
    try:
        parse_spec(to_toml(document).encode(), folder=Path("/s"), shown="f")
    except SpecError as error:
        return [line.removeprefix("f: ") for line in str(error).split("\n")]
    return []


def test_defaults_are_the_paper_s_three_minutes() -> None:
    """A broker with nothing but workflows plans every three minutes, in less than a slot."""
    spec = BrokerSpec.model_validate({"workflows": {"tasks": 5, "last_s": 10.0}})
    assert (spec.cycle.every_s, spec.cycle.slot_s) == (180.0, SLOT_S)
    assert spec.planning.takes_s == TAKES_S < SLOT_S


BARE = {key: value for key, value in SITES[0].items() if key != "reservable"}
TWICE = SITES[0] | {"reservable": [{"resource_id": "a"}, {"resource_id": "a"}]}
BREAK = BROKER["breakdowns"][0]


@pytest.mark.parametrize(
    ("broker", "sites", "text"),
    [
        (
            BROKER | {"breakdowns": []},
            [BARE],
            "broker: no site has something to reserve: [[sites.reservable]]",
        ),
        (None, SITES, "broker: is missing: sites have something to reserve, and nobody does"),
        (BROKER | {"breakdowns": []}, [TWICE], "sites.visby.reservable[1].resource_id: 'a' comes"),
        ({}, SITES, "broker.workflows: is missing"),
        (BROKER | {"cycles": {}}, SITES, "broker.cycles: 'cycles' is no key here, did you mean"),
        (
            BROKER | {"planning": {"takes_s": 180}},
            SITES,
            "broker.planning.takes_s: is 180; it must be less than the planning slot, 180 s",
        ),
        (
            BROKER | {"workflows": {"tasks": 3, "first_s": 9, "last_s": 9}},
            SITES,
            "broker.workflows.last_s: is 9; it must be more than first_s, 9",
        ),
        (
            BROKER | {"workflows": {"tasks": 0, "last_s": 9}},
            SITES,
            "broker.workflows.tasks: is 0; it must be at least 1",
        ),
        (
            BROKER | {"breakdowns": [BREAK | {"site": "rigga"}]},
            SITES,
            "broker.breakdowns[0].site: 'rigga' is no site, did you mean 'riga'?",
        ),
        (
            BROKER | {"breakdowns": [BREAK | {"resource_id": "fats"}]},
            SITES,
            "broker.breakdowns[0].resource_id: 'fats' is no resource of visby, did you mean 'fast'?",
        ),
        (
            BROKER | {"breakdowns": [BREAK | {"until_s": 5}]},
            SITES,
            "broker.breakdowns[0].until_s: is 5; it must be more than at_s, 2000",
        ),
    ],
    ids=[
        "no resources",
        "no broker",
        "resource twice",
        "no workflows",
        "unknown key",
        "search longer than slot",
        "end before begin",
        "no tasks",
        "unknown site",
        "unknown resource",
        "repaired before broken",
    ],
)
def test_mistakes_are_said_with_key_value_and_what_is_allowed(
    broker: dict[str, Any] | None, sites: list[dict[str, Any]], text: str
) -> None:
    """One mistake gives one line."""
    (line,) = said(broker, *sites)
    assert line.startswith(text)


@pytest.mark.parametrize("odd", [[1], {"a": 1}, "x", -3])
def test_no_broker_is_too_odd_for_the_checks_between_keys(odd: object) -> None:
    """Anything where a table, a list or a name should be is said, and nothing breaks."""
    for key in ("cycle", "planning", "workflows", "breakdowns", "cancels"):
        assert said(BROKER | {key: odd})
    for key in ("site", "resource_id", "at_s"):
        assert said(BROKER | {"breakdowns": [BREAK | {key: odd}]})
    assert said({"workflows": odd}, {"name": odd, "reservable": odd})
