from dataclasses import replace

import numpy as np

from grms.federation.federation import Federation
from grms.learning.rule_bases.encoding import RuleBaseSettings, decode
from grms.learning.rule_bases.recorded import recorded_decisions
from grms.learning.rule_bases.self_play import within_rails_alone
from grms.policy.rails import FAIR_EXCHANGE
from grms.policy.transfer import Gaussian, Railed, Rule, RuleBase
from tests.training_grids import two_sites

SETTINGS = RuleBaseSettings(2, further=("requested_time", "starts_now"))


def test_rules_are_asked_what_rails_leave_open() -> None:
    """Own jobs that wait and guests that start: here each is let go, or taken, as the rails alone do."""
    sites = within_rails_alone(two_sites(3), FAIR_EXCHANGE)
    agreeing = decode(SETTINGS.agreeing, further=SETTINGS.further)
    federation = Federation(sites)
    visits = recorded_decisions(
        federation, {("a", "b"): agreeing, ("b", "a"): agreeing}, FAIR_EXCHANGE
    )
    offers = federation.exchange().offers
    schedule = federation.replay()
    guests = np.bincount(
        schedule.executed_on[schedule.executed_on != schedule.submitted_to], minlength=2
    )
    for seen, offered, taken in zip((visits["a"], visits["b"]), offers, guests, strict=True):
        assert (seen.accepted == ~seen.own).all()
        # Own jobs may also stop at a promise, which the rails look at after the rules.
        assert seen.own.sum() >= offered
        assert (~seen.own).sum() == taken
        assert seen.requested_time is not None
        assert len(seen.requested_time) == len(seen) > 0
        assert seen.doubtful == 0


def test_recording_decides_as_the_rule_base() -> None:
    """What is asked is what the kernel asks: the replay goes on in the same way."""
    any_queue = Gaussian(0, 1e9)
    rules = RuleBase(
        (
            Rule(any_queue, Gaussian(0, 20), accept=True),
            Rule(any_queue, Gaussian(60, 20), accept=False),
        )
    )
    guests = declined = 0
    for seed in range(4):
        a, b = two_sites(seed)
        federation = Federation(
            [
                replace(a, transfer_policies={"b": Railed(FAIR_EXCHANGE, rules)}),
                replace(b, transfer_policies={"a": Railed(FAIR_EXCHANGE)}),
            ]
        )
        seen = recorded_decisions(federation, {("a", "b"): rules}, FAIR_EXCHANGE)["a"]
        taken = federation.replay()
        moved = (taken.executed_on != taken.submitted_to) & (taken.submitted_to == 1)
        assert (seen.accepted & ~seen.own).sum() == moved.sum()
        guests += moved.sum()
        declined += (~seen.accepted & ~seen.own).sum()
    assert guests > 0
    assert declined > 0
