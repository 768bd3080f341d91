"""Says in words what is wrong in a scenario file, all of it at once.

`problems_of` translates what pydantic finds key by key; `cross_problems` looks at what no single
key shows, on the raw document, so that it works beside other mistakes.
"""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final, TypeGuard, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from grms.kit.models import WRONG
from grms.policy.rails_table import ERROR_KINDS
from grms.policy.words import LOCATION_WORDS, NO_EXCHANGE
from lrms_sim.spelling import shown, unknown
from scenarios.errors import Problem
from scenarios.spec.broker import SLOT_S, TAKES_S

SITES_MAX: Final = 1000
"""Most sites of one scenario."""

_WORKLOAD_KINDS = ("trace", "swf", "model")
_TRANSFER_KEYS = ("default", "pool")


def problems_of(error: ValidationError, document: object, model: type[BaseModel]) -> list[Problem]:
    """Translates pydantic's findings.

    Args:
        error: the findings.
        document: what was validated.
        model: what it was validated against.
    """
    # A union reports what is wrong for each of its members; once is enough.
    found = {
        _problem(details, document, model): None for details in error.errors(include_url=False)
    }
    return list(found)


def _problem(details: ErrorDetails, document: object, model: type[BaseModel]) -> Problem:
    loc = details["loc"]
    if loc[2:3] == ("location",) and isinstance(index := loc[1], int):
        # "A word or a list" fails as a word and as a list; neither is the point.
        loc = loc[:3]
        details["input"] = _site_tables(document)[index]["location"]
    if loc[2:3] in {("rails",), ("reoffer",)}:
        # Behind them pydantic puts whether it took this for a word or for a table.
        loc = (*loc[:3], *loc[4:])
    return Problem(_key(loc, document), _text(details, loc, model))


def _text(details: ErrorDetails, loc: Sequence[int | str], model: type[BaseModel]) -> str:
    kind = details["type"]
    value = details["input"]
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return unknown("key here", str(loc[-1]), _keys_beside(loc, model))
    if kind == "union_tag_not_found":
        return _workload_text(value)
    if kind in {WRONG, *ERROR_KINDS}:
        return details["msg"]
    return f"is {shown(value)}; it must be {_bound(details, loc)}"


def _bound(details: ErrorDetails, loc: Sequence[int | str]) -> str:
    """Returns what a value must be."""
    kind = details["type"]
    if loc[2:] == ("location",):
        return f"{', '.join(map(repr, LOCATION_WORDS))} or a list of all partners' names"
    if loc == ("sites",) and kind in {"list_type", "too_short"}:
        return "a list of one table or more, each begun with [[sites]]"
    if kind == "string_pattern_mismatch":
        pattern = details["ctx"]["pattern"]
        letters, marks = ("letters", "_, . and -") if "A-Z" in pattern else ("a to z", "and -")
        return f"1 to 64 of {letters}, digits, {marks}, the first a letter or a digit"
    words = {
        "int_type": "a whole number",
        "float_type": "a number",
        "string_type": "a text in quotes",
        "list_type": "a list",
        "model_type": "a table",
        "model_attributes_type": "a table",
        "string_too_long": "a text of at most {max_length} characters",
        "too_long": "a list of at most {max_length} entries",
        "too_short": "a list of at least {min_length} entries",
    }
    if kind in words:
        return words[kind].format_map(details.get("ctx", {}))
    return details["msg"].removeprefix("Input should be ")


def _workload_text(value: object) -> str:
    if not isinstance(value, dict):
        return f"is {shown(value)}; it must be a table"
    kinds = [kind for kind in _WORKLOAD_KINDS if kind in value]
    if kinds:
        return f"has {' and '.join(kinds)}; it needs exactly one of them"
    text = f"needs one of {', '.join(_WORKLOAD_KINDS)}"
    for key in value:
        if close := get_close_matches(str(key), _WORKLOAD_KINDS, n=1):
            return f"{text}; it has {shown(key)}, did you mean {close[0]!r}?"
    return text


def _key(loc: Sequence[int | str], document: object) -> str:
    """Returns a dotted path, sites by name where they have one of their own."""
    if loc[2:3] == ("workload",):
        # Behind it pydantic puts which kind of workload it took this for.
        loc = (*loc[:3], *loc[4:])
    key = ""
    for depth, part in enumerate(loc):
        if isinstance(part, int):
            key = _site_key(document, part) if depth == 1 else f"{key}[{part}]"
        else:
            key = f"{key}.{part}" if key else part
    return key


def _site_key(document: object, index: int) -> str:
    """Returns `sites.NAME`, or `sites[INDEX]` where that would not say which one is meant."""
    names = [site.get("name") for site in _site_tables(document)]
    name = names[index] if index < len(names) else None
    good = isinstance(name, str) and name and names.count(name) == 1
    return f"sites.{name}" if good else f"sites[{index}]"


def _keys_beside(loc: Sequence[int | str], model: type[BaseModel]) -> list[str]:
    """Returns the keys that the table has in which the last part of the path stands."""
    models = [model]
    for part in loc[:-1]:
        if isinstance(part, int):
            continue
        if len(models) > 1:
            models = [one for one in models if part in one.model_fields]
        else:
            models = list(_models_in(models[0].model_fields[part].annotation))
    return list(models[0].model_fields)


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def cross_problems(document: object) -> Iterator[Problem]:
    """Yields what is wrong between keys: names, partners, orders.

    Args:
        document: a decoded scenario file; anything in it may be of a wrong type, which is said
            elsewhere.
    """
    sites = _site_tables(document)
    if len(sites) > SITES_MAX:
        return  # Said elsewhere; comparing each with each would take long.
    names = [name if isinstance(name := site.get("name"), str) else "" for site in sites]
    for index, (site, name) in enumerate(zip(sites, names, strict=True)):
        key = _site_key(document, index)
        if name and name in names[:index]:
            first = names.index(name)
            text = f"{shown(name)} is the name of sites[{first}] too; names must be unique"
            yield Problem(f"{key}.name", text)
        if name in _TRANSFER_KEYS:
            text = f"is {shown(name)}, which is a key of [sites.transfer]; choose another name"
            yield Problem(f"{key}.name", text)
        partners = [other for other in dict.fromkeys(names) if other and other != name]
        transfer = site.get("transfer")
        transfer = transfer if isinstance(transfer, dict) else {}
        yield from _transfer_problems(f"{key}.transfer", transfer, name, partners)
        location = site.get("location")
        if isinstance(location, list):
            yield from _location_problems(f"{key}.location", location, transfer, name, partners)
    yield from _broker_problems(document, sites)


def _broker_problems(document: object, sites: list[dict[str, Any]]) -> Iterator[Problem]:
    broker = document.get("broker") if isinstance(document, dict) else None
    resources: dict[str, list[object]] = {}
    for index, site in enumerate(sites):
        ids = [each.get("resource_id") for each in _tables(site.get("reservable"))]
        name = site.get("name")
        resources[name if isinstance(name, str) else ""] = ids
        for place, one in enumerate(ids):
            if isinstance(one, str) and one in ids[:place]:
                key = f"{_site_key(document, index)}.reservable[{place}].resource_id"
                yield Problem(key, f"{shown(one)} comes twice at this site")
    if (broker is None) == any(resources.values()):
        text = "no site has something to reserve: [[sites.reservable]]"
        if broker is None:
            text = "is missing: sites have something to reserve, and nobody does"
        yield Problem("broker", text)
    if not isinstance(broker, dict):
        return
    yield from _order_problem("broker.workflows", broker.get("workflows"), "first_s", "last_s")
    yield from _slot_problem(broker)
    for index, breakdown in enumerate(_tables(broker.get("breakdowns"))):
        yield from _breakdown_problems(f"broker.breakdowns[{index}]", breakdown, resources)


def _slot_problem(broker: dict[str, Any]) -> Iterator[Problem]:
    cycle, planning = broker.get("cycle"), broker.get("planning")
    slot = cycle.get("slot_s", SLOT_S) if isinstance(cycle, dict) else SLOT_S
    takes = planning.get("takes_s", TAKES_S) if isinstance(planning, dict) else TAKES_S
    if isinstance(slot, int | float) and isinstance(takes, int | float) and not takes < slot:
        text = f"is {shown(takes)}; it must be less than the planning slot, {slot:g} s"
        yield Problem("broker.planning.takes_s", text)


def _breakdown_problems(
    key: str, breakdown: dict[str, Any], resources: dict[str, list[object]]
) -> Iterator[Problem]:
    yield from _order_problem(key, breakdown, "at_s", "until_s")
    site, resource = breakdown.get("site"), breakdown.get("resource_id")
    if not isinstance(site, str):
        return
    if site not in resources:
        yield Problem(f"{key}.site", unknown("site", site, [name for name in resources if name]))
    elif isinstance(resource, str) and resource not in resources[site]:
        there = [str(one) for one in resources[site]]
        yield Problem(f"{key}.resource_id", unknown(f"resource of {site}", resource, there))


def _order_problem(key: str, table: object, first: str, last: str) -> Iterator[Problem]:
    begin, end = (table.get(first, 0), table.get(last)) if isinstance(table, dict) else (None, None)
    if isinstance(begin, int | float) and isinstance(end, int | float) and not begin < end:
        yield Problem(f"{key}.{last}", f"is {shown(end)}; it must be more than {first}, {begin}")


def _tables(value: object) -> list[dict[str, Any]]:
    return [one if isinstance(one, dict) else {} for one in value] if _is_list(value) else []


def _site_tables(document: object) -> list[dict[str, Any]]:
    return _tables(document.get("sites") if isinstance(document, dict) else None)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _transfer_problems(
    key: str, transfer: dict[str, Any], name: str, partners: list[str]
) -> Iterator[Problem]:
    for partner in transfer:
        if partner in _TRANSFER_KEYS or partner in partners:
            continue
        if name and partner == name:
            yield Problem(f"{key}.{partner}", "a site has no transfer policy for itself")
        else:
            text = unknown("partner", partner, [*partners, *_TRANSFER_KEYS])
            yield Problem(f"{key}.{partner}", text)


def _location_problems(
    key: str, location: list[Any], transfer: dict[str, Any], name: str, partners: list[str]
) -> Iterator[Problem]:
    for index, partner in enumerate(location):
        place = f"{key}[{index}]"
        if not isinstance(partner, str):
            continue
        if partner in location[:index]:
            yield Problem(place, f"{shown(partner)} stands in the order twice")
        elif name and partner == name:
            yield Problem(place, f"{shown(partner)} is the site itself; only partners are asked")
        elif partner not in partners:
            yield Problem(place, unknown("partner", partner, partners))
    # A partner with whom nothing is exchanged needs no place.
    wanted = [p for p in partners if transfer.get(p, transfer.get("default")) != NO_EXCHANGE]
    if missing := [partner for partner in wanted if partner not in location]:
        text = f"lacks {', '.join(missing)}; an order names every partner, or is 'awrt'"
        yield Problem(key, text)
