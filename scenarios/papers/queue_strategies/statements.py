"""What the papers say of their tables and figures, each held against what was measured."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from scenarios.papers.queue_strategies.reference import GREEDY, METHODS
from scenarios.papers.queue_strategies.study import (
    MANY,
    Study,
    best_constant,
    learned_gain,
    transfer_gain,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the paper, or of ours, and what was found.

    Attributes:
        said: what is said.
        measured: the figures it is judged by.
        holds: whether they agree; None where nothing was measured.
    """

    said: str
    measured: str
    holds: bool | None


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
    found = [one for one in statements(study) if one.holds is not None]
    held = sum(bool(one.holds) for one in found)
    return f"{held} of {len(found)} statements hold on the jobs measured here. {found[-1].measured}"


def _median(study: Study, log: str, method: str, part: str = "training") -> float | None:
    spread = learned_gain(study.of(log, method), part)
    return None if spread is None else spread.median


def _words(gains: dict[str, float | None]) -> str:
    return ", ".join(
        f"{name} {'given up' if gain is None else f'{gain:+.2f} %'}" for name, gain in gains.items()
    )


def _greedy(study: Study, logs: list[str]) -> Iterator[Statement]:
    first, *others = logs
    papers = [method for method in METHODS[GREEDY] if not method.startswith("easy-")]
    gains = {method: _median(study, first, method) for method in papers}
    known = {method: gain for method, gain in gains.items() if gain is not None}
    yield Statement(
        "Greedy improves the objective on CTC by more than 9 % (Table III).",
        _words(gains),
        max(known.values()) > 9 if known else None,
    )
    yield Statement(
        "The second criterion performs best in all optimisation approaches.",
        _words(gains),
        max(known, key=known.__getitem__) == "f2" if known else None,
    )
    moved = {log: transfer_gain(study, log, "f2") for log in others}
    yield Statement(
        "What was learned on CTC fails significantly on KTH and SDSC00 (Figure 2).",
        _words(moved),
        all(gain is None or gain < 0 for gain in moved.values()) if moved else None,
    )
    many = {log: _median(study, log, MANY) for log in others}
    judged = [gain for gain in many.values() if gain is not None]
    yield Statement(
        "Learned on all workloads at once, it is better than EASY on the others too (Figure 3).",
        _words(many),
        all(gain > 0 for gain in judged) if judged else None,
    )


def _fuzzy(study: Study, logs: list[str]) -> Iterator[Statement]:
    iterative = {log: _median(study, log, "iterative") for log in logs}
    symbiotic = {log: _median(study, log, "symbiotic") for log in logs}
    both = [(symbiotic[log], iterative[log]) for log in logs]
    yield Statement(
        "Symbiotic evolution is better than EASY on every workload (Table 4).",
        _words(symbiotic),
        all(gain is not None and gain > 0 for gain in symbiotic.values()),
    )
    yield Statement(
        "Symbiotic evolution clearly outperforms the iterative method (Figure 5).",
        f"symbiotic {_words(symbiotic)}; iterative {_words(iterative)}",
        all(one is not None and (other is None or one > other) for one, other in both),
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
    better, total, margins = 0, 0, []
    for log in logs:
        for method in METHODS[study.options["paper"]]:
            runs = study.of(log, method)
            gain = _median(study, log, method, part) if runs else None
            constant = best_constant(runs[0], part) if runs else None
            if gain is not None and constant is not None:
                total += 1
                better += gain > constant[1][0]
                margins.append(gain - constant[1][0])
    return Statement(
        f"Not in the paper: what is learned beats the best constant on {jobs}.",
        f"On {jobs} {better} of {total} medians of a method on a log beat the best constant"
        + (f"; median difference {median(margins):+.2f} points." if margins else "."),
        2 * better > total if total else None,
    )
