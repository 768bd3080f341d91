import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grms.federation.federation import Site, replay
from grms.learning.transfer.options import FEATURE_WORDS as OFFERED
from grms.policy._decisions import CompiledTransfer
from grms.policy.constraints import START_NOW, ExchangeConstraints
from grms.policy.transfer import (
    FEATURE_WORDS,
    FURTHER_FEATURES,
    AcceptWhenFit,
    AlwaysKeep,
    Constrained,
    Gaussian,
    Rule,
    RuleBase,
    compiled_transfer,
    in_order,
    without_constraints,
)
from lrms_sim.workload.jobs import JobTable

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
    with pytest.raises(ValueError, match=r"^a rule base needs at least one rule$"):
        RuleBase(())


def test_rule_bases_compare_by_their_rules() -> None:
    """Where rules come from makes no other policy of them."""
    assert RuleBase((RULE,), provenance={"seed": 1}) == RuleBase((RULE,), provenance={"seed": 2})


@pytest.mark.parametrize("policy", [AcceptWhenFit(), AlwaysKeep(), RuleBase((RULE,))])
def test_a_policy_is_compiled_once(policy: AcceptWhenFit | AlwaysKeep | RuleBase) -> None:
    """The compiled form is kept with the policy."""
    assert policy.compiled is policy.compiled


class Overriding(CompiledTransfer):
    """Derived in Python: what it overrides no host would call."""

    def accept(self, *_: object, **__: object) -> bool:
        """Is never asked."""
        raise AssertionError


@pytest.mark.parametrize(
    "policy",
    [
        SimpleNamespace(name="mine", compiled=Overriding()),
        SimpleNamespace(name="mine", compiled=CompiledTransfer()),
        SimpleNamespace(name="mine", compiled=None),
        Overriding(),
        "awf",
    ],
)
def test_what_is_no_policy_is_refused(policy: Any) -> None:
    """It would be ignored without a word; the error says what is possible."""
    with pytest.raises(
        TypeError, match="possible are AlwaysKeep, AcceptWhenFit, RuleBase and Constrained"
    ):
        compiled_transfer(policy)
    jobs = JobTable.from_columns(submit_time=[0], processors=[1], run_time=[5])
    a = Site("a", 1, jobs, transfer_policies={"b": policy})
    b = Site("b", 1, jobs, transfer_policies={"a": AcceptWhenFit()})
    with pytest.raises(
        TypeError, match="possible are AlwaysKeep, AcceptWhenFit, RuleBase and Constrained"
    ):
        replay([a, b])


def test_the_policies_there_are_run() -> None:
    """What the error names is not refused."""
    for policy in (AlwaysKeep(), AcceptWhenFit(), RuleBase((RULE,))):
        assert compiled_transfer(policy) is policy.compiled


def test_rules_that_look_at_different_features_are_refused() -> None:
    """One rule base asks one set of questions."""
    near = Gaussian(0, 1)
    with pytest.raises(
        ValueError,
        match=r"^rule 1 looks at starts_now, the first one at none; all must look at the same$",
    ):
        RuleBase((Rule(near, near, accept=True), Rule(near, near, accept=True, starts_now=near)))
    both = Rule(near, near, accept=True, requested_time=near, starts_now=near)
    for other, words in ((Rule(near, near, accept=True), "no further feature"), (both, None)):
        first = both if words else replace(both, gpu_share=near)
        with pytest.raises(ValueError, match="all must look at the same") as error:
            RuleBase((first, other))
        looked = words or "requested_time, starts_now"
        assert str(error.value) == (
            f"rule 1 looks at {looked}, the first one at {', '.join(first.further)}; all must look at the same"
        )


def test_rules_that_need_constraints_say_so() -> None:
    """Those of the paper do not, and within constraints nobody does."""
    near = Gaussian(0, 1)
    learned = RuleBase((Rule(near, near, accept=True, requested_time=near),), "learned")
    assert without_constraints(learned) == (
        f"the rule base learned looks at {' and '.join(learned.further)}, which are known within constraints alone; "
        'give the site rails = "fair-exchange", or name a rule base of queue and width'
    )
    for policy in (Constrained(policy=learned), RuleBase((Rule(near, near, accept=True),))):
        assert without_constraints(policy) == ""


def test_rules_that_need_another_rail_say_so() -> None:
    """Exchange constraints that ask nobody whether a job would start have no answer for rules that look at it."""
    near = Gaussian(0, 1)
    quick = RuleBase((Rule(near, near, accept=True, starts_now=near),), "quick")
    unasked = ExchangeConstraints(start_now=False)
    assert without_constraints(quick, unasked) == (
        "the rule base quick looks at starts_now, which constraints without start-now do not ask; "
        'give the site constraints with rules = "start-now" or more'
    )
    assert without_constraints(quick, START_NOW) == ""
    long = RuleBase((Rule(near, near, accept=True, requested_time=near),), "long")
    assert without_constraints(long, unasked) == ""


def test_a_replay_refuses_rules_that_need_constraints() -> None:
    """It would ask them what it does not know."""
    near = Gaussian(0, 1)
    learned = RuleBase((Rule(near, near, accept=True, starts_now=near),))
    sites = [
        Site("a", 4, JobTable.empty(), transfer_policies={"b": learned}),
        Site("b", 4, JobTable.empty()),
    ]
    with pytest.raises(
        ValueError,
        match=r"^a rule base of site 0 looks at more than queue and width, and so decides within constraints alone$",
    ):
        replay(sites)


DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "rule-bases.md"


def test_names_stand_in_the_order_of_files() -> None:
    """Whoever names them, and however often."""
    assert in_order(()) == ()
    names = tuple(FURTHER_FEATURES)
    assert names[0] == "requested_time"
    assert names[-1] == "starts_now"
    assert in_order((*reversed(names), "starts_now")) == names
    with pytest.raises(
        ValueError,
        match=r"^'load' is no feature; there are: requested_time, memory_share, gpu_share, dominant_share, starts_now$",
    ):
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
