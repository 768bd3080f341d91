"""Strategy files: JSON with a schema version, what was learned, and its provenance.

`hanse.greedy/1` holds a criterion for each situation, `hanse.strategy-rules/1` a table, fuzzy
rules, or one constant strategy; docs/strategies.md describes them. Every error names the file, the
place in it, the value found and the expected one.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast

from lrms_sim.scheduling.criteria import ORDER_WORDS, Criterion, CriterionOrder, GroupOrder, Order
from lrms_sim.scheduling.selection import (
    FEATURES,
    Policy,
    StrategyRule,
    StrategyRules,
    StrategyTable,
)
from lrms_sim.scheduling.strategies import Strategy, paper_strategies
from lrms_sim.util.documents import (
    known_keys,
    listed,
    number,
    numbers,
    reading,
    schema_in,
    table,
    text,
    whole,
)
from lrms_sim.util.errors import HanseError
from lrms_sim.util.files import read_json, write_json
from lrms_sim.util.messages import shown, unknown

GREEDY_SCHEMA: Final = "hanse.greedy/1"
"""Value of the key `schema` in files of one strategy by criteria."""

RULES_SCHEMA: Final = "hanse.strategy-rules/1"
"""The same in files of a table, of rules, or of a constant strategy."""

FILE_BYTES_MAX: Final = 4 * 1024 * 1024

_GREEDY_KEYS: Final = frozenset(
    {"schema", "name", "algorithm", "situations", "criteria", "provenance"}
)
_RULES_KEYS: Final = frozenset(
    {"schema", "name", "features", "strategies", "table", "rules", "strategy", "provenance"}
)
_KINDS: Final = ("strategy", "table", "rules")


class StrategyFileError(HanseError, ValueError):
    """A strategy file that cannot be used; the text says what is wrong and where."""


@dataclass(frozen=True, slots=True)
class StrategyFile:
    """A named strategy, table or rules, and its provenance."""

    policy: Policy
    provenance: Mapping[str, Any] = field(default_factory=dict)


def load_strategy(path: str | os.PathLike[str]) -> StrategyFile:
    """Reads a strategy file.

    Raises:
        StrategyFileError: the file cannot be read, is no JSON, or breaks the format.
    """
    document = read_json(Path(path), FILE_BYTES_MAX, StrategyFileError)
    return strategy_from_document(document, source=str(path))


def save_strategy(file: StrategyFile, path: str | os.PathLike[str]) -> None:
    """Writes a strategy file atomically, with numbers to the last bit.

    Raises:
        OSError: the file cannot be written.
        TypeError: the provenance cannot be written as JSON.
    """
    write_json(path, strategy_to_document(file))


def strategy_to_document(file: StrategyFile) -> dict[str, Any]:
    """Returns a file's content, ready for JSON."""
    policy = file.policy
    provenance = dict(file.provenance)
    if (
        isinstance(policy, Strategy)
        and isinstance(policy.order, CriterionOrder)
        and policy.backfill is None
    ):
        return {
            "schema": GREEDY_SCHEMA,
            "name": policy.name,
            "algorithm": policy.algorithm,
            **_criteria_document(policy.order),
            "provenance": provenance,
        }
    document: dict[str, Any] = {"schema": RULES_SCHEMA, "name": policy.name}
    if isinstance(policy, Strategy):
        document["strategy"] = _strategy_document(policy)
    else:
        document["features"] = list(FEATURES)
        document["strategies"] = [_strategy_document(s) for s in policy.strategies]
        if isinstance(policy, StrategyTable):
            document["table"] = list(policy.table)
        else:
            document["rules"] = [
                {
                    "mu": list(rule.means),
                    "sigma": list(rule.deviations),
                    "recommend": list(rule.recommendations),
                }
                for rule in policy.rules
            ]
    return document | {"provenance": provenance}


def strategy_from_document(document: object, *, source: str) -> StrategyFile:
    """Builds a file's content from decoded JSON.

    Raises:
        StrategyFileError: the document breaks the format.
    """
    with reading(source, StrategyFileError):
        schema, top = schema_in(document, GREEDY_SCHEMA, RULES_SCHEMA)
        greedy = schema == GREEDY_SCHEMA
        known_keys(top, _GREEDY_KEYS if greedy else _RULES_KEYS, "the document")
        name = top.get("name", "")
        if not isinstance(name, str) or len(name) > 200 or not (name.isprintable()):
            raise ValueError(f"name is {shown(name)}; a text of at most 200 characters is expected")
        provenance = table(top.get("provenance", {}), "provenance")
        policy: Policy = _greedy(top) if greedy else _rules_or_table(top)
    if name and isinstance(policy, Strategy):
        policy = replace(policy, label=name if name != policy.name else "")
    elif name and not isinstance(policy, Strategy):
        policy = replace(policy, name=name)
    return StrategyFile(policy, provenance)


def _greedy(top: Mapping[str, Any]) -> Strategy:
    algorithm = top.get("algorithm", "fcfs")
    return Strategy(cast("Any", algorithm), _criterion_order(top, "the document"))


def _rules_or_table(top: Mapping[str, Any]) -> Policy:
    kinds = [kind for kind in _KINDS if kind in top]
    if len(kinds) != 1:
        raise ValueError(
            f"one of {', '.join(_KINDS)} is needed; found {', '.join(kinds) or 'none'}"
        )
    if "strategy" in top:
        for key in ("strategies", "features"):
            if key in top:
                raise ValueError(f"{key} goes with a table or rules, not with one strategy")
        return _strategy(top["strategy"], "strategy")
    if top.get("features", list(FEATURES)) != list(FEATURES):
        raise ValueError(
            f"features are {shown(top['features'])}; this version knows exactly {list(FEATURES)}"
        )
    strategies = paper_strategies()
    if "strategies" in top:
        given = listed(top["strategies"], "strategies")
        if not given:
            raise ValueError("strategies is empty; leave it out for those of the paper")
        strategies = tuple(_strategy(s, f"strategies[{i}]") for i, s in enumerate(given))
    if "table" in top:
        return _table(top["table"], strategies)
    rules = listed(top["rules"], "rules")
    return StrategyRules(
        tuple(_rule(rule, f"rules[{i}]") for i, rule in enumerate(rules)), strategies=strategies
    )


def _table(value: object, strategies: tuple[Strategy, ...]) -> StrategyTable:
    entries = listed(value, "table")
    chosen = tuple(whole(entry, f"table[{place}]") for place, entry in enumerate(entries))
    return StrategyTable(chosen, strategies=strategies)


def _strategy(value: object, place: str) -> Strategy:
    given = table(value, place)
    known_keys(given, {"algorithm", "order", "backfill"}, place)
    order, backfill = given.get("order", "arrival"), given.get("backfill")
    with reading(place, ValueError):
        if backfill is not None:
            text(backfill, "backfill", "a word")
        return Strategy(
            given.get("algorithm", "fcfs"), _order(order, place), backfill=cast("Any", backfill)
        )


def _order(value: object, place: str) -> Order:
    if isinstance(value, str):
        if value not in ORDER_WORDS:
            words = (*ORDER_WORDS, "an object with groups or criteria")
            raise ValueError(unknown("order", value, words))
        return cast("Order", value)
    order = table(value, "order")
    if "groups" in order:
        known_keys(order, {"groups"}, "order")
        groups = listed(order["groups"], "groups")
        if any(isinstance(g, bool) or not isinstance(g, int) for g in groups):
            raise ValueError(f"groups is {shown(groups)}; whole numbers are expected")
        return GroupOrder(cast("Any", tuple(groups)))
    known_keys(order, {"situations", "criteria"}, "order")
    return _criterion_order(order, place)


def _criterion_order(given: Mapping[str, Any], place: str) -> CriterionOrder:
    if "criteria" not in given:
        raise ValueError(f"{place} has no criteria")
    criteria = tuple(
        _criterion(criterion, f"criteria[{i}]")
        for i, criterion in enumerate(listed(given["criteria"], "criteria"))
    )
    kind = text(given.get("situations", "week"), "situations", "a word")
    return CriterionOrder(criteria, kind)


def _criterion(value: object, place: str) -> Criterion:
    given = table(value, place)
    known_keys(given, {"kind", "w", "K", "a", "b"}, place)
    kind = text(given.get("kind"), f"{place}.kind", "f1, f2, f3 or f4")
    w = numbers(given.get("w"), f"{place}.w")
    k = numbers(given.get("K"), f"{place}.K")
    a = number(given.get("a"), f"{place}.a")
    b = number(given.get("b", 0.0), f"{place}.b")
    with reading(place, ValueError):
        return Criterion(cast("Any", kind), cast("Any", w), cast("Any", k), a, b)


def _rule(value: object, place: str) -> StrategyRule:
    given = table(value, place)
    known_keys(given, {"mu", "sigma", "recommend"}, place)
    columns = [numbers(given.get(key), f"{place}.{key}") for key in ("mu", "sigma", "recommend")]
    with reading(place, ValueError):
        return StrategyRule(*columns)


def _criteria_document(order: CriterionOrder) -> dict[str, Any]:
    return {
        "situations": order.kind,
        "criteria": [
            {
                "kind": criterion.kind,
                "w": list(criterion.weights),
                "K": list(criterion.constants),
                "a": criterion.waiting,
                "b": criterion.size,
            }
            for criterion in order.criteria
        ],
    }


def _strategy_document(strategy: Strategy) -> dict[str, Any]:
    order: Any = strategy.order
    if isinstance(order, GroupOrder):
        order = {"groups": list(order.groups)}
    elif isinstance(order, CriterionOrder):
        order = _criteria_document(order)
    document = {"algorithm": strategy.algorithm, "order": order}
    return document if strategy.backfill is None else document | {"backfill": strategy.backfill}
