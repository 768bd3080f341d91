"""What a site does while its circuit breaker stops exchange."""

import math

import pytest

from grms.policy.circuit_breaker import CircuitBreaker
from grms.policy.constraints import FAIR_EXCHANGE, START_NOW
from grms.policy.transfer import Constrained, TransferPolicy
from grms.site.model.commands import AnswerOffer, Command, LrmsSubmit, SendOffer
from grms.site.model.events import CircuitBreakerLooked, OfferReceived
from grms.site.model.jobs import Load, Request
from tests.grms.site.conversation import FULL, Conversation, offer, one, settings

FREE = Load(8, 8, 0)
GUARD = CircuitBreaker(cost=0.02, jobs=10)


def site(policy: TransferPolicy, circuit_breaker: CircuitBreaker | None = GUARD) -> Conversation:
    """Returns a site of eight processors with a circuit breaker, and with b as its only partner."""
    return Conversation(settings(transfer={"b": policy}, circuit_breaker=circuit_breaker))


def accepts(home: Conversation, number: int) -> bool:
    """Returns whether the site takes a guest that it has room for."""
    commands = home(
        OfferReceived,
        load=FREE,
        partner="b",
        offer=offer(number),
        settled_below=0,
        request=Request(1, 10.0),
        payload=b"",
        reserve=False,
    )
    return one(commands, AnswerOffer).accepted


def asks(commands: list[Command]) -> bool:
    """Returns whether a partner is offered the job."""
    return any(isinstance(command, SendOffer) for command in commands)


FAIR = Constrained(FAIR_EXCHANGE)


def test_guests_are_declined_from_the_start_until_it_has_looked_and_while_it_costs_too_much() -> (
    None
):
    """A restart finds out anew; who has lost nothing goes on."""
    home = site(FAIR)
    assert home.state.guarded
    assert not accepts(home, 1)
    home(CircuitBreakerLooked, jobs=50, improvement=0.1)
    assert not home.state.guarded
    assert accepts(home, 2)
    home(CircuitBreakerLooked, jobs=50, improvement=-0.03)
    assert not accepts(home, 3)
    found = home.state.memory.circuit_breaker_found
    assert found is not None
    assert (found.jobs, found.improvement, found.stopped_since) == (50, -0.03, home.now)
    home(CircuitBreakerLooked, jobs=50, improvement=-0.02)
    assert accepts(home, 4)


def test_too_few_jobs_and_none_stop_nothing() -> None:
    """There is nothing to judge by."""
    home = site(FAIR)
    for jobs, gain in ((9, -0.5), (0, math.nan)):
        home(CircuitBreakerLooked, jobs=jobs, improvement=gain)
        assert not home.state.guarded


def test_without_a_circuit_breaker_nothing_changes() -> None:
    """Whatever is looked at."""
    home = site(FAIR, circuit_breaker=None)
    assert not home.state.guarded
    home(CircuitBreakerLooked, jobs=50, improvement=-0.9)
    assert not home.state.guarded
    assert accepts(home, 1)


@pytest.mark.parametrize(("policy", "asked"), [(FAIR, True), (Constrained(START_NOW), False)])
def test_only_partners_that_are_held_to_their_promise_are_asked_meanwhile(
    policy: TransferPolicy, asked: bool
) -> None:
    """There an own job starts at once, or the partner soon gets no further ones."""
    home = site(policy)
    stopped = home.submit(load=FULL)
    assert asks(stopped) == asked
    if not asked:
        assert one(stopped, LrmsSubmit).request.processors == 2
    home(CircuitBreakerLooked, jobs=50, improvement=0.0)
    assert asks(home.submit(load=FULL))


def test_nothing_of_it_is_in_the_journal() -> None:
    """It follows from the jobs that are there: what a site was told is no fact of its own."""
    home = site(FAIR)
    before = list(home.journal)
    home(CircuitBreakerLooked, jobs=50, improvement=-0.5)
    assert home.journal == before
