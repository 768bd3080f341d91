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
    **faults: int,
) -> Bound:
    """Returns a bound; faults are named as in `FAULTS`, with `_` for a space, and `crash_0` for a site's."""
    named = {fault.replace("_", " "): most for fault, most in faults.items()}
    wrong = set(named) - set(FAULTS)
    if wrong:
        raise ValueError(
            f"there is no fault {', '.join(sorted(wrong))}; there are {', '.join(FAULTS)}"
        )
    return Bound(name, sites(count, **(settings or {})), jobs, named, once, promised, writes)


ROUNDS: Final = {"reoffer": 1.0}
"""Settings of sites that offer again what waits."""

RETURNS: Final = {"requeue": "allow", "preempt_guests": True}
"""Settings of sites that end partners' jobs for others, and run their own again."""

SMALL: Final = (
    bound("no fault"),
    bound("home dies", crash_0=1),
    bound("partner dies, and is full once", crash_1=1, busy=1),
    bound("loss, duplicate", loss=1, duplicate=1),
    bound("early time-out, late commit", early=1, late=1),
    bound("cancelled, loss", cancel=1, loss=1),
    bound("rounds of offers", busy=1, round=1, settings=ROUNDS),
    bound("a job is not started, and the partner dies", hinder=1, crash_1=1, busy=1),
    bound("a partner's job is refused", refuse=1, crash_1=1, busy=1),
    bound("ended jobs are forgotten, and the partner dies", forget=1, crash_1=1),
    bound("sent home, and the partner dies", preempt=1, crash_1=1, settings=RETURNS),
    bound("sent home; loss, duplicate", preempt=1, loss=1, duplicate=1, settings=RETURNS),
    bound("state comes home, or not", preempt=1, missed=1, settings=RETURNS, writes=True),
    bound("state comes home, and home dies", preempt=1, crash_0=1, settings=RETURNS, writes=True),
)
"""Those of the tests; some thousand states each."""

LARGE: Final = (
    bound("both die, loss, duplicate", crash_0=1, crash_1=1, loss=1, duplicate=1),
    bound("both die, full once, cancelled", crash_0=1, crash_1=1, busy=1, cancel=1),
    bound("home dies twice, loss", crash_0=2, loss=1),
    bound("both die, early time-out, late commit", crash_0=1, crash_1=1, early=1, late=1),
    bound("loss, duplicate, early time-out, cancelled", loss=1, duplicate=1, early=1, cancel=1),
    bound(
        "rounds; both die, places expire",
        crash_0=1,
        crash_1=1,
        busy=1,
        round=1,
        expire=1,
        settings=ROUNDS,
    ),
    bound("rounds; loss, cancelled", busy=1, round=1, loss=1, cancel=1, settings=ROUNDS),
    bound("a batch system starts anew, and both die", requeue=1, crash_0=1, crash_1=1),
    bound("a batch system loses a job, and both die", gone=1, crash_0=1, crash_1=1),
    bound("ended jobs are forgotten, and both die", forget=1, crash_0=1, crash_1=1),
    bound("a job is not started; both die, loss", hinder=1, crash_0=1, crash_1=1, busy=1, loss=1),
    bound(
        "rounds; sent home as often as can be, loss",
        preempt=3,
        busy=1,
        round=3,
        loss=1,
        settings={**ROUNDS, **RETURNS},
    ),
    bound("sent home; both die, loss", preempt=1, crash_0=1, crash_1=1, loss=1, settings=RETURNS),
    bound(
        "sent home, cancelled; both die",
        preempt=1,
        cancel=1,
        crash_0=1,
        crash_1=1,
        settings=RETURNS,
    ),
    bound(
        "sent home, forgotten; both die",
        preempt=1,
        forget=1,
        crash_0=1,
        crash_1=1,
        settings=RETURNS,
    ),
    bound(
        "rounds; sent home, home dies",
        preempt=1,
        busy=1,
        round=2,
        crash_0=1,
        settings={**ROUNDS, **RETURNS},
    ),
    bound(
        "rounds; sent home, the partner dies",
        preempt=1,
        busy=1,
        round=2,
        crash_1=1,
        settings={**ROUNDS, **RETURNS},
    ),
    bound(
        "three sites, sent home twice; home and a partner die",
        count=3,
        preempt=2,
        crash_0=1,
        crash_1=1,
        settings=RETURNS,
    ),
    bound(
        "state comes home, or not; both die, loss",
        preempt=1,
        missed=1,
        crash_0=1,
        crash_1=1,
        loss=1,
        settings=RETURNS,
        writes=True,
    ),
    bound(
        "state comes home, cancelled; home dies, duplicate",
        preempt=1,
        cancel=1,
        crash_0=1,
        duplicate=1,
        settings=RETURNS,
        writes=True,
    ),
    bound(
        "three sites, state comes home twice, or not; home dies",
        count=3,
        preempt=2,
        missed=1,
        crash_0=1,
        settings=RETURNS,
        writes=True,
    ),
    bound(
        "rounds; sent home, places expire",
        preempt=1,
        busy=1,
        round=2,
        expire=1,
        settings={**ROUNDS, **RETURNS},
    ),
    bound(
        "rounds; sent home, a place expires; home dies",
        preempt=1,
        busy=1,
        round=1,
        expire=1,
        crash_0=1,
        settings={**ROUNDS, **RETURNS},
    ),
    bound("a partner is lost and comes back; it dies", down=1, lost=1, crash_1=1),
    bound("taken back; both die", take_back=1, crash_0=1, crash_1=1, once=False),
    bound("resubmitted; home dies", resubmit=1, crash_0=1, once=False, promised=False),
    bound("written off; home dies", write_off=1, crash_0=1, promised=False),
    bound("two jobs, loss", jobs=(0, 0), loss=1),
    bound("two jobs, home dies", jobs=(0, 0), crash_0=1),
    bound("three sites, loss", count=3, loss=1, busy=1),
    bound("three sites, home dies", count=3, crash_0=1, busy=1),
    bound("three sites, all die", count=3, crash_0=1, crash_1=1, crash_2=1, busy=1),
    bound("both die, one twice, loss, duplicate", crash_0=1, crash_1=2, loss=1, duplicate=1),
    bound("both die, full once, cancelled, loss", crash_0=1, crash_1=1, busy=1, cancel=1, loss=1),
    bound("two jobs, both die", jobs=(0, 0), crash_0=1, crash_1=1),
)
"""Those that are run by hand: `python -m benchmarks.exhaustive`."""
