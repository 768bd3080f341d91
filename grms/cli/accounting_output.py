"""What `grms exchange` shows: its document for programs, and what it says of the circuit breaker."""

import math
from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Any

from grms.policy.circuit_breaker import DAY, CircuitBreaker
from grms.site.accounting.counterfactual import Compared, ExchangeReport
from grms.site.accounting.own_account import AccountFigures
from grms.site.config.circuit_breaker_table import circuit_breaker_of
from grms.site.config.schema import SiteConfig
from lrms_sim.util.messages import moment


def exchange_document(
    found: ExchangeReport,
    settings: SiteConfig,
    word: str,
    seen: Compared | None,
    account: AccountFigures | None = None,
) -> dict[str, Any]:
    """Returns the JSON of `grms exchange`.

    `word` stands for the discipline of the site's machine alone, `seen` for the jobs that its circuit breaker
    looks at, or `None`; `account` is the one that the site keeps of itself.
    """
    report = {each.name: getattr(found, each.name) for each in fields(found)}
    left_out = report.pop("left_out")
    return {
        "site": settings.name,
        "processors": settings.processors,
        "discipline": word,
        **report,
        **asdict(left_out),
        "circuit_breaker": _circuit_breaker(circuit_breaker_of(settings.circuit_breaker), seen),
        "account": None if account is None else _account(account),
    }


_PARTS = ("gain", "saved", "owed", "turned_saved", "turned_owed")
_TIMES = ("since", "began", "last_look")


def _account(account: AccountFigures) -> dict[str, Any]:
    document = asdict(account)
    for name in _PARTS:
        document[f"{name}_percent"] = 100.0 * document.pop(name)
    for name in _TIMES:
        document[f"{name}_s"] = document.pop(name)
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in document.items()
    }


def account_lines(
    account: AccountFigures, *, wall: bool, others: bool, allowance: float = 0.0
) -> Iterator[str]:
    """Yields what a site's account of itself says, for a person: sentences.

    `others`: the batch system may have jobs that did not come through the site, as every real one. `allowance` is the part of
    own jobs' time alone that exchange may cost beyond what it has brought.
    """
    yield _credit(account, allowance, wall=wall)
    if account.guests == "preempt":
        yield (
            f"Guests that run here: {account.protected} protected, {account.preemptible} that go when an own job "
            f"needs their processors, {account.staying} that run to their ends."
        )
    begun = moment(account.began, wall=wall) if math.isfinite(account.began) else "the beginning"
    yield (
        f"Processor hours since {begun}: {_hours(account.lent)} lent to partners' jobs and "
        f"{_hours(account.lent_lost)} lost with {_times(account.guests_sent_home)} that one was sent home; "
        f"{_hours(account.given)} got from partners and {_hours(account.given_lost)} lost with "
        f"{_times(account.sent_home)} that one of yours came home."
    )
    yield _in_a_sentence(account, "alone on the whole machine" if others else "without exchange")
    if others:
        yield (
            "Jobs that were handed to the batch system past this site are not in the account: what yours have waited for "
            "them counts as if exchange had cost it, and may keep the site out of credit."
        )


def _credit(account: AccountFigures, allowance: float, *, wall: bool) -> str:
    word = "in credit" if account.in_credit else "not in credit"
    if math.isnan(account.since):
        return f"Account: the site is {word}, as it was from the beginning."
    since = moment(account.since, wall=wall)
    why = ": own jobs waited before any had ended that exchange could have saved"
    if math.isfinite(account.turned_owed):
        why = f": {_why_turned(account, allowance)}"
    return f"Account: the site is {word} since {since}{why}. It has turned {_times(account.turns)}."


def _why_turned(account: AccountFigures, allowance: float) -> str:
    saved, owed = account.turned_saved, _percent(account.turned_owed)
    if saved + allowance < 0:
        limit = f", more than the {_percent(allowance)} that it may" if allowance else ""
        return f"exchange had cost own jobs {_percent(-saved)} by then{limit}"
    relation = "no more than" if account.in_credit else "more than"
    waiting = f"own jobs that waited had lost {owed} by then, {relation} the"
    if allowance:
        return f"{waiting} {_percent(saved + allowance)} left of what exchange may cost them"
    return f"{waiting} {_percent(saved)} that exchange had saved them"


def _in_a_sentence(account: AccountFigures, against: str) -> str:
    # Only what the account has measured: time in the system against the shadow's, and who would run there.
    if math.isnan(account.gain):
        return "In a sentence: no job of yours has ended yet that the account could compare."
    way = "less" if account.gain >= 0 else "more"
    took = f"your users' jobs took {_percent(abs(account.gain))} {way} time than they would have {against}"
    if account.waiting == 0:
        waits = "none of yours waits"
    elif not account.owed > 0:
        waits = f"none of yours that wait would have run by the last look {against}"
    else:
        waits = f"some of yours that waited at the last look would have run by then {against}"
    return f"In a sentence: {took} (weighted by work, recent ones most); {waits}."


def _percent(part: float) -> str:
    return f"{100.0 * part:.1f} %"


def _hours(work: float) -> str:
    return f"{work / 3600:,.1f}"


def _times(count: int) -> str:
    return "1 time" if count == 1 else f"{count:,} times"


def _circuit_breaker(
    circuit_breaker: CircuitBreaker | None, seen: Compared | None
) -> dict[str, Any] | None:
    if circuit_breaker is None or seen is None:
        return None
    return {
        "cost": circuit_breaker.cost,
        "window_s": circuit_breaker.window,
        "jobs_min": circuit_breaker.jobs,
        "since_s": circuit_breaker.since,
        "jobs": seen.jobs,
        "improvement_percent": 100.0 * seen.improvement,
        "stops": circuit_breaker.stops(seen.jobs, seen.improvement),
    }


def circuit_breaker_words(circuit_breaker: CircuitBreaker | None, seen: Compared | None) -> str:
    """Returns what a site's circuit breaker says by its journal, for a person; empty if it has none."""
    if circuit_breaker is None or seen is None:
        return ""
    jobs = "1 own job" if seen.jobs == 1 else f"{seen.jobs:,} own jobs"
    span = f"of {circuit_breaker.window / DAY:g} days"
    if seen.jobs < circuit_breaker.jobs:
        return f"Circuit breaker: {jobs} {span} are too few to judge by ({circuit_breaker.jobs:,}); exchange goes on."
    gain = 100.0 * seen.improvement
    found = "nothing" if math.isnan(gain) else f"{abs(gain):.1f} %"
    way = "cost" if gain < 0 else "brought"
    limit = f"{100.0 * circuit_breaker.cost:g} %"
    if circuit_breaker.stops(seen.jobs, seen.improvement):
        return (
            f"Circuit breaker: exchange stands still. It has {way} {jobs} {span} {found}, and {limit} is "
            "what it may cost: guests are declined, and only partners that are held to their promise "
            "are asked."
        )
    return f"Circuit breaker: exchange goes on. It has {way} {jobs} {span} {found}; it may cost {limit}."
