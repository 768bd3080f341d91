import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.policy.files import (
    FILE_BYTES_MAX,
    RULES_MAX,
    RuleBaseError,
    load_rule_base,
    rule_base_from_document,
    rule_base_to_document,
    save_rule_base,
)
from grms.policy.transfer import PAPER_FEATURES, STARTS_NOW, Gaussian, Rule, RuleBase

numbers = st.floats(allow_nan=False, allow_infinity=False)
gaussians = st.builds(Gaussian, numbers, numbers.filter(bool))
rule_bases = st.builds(
    RuleBase,
    st.lists(st.builds(Rule, gaussians, gaussians, st.booleans()), min_size=1, max_size=5).map(
        tuple
    ),
    st.text(st.characters(codec="utf-8"), max_size=20),
)
EXAMPLE = RuleBase(
    (Rule(Gaussian(0.5, 1.25), Gaussian(50, -20), accept=False),), "example", {"seed": 7}
)


@given(rule_bases)
def test_a_document_comes_back_to_the_last_bit(rule_base: RuleBase) -> None:
    """Writing and reading changes nothing."""
    text = json.dumps(rule_base_to_document(rule_base))
    again = rule_base_from_document(json.loads(text), source="memory")
    assert again == rule_base
    assert again.name == rule_base.name


def test_a_file_comes_back_with_its_provenance(tmp_path: Path) -> None:
    """Rules, name and provenance survive a file, and no temporary file stays."""
    path = tmp_path / "rules.json"
    save_rule_base(EXAMPLE, path)
    again = load_rule_base(path)
    assert (again, again.name, again.provenance) == (EXAMPLE, "example", {"seed": 7})
    assert list(tmp_path.iterdir()) == [path]


def remove(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda document: document.pop(key)


def put(key: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda document: document.update({key: value})


def put_in_rule(key: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda document: document["rules"][0].update({key: value})


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (remove("schema"), r"schema is None; this version reads 'hanse\.rule-base/1'"),
        (
            put("schema", "hanse.rule-base/99"),
            r"schema is 'hanse\.rule-base/99'; this version reads 'hanse\.rule-base/1'",
        ),
        (
            put("surplus", 1),
            "the document: 'surplus' is no key; there are: schema, name, features, rules, provenance",
        ),
        (
            put("features", []),
            r"features are \[\]; this version knows .*, both always, and after them .*",
        ),
        (
            put("features", 5),
            "features are 5; this version knows .*, both always, and after them .*",
        ),
        (
            put("features", [*PAPER_FEATURES, {"name": "load"}]),
            r"features are .*; this version knows .*, both always, and after them .*requested_time.*",
        ),
        (
            put("features", [*PAPER_FEATURES, STARTS_NOW.document]),
            r"rules\[0\]\.starts_now is None; two numbers \[gamma, sigma\] are expected",
        ),
        (
            put_in_rule("starts_now", [1, 2]),
            r"rules\[0\]: 'starts_now' is no key; there are: nwp, njp, accept",
        ),
        (put("name", 5), "name is 5; a text is expected"),
        (put("rules", []), "rules must be a list of 1 to 1000 rules"),
        (put("rules", "many"), "rules must be a list of 1 to 1000 rules"),
        (put("rules", [{}] * (RULES_MAX + 1)), "rules must be a list of 1 to 1000 rules"),
        (put("rules", [5]), r"rules\[0\] is 5; an object \{…\} is expected"),
        (put("provenance", []), r"provenance is \[\]; an object \{…\} is expected"),
        (put_in_rule("weight", 1), r"rules\[0\]: 'weight' is no key; there are: nwp, njp, accept"),
        (put_in_rule("accept", 0), r"rules\[0\]\.accept is 0; 1 or -1 is expected"),
        (put_in_rule("accept", True), r"rules\[0\]\.accept is True; 1 or -1 is expected"),
        (
            put_in_rule("nwp", None),
            r"rules\[0\]\.nwp is None; two numbers \[gamma, sigma\] are expected",
        ),
        (
            put_in_rule("nwp", [1]),
            r"rules\[0\]\.nwp is \[1\]; two numbers \[gamma, sigma\] are expected",
        ),
        (
            put_in_rule("nwp", [1, "2"]),
            r"rules\[0\]\.nwp is \[1, '2'\]; two numbers \[gamma, sigma\] are expected",
        ),
        (
            put_in_rule("njp", [1, 0]),
            r"rules\[0\]\.njp: sigma is 0\.0; it must be a finite number other than 0",
        ),
        (put_in_rule("njp", [10**400, 1]), r"rules\[0\]\.njp: int too large to convert to float"),
    ],
)
def test_what_breaks_the_format_is_named_with_its_place(
    tmp_path: Path, damage: Callable[[dict[str, Any]], object], complaint: str
) -> None:
    """Every error names the file, the place, what was found."""
    document = rule_base_to_document(EXAMPLE)
    damage(document)
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(document))
    with pytest.raises(RuleBaseError, match=f"^{re.escape(str(path))}: {complaint}$"):
        load_rule_base(path)


def test_a_rule_base_without_a_name_or_an_origin_has_none_of_its_own() -> None:
    """As many rules as there may be are possible."""
    document = rule_base_to_document(EXAMPLE)
    del document["name"], document["provenance"]
    document["rules"] = document["rules"][:1] * RULES_MAX
    found = rule_base_from_document(document, source="s")
    assert (found.name, found.provenance, len(found.rules)) == ("rule base", {}, RULES_MAX)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("NaN", r"no JSON: NaN is no number"),
        ("Infinity", r"no JSON: Infinity is no number"),
        ("-Infinity", r"no JSON: -Infinity is no number"),
        ("1e999", r"rules\[0\]\.nwp: sigma is"),
    ],
)
def test_numbers_that_are_none_are_refused(tmp_path: Path, number: str, words: str) -> None:
    """NaN and the infinities, which JSON readers let pass, do not get into a policy."""
    text = json.dumps(rule_base_to_document(EXAMPLE)).replace("1.25", number)
    path = tmp_path / "rules.json"
    path.write_text(text)
    with pytest.raises(RuleBaseError, match=words):
        load_rule_base(path)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "no JSON"),
        (b'{"schema": ', "rules.json:1:12: no JSON"),
        (b"\xff\xfe\x00", "byte 0 is not UTF-8"),
        (b"[" * 100_000, "nested too deeply|no JSON"),
        (b"[]", "the document is"),
        (b" " * (FILE_BYTES_MAX + 1), "is larger than 4,194,304 bytes"),
    ],
)
def test_rubbish_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    """A file that is something else gives an error that says so, never a crash."""
    path = tmp_path / "rules.json"
    path.write_bytes(content)
    with pytest.raises(RuleBaseError, match=complaint):
        load_rule_base(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The path is in the text."""
    with pytest.raises(RuleBaseError, match=r"nowhere\.json: cannot be read: No such file"):
        load_rule_base(tmp_path / "nowhere.json")


def test_a_folder_is_no_rule_base(tmp_path: Path) -> None:
    """A folder's name gives an error, not a traceback."""
    with pytest.raises(RuleBaseError, match="cannot be read"):
        load_rule_base(tmp_path)


def test_further_features_come_back_and_are_named(tmp_path: Path) -> None:
    """A program that does not know them finds them in the list, and refuses the file by it."""
    near = Gaussian(1, 2)
    learned = RuleBase(
        (
            Rule(
                near, near, accept=True, requested_time=Gaussian(3, 1), starts_now=Gaussian(1, 0.1)
            ),
            Rule(
                near, near, accept=False, requested_time=Gaussian(4, 1), starts_now=Gaussian(0, 1)
            ),
        )
    )
    save_rule_base(learned, tmp_path / "rules.json")
    assert load_rule_base(tmp_path / "rules.json") == learned
    document = rule_base_to_document(learned)
    assert [one["name"] for one in document["features"]] == [
        "nwp", "njp", "requested_time", "starts_now",
    ]  # fmt: skip
    assert document["rules"][0]["requested_time"] == [3, 1]
