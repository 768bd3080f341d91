"""The figures of strict exchange that are kept in the repository: small, and the same on every machine."""

import json
from typing import Any, Final

from scenarios.studies.nobody_loses.statements import Line
from scenarios.studies.nobody_loses.strict_lines import (
    StrictLine,
    adoption_of_strict,
    jitter_of_strict,
    own_lines,
    random_lines,
    restart_lines,
    rogue_lines,
)
from scenarios.studies.nobody_loses.study import Study

KEPT: Final = "figures.json"
"""In the study's folder; benchmarks/figures-nobody-loses.json is such a file."""


def figures_of(study: Study) -> str:
    """Returns what was measured of strict exchange as JSON: gains in percent of alone, two digits.

    Of each line `mean`, `worst`, `results` and `losers` (below 0); of those over federations by chance also how many
    results are `below` −1 % and full `months` below −5 %, the worst month, and jobs sent home and work lost in percent.
    """
    chance = jitter_of_strict(study)
    figures: dict[str, Any] = {
        "version": study.version,
        "options": study.options,
        "random": {each.policy: _strict(each) for each in random_lines(study)},
        "short": {each.policy: _strict(each) for each in random_lines(study, "short")},
        "restarts": {
            f"{each.policy}, {each.minutes} min": {
                "half_years": _plain(each.half_years),
                "months": _plain(each.months),
            }
            for each in restart_lines(study)
        },
        "logs": {
            policy: {window: _strict(each) for window, each in by_window.items()}
            for policy, by_window in own_lines(study).items()
        },
        "byzantine": {
            f"{each.rule}: {each.honest.name}": _plain(each.honest) | {"own": round(each.own, 2)}
            for each in rogue_lines(study)
        },
        "adoption": {each.name: _plain(each) for each in adoption_of_strict(study)},
        "jitter": None if chance is None else _plain(chance),
    }
    return json.dumps(figures, indent=1, ensure_ascii=False) + "\n"


def _plain(each: Line) -> dict[str, Any]:
    return {
        "mean": round(each.mean, 2),
        "worst": round(each.worst, 2),
        "results": each.count,
        "losers": each.below,
    }


def _strict(each: StrictLine) -> dict[str, Any]:
    return _plain(each.half_years) | {
        "below": each.below,
        "months": [each.months_below, len(each.months)],
        "month_worst": round(each.month_worst, 2),
        "sent_home": round(each.preempted, 2),
        "lost": round(each.lost, 2),
    }
