"""Bounds of explorations: which sites, which jobs, and what may go wrong how often."""

import math
from typing import Any, Final

from grms.policy.location import FixedOrder
from grms.policy.transfer import AcceptWhenFit, Gaussian, Rule, RuleBase
from grms.simulation.exhaustive.model import FAULTS, Bound
from grms.simulation.exhaustive.steps import PROCESSORS
from grms.site.model.settings import PartnerSettings, SiteSettings

NAMES: Final = ("a", "b", "c")

_GIVE: Final = RuleBase((Rule(Gaussian(0.0, 1.0), Gaussian(0.0, 1.0), accept=False),), "give")


def sites(count: int, givers: tuple[int, ...] = (0,), **more: Any) -> tuple[SiteSettings, ...]:
    """Returns the settings of so many sites; `givers` offer all that they have, and take nothing.

    Partners are asked in their order; no pause lasts, and places expire at once when time passes.
    """
    found = []
    for place, name in enumerate(NAMES[:count]):
        others = [other for other in NAMES[:count] if other != name]
        policy = _GIVE if place in givers else AcceptWhenFit()
        found.append(
            SiteSettings(
                name=name,
                processors=PROCESSORS,
                partners=tuple(PartnerSettings(other, PROCESSORS) for other in others),
                transfer=dict.fromkeys(others, policy),
                location=FixedOrder(tuple(others)),
                confirm_time_max=0.5,
                clock_grace=math.inf,
                elapsed_grace=math.inf,
                probe_first_s=0.0,
                probe_most_s=0.0,
                retry_first_s=0.0,
                retry_most_s=0.0,
                **more,
            )
        )
    return tuple(found)


def bound(
    name: str,
    *,
    count: int = 2,
    jobs: tuple[int, ...] = (0,),
    once: bool = True,
    promised: bool = True,
    settings: dict[str, Any] | None = None,
    writes: bool = False,
    again: bool = False,
    unknown: tuple[str, ...] = (),
    **faults: int,
) -> Bound:
    """Returns a bound; faults are named as in `FAULTS`, with `_` for a space, and `crash_0` for a site's."""
    named = {fault.replace("_", " "): most for fault, most in faults.items()}
    wrong = set(named) - set(FAULTS)
    if wrong:
        raise ValueError(
            f"there is no fault {', '.join(sorted(wrong))}; there are {', '.join(FAULTS)}"
        )
    return Bound(
        name, sites(count, **(settings or {})), jobs, named, once, promised, writes, again, unknown
    )


Shape = dict[str, Any]
"""What several bounds have in common, as arguments of `bound`."""

ROUNDS: Final[Shape] = {"settings": {"reoffer": 1.0}}
"""Sites offer again what waits."""

RETURNS: Final[Shape] = {"settings": {"requeue": "allow", "preempt_guests": True}}
"""Sites end partners' jobs for others, and run their own again."""

RETURNS_IN_ROUNDS: Final[Shape] = {"settings": {**ROUNDS["settings"], **RETURNS["settings"]}}

WRITES: Final[Shape] = {**RETURNS, "writes": True}
"""The same, and what jobs have written comes home."""

_STATE: Final = ("checkpoint", "left", "kept")

NO_STATE: Final[Shape] = {**WRITES, "unknown": _STATE}
"""The same with a partner whose program is from before state came home, and does not know its fields."""

NO_RETURNS: Final[Shape] = {**WRITES, "unknown": ("rerun", *_STATE)}
"""The same with one from before jobs were sent home."""

AGAIN: Final[Shape] = {"once": False, "again": True}
"""What is not promised where a journal is put back."""

TWO_JOBS: Final[Shape] = {"jobs": (0, 0)}

THREE_SITES: Final[Shape] = {"count": 3}

PLAIN: Final[Shape] = {}


def _table(*rows: tuple[str, Shape, str]) -> tuple[Bound, ...]:
    # Faults are named as in `FAULTS`, with how often each may come before its name unless that is once.
    return tuple(bound(name, **(shape | _faults(faults))) for name, shape, faults in rows)


def _faults(text: str) -> Shape:
    return dict(map(_fault, text.split(", "))) if text else {}


def _fault(text: str) -> tuple[str, int]:
    most, _, name = text.partition(" ")
    return (name, int(most)) if most.isdigit() else (text, 1)


SMALL: Final = _table(
    ("no fault", PLAIN, ""),
    ("home dies", PLAIN, "crash 0"),
    ("partner dies, and is full once", PLAIN, "crash 1, busy"),
    ("loss, duplicate", PLAIN, "loss, duplicate"),
    ("early time-out, late commit", PLAIN, "early, late"),
    ("cancelled, loss", PLAIN, "cancel, loss"),
    ("rounds of offers", ROUNDS, "busy, round"),
    ("a job is not started, and the partner dies", PLAIN, "hinder, crash 1, busy"),
    ("a partner's job is refused", PLAIN, "refuse, crash 1, busy"),
    ("ended jobs are forgotten, and the partner dies", PLAIN, "forget, crash 1"),
    ("sent home, and the partner dies", RETURNS, "preempt, crash 1"),
    ("sent home; loss, duplicate", RETURNS, "preempt, loss, duplicate"),
    ("state comes home, or not", WRITES, "preempt, missed"),
    ("state comes home, and home dies", WRITES, "preempt, crash 0"),
    ("an older journal at the partner", AGAIN, "2 put back 1"),
    ("the partner knows of no kept state", NO_STATE, "preempt, loss"),
    ("false returns", WRITES, "2 lie, busy"),
)
"""Those of the tests; some thousand states each."""

LARGE: Final = _table(
    ("both die, loss, duplicate", PLAIN, "loss, duplicate, crash 0, crash 1"),
    ("both die, full once, cancelled", PLAIN, "busy, cancel, crash 0, crash 1"),
    ("home dies twice, loss", PLAIN, "2 crash 0, loss"),
    ("both die, early time-out, late commit", PLAIN, "early, late, crash 0, crash 1"),
    ("loss, duplicate, early time-out, cancelled", PLAIN, "loss, duplicate, early, cancel"),
    ("rounds; both die, places expire", ROUNDS, "busy, round, expire, crash 0, crash 1"),
    ("rounds; loss, cancelled", ROUNDS, "busy, round, loss, cancel"),
    ("a batch system starts anew, and both die", PLAIN, "requeue, crash 0, crash 1"),
    (
        "rounds; started anew, ended by hand; home dies",
        ROUNDS,
        "requeue, end by hand, busy, round, crash 0",
    ),
    ("a batch system loses a job, and both die", PLAIN, "gone, crash 0, crash 1"),
    ("ended jobs are forgotten, and both die", PLAIN, "forget, crash 0, crash 1"),
    ("a job is not started; both die, loss", PLAIN, "hinder, busy, loss, crash 0, crash 1"),
    (
        "rounds; sent home as often as can be, loss",
        RETURNS_IN_ROUNDS,
        "3 preempt, busy, 3 round, loss",
    ),
    ("sent home; both die, loss", RETURNS, "preempt, loss, crash 0, crash 1"),
    ("sent home, cancelled; both die", RETURNS, "preempt, cancel, crash 0, crash 1"),
    ("sent home, forgotten; both die", RETURNS, "preempt, forget, crash 0, crash 1"),
    ("rounds; sent home, home dies", RETURNS_IN_ROUNDS, "preempt, busy, 2 round, crash 0"),
    ("rounds; sent home, the partner dies", RETURNS_IN_ROUNDS, "preempt, busy, 2 round, crash 1"),
    (
        "three sites, sent home twice; home and a partner die",
        {**RETURNS, **THREE_SITES},
        "2 preempt, crash 0, crash 1",
    ),
    ("state comes home, or not; both die, loss", WRITES, "preempt, missed, loss, crash 0, crash 1"),
    (
        "state comes home, cancelled; home dies, duplicate",
        WRITES,
        "preempt, cancel, crash 0, duplicate",
    ),
    (
        "three sites, state comes home twice, or not; home dies",
        {**WRITES, **THREE_SITES},
        "2 preempt, missed, crash 0",
    ),
    ("rounds; sent home, places expire", RETURNS_IN_ROUNDS, "preempt, busy, 2 round, expire"),
    (
        "rounds; sent home, a place expires; home dies",
        RETURNS_IN_ROUNDS,
        "preempt, busy, round, expire, crash 0",
    ),
    ("a partner is lost and comes back; it dies", PLAIN, "down, lost, crash 1"),
    ("taken back; both die", {"once": False}, "take back, crash 0, crash 1"),
    ("resubmitted; home dies", {"once": False, "promised": False}, "resubmit, crash 0"),
    ("written off; home dies", {"promised": False}, "write off, crash 0"),
    (
        "the partner knows of no kept state; both die, loss",
        NO_STATE,
        "preempt, loss, crash 0, crash 1",
    ),
    (
        "the partner knows of no returns; both die, loss",
        NO_RETURNS,
        "preempt, loss, crash 0, crash 1",
    ),
    ("false returns; sent home, both die", WRITES, "2 lie, busy, preempt, crash 0, crash 1"),
    (
        "rounds; false returns, sent home, home dies",
        RETURNS_IN_ROUNDS,
        "lie, preempt, busy, round, crash 0",
    ),
    ("an older journal at home, and the partner is full once", AGAIN, "2 put back 0, busy"),
    ("an older journal at home; the partner dies", AGAIN, "2 put back 0, crash 1"),
    ("an older journal at home; cancelled", AGAIN, "2 put back 0, cancel"),
    ("an older journal at the partner; home dies, loss", AGAIN, "2 put back 1, crash 0, loss"),
    ("older journals at both", AGAIN, "2 put back 0, 2 put back 1"),
    ("two jobs, loss", TWO_JOBS, "loss"),
    ("two jobs, home dies", TWO_JOBS, "crash 0"),
    ("two jobs, the partner dies", TWO_JOBS, "crash 1"),
    ("three sites, loss", THREE_SITES, "loss, busy"),
    ("three sites, home dies", THREE_SITES, "crash 0, busy"),
    ("three sites, all die", THREE_SITES, "crash 0, crash 1, crash 2, busy"),
    ("both die, one twice, loss, duplicate", PLAIN, "crash 0, 2 crash 1, loss, duplicate"),
    ("both die, full once, cancelled, loss", PLAIN, "busy, cancel, loss, crash 0, crash 1"),
    ("two jobs, both die", TWO_JOBS, "crash 0, crash 1"),
)
"""Those that are run by hand: `python -m benchmarks.exhaustive`."""
