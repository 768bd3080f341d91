"""What `grms exchange` shows: its document for programs, and what it says of the circuit breaker."""

import math
from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Any, Final

from grms.policy.circuit_breaker import DAY, CircuitBreaker
from grms.site.accounting.counterfactual import Compared, ExchangeReport
from grms.site.accounting.own_account import AccountFigures, in_a_sentence
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


_TIMES = ("since", "began", "last_look")
_PARTS = ("gain", "waiting_gain")
_AMOUNTS = ("brought", "saved", "owed", "turned_saved", "turned_owed")


def _account(account: AccountFigures) -> dict[str, Any]:
    document = asdict(account)
    for name in ("waiting_part", "others", "allowed"):
        del document[name]
    for name in _PARTS:
        document[f"{name}_percent"] = 100.0 * document.pop(name)
    for name in _AMOUNTS:
        document[f"{name}_hours"] = document.pop(name)
    for name in _TIMES:
        document[f"{name}_s"] = document.pop(name)
    document["balance_hours"] = account.balance
    document["sentence"] = in_a_sentence(account)
    document["history"] = [
        {
            **{name: value for name, value in asdict(point).items() if name not in _RENAMED},
            **{new: _plain(getattr(point, name)) for name, new in _RENAMED.items()},
        }
        for point in account.history
    ]
    return {name: _plain(value) for name, value in document.items()}


_RENAMED: Final = {"time": "time_s", "balance": "balance_hours"}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def account_lines(account: AccountFigures, *, wall: bool) -> Iterator[str]:
    """Yields what a site's account of itself says, for a person: sentences."""
    yield _credit(account, wall=wall)
    if math.isfinite(account.brought):
        word = "brought" if account.brought >= 0 else "cost"
        yield (
            f"In hours of own users' waiting (of a job of mean work, recent ones most): exchange has {word} "
            f"{_amount(abs(account.brought))}. Saved: {_amount(account.saved)}; lost by own jobs that wait: {_amount(account.owed)}."
        )
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
    yield in_a_sentence(account)
    if account.others:
        yield (
            "Jobs that were handed to the batch system past this site are not in the account: what yours have waited for "
            "them counts as if exchange had cost it, and may keep the site out of credit."
        )


def _credit(account: AccountFigures, *, wall: bool) -> str:
    word = "in credit" if account.in_credit else "not in credit"
    if math.isnan(account.since):
        return f"Account: the site is {word}, as it was from the beginning."
    since = moment(account.since, wall=wall)
    why = ": own jobs waited before any had ended that exchange could have saved"
    if math.isfinite(account.turned_owed):
        why = f": {_why_turned(account)}"
    return f"Account: the site is {word} since {since}{why}. It has turned {_times(account.turns)}."


def _why_turned(account: AccountFigures) -> str:
    saved = account.turned_saved
    if saved < 0:
        limit = " beyond what it may" if account.allowed else ""
        return f"exchange had cost own jobs {_amount(-saved)} hours{limit} by then"
    relation = "no more than" if account.in_credit else "more than"
    which = (
        "left of what exchange may cost them" if account.allowed else "that exchange had saved them"
    )
    return f"own jobs that waited had lost {_amount(account.turned_owed)} hours by then, {relation} the {_amount(saved)} {which}"


def _amount(hours: float) -> str:
    return f"{hours:,.1f}"


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
