import re
from pathlib import Path

import pytest

from grms.learning.transfer.options import FEATURE_WORDS as OFFERED
from grms.policy.features import FEATURE_WORDS, FURTHER_FEATURES, in_order
from grms.policy.transfer import Rule

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "rule-bases.md"


def test_names_stand_in_the_order_of_files() -> None:
    """Whoever names them, and however often."""
    assert in_order(()) == ()
    names = tuple(FURTHER_FEATURES)
    assert names[0] == "requested_time"
    assert names[-1] == "starts_now"
    assert in_order((*reversed(names), "starts_now")) == names
    with pytest.raises(ValueError, match="'load' is no feature; there are: requested_time"):
        in_order(("load",))


def test_a_feature_is_a_member_of_a_rule_and_a_word_of_the_command() -> None:
    """One table has them all."""
    assert set(FURTHER_FEATURES) < set(Rule.__dataclass_fields__)
    assert (*FEATURE_WORDS, "none") == OFFERED


def test_the_document_says_what_files_hold() -> None:
    """The definitions of docs/rule-bases.md are those that files carry."""
    text = re.sub(r"\s+", " ", DOCUMENT.read_text(encoding="utf-8"))
    for feature in FURTHER_FEATURES.values():
        assert f'"name": "{feature.name}"' in text
        assert feature.definition in text
