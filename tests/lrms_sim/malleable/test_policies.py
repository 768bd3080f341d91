import pytest

from lrms_sim.malleable.policies import (
    FEATURES,
    POLICIES,
    SENTENCES,
    BestFit,
    Ordered,
    name_of,
    policy_by_name,
)


def test_every_policy_has_a_name_and_a_sentence() -> None:
    """Names lead to policies and back, and each is explained."""
    assert list(POLICIES) == list(SENTENCES)
    for name, policy in POLICIES.items():
        assert policy_by_name(name) is policy
        assert name_of(policy) == name
    assert len(set(POLICIES.values())) == len(POLICIES)


def test_a_policy_without_a_name_is_described() -> None:
    """An order with weights is called by its mechanism."""
    assert name_of(Ordered("replan", "weights", weights=(1.0,) * 8)) == "replan-weights"
    assert "greedy" in name_of(BestFit("greedy", "aggressive"))


def test_who_needs_a_value_function() -> None:
    """Those who decide by value, and nobody else."""
    assert {name for name, policy in POLICIES.items() if policy.by_value} == {
        "over-value",
        "pre-value",
        "both-value",
    }


def test_an_unknown_name_is_met_with_a_likely_one() -> None:
    """Whoever mistypes sees what is meant."""
    with pytest.raises(ValueError, match="did you mean 'replan'"):
        policy_by_name("repland")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BestFit("sometimes"), "preemption is 'sometimes'; it must be one of never, "),  # type: ignore[arg-type]  # that is the matter
        (lambda: BestFit("never", "x"), "oversubscription is 'x'"),  # type: ignore[arg-type]  # same
        (lambda: Ordered("tail"), "mechanism is 'tail'; it must be one of head, easy"),  # type: ignore[arg-type]  # same
        (lambda: Ordered("list", "size"), "order is 'size'"),  # type: ignore[arg-type]  # same
        (lambda: Ordered("list", weights=(1.0,)), f"there must be {len(FEATURES)} finite"),
        (lambda: Ordered("list", weights=(float("nan"),) * 8), "finite numbers"),
    ],
)
def test_a_choice_that_is_none_is_refused(make: object, words: str) -> None:
    """The choice and those there are are named."""
    with pytest.raises(ValueError, match=words):
        make()  # type: ignore[operator]  # a lambda
