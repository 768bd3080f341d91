"""The broker of a scenario as a daemon of its own: its configuration, and its users.

On a clock faster than real time the broker plans less often than the scenario says, and leaves more
time for what takes real time: a search, a call, a process that is held up.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from broker.client import BrokerClient, CallError
from scenarios.live.sites import LiveSettings
from scenarios.run.workflow_source import submissions_of, supplies_of
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import LiveError

BROKER: Final = "broker"
"""The broker's name among the daemons of a scenario, and the prefix of its files."""

SPEED_MAX: Final = 1e6
CYCLE_S: Final = 5.0
"""Least real time between plans."""

SLOT_S: Final = 2.0
"""Least real time of the planning slot."""

MARGIN_S: Final = 1.0
"""Least real margin between a reservation and its run."""

KNOWN_TIMEOUT_S: Final = 60.0
"""Time for a broker to learn what its sites offer for reservation."""

_PAUSE_S: Final = 0.1


def broker_document(spec: ScenarioSpec, settings: LiveSettings, port: int | None) -> dict[str, Any]:
    """Returns the configuration of a scenario's broker, on a scaled clock or on real time.

    `port` is that of its page on the loopback; `None` for no page.

    Raises:
        LiveError: a site has the broker's name, or the clock is too fast for a broker.
    """
    assert spec.broker is not None
    if any(site.name == BROKER for site in spec.sites):
        raise LiveError(f"a site is called {BROKER}, as the broker's files are; name it otherwise")
    if settings.speed > SPEED_MAX:
        raise LiveError(f"a broker's clock is at most {SPEED_MAX:,.0f} times as fast as real time")
    cycle, planning, fast = spec.broker.cycle, spec.broker.planning, settings.clock == "scaled"
    real = settings.speed if fast else 0.0
    clock: dict[str, Any] = {"kind": settings.clock}
    if fast:
        clock |= {"speed": settings.speed, "origin": settings.origin}
    document: dict[str, Any] = {
        "listen": {"socket": str(settings.sockets / f"{BROKER}.sock")},
        "journal": {"path": f"{BROKER}.journal"},
        "clock": clock,
        "cycle": {
            "every_s": max(cycle.every_s, CYCLE_S * real),
            "slot_s": max(cycle.slot_s, SLOT_S * real),
            "pause_s": max(cycle.pause_s, MARGIN_S * real),
            "margin_s": max(cycle.margin_s, MARGIN_S * real),
        },
        "search": {
            "evaluations": planning.evaluations,
            "population": planning.population,
            "workers": 1,
        },
        "logging": {"format": "json"},
        "sites": [
            {"name": site.name, "address": f"unix:{settings.sockets / f'{site.name}.sock'}"}
            for site in spec.sites
            if site.reservable
        ],
    }
    if port is not None:
        document["dashboard"] = {"listen": f"127.0.0.1:{port}"}
    return document


async def until_known(spec: ScenarioSpec, socket: Path) -> None:
    """Returns when the broker knows everything that its sites have to reserve.

    Raises:
        LiveError: it does not in time.
    """
    wanted = {supply.name for supply in supplies_of(spec)}
    deadline = time.monotonic() + KNOWN_TIMEOUT_S
    with BrokerClient(socket) as client:
        while True:
            with suppress(CallError):
                found = await asyncio.to_thread(client.resources)
                if wanted <= {supply.name for supply in found}:
                    return
            if time.monotonic() > deadline:
                raise LiveError(
                    f"the broker does not know the resources of its sites after {KNOWN_TIMEOUT_S:g} s"
                )
            await asyncio.sleep(_PAUSE_S)


async def play_workflows(
    spec: ScenarioSpec, socket: Path, *, speed: float, origin: float, before: float
) -> int:
    """Submits a scenario's workflows on time, lets resources break and users give up.

    `speed` is in seconds of the broker's clock per real one, `origin` is when that clock shows 0,
    seconds since 1970; what comes after `before`, seconds of that clock, is left out. Returns the
    number of workflows submitted.

    Raises:
        LiveError: the broker does not take one.
    """
    count = 0
    try:
        with BrokerClient(socket) as client:
            for moment, is_workflow, act in _acts(spec, client):
                if moment > before:
                    break
                pause = origin + moment / speed - time.time()
                if pause > 0:
                    await asyncio.sleep(pause)
                await asyncio.to_thread(act)
                count += is_workflow
    except CallError as error:
        raise LiveError(f"the broker does not do what users ask: {error}") from error
    return count


def _acts(
    spec: ScenarioSpec, client: BrokerClient
) -> list[tuple[float, bool, Callable[[], object]]]:
    assert spec.broker is not None
    found: list[tuple[float, bool, Callable[[], object]]] = []
    for number, each in enumerate(submissions_of(spec)):
        key = f"play-workflow-{number}"
        found.append((each.time, True, partial(client.submit, each.workflow, key=key)))
        if each.cancel_time is not None:
            found.append((each.cancel_time, False, partial(client.cancel, each.workflow.name)))
    supplies = {(each.site, each.site_resource): each for each in supplies_of(spec)}
    for broken in spec.broker.breakdowns:
        supply = supplies[broken.site, broken.resource_id]
        for moment, is_broken in ((broken.at_s, True), (broken.until_s, False)):
            change = replace(supply, broken=is_broken)
            found.append((moment, False, partial(client.update, change)))
    return sorted(found, key=lambda act: act[0])
