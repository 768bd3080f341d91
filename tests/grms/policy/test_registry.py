from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.policy import registry as words
from grms.policy.files import RuleBaseError, load_rule_base, save_rule_base
from grms.policy.location import AwrtLocation, FixedOrder
from grms.policy.registry import (
    LOCATION_POLICIES,
    LOCATION_WORDS,
    POOL_WORDS,
    TRANSFER_DEFAULT,
    TRANSFER_POLICIES,
    TRANSFER_WORDS,
    PolicyShelf,
    location_by_name,
    nearest_size,
)
from grms.policy.transfer import AcceptWhenFit, AlwaysKeep, TransferPolicy
from tests.training_grids import YES


def test_every_word_names_its_policy() -> None:
    """The words of files are the names of policies; no exchange is no policy."""
    assert POOL_WORDS == (
        "awf",
        "keep",
        "start-now",
        "short-guests",
        "fair-exchange",
        "strict-exchange",
    )
    assert (*POOL_WORDS, "none") == TRANSFER_WORDS
    assert TRANSFER_DEFAULT == "awf"
    shelf = PolicyShelf()
    for word, policy in TRANSFER_POLICIES.items():
        assert policy.name == word
        assert shelf.policy_by_name(word) is policy


def test_every_word_names_its_location_policy() -> None:
    """One word means what its host says; a list is a fixed order."""
    assert LOCATION_WORDS == ("awrt", "awrt-completed", "awrt-open")
    for word in LOCATION_POLICIES:
        assert location_by_name(word, "awrt-open") is LOCATION_POLICIES[word]
        assert location_by_name("awrt", word) is LOCATION_POLICIES[word]
    assert LOCATION_POLICIES["awrt-completed"] == AwrtLocation()
    assert LOCATION_POLICIES["awrt-open"] == AwrtLocation(open_jobs="count")
    assert location_by_name(["b", "a"], "awrt-open") == FixedOrder(("b", "a"))
    with pytest.raises(ValueError, match="nearest"):
        location_by_name("nearest", "awrt-open")


def test_a_file_is_read_once(tmp_path: Path) -> None:
    """One object for all who name it."""
    path = tmp_path / "yes.json"
    save_rule_base(YES, path)
    shelf = PolicyShelf()
    with patch.object(words, "load_rule_base", wraps=load_rule_base) as load:
        first = shelf.policy_by_name(str(path))
        assert shelf.policy_by_name(str(path)) is first
    assert first == YES
    assert load.call_count == 1


def test_a_file_that_cannot_be_used_says_so_every_time(tmp_path: Path) -> None:
    """It is read once all the same."""
    shelf = PolicyShelf()
    with patch.object(words, "load_rule_base", wraps=load_rule_base) as load:
        for _ in range(2):
            with pytest.raises(RuleBaseError, match="missing"):
                shelf.policy_by_name(str(tmp_path / "missing.json"))
    assert load.call_count == 1


SMALL, LARGE = AcceptWhenFit(), AlwaysKeep()


@pytest.mark.parametrize(("processors", "expected"), [(1, SMALL), (128, SMALL), (4096, LARGE)])
def test_the_nearest_size_is_chosen(processors: int, expected: TransferPolicy) -> None:
    """A partner is dealt with as the known partner of the most similar size."""
    assert nearest_size({430: LARGE, 100: SMALL}, processors) is expected


def test_of_two_as_near_the_smaller_is_chosen() -> None:
    """The tie rule does not depend on the pool's order."""
    assert nearest_size({300: LARGE, 100: SMALL}, 200) is SMALL
    assert nearest_size({100: SMALL, 300: LARGE}, 200) is SMALL


@given(st.dictionaries(st.integers(1, 500), st.just(SMALL), min_size=1), st.integers(1, 500))
def test_a_known_size_gets_its_own_policy(pool: dict[int, TransferPolicy], processors: int) -> None:
    """Distance zero always wins."""
    assert nearest_size(pool | {processors: LARGE}, processors) is LARGE


def test_bad_pools_are_refused() -> None:
    """An empty pool and a machine without processors are errors."""
    with pytest.raises(
        ValueError, match=r"^the pool of policies is empty; at least one is needed to choose from$"
    ):
        nearest_size({}, 5)
    with pytest.raises(ValueError, match=r"^a partner of 0 processors; at least 1 is needed$"):
        nearest_size({100: SMALL}, 0)
