"""Statements of the papers about their tables and figures, checked against the measurements.

A verdict rests on the seeds of a method, two methods being compared seed by seed; with one seed it
is open. The iterative method is deterministic, so one run is enough.
"""

import math
from collections.abc import Callable, Iterable, Iterator

from grms.learning.queueing.outcome import LEARNED
from scenarios.studies.common.verdicts import Margin, Statement, counted, every, some
from scenarios.studies.queue_strategies.reference import GREEDY, METHODS
from scenarios.studies.queue_strategies.study import (
    MANY,
    Study,
    best_constant,
    gains_of,
    learned_gain,
    transfer_gain,
)

Over = Callable[[Iterable[bool | None]], bool | None]


def statements(study: Study) -> tuple[Statement, ...]:
    """Returns every statement with its verdict."""
    logs = list(study.options["jobs"])
    found = _greedy(study, logs) if study.options["paper"] == GREEDY else _fuzzy(study, logs)
    return (
        *found,
        _beats_constants(study, logs, "training"),
        _beats_constants(study, logs, "unseen"),
    )


def verdict(study: Study) -> str:
    """Returns the outcome in a sentence."""
    found = [one for one in statements(study) if one.run]
    words = counted([one.holds for one in found])
    return f"{words} on the jobs measured here. {found[-1].measured}"


def _median(study: Study, log: str, method: str, part: str = "training") -> float | None:
    spread = learned_gain(study.of(log, method), part)
    return None if spread is None else spread.median


def _words(gains: dict[str, float | None]) -> str:
    return ", ".join(
        f"{name} {'given up' if gain is None else f'{gain:+.2f} %'}" for name, gain in gains.items()
    )


def _by_seed(study: Study, log: str, method: str) -> dict[int, float]:
    # Gains on training jobs.
    return {
        run["seed"]: gains_of(run["parts"]["training"], LEARNED)[0] for run in study.of(log, method)
    }


def _margin(values: Iterable[float]) -> Margin | None:
    known = list(values)
    if not known:
        return None
    if any(map(math.isnan, known)):
        # What was given up, as it took too long, is worse than anything.
        return Margin.exact(-math.inf)
    return Margin.of(known)


def _lead(left: Iterable[float], right: Iterable[float]) -> Margin:
    # By seed. Against what was given up, as it took too long, everything wins; of two such neither does.
    pairs = list(zip(left, right, strict=True))
    given_up = {math.isnan(one) - math.isnan(other) for one, other in pairs} - {0}
    if len(given_up) == 1:
        return Margin.exact(-math.inf if 1 in given_up else math.inf)
    if given_up:
        return Margin.of([math.nan])
    return Margin.of(0.0 if math.isnan(one) else one - other for one, other in pairs)


def _judged(
    said: str, measured: str, verdicts: Iterable[bool | None], over: Over = every
) -> Statement:
    found = list(verdicts)
    return Statement(said, measured, over(found) if found else None, run=bool(found))


def _greedy(study: Study, logs: list[str]) -> Iterator[Statement]:
    first, *others = logs
    papers = [method for method in METHODS[GREEDY] if not method.startswith("easy-")]
    gains = {method: _median(study, first, method) for method in papers}
    values = {method: of for method in papers if (of := _by_seed(study, first, method))}
    yield _judged(
        "Greedy improves the objective on CTC by more than 9 % (Table III).",
        _words(gains),
        [each.above(9.0) for of in values.values() if (each := _margin(of.values()))],
        some,
    )
    second = values.get("f2", {})
    leads = {
        method: _lead([second[seed] for seed in both], [of[seed] for seed in both])
        for method, of in values.items()
        if method != "f2" and (both := sorted(second.keys() & of.keys()))
    }
    apart = "".join(f"; f2 {each.words()} over {method}" for method, each in leads.items())
    yield _judged(
        "The second criterion performs best in all optimisation approaches.",
        f"{_words(gains)}{apart}",
        [each.above() for each in leads.values()],
    )
    moved = {log: transfer_gain(study, log, "f2") for log in others}
    yield _judged(
        "What was learned on CTC fails significantly on KTH and SDSC00 (Figure 2).",
        _words(moved),
        [each.below() for log in others if (each := _moved(study, log)) is not None],
    )
    many = {log: _median(study, log, MANY) for log in others}
    yield _judged(
        "Learned on all workloads at once, it is better than EASY on the others too (Figure 3).",
        _words(many),
        [
            each.above()
            for log in others
            if (each := _margin(_by_seed(study, log, MANY).values())) is not None
        ],
    )


def _moved(study: Study, log: str) -> Margin | None:
    # Gains of f2 as it was learned elsewhere; None where it was not moved.
    found = [one["gain"] for one in study.transfers if (one["log"], one["method"]) == (log, "f2")]
    return _margin(math.nan if gain is None else gain for gain in found)


def _fuzzy(study: Study, logs: list[str]) -> Iterator[Statement]:
    iterative = {log: _median(study, log, "iterative") for log in logs}
    symbiotic = {log: _median(study, log, "symbiotic") for log in logs}
    values = {log: list(_by_seed(study, log, "symbiotic").values()) for log in logs}
    run = {log: of for log, of in values.items() if of}
    yield _judged(
        "Symbiotic evolution is better than EASY on every workload (Table 4).",
        _words(symbiotic),
        [each.above() for of in run.values() if (each := _margin(of))],
    )
    # What the iterative method has given up is outperformed.
    yield _judged(
        "Symbiotic evolution clearly outperforms the iterative method (Figure 5).",
        f"symbiotic {_words(symbiotic)}; iterative {_words(iterative)}",
        [
            True if (other := iterative[log]) is None else each.above(other)
            for log, of in run.items()
            if study.of(log, "iterative") and (each := _margin(of))
        ],
    )
    if "sdsc00" in logs:
        gain = iterative["sdsc00"]
        yield Statement(
            "The iterative method is worse than EASY on SDSC00 (Table 3).",
            _words({"sdsc00": gain}),
            gain is None or gain < 0,
        )


def _beats_constants(study: Study, logs: list[str], part: str) -> Statement:
    jobs = "the jobs it was learned on" if part == "training" else "unseen jobs"
    ahead = []
    for log in logs:
        for method in METHODS[study.options["paper"]]:
            runs = study.of(log, method)
            gain = _median(study, log, method, part) if runs else None
            constant = best_constant(runs[0], part) if runs else None
            if gain is not None and constant is not None:
                ahead.append(gain - constant[1][0])
    better = sum(each > 0 for each in ahead)
    margin = _margin(ahead)
    return _judged(
        f"Not in the paper: what is learned beats the best constant on {jobs}.",
        f"On {jobs} {better} of {len(ahead)} medians of a method on a log beat the best constant"
        + (f"; mean difference {margin.words()} points." if margin else "."),
        [margin.above()] if margin else [],
    )
