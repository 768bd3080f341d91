"""The JSON documents of the pages. It is pure.

Every figure is the site's own: of its machine, its users' jobs, and its dealings with partners.
docs/information-policy.md says what a site may know of others; a test holds these documents to it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from grms.policy.transfer import (
    AcceptWhenFit,
    AlwaysKeep,
    Constrained,
    Gaussian,
    RuleBase,
    TransferPolicy,
)
from grms.site.accounting.own_account import AccountFigures, in_a_sentence
from grms.site.model.account_history import POINT_S
from grms.site.model.jobs import Load
from grms.site.monitoring.dashboard_events import Decided, Sampled
from grms.site.monitoring.dashboard_state import DashboardState, Entry, Step

JOBS_SHOWN_MAX: Final = 500
POINTS_MAX: Final = 400
RULES_SHOWN_MAX: Final = 50
Document = dict[str, Any]


def now_document(ledger: DashboardState) -> Document:
    """Returns how the site is now: what changes every second."""
    last = ledger.near[-1] if ledger.near else None
    return {
        "revision": ledger.revision,
        "lost": ledger.lost,
        "sample": None if last is None else _sample(last),
        "draining": last is not None and last.draining,
        "partners": [asdict(each) for each in ledger.partners],
        "account": None if ledger.account is None else _account(ledger.account),
    }


def _account(account: AccountFigures) -> Document:
    """Returns the account without its history."""
    found = {
        "in_credit": account.in_credit,
        "since_s": account.since,
        "turns": account.turns,
        "last_look_s": account.last_look,
        "saved_hours": account.saved,
        "owed_hours": account.owed,
        "turned_saved_hours": account.turned_saved,
        "turned_owed_hours": account.turned_owed,
        "protected": account.protected,
        "preemptible": account.preemptible,
        "staying": account.staying,
        "lent_hours": account.lent / 3600.0,
        "lent_lost_hours": account.lent_lost / 3600.0,
        "given_hours": account.given / 3600.0,
        "given_lost_hours": account.given_lost / 3600.0,
        "guests_sent_home": account.guests_sent_home,
        "sent_home": account.sent_home,
        "sentence": in_a_sentence(account),
    }
    return {name: _plain(value) for name, value in found.items()}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def account_document(ledger: DashboardState) -> Document:
    """Returns the last 30 days of the account that the site keeps of itself, oldest first."""
    points = [] if ledger.account is None else ledger.account.history
    return {
        "point_s": POINT_S,
        "points": [
            {
                "time_s": point.time,
                "looks": point.looks,
                "in_credit": point.in_credit,
                "balance_hours": _plain(point.balance),
                "protected": point.protected,
                "guests": point.protected + point.preemptible + point.staying,
            }
            for point in points
        ],
    }


def history_document(ledger: DashboardState, since: float) -> Document:
    """Returns the samples since a moment, thinned out to what a chart can show.

    `since` is in seconds on the site's clock.
    """
    near = list(ledger.near)
    begin = near[0].time if near else math.inf
    rows = [each for each in ledger.far if since <= each.time < begin]
    rows += [each for each in near if each.time >= since]
    return {"samples": [_sample(each) for each in thinned(rows, POINTS_MAX)]}


def thinned(rows: Sequence[Sampled], most: int) -> list[Sampled]:
    """Returns rows at even distances, the last one always among them."""
    if len(rows) <= most:
        return list(rows)
    step = len(rows) / most
    return [rows[min(len(rows) - 1, math.ceil((index + 1) * step) - 1)] for index in range(most)]


def _sample(sampled: Sampled) -> Document:
    load = sampled.load
    return {
        "time_s": sampled.time,
        "processors": None if load is None else load.processors,
        "processors_free": None if load is None else load.processors_free,
        "processors_waiting": None if load is None else load.processors_waiting,
        "at_lrms": sampled.at_lrms,
        "jobs_open": sampled.jobs_open,
    }


# --- jobs ------------------------------------------------------------------------------------


def jobs_document(
    ledger: DashboardState, *, search: str = "", kind: str = "all", limit: int = 100
) -> Document:
    """Returns the jobs that changed last, newest arrival first, at most `JOBS_SHOWN_MAX`.

    All words of `search` must occur in a job's id, name, user, state, outcome or place. `kind` is
    "all", "home", "away" (own users' jobs at partners), "guests" or "open".
    """
    words = search.casefold().split()
    rows: list[Entry] = []
    matching = 0
    for entry in reversed(ledger.jobs.values()):
        if _is_kind(entry, kind, ledger.site) and _has(entry, words):
            matching += 1
            if len(rows) < min(limit, JOBS_SHOWN_MAX):
                rows.append(entry)
    rows.sort(key=lambda entry: (entry.submit_time, entry.key), reverse=True)
    return {
        "revision": ledger.revision,
        "matching": matching,
        "known": len(ledger.jobs),
        "partial": ledger.partial,
        "jobs": [job_document(entry) for entry in rows],
    }


def _is_kind(entry: Entry, kind: str, site: str) -> bool:
    if kind == "home":
        return entry.home == site and entry.place in {site, ""}
    if kind == "away":
        return entry.home == site and entry.place not in {site, ""}
    if kind == "guests":
        return entry.home != site
    return kind != "open" or entry.state != "ended"


def _has(entry: Entry, words: Iterable[str]) -> bool:
    said = [entry.job_id, entry.name, entry.user, entry.state, entry.outcome, entry.place]
    text = " ".join([*said, entry.home]).casefold()
    return all(word in text for word in words)


def job_document(entry: Entry) -> Document:
    """Returns a job without its story."""
    return {
        "key": entry.key,
        "job_id": entry.job_id,
        "home": entry.home,
        "user": entry.user,
        "name": entry.name,
        "processors": entry.processors,
        "requested_time_s": entry.requested_time,
        "submit_time_s": entry.submit_time,
        "start_time_s": entry.start_time,
        "end_time_s": entry.end_time,
        "state": entry.state,
        "outcome": entry.outcome,
        "place": entry.place,
        "asking": entry.asking,
    }


# --- the story of a job -------------------------------------------------------------------------


def story_document(ledger: DashboardState, key: str) -> Document | None:
    """Returns a job with its story; `None` if unknown."""
    entry = ledger.jobs.get(key)
    if entry is None:
        return None
    steps = [
        {
            "time_s": step.time,
            "kind": step.kind,
            "partner": step.partner,
            "text": _sentence(step, entry),
            "decision": _decision(step, entry.processors),
        }
        for step in entry.steps
    ]
    return {
        **job_document(entry),
        "revision": entry.revision,
        "summary": _summary(entry, ledger.site),
        "steps": steps,
    }


def _summary(entry: Entry, site: str) -> str:
    if entry.home != site:
        return f"{entry.home} offered it, and this site took it."
    if entry.asking:
        return f"{entry.asking} is being asked."
    if not entry.place:
        ended = entry.state == "ended"
        what = "It ended before it was" if ended else "It is not"
        return f"{what} decided {'' if ended else 'yet '}where it runs."
    asked = [step.partner for step in entry.steps if step.kind == "asked"]
    said_no = [step.partner for step in entry.steps if step.kind == "declined"]
    if entry.place != site:
        before = f", after {_names(said_no)} declined" if said_no else ""
        return f"It was given to {entry.place}, which accepted it{before}."
    kept = next((step for step in reversed(entry.steps) if step.kind == "kept"), None)
    if asked:
        return f"It runs here: {_names(asked)} did not take it."
    return "It runs here. " + ("" if kept is None else _kept(kept))


def _names(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    if len(unique) < 2:
        return "".join(unique)
    return f"{', '.join(unique[:-1])} and {unique[-1]}"


_SENTENCES: Final = {
    "received": "{user} handed it in.",
    "taken": "{partner} offered it, and this site's policy wanted it.",
    "asked": "It was offered to {partner}.",
    "declined": "{partner} did not take it.",
    "accepted": "{partner} accepted it.",
    "left": "{partner} held a place for it, and it left the queue here.",
    "started": "It started.",
    "ended": "It ended: {outcome}{words}.",
    "returned": "{partner} ended it, so that it is decided anew.",
    "sent home": "{partner} ended it for another job after {words}, and it is decided anew.",
    "state came": "What it had written at {partner} after {words} has come, and it goes on from there.",
    "state missed": "What it had written at {partner} cannot come: {words}.",
    "given up": "It was given up on at {partner}, and is decided anew.",
    "taken back": "The operator {words} wanted it back.",
    "resubmitted": "The operator {words} had it decided anew.",
    "written off": "The operator {words} gave up on it.",
    "cancel asked": "Its end was asked for.",
    "reported": "{partner} knows of its end.",
}


def _sentence(step: Step, entry: Entry) -> str:
    if step.kind == "kept":
        return _kept(step)
    words = step.words
    if step.kind == "ended" and words:
        words = f" ({words})"
    form = _SENTENCES.get(step.kind, step.kind)
    return form.format(
        user=entry.user or "Its user",
        partner=step.partner or "the partner",
        outcome=entry.outcome,
        words=words,
    )


def _kept(step: Step) -> str:
    decided = step.decided
    if decided is None or decided.weighed is None:
        return (
            "The site kept it. What the decision rested on is not in the journal; a dashboard knows "
            "it of decisions since the daemon's start."
        )
    if decided.weighed.load is None:
        return "The batch system did not say how busy it is, so the site kept it."
    if step.partner:
        policy = decided.policy.name if decided.policy else "own"
        return f"The site's policy for {step.partner} ({policy}) wanted to run it here."
    return "The site kept it: no partner was left to be asked."


def _decision(step: Step, processors: int) -> Document | None:
    decided = step.decided
    if decided is None:
        return None
    load = decided.weighed.load if decided.weighed else None
    return {
        "load": None if load is None else _load(load),
        "policy": _policy(decided, processors),
        "passed_over": [{"partner": name, "why": why} for name, why in decided.passed_over],
    }


def _load(load: Load) -> Document:
    return {
        "processors": load.processors,
        "processors_free": load.processors_free,
        "processors_waiting": load.processors_waiting,
    }


def _policy(decided: Decided, processors: int) -> Document | None:
    policy = decided.policy
    load = decided.weighed.load if decided.weighed else None
    if policy is None or load is None:
        return None
    if isinstance(policy, RuleBase):
        return _rule_base(policy, load, processors)
    document: Document = {"kind": policy.name, "name": policy.name, "words": _words(policy)}
    if isinstance(policy, AcceptWhenFit):
        document["runs_here"] = processors <= load.processors_free
        document["needed"], document["free"] = processors, load.processors_free
    return document


def _words(policy: TransferPolicy) -> str:
    if isinstance(policy, AcceptWhenFit):
        return "The site runs a job itself if it fits into the processors that are free now."
    if isinstance(policy, AlwaysKeep):
        return "The site runs every own job itself."
    if isinstance(policy, Constrained):
        return (
            "Fair exchange: a job that would start here at once stays, and nobody is offered more than "
            "is fair."
        )
    return "The site asked its policy."


def _rule_base(policy: RuleBase, load: Load, processors: int) -> Document:
    """Returns a rule base with the memberships of one decision (paper 003, equations 2 to 10)."""
    nwp = load.processors_waiting / load.processors
    njp = 100.0 * processors / load.processors
    rules = []
    for rule in policy.rules[:RULES_SHOWN_MAX]:
        one, other = membership(rule.nwp, nwp), membership(rule.njp, njp)
        rules.append(
            {
                "nwp": {"gamma": rule.nwp.gamma, "sigma": rule.nwp.sigma, "membership": one},
                "njp": {"gamma": rule.njp.gamma, "sigma": rule.njp.sigma, "membership": other},
                "runs_here": rule.accept,
                "weight": one * other,
            }
        )
    output = policy.compiled.output(nwp, njp)
    return {
        "kind": "rule base",
        "name": policy.name,
        "words": "Every rule weighs in by how well it fits; the sign of the sum decides.",
        "nwp": nwp,
        "njp": njp,
        "rules": rules,
        "rules_all": len(policy.rules),
        "output": output,
        "runs_here": output > 0 and processors <= load.processors,
    }


def membership(gaussian: Gaussian, value: float) -> float:
    """Returns exp(−(x−γ)²/σ²) (paper 003, equation 4)."""
    return math.exp(-(((value - gaussian.gamma) / gaussian.sigma) ** 2))
