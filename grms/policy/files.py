"""Rule bases as files: JSON with a schema version, features, rules and provenance.

docs/rule-bases.md describes the format. Every error names the file, the place in it, what was found
and what is expected.
"""

import json
import os
from pathlib import Path
from typing import Any

from grms.policy.transfer import FURTHER_FEATURES, PAPER_FEATURES, Gaussian, Rule, RuleBase
from lrms_sim.util.documents import known_keys, reading, schema_in, table, text
from lrms_sim.util.errors import HanseError
from lrms_sim.util.files import read_json, write_json
from lrms_sim.util.messages import shown

SCHEMA = "hanse.rule-base/1"
RULES_MAX = 1000
"""Most rules in one file; far above any learned base, and a bound on the time of a decision."""

FILE_BYTES_MAX = 4 * 1024 * 1024


class RuleBaseError(HanseError, ValueError):
    """A rule base file that cannot be used; the text says what is wrong and where."""


def load_rule_base(path: str | os.PathLike[str]) -> RuleBase:
    """Reads a rule base, including its provenance.

    Raises:
        RuleBaseError: the file cannot be read, is no JSON, or breaks the format.
    """
    document = read_json(Path(path), FILE_BYTES_MAX, RuleBaseError)
    return rule_base_from_document(document, source=str(path))


def rule_base_from_document(document: object, *, source: str) -> RuleBase:
    """Builds a rule base from decoded JSON; `source` names it in errors.

    Raises:
        RuleBaseError: the document breaks the format.
    """
    with reading(source, RuleBaseError):
        _, top = schema_in(document, SCHEMA)
        known_keys(top, ("schema", "name", "features", "rules", "provenance"), "the document")
        further = _further(top.get("features"))
        name = text(top.get("name", "rule base"), "name")
        rules = top.get("rules")
        if not isinstance(rules, list) or not 1 <= len(rules) <= RULES_MAX:
            raise ValueError(f"rules must be a list of 1 to {RULES_MAX} rules")
        return RuleBase(
            rules=tuple(_rule(rule, further, f"rules[{i}]") for i, rule in enumerate(rules)),
            name=name,
            provenance=table(top.get("provenance", {}), "provenance"),
        )


def rule_base_to_document(rule_base: RuleBase) -> dict[str, Any]:
    """Returns what a file of this rule base says, ready for JSON."""
    further = rule_base.further
    return {
        "schema": SCHEMA,
        "name": rule_base.name,
        "features": [*PAPER_FEATURES, *(FURTHER_FEATURES[name].document for name in further)],
        "rules": [
            {
                "nwp": [rule.nwp.gamma, rule.nwp.sigma],
                "njp": [rule.njp.gamma, rule.njp.sigma],
                **{name: _numbers(getattr(rule, name)) for name in further},
                "accept": 1 if rule.accept else -1,
            }
            for rule in rule_base.rules
        ],
        "provenance": dict(rule_base.provenance),
    }


def save_rule_base(rule_base: RuleBase, path: str | os.PathLike[str]) -> None:
    """Writes a rule base atomically and without loss of precision.

    Raises:
        OSError: the file cannot be written.
        TypeError: the provenance is not representable as JSON.
    """
    write_json(path, rule_base_to_document(rule_base))


def _further(features: object) -> tuple[str, ...]:
    documents = {name: feature.document for name, feature in FURTHER_FEATURES.items()}
    said = features if isinstance(features, list) else []
    names = tuple(name for name, document in documents.items() if document in said)
    if said != [*PAPER_FEATURES, *(documents[name] for name in names)]:
        raise ValueError(
            f"features are {shown(features)}; this version knows {json.dumps(PAPER_FEATURES)}, "
            f"both always, and after them {json.dumps(list(documents.values()))}"
        )
    return names


def _numbers(gaussian: Gaussian) -> list[float]:
    return [gaussian.gamma, gaussian.sigma]


def _rule(value: object, further: tuple[str, ...], place: str) -> Rule:
    rule = table(value, place)
    known_keys(rule, ("nwp", "njp", "accept", *further), place)
    accept = rule.get("accept")
    if isinstance(accept, bool) or accept not in (1, -1):
        raise ValueError(f"{place}.accept is {shown(accept)}; 1 or -1 is expected")
    return Rule(
        nwp=_gaussian(rule.get("nwp"), f"{place}.nwp"),
        njp=_gaussian(rule.get("njp"), f"{place}.njp"),
        accept=accept == 1,
        **{name: _gaussian(rule.get(name), f"{place}.{name}") for name in further},
    )


def _gaussian(value: object, place: str) -> Gaussian:
    numbers = value if isinstance(value, list) else []
    if len(numbers) != 2 or any(
        isinstance(number, bool) or not isinstance(number, int | float) for number in numbers
    ):
        raise ValueError(f"{place} is {shown(value)}; two numbers [gamma, sigma] are expected")
    try:
        return Gaussian(float(numbers[0]), float(numbers[1]))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{place}: {error}") from error
