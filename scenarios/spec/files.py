"""Reads scenario files, and says in words what is wrong in one, all of it at once.

`problems_of` translates what pydantic finds key by key; `cross_problems` looks at what no single
key shows, on the raw document, so that it works beside other mistakes.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeGuard

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from grms.daemon.config_base import WRONG
from grms.daemon.config_errors import Peculiarities, Places, mistakes_of, must_be_text, path_of
from grms.policy.registry import LOCATION_WORDS, NO_EXCHANGE
from lrms_sim.util.file_errors import Mistake
from lrms_sim.util.files import parse_toml, read_bytes
from lrms_sim.util.messages import shown, unknown
from scenarios.spec.broker import SLOT_S, TAKES_S
from scenarios.spec.spec import SITES_MAX, ScenarioSpec
from scenarios.util.errors import SpecError

_WORKLOAD_KINDS = ("trace", "swf", "model")
_TRANSFER_KEYS = ("default", "pool")


def problems_of(error: ValidationError, document: object, model: type[BaseModel]) -> list[Mistake]:
    """Translates pydantic's findings."""
    kind = Peculiarities(
        adapted=lambda details: _adapted(details, document), place=_place, said=_said
    )
    return mistakes_of(error, document, model, by_name=True, kind=kind)


def _adapted(details: ErrorDetails, document: object) -> ErrorDetails:
    loc = details["loc"]
    if loc[2:3] == ("location",) and isinstance(index := loc[1], int):
        # "A word or a list" fails as a word and as a list; neither is the point.
        details["loc"] = loc[:3]
        details["input"] = _site_tables(document)[index]["location"]
    if loc[2:3] in {("rails",), ("reoffer",)}:
        # Behind them pydantic puts whether it took this for a word or for a table.
        details["loc"] = (*loc[:3], *loc[4:])
    return details


def _place(loc: Places) -> Places:
    # Behind it pydantic puts which kind of workload it took this for.
    return (*loc[:3], *loc[4:]) if loc[2:3] == ("workload",) else loc


def _said(details: ErrorDetails) -> str | None:
    loc, kind, value = details["loc"], details["type"], details["input"]
    if kind == "union_tag_not_found":
        return _workload_text(value)
    if loc[2:] == ("location",) and kind not in {WRONG, "missing"}:
        words = ", ".join(map(repr, LOCATION_WORDS))
        return must_be_text(value, f"{words} or a list of all partners' names")
    if loc[2:] == ("transfer",) and kind == "model_type":
        return must_be_text(value, 'a table, as { default = "fair-exchange" }')
    if loc == ("sites",) and kind in {"list_type", "too_short"}:
        return must_be_text(value, "a list of one table or more, each begun with [[sites]]")
    if kind == "string_pattern_mismatch":
        pattern = details["ctx"]["pattern"]
        letters, marks = ("letters", "_, . and -") if "A-Z" in pattern else ("a to z", "and -")
        what = f"1 to 64 of {letters}, digits, {marks}, the first a letter or a digit"
        return must_be_text(value, what)
    return None


def _workload_text(value: object) -> str:
    if not isinstance(value, dict):
        return must_be_text(value, "a table")
    kinds = [kind for kind in _WORKLOAD_KINDS if kind in value]
    if kinds:
        return f"has {' and '.join(kinds)}; it needs exactly one of them"
    text = f"needs one of {', '.join(_WORKLOAD_KINDS)}"
    for key in value:
        if close := get_close_matches(str(key), _WORKLOAD_KINDS, n=1):
            return f"{text}; it has {shown(key)}, did you mean {close[0]!r}?"
    return text


def _site_key(document: object, index: int) -> str:
    """Returns `sites.NAME`, or `sites[INDEX]` if that would be ambiguous."""
    return path_of(("sites", index), document)


def cross_problems(document: object) -> Iterator[Mistake]:
    """Yields what is wrong between keys: names, partners, orders.

    Values of a wrong type are ignored here; they are reported elsewhere.
    """
    sites = _site_tables(document)
    if len(sites) > SITES_MAX:
        return  # Said elsewhere; comparing each with each would take long.
    names = [name if isinstance(name := site.get("name"), str) else "" for site in sites]
    for index, site in enumerate(sites):
        for each in _site_problems(site, index, names):
            yield Mistake(f"{_site_key(document, index)}.{each.key}", each.text)
    yield from _broker_problems(document, sites)


def _site_problems(site: dict[str, Any], index: int, names: list[str]) -> Iterator[Mistake]:
    """Yields what is wrong in the table of a site; keys are those within it, `names` are of all sites."""
    name = names[index]
    if name and name in names[:index]:
        text = f"{shown(name)} is the name of sites[{names.index(name)}] too; names must be unique"
        yield Mistake("name", text)
    if name in _TRANSFER_KEYS:
        text = f"is {shown(name)}, which is a key of [sites.transfer]; choose another name"
        yield Mistake("name", text)
    partners = [other for other in dict.fromkeys(names) if other and other != name]
    transfer = site.get("transfer")
    transfer = transfer if isinstance(transfer, dict) else {}
    yield from _transfer_problems(transfer, name, partners)
    location = site.get("location")
    if isinstance(location, list):
        yield from _location_problems(location, transfer, name, partners)


def _broker_problems(document: object, sites: list[dict[str, Any]]) -> Iterator[Mistake]:
    broker = document.get("broker") if isinstance(document, dict) else None
    resources: dict[str, list[object]] = {}
    for index, site in enumerate(sites):
        ids = [each.get("resource_id") for each in _tables(site.get("reservable"))]
        name = site.get("name")
        resources[name if isinstance(name, str) else ""] = ids
        for place, one in enumerate(ids):
            if isinstance(one, str) and one in ids[:place]:
                key = f"{_site_key(document, index)}.reservable[{place}].resource_id"
                yield Mistake(key, f"{shown(one)} comes twice at this site")
    if (broker is None) == any(resources.values()):
        text = "no site has something to reserve: [[sites.reservable]]"
        if broker is None:
            text = "is missing: sites have something to reserve, and nobody does"
        yield Mistake("broker", text)
    if not isinstance(broker, dict):
        return
    yield from _order_problem("broker.workflows", broker.get("workflows"), "first_s", "last_s")
    yield from _slot_problem(broker)
    for index, breakdown in enumerate(_tables(broker.get("breakdowns"))):
        yield from _breakdown_problems(f"broker.breakdowns[{index}]", breakdown, resources)


def _slot_problem(broker: dict[str, Any]) -> Iterator[Mistake]:
    cycle, planning = broker.get("cycle"), broker.get("planning")
    slot = cycle.get("slot_s", SLOT_S) if isinstance(cycle, dict) else SLOT_S
    takes = planning.get("takes_s", TAKES_S) if isinstance(planning, dict) else TAKES_S
    if isinstance(slot, int | float) and isinstance(takes, int | float) and not takes < slot:
        text = f"is {shown(takes)}; it must be less than the planning slot, {slot:g} s"
        yield Mistake("broker.planning.takes_s", text)


def _breakdown_problems(
    key: str, breakdown: dict[str, Any], resources: dict[str, list[object]]
) -> Iterator[Mistake]:
    yield from _order_problem(key, breakdown, "at_s", "until_s")
    site, resource = breakdown.get("site"), breakdown.get("resource_id")
    if not isinstance(site, str):
        return
    if site not in resources:
        yield Mistake(f"{key}.site", unknown("site", site, [name for name in resources if name]))
    elif isinstance(resource, str) and resource not in resources[site]:
        there = [str(one) for one in resources[site]]
        yield Mistake(f"{key}.resource_id", unknown(f"resource of {site}", resource, there))


def _order_problem(key: str, table: object, first: str, last: str) -> Iterator[Mistake]:
    begin, end = (table.get(first, 0), table.get(last)) if isinstance(table, dict) else (None, None)
    if isinstance(begin, int | float) and isinstance(end, int | float) and not begin < end:
        yield Mistake(f"{key}.{last}", f"is {shown(end)}; it must be more than {first}, {begin}")


def _tables(value: object) -> list[dict[str, Any]]:
    return [one if isinstance(one, dict) else {} for one in value] if _is_list(value) else []


def _site_tables(document: object) -> list[dict[str, Any]]:
    return _tables(document.get("sites") if isinstance(document, dict) else None)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _transfer_problems(
    transfer: dict[str, Any], name: str, partners: list[str]
) -> Iterator[Mistake]:
    for partner in transfer:
        if partner in _TRANSFER_KEYS or partner in partners:
            continue
        if name and partner == name:
            yield Mistake(f"transfer.{partner}", "a site has no transfer policy for itself")
        else:
            text = unknown("partner", partner, [*partners, *_TRANSFER_KEYS])
            yield Mistake(f"transfer.{partner}", text)


def _location_problems(
    location: list[Any], transfer: dict[str, Any], name: str, partners: list[str]
) -> Iterator[Mistake]:
    for index, partner in enumerate(location):
        place = f"location[{index}]"
        if not isinstance(partner, str):
            continue
        if partner in location[:index]:
            yield Mistake(place, f"{shown(partner)} stands in the order twice")
        elif name and partner == name:
            yield Mistake(place, f"{shown(partner)} is the site itself; only partners are asked")
        elif partner not in partners:
            yield Mistake(place, unknown("partner", partner, partners))
    # A partner with whom nothing is exchanged needs no place.
    wanted = [p for p in partners if transfer.get(p, transfer.get("default")) != NO_EXCHANGE]
    if missing := [partner for partner in wanted if partner not in location]:
        text = f"lacks {', '.join(missing)}; an order names every partner, or is 'awrt'"
        yield Mistake("location", text)


FILE_BYTES_MAX: Final = 1 << 20


def load_spec(path: Path, *, shown: str | None = None) -> ScenarioSpec:
    """Reads a scenario file; whether the files it names exist is not checked.

    `shown` is its name in errors, by default the path.

    Raises:
        SpecError: it cannot be read, is no TOML, or breaks the format; the text has a line for each
            error.
    """
    shown = shown or str(path)
    data = read_bytes(path, FILE_BYTES_MAX, partial(SpecError.of, shown), shown=shown)
    return parse_spec(data, folder=path.parent, shown=shown)


def parse_spec(data: bytes, *, folder: Path, shown: str) -> ScenarioSpec:
    """Parses a scenario; `shown` is its name in errors, relative paths are relative to `folder`.

    Raises:
        SpecError: it is no TOML, or breaks the format.
    """
    document = parse_toml(data, shown, partial(SpecError.of, shown))
    problems: list[Mistake] = []
    try:
        spec = ScenarioSpec.model_validate(document, context={"folder": folder})
    except ValidationError as error:
        problems = problems_of(error, document, ScenarioSpec)
    problems += cross_problems(document)
    if problems:
        raise SpecError(shown, problems)
    return spec
