import math

import pytest

from grms.policy.transfer import AcceptWhenFit, AlwaysKeep, Gaussian, Rule, RuleBase

RULE = Rule(Gaussian(0, 1), Gaussian(50, 10), accept=True)


@pytest.mark.parametrize("gamma", [math.nan, math.inf, -math.inf])
def test_gamma_must_be_finite(gamma: float) -> None:
    """A centre that is no number is refused."""
    with pytest.raises(ValueError, match="gamma is"):
        Gaussian(gamma, 1)


@pytest.mark.parametrize("sigma", [math.nan, math.inf, 0.0])
def test_sigma_must_be_finite_and_not_zero(sigma: float) -> None:
    """A width that spans nothing or everything is refused."""
    with pytest.raises(ValueError, match="sigma is"):
        Gaussian(0, sigma)


def test_a_rule_base_needs_a_rule() -> None:
    """An empty rule base is refused where it is made."""
    with pytest.raises(ValueError, match="at least one rule"):
        RuleBase(())


def test_rule_bases_compare_by_their_rules() -> None:
    """Where rules come from makes no other policy of them."""
    assert RuleBase((RULE,), provenance={"seed": 1}) == RuleBase((RULE,), provenance={"seed": 2})


@pytest.mark.parametrize("policy", [AcceptWhenFit(), AlwaysKeep(), RuleBase((RULE,))])
def test_a_policy_is_compiled_once(policy: AcceptWhenFit | AlwaysKeep | RuleBase) -> None:
    """The compiled form is kept with the policy."""
    assert policy.compiled is policy.compiled
