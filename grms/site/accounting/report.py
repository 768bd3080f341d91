"""The effect of exchange and of other policies, from a site's configuration: journal, machine, queue."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from grms.lrms.simulated.simulated import SimulatedSettings
from grms.policy.circuit_breaker import CircuitBreaker
from grms.policy.transfer import TransferPolicy
from grms.site.accounting.counterfactual import Compared, ExchangeReport, exchange
from grms.site.accounting.policy_advice import Advised, advise
from grms.site.accounting.reading import read_accounts
from grms.site.config.schema import SiteConfig
from lrms_sim.scheduling.disciplines import Discipline, discipline_by_name

BACKFILLS = "easy"
"""The discipline of a real batch system's machine alone, as most of them backfill."""


def exchange_of_site(
    settings: SiteConfig,
    since: float = math.inf,
    discipline: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
    *,
    not_before: float = -math.inf,
) -> tuple[ExchangeReport, str]:
    """Returns the effect of exchange on a site, and the name of the discipline of its machine alone.

    `progress` gets the number of records read now and then; `queue_alone` explains `discipline`, `exchange` the
    window, in seconds.

    Raises:
        JournalError: the journal cannot be read.
        ValueError: the discipline is unknown, or a strategy file cannot be used.
    """
    queue, word = queue_alone(settings, discipline)
    accounts = read_accounts(Path(settings.journal.path), settings.name, progress)
    return exchange(accounts, settings.processors, queue, since, not_before), word


def own_gain(
    settings: SiteConfig,
    circuit_breaker: CircuitBreaker,
    progress: Callable[[int], None] = lambda _: None,
) -> Compared:
    """Returns the effect of exchange on local users, for the jobs that a circuit breaker considers.

    Raises:
        JournalError: the journal cannot be read.
        ValueError: a strategy file cannot be used.
    """
    found, _ = exchange_of_site(
        settings, circuit_breaker.window, progress=progress, not_before=circuit_breaker.since
    )
    return found.total


def advice_for_site(
    settings: SiteConfig,
    policies: Mapping[str, Mapping[str, TransferPolicy]],
    *,
    since: float = math.inf,
    discipline: str | None = None,
    seed: int = 1,
    partners_asked: Mapping[str, int | None] = MappingProxyType({}),
    progress: Callable[[str, int], None] = lambda _, __: None,
) -> tuple[Advised, ...]:
    """Returns the effect that policies would have had on a site's local users, as `advise`.

    `queue_alone` explains `discipline`; the other arguments are as in `advise`.

    Raises:
        JournalError: the journal cannot be read.
        ValueError: the discipline is unknown, or a strategy or a policy cannot be used.
    """
    queue, _ = queue_alone(settings, discipline)
    accounts = read_accounts(Path(settings.journal.path), settings.name)
    return advise(
        accounts,
        settings.processors,
        queue,
        policies,
        since=since,
        rng=np.random.Generator(np.random.PCG64(seed)),
        partners_asked=partners_asked,
        progress=progress,
    )


def queue_alone(settings: SiteConfig, discipline: str | None = None) -> tuple[Discipline, str]:
    """Returns the discipline of a site's machine alone, and its name.

    The default is that of the site's simulated queue, or EASY for a real batch system.

    Raises:
        ValueError: the discipline is unknown, or a strategy file cannot be used.
    """
    if discipline is None and isinstance(settings.lrms, SimulatedSettings):
        return settings.lrms.queue, settings.lrms.strategy or settings.lrms.discipline
    word = discipline or BACKFILLS
    return discipline_by_name(word), word
