"""Strict exchange in the study: its rules, what is said of them, and whether they keep to what is expected."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from grms.federation.sites import Checkpoints
from grms.policy.constraints import STRICT_EXCHANGE, AccountRules, ExchangeConstraints
from grms.policy.transfer import Constrained, TransferPolicy

HOURLY: Final = 3600.0
"""Between two checkpoints, seconds."""


@dataclass(frozen=True, slots=True)
class StrictRule:
    """A rule of strict exchange.

    Attributes:
        words: for people.
        policy: of all sites.
        checkpoint: which jobs keep their state.
        restart: seconds that a job runs, and requests, more after each return.
    """

    words: str
    policy: TransferPolicy
    checkpoint: Checkpoints | None = None
    restart: float = 0.0


_PREEMPT: Final = Constrained(STRICT_EXCHANGE, name="strict-exchange")
_RUN: Final = Constrained(
    ExchangeConstraints(account=AccountRules(guests="run")), name="strict-exchange, guests run"
)

_ALWAYS: Final = Constrained(
    ExchangeConstraints(account=AccountRules(protects=False)), name="always preemptible"
)
_ANY: Final = ExchangeConstraints(
    guest_length=None, balance=None, promise=None, account=AccountRules(protects=False)
)
_QUOTA: Final = Constrained(_ANY, name="quota")
_FAVORS: Final = Constrained(
    replace(_ANY, account=AccountRules(protects=False, favors=True)), name="network of favors"
)
_ALL: Final = Checkpoints(HOURLY)
_HALF: Final = Checkpoints(HOURLY, 2)

NO_CHECKPOINTS: Final = "strict-exchange"
HALF: Final = "strict-exchange half"
ALL: Final = "strict-exchange all"
RUN: Final = "strict-exchange run"

STRICT: Final[Mapping[str, StrictRule]] = MappingProxyType(
    {
        RUN: StrictRule("strict, guests run on", _RUN),
        NO_CHECKPOINTS: StrictRule("strict, no checkpoints", _PREEMPT),
        HALF: StrictRule("strict, every second job", _PREEMPT, _HALF),
        ALL: StrictRule("strict, every job", _PREEMPT, _ALL),
    }
)
"""By word: guests that run to their end, and guests that go home, where no, every second or every job of a site keeps
its state hourly."""

COMPARED: Final[Mapping[str, StrictRule]] = MappingProxyType(
    {
        "always": StrictRule("always preemptible, none", _ALWAYS),
        "always half": StrictRule("always preemptible, half", _ALWAYS, _HALF),
        "always all": StrictRule("always preemptible, all", _ALWAYS, _ALL),
        "quota": StrictRule("quota, none", _QUOTA),
        "quota all": StrictRule("quota, all", _QUOTA, _ALL),
        "favors": StrictRule("favors, none", _FAVORS),
        "favors all": StrictRule("favors, all", _FAVORS, _ALL),
        "strict-exchange 4h": StrictRule(
            "strict, every job, 4 h", _PREEMPT, Checkpoints(4 * HOURLY)
        ),
        "strict-exchange fifth": StrictRule(
            "strict, every fifth job", _PREEMPT, Checkpoints(HOURLY, 5)
        ),
    }
)
"""What a referee asks for. Always preemptible: strict exchange of sites that are never in credit. Quota: idle processors to
anybody, taken back, without length, balance, promise or debt. Favors: the same, and guests of partners that have done
more for the site take the processors of others."""

_IN_MIXTURES: Final = {
    "strict-exchange run half": StrictRule("strict, guests run on, half", _RUN, _HALF)
}
"""Of the sites that cannot preempt; by itself nobody of these would send a job home."""

MIXED: Final = f"{NO_CHECKPOINTS}|{RUN}"
MIXED_HALF: Final = f"{HALF}|{RUN} half"
"""Rules of the sites in turn, the first and the third by the first word."""

MIXTURES: Final[Mapping[str, str]] = MappingProxyType(
    {MIXED: "strict, every second runs on", MIXED_HALF: "the same, half keep state"}
)

CENTRAL: Final = "central"
CENTRAL_PREEMPTING: Final = "central preempting"
CENTRES: Final[Mapping[str, str]] = MappingProxyType(
    {CENTRAL: "central, knows run times", CENTRAL_PREEMPTING: "central, may preempt"}
)
"""One scheduler of all sites, see `grms.federation.federation.Federation.replay_centrally`; no site decides anything."""

RESTARTS: Final = (5, 15, 30)
"""What a new start costs after a return, minutes."""


def rule_of(word: str) -> StrictRule | None:
    """Returns the rule of a word, perhaps with ` restart ` and minutes; `None` for another policy."""
    name, _, minutes = word.partition(" restart ")
    found = STRICT.get(name) or COMPARED.get(name) or _IN_MIXTURES.get(name)
    if found is None or not minutes:
        return found
    return replace(found, words=f"{found.words}, {minutes} min", restart=60.0 * float(minutes))


def words_of_rule(word: str) -> str:
    """Returns what a rule or a mixture of rules is called on the page; empty for another policy."""
    found = rule_of(word)
    return {**MIXTURES, **CENTRES}.get(word, "") if found is None else found.words


HALF_YEAR_WORST: Final = -0.5
MONTH_WORST: Final = -5.0
"""Percent below which no half year and no full month is expected."""

OWN: Final[Mapping[str, Mapping[str, tuple[float, float]]]] = MappingProxyType(
    {
        "strict-exchange run": {"5": (28.48, 0.99), "6": (27.78, 0.83), "stress": (20.26, -0.44)},
        NO_CHECKPOINTS: {"5": (28.92, 1.27), "6": (29.21, 1.31), "stress": (25.50, -0.07)},
        "strict-exchange half": {"5": (30.34, 1.55), "6": (31.12, 0.90), "stress": (26.94, 0.14)},
        "strict-exchange all": {"5": (31.43, 1.56), "6": (32.55, 1.90), "stress": (27.80, -0.05)},
    }
)
"""The independent program's figures: mean and worst site of all grids and disciplines, percent."""

ROGUES: Final[Mapping[str, Mapping[str, tuple[float, float, float | None]]]] = MappingProxyType(
    {
        NO_CHECKPOINTS: {
            "": (29.2, 3.7, None),
            "black-hole": (25.5, 0.9, 24.8),
            "takes-all": (25.6, 0.1, 24.9),
            "free-rider-all": (25.3, 0.3, 19.8),
            "free-rider": (25.6, 0.2, 24.5),
            "awf-taker": (26.4, 1.6, 26.2),
            "awf": (26.2, 1.8, 25.8),
            "returns-all": (25.0, -0.1, 24.2),
        },
        HALF: {
            "": (31.5, 6.0, None),
            "black-hole": (27.5, 0.9, 25.0),
            "takes-all": (27.6, 0.6, 25.3),
            "free-rider-all": (27.1, 0.6, 19.8),
            "free-rider": (27.5, 0.9, 24.6),
            "awf-taker": (28.1, 1.9, 26.4),
            "awf": (28.2, 1.0, 26.6),
            "returns-all": (27.1, 0.7, 24.5),
        },
        ALL: {
            "": (32.7, 5.2, None),
            "black-hole": (29.0, 1.0, 25.2),
            "takes-all": (29.1, 1.1, 25.5),
            "free-rider-all": (28.6, 0.8, 20.0),
            "free-rider": (28.8, 0.9, 24.8),
            "awf-taker": (29.5, 2.0, 26.4),
            "awf": (29.4, 1.2, 26.3),
            "returns-all": (28.5, 1.0, 24.8),
        },
    }
)
"""By rule of the honest and Byzantine partner: mean and worst honest site, and what the Byzantine one gains itself; the independent
program's, percent."""

Pair = tuple[float, float]

ADOPTION: Final[Mapping[tuple[str, str], tuple[Pair, Pair | None]]] = MappingProxyType(
    {
        (NO_CHECKPOINTS, "fair-exchange+rounds"): ((30.9, 5.1), (29.7, 2.8)),
        ("fair-exchange+rounds", HALF): ((28.0, 3.2), (31.5, 4.7)),
        (RUN, HALF): ((28.5, 4.8), None),
        (NO_CHECKPOINTS, "awf"): ((18.8, 0.8), (28.4, 2.7)),
        (HALF, ""): ((30.9, 6.0), None),
    }
)
"""By the rule of one site and of all others: what it gains, and what they do; the independent program's."""

JITTER: Final = (29.06, 0.55)
"""Mean and worst of four draws in both windows, the independent program's."""
