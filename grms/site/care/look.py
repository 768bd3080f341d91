"""What exchange has brought a site, and what policies would bring, by its configuration: journal, machine, queue."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from grms.lrms.simulated import SimulatedSettings
from grms.policy.guard import ExchangeGuard
from grms.policy.transfer import TransferPolicy
from grms.site.care.advice import Advised, advise
from grms.site.care.alone import Compared, ExchangeReport, exchange
from grms.site.care.reading import read_accounts
from grms.site.configuration.config import SiteConfig
from lrms_sim.disciplines import Discipline, discipline_by_name

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
    """Returns what exchange has brought a site, and a word for the discipline of its machine alone.

    Args:
        settings: of the site.
        since: length of the window before the last record, seconds.
        discipline: by name; see `queue_alone`.
        progress: called now and then with the number of records that were read.
        not_before: the window begins then at the earliest, seconds.

    Raises:
        JournalError: the journal cannot be read.
        ValueError: there is no such discipline, or a strategy file cannot be used.
    """
    queue, word = queue_alone(settings, discipline)
    accounts = read_accounts(Path(settings.journal.path), settings.name, progress)
    return exchange(accounts, settings.processors, queue, since, not_before), word


def own_gain(
    settings: SiteConfig, guard: ExchangeGuard, progress: Callable[[int], None] = lambda _: None
) -> Compared:
    """Returns what exchange has brought own users, of the jobs that a guard looks at.

    Args:
        settings: of the site.
        guard: which jobs.
        progress: called now and then with the number of records that were read.

    Raises:
        JournalError: the journal cannot be read.
        ValueError: a strategy file cannot be used.
    """
    found, _ = exchange_of_site(settings, guard.window, progress=progress, not_before=guard.since)
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
    """Returns what policies would have brought a site's own users; see `advise`.

    Args:
        settings: of the site.
        policies: by a word, those for each partner by its name.
        since: length of the window before the last record, seconds.
        discipline: by name; see `queue_alone`.
        seed: where chance comes from.
        partners_asked: by the word, how many partners are asked about one job at most.
        progress: called now and then with the word of a policy and the number of jobs so far.

    Raises:
        JournalError: the journal cannot be read.
        ValueError: there is no such discipline, or a strategy or a policy cannot be used.
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
    """Returns the discipline of a site's machine alone, and a word for it.

    Args:
        settings: of the site.
        discipline: by name; None for that of the site's simulated queue, or EASY where the batch
            system is a real one.

    Raises:
        ValueError: there is no such discipline, or a strategy file cannot be used.
    """
    if discipline is None and isinstance(settings.lrms, SimulatedSettings):
        return settings.lrms.queue, settings.lrms.strategy or settings.lrms.discipline
    word = discipline or BACKFILLS
    return discipline_by_name(word), word
