import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrms_sim.scheduling.criteria import Criterion, CriterionOrder, GroupOrder
from lrms_sim.scheduling.selection import (
    CLASSES,
    Policy,
    StrategyRule,
    StrategyRules,
    StrategyTable,
)
from lrms_sim.scheduling.strategies import Strategy, paper_strategies
from lrms_sim.scheduling.strategy_files import (
    FILE_BYTES_MAX,
    StrategyFile,
    StrategyFileError,
    load_strategy,
    save_strategy,
)

RNG = np.random.default_rng(7)
CRITERIA = tuple(
    Criterion.from_numbers(kind, (RNG.random(12) / 3).tolist()) for kind in ("f1", "f3", "f4")
)
MIXED = (
    Strategy("easy", GroupOrder((2, 1, 3, 4, 5))),
    Strategy("conservative", "requested_time"),
    Strategy("easy", CriterionOrder(CRITERIA)),
)
POLICIES: dict[str, Policy] = {
    "greedy": Strategy("fcfs", CriterionOrder(CRITERIA), label="learned on [bold]CTC[/bold]"),
    "easy by a criterion": Strategy("easy", CriterionOrder(CRITERIA[:1], "hours")),
    "constant": MIXED[0],
    "static": Strategy("list", "processors"),
    "table": StrategyTable(tuple(RNG.integers(0, 13, CLASSES).tolist()), name="T"),
    "mixed table": StrategyTable(tuple(RNG.integers(0, 3, CLASSES).tolist()), strategies=MIXED),
    "rules": StrategyRules(
        tuple(
            StrategyRule(
                tuple((RNG.random(7) * 100).tolist()),
                tuple((RNG.random(7) + 0.1).tolist()),
                tuple(RNG.choice((-5.0, -1.0, 0.0, 1.0, 5.0), 13).tolist()),
            )
            for _ in range(5)
        )
    ),
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_comes_back_to_the_last_bit(name: str, tmp_path: Path) -> None:
    """Whatever was written is read again, with its name and its provenance."""
    file = StrategyFile(POLICIES[name], {"seed": 3, "value_s": 0.1 + 0.2})
    save_strategy(file, tmp_path / "a.json")
    assert load_strategy(tmp_path / "a.json") == file
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_the_papers_strategies_need_not_be_listed(tmp_path: Path) -> None:
    """A table without strategies is about the 13."""
    document = {"schema": "hanse.strategy-rules/1", "table": [12] * CLASSES}
    (tmp_path / "a.json").write_text(json.dumps(document), encoding="utf-8")
    loaded = load_strategy(tmp_path / "a.json").policy
    assert isinstance(loaded, StrategyTable)
    assert loaded.strategies == paper_strategies()


GREEDY: dict[str, Any] = {
    "schema": "hanse.greedy/1",
    "criteria": [{"kind": "f1", "w": [1] * 5, "K": [0] * 5, "a": 1, "b": 0}],
}
RULE: dict[str, Any] = {"mu": [1] * 7, "sigma": [1] * 7, "recommend": [0] * 13}
RULES: dict[str, Any] = {"schema": "hanse.strategy-rules/1", "rules": [RULE]}
TABLE: dict[str, Any] = {"schema": "hanse.strategy-rules/1", "table": [0] * CLASSES}


def criterion(**changes: Any) -> dict[str, Any]:
    """Returns a file with one criterion, changed."""
    return GREEDY | {"criteria": [GREEDY["criteria"][0] | changes]}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], r"the document is \[\]; an object"),
        ({}, "schema is None; this version reads 'hanse.greedy/1' and 'hanse.strategy-rules/1'"),
        ({"schema": ["hanse.greedy/1"]}, "schema is"),
        (GREEDY | {"rule": 1}, "the document: 'rule' is no key"),
        (GREEDY | {"name": 5}, "name is 5; a text"),
        (GREEDY | {"name": "a\nb"}, "name is"),
        (GREEDY | {"provenance": []}, "provenance is"),
        (GREEDY | {"algorithm": "sjf"}, "'sjf' is no algorithm"),
        (GREEDY | {"algorithm": None}, "'None' is no algorithm"),
        (GREEDY | {"situations": "day"}, "'day' is no kind of calendar"),
        (GREEDY | {"situations": []}, "situations is"),
        (GREEDY | {"criteria": GREEDY["criteria"] * 2}, "2 criteria; one is needed, or one for"),
        ({"schema": "hanse.greedy/1"}, "has no criteria"),
        (criterion(w=[1] * 4), r"criteria\[0\]: weights has 4 numbers"),
        (criterion(K=[0, 0, 0, 0, "x"]), r"criteria\[0\].K\[4\] is 'x'; a number"),
        (criterion(a=True), r"criteria\[0\].a is True"),
        (criterion(a=10**400), r"criteria\[0\].a is too large"),
        (criterion(kind="f7"), r"criteria\[0\]: 'f7' is no criterion"),
        (criterion(kind=3), r"criteria\[0\].kind is 3"),
        (criterion(c=3), r"criteria\[0\]: 'c' is no key"),
        (criterion(kind="f3", b=1), r"criteria\[0\]: b is 1.0; f3 has no b"),
        (RULES | {"table": [0] * 192}, "one of strategy, table, rules is needed; found table, rules"),
        ({"schema": "hanse.strategy-rules/1"}, "found none"),
        (RULES | {"features": ["sd"]}, "features are"),
        (RULES | {"strategies": []}, "strategies is empty"),
        (RULES | {"rules": []}, "0 rules"),
        (RULES | {"rules": [RULE | {"sigma": [0] * 7}]}, r"rules\[0\]: one of deviations is 0.0"),
        (RULES | {"rules": [RULE | {"mu": [1] * 8}]}, r"rules\[0\]: means has 8 numbers"),
        (RULES | {"rules": [RULE | {"recommend": [1]}]}, "1 recommendations"),
        (RULES | {"rules": [RULE, 5]}, r"rules\[1\] is 5; an object"),
        (TABLE | {"table": [0] * 191}, "191 entries"),
        (TABLE | {"table": [0] * 191 + [13]}, "entry 191 of the table is 13"),
        (TABLE | {"table": [0.5] * 192}, r"table\[0\] is 0.5; a whole number"),
        (TABLE | {"strategies": [{"order": {"groups": [1, 2, 3, 4, 6]}}]}, r"strategies\[0\]: .*once"),
        (TABLE | {"strategies": [{"order": {"groups": [1.0]}}]}, "whole numbers"),
        (TABLE | {"strategies": [{"order": "width"}]}, "'width' is no order"),
        (TABLE | {"strategies": [{"order": "processors"}]} | {"table": [1] * 192}, "numbered 0 to 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(document: Any, said: str, tmp_path: Path) -> None:
    """The error names the file, the place, what was found and what is expected."""
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(StrategyFileError, match=said) as error:
        load_strategy(path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"schema": ', r":1:12: no JSON"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (json.dumps(criterion()).replace('"a": 1', '"a": NaN').encode(), "NaN is no number"),
        (b" " * (FILE_BYTES_MAX + 1), "is larger than 4,194,304 bytes"),
    ],
)
def test_what_is_no_json_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    """A damaged file is named, with the line where it is."""
    path = tmp_path / "wrong.json"
    path.write_bytes(content)
    with pytest.raises(StrategyFileError, match=said):
        load_strategy(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """No traceback, but the path."""
    with pytest.raises(StrategyFileError, match=r"nothing\.json: cannot be read"):
        load_strategy(tmp_path / "nothing.json")
