"""TOML rules that give the jobs of a log their utilities; docs/utility.md has the format.

The first rule whose conditions all hold applies to a job; defaults fill the rest.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from lrms_sim.malleable.jobs import SHAPES, UtilityJobs
from lrms_sim.util.documents import known_keys, number, reading, table, whole
from lrms_sim.util.errors import HanseError
from lrms_sim.util.files import parse_toml, read_bytes
from lrms_sim.util.messages import shown, unknown
from lrms_sim.workload.groups import user_groups
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.preparation import PreparationOptions, prepare
from lrms_sim.workload.preparation_report import PreparationReport
from lrms_sim.workload.swf_log import SwfLog

FILE_BYTES_MAX: Final = 1024 * 1024
RULES_MAX: Final = 1000

CONDITIONS: Final = ("queue", "partition", "qos", "user", "group", "user_group", "executable")
"""What a rule can ask of a job: fields of its record, and its user's group by consumption."""

QOS_FIELDS: Final = ("queue", "partition", "executable", "group")
"""Where a log may say a job's QOS, for which the format has no field of its own."""

_GIVES: Final = ("weight", "plateau", "zero", "floor", "shape")


class UtilityRulesError(HanseError, ValueError):
    """Rules that cannot be used; the text says what is wrong and where."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time that grows with a job's request: multiples of the request, plus hours."""

    requests: float
    hours: float = 0.0


@dataclass(frozen=True, slots=True)
class Utility:
    """The utility of some jobs.

    Attributes:
        weight: utility of a processor-second of work.
        plateau: age until which it is full.
        zero: age from which it is gone.
        floor: share of it that is never lost.
        shape: of the fall.
    """

    weight: float = 1.0
    plateau: Span = field(default_factory=lambda: Span(1.0))
    zero: Span = field(default_factory=lambda: Span(2.0))
    floor: float = 0.0
    shape: str = "linear"


@dataclass(frozen=True, slots=True)
class Rule:
    """Which jobs get which utility; the conditions are allowed numbers by field."""

    conditions: Mapping[str, frozenset[int]]
    utility: Utility


@dataclass(frozen=True, slots=True)
class Malleability:
    """Which jobs can be squeezed.

    Attributes:
        share: of the jobs, drawn at random; from 0 to 1.
        least: fewest processors of those, as a share of their width.
    """

    share: float = 1.0
    least: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("share", "least"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be from 0 to 1")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed is {self.seed}; it must be from 0 to 2^63 - 1")

    def processors_min(self, jobs: JobTable) -> npt.NDArray[np.int32]:
        """Returns the fewest processors of each job, shape (n,)."""
        generator = np.random.Generator(np.random.PCG64(self.seed))
        drawn = generator.random(len(jobs)) < self.share
        least = np.maximum(1, np.ceil(self.least * jobs.processors)).astype(np.int32)
        return np.where(drawn, least, jobs.processors).astype(np.int32)


@dataclass(frozen=True, slots=True)
class UtilityRules:
    """Utilities for the jobs of a log.

    Attributes:
        default: for jobs without a rule.
        rules: in order of precedence.
        malleability: which jobs can be squeezed.
        qos_field: the field with a job's QOS.
    """

    default: Utility = field(default_factory=Utility)
    rules: tuple[Rule, ...] = ()
    malleability: Malleability = field(default_factory=Malleability)
    qos_field: str = "queue"


LENIENT: Final = UtilityRules(Utility(plateau=Span(1.0, 1.0), zero=Span(2.0, 24.0)))
"""Full for an hour beyond the request, gone a day after twice the request."""

TIGHT: Final = UtilityRules(Utility(plateau=Span(1.0), zero=Span(2.0)))
"""The paper's: full for the request, gone after twice the request."""

PRESETS: Final = {"lenient": LENIENT, "tight": TIGHT}
"""Rules that need no file."""


def utilities(
    log: SwfLog,
    processors: int,
    rules: UtilityRules,
    options: PreparationOptions | None = None,
) -> tuple[UtilityJobs, PreparationReport]:
    """Prepares a log and gives its jobs utilities; also returns the report of the preparation.

    Raises:
        ValueError: the rules give a utility that rises, or the preparation refuses the log.
    """
    # The preparation keeps a job's user as it is and looks at it nowhere: a number of the record
    # in its place says which record became which job, renumbered ones too.
    marked = replace(log, user=np.arange(len(log.job_id), dtype=np.int32))
    prepared = prepare(marked, processors, options)
    rows = prepared.jobs.user
    jobs = replace(prepared.jobs, user=log.user[rows])
    chosen = np.full(len(jobs), len(rules.rules))
    columns: dict[str, npt.NDArray[Any]] = {
        name: getattr(log, name)[rows] for name in CONDITIONS if name in _FIELDS
    }
    columns["qos"] = getattr(log, rules.qos_field)[rows]
    columns["user_group"] = user_groups(jobs) if len(jobs) else np.zeros(0, np.int8)
    for place in range(len(rules.rules) - 1, -1, -1):
        mask = np.ones(len(jobs), np.bool_)
        for name, wanted in rules.rules[place].conditions.items():
            mask &= np.isin(columns[name], sorted(wanted))
        chosen[mask] = place
    given = [rule.utility for rule in rules.rules] + [rules.default]

    def column(value: Callable[[Utility], float]) -> npt.NDArray[np.float64]:
        numbers: npt.NDArray[np.float64] = np.array([value(each) for each in given], np.float64)
        return np.take(numbers, chosen)

    request = jobs.requested_time
    plateau = (
        column(lambda u: u.plateau.requests) + column(lambda u: 3600 * u.plateau.hours) / request
    )
    zero = column(lambda u: u.zero.requests) + column(lambda u: 3600 * u.zero.hours) / request
    workload = UtilityJobs.of(
        jobs,
        weight=column(lambda u: u.weight),
        plateau=plateau,
        zero=zero,
        floor=column(lambda u: u.floor),
        shape=column(lambda u: SHAPES.index(u.shape)),
        processors_min=rules.malleability.processors_min(jobs),
    )
    return workload, prepared.report


_FIELDS: Final = ("queue", "partition", "user", "group", "executable")


def load_rules(path: str | os.PathLike[str]) -> UtilityRules:
    """Reads rules; `UtilityRulesError` if it cannot be read, is no TOML, or breaks the format."""
    data = read_bytes(Path(path), FILE_BYTES_MAX, UtilityRulesError)
    document = parse_toml(data, str(path), UtilityRulesError)
    return rules_from_document(document, source=str(path))


def rules_from_document(document: Mapping[str, Any], *, source: str) -> UtilityRules:
    """Builds rules from a decoded TOML document.

    Raises:
        UtilityRulesError: the document breaks the format.
    """
    with reading(source, UtilityRulesError):
        known_keys(document, ("default", "rule", "malleable", "qos_field"), "the document")
        qos_field = document.get("qos_field", "queue")
        if qos_field not in QOS_FIELDS:
            raise ValueError(unknown("field of QOS", str(qos_field), QOS_FIELDS))
        default = _utility(_table(document.get("default", {}), "default"), Utility(), "default")
        given = document.get("rule", [])
        if not isinstance(given, list) or len(given) > RULES_MAX:
            raise ValueError(f"rule must be at most {RULES_MAX} tables [[rule]]")
        rules = tuple(_rule(each, f"rule {place}", default) for place, each in enumerate(given, 1))
        malleable = _table(document.get("malleable", {}), "malleable")
        known_keys(malleable, ("share", "least", "seed"), "malleable")
        share, least = (
            number(malleable.get(name, standard), f"malleable, {name}")
            for name, standard in (("share", 1.0), ("least", 0.0))
        )
        seed = whole(malleable.get("seed", 0), "malleable, seed")
        with reading("malleable", ValueError):
            malleability = Malleability(share, least, seed)
        return UtilityRules(default, rules, malleability, qos_field)


def _rule(value: object, place: str, default: Utility) -> Rule:
    table = _table(value, place)
    conditions = {
        name: _numbers(table[name], f"{place}, {name}") for name in table if name in CONDITIONS
    }
    if not conditions:
        raise ValueError(f"{place} asks nothing of a job; give one of {', '.join(CONDITIONS)}")
    rest = {name: value for name, value in table.items() if name not in CONDITIONS}
    return Rule(conditions, _utility(rest, default, place))


def _utility(table: Mapping[str, Any], base: Utility, place: str) -> Utility:
    known = _GIVES if place == "default" else (*CONDITIONS, *_GIVES)
    known_keys(table, known, place)
    made = Utility(
        number(table.get("weight", base.weight), f"{place}, weight"),
        _span(table["plateau"], f"{place}, plateau") if "plateau" in table else base.plateau,
        _span(table["zero"], f"{place}, zero") if "zero" in table else base.zero,
        number(table.get("floor", base.floor), f"{place}, floor"),
        table.get("shape", base.shape),
    )
    if made.weight < 0:
        raise ValueError(
            f"{place}, weight is {made.weight}; it must be at least 0: "
            "the utility would rise with time"
        )
    if not 0 <= made.floor <= 1:
        raise ValueError(f"{place}, floor is {made.floor}; from 0 to 1")
    if made.shape not in SHAPES:
        raise ValueError(f"{place}: {unknown('shape', str(made.shape), SHAPES)}")
    if made.zero.requests < made.plateau.requests or made.zero.hours < made.plateau.hours:
        raise ValueError(
            f"{place}: zero is {_said(made.zero)}, before the plateau's end, "
            f"{_said(made.plateau)}, for some requests: the utility would rise with time"
        )
    return made


def _said(span: Span) -> str:
    return f"{span.requests:g} requests and {span.hours:g} hours"


def _span(value: object, place: str) -> Span:
    table = _table(value, place)
    known_keys(table, (each.name for each in fields(Span)), place)
    span = Span(
        number(table.get("requests", 0.0), f"{place}, requests"),
        number(table.get("hours", 0.0), f"{place}, hours"),
    )
    if span.requests < 0 or span.hours < 0:
        raise ValueError(f"{place} is {_said(span)}; at least 0 of both")
    return span


def _table(value: object, place: str) -> Mapping[str, Any]:
    return table(value, place, expected="a table")


def _numbers(value: object, place: str) -> frozenset[int]:
    numbers = value if isinstance(value, list) else [value]
    if not numbers or any(isinstance(each, bool) or not isinstance(each, int) for each in numbers):
        raise ValueError(f"{place} is {shown(value)}; whole numbers are expected")
    return frozenset(numbers)
