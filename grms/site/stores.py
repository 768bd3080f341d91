"""What a daemon keeps beside its journal: results, files for jobs, and whose guests' jobs are."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from grms.daemon.file_store import ResultStore
from grms.daemon.job_files import FileLimits
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.settings import BatchSettings
from grms.lrms.job_directories import WithFolders
from grms.site.assembly import Core
from grms.site.config.load import ConfigError
from grms.site.config.schema import PSEUDONYMS_END
from grms.site.model.jobs import OfferId
from grms.site.peers.accounts import guest_accounts
from grms.site.peers.pseudonyms import GuestOwners, Pseudonyms, read_key, told_names
from grms.site.peers.script_fetch import ProgramFetcher
from grms.site.pilots.hub import Hub
from grms.site.pilots.manager import PILOTS, RUNS, Pilots
from grms.site.runtime.executor_driver import Supplies
from grms.site.scheduler.exchange_decisions import why_user_not_taken
from grms.site.scheduler.state import SiteState
from grms.site.staging.download import ResultServer
from grms.site.staging.quotas import PartnerQuota, UserQuota
from grms.site.staging.retention import Retention
from grms.site.staging.stage_in import InputFetcher, InputServer
from grms.site.staging.stage_out import StageOut
from grms.site.staging.state_fetch import StateFetch

Log = structlog.typing.FilteringBoundLogger

DAY_S: Final = 86400.0

RESULTS_END: Final = ".results"
"""In the journal's folder, after the site's name: results from partners."""

INPUTS_END: Final = ".inputs"
"""Likewise: input files of jobs."""

OWNERS_END: Final = ".owners"
"""Likewise: owners of guests' jobs."""


@dataclass(frozen=True, slots=True)
class Stores:
    """What is kept beside the journal; `owners` knows whose guests' jobs are, and who is banned.

    `pilots` run programs in reservations, which leave `run_results`; `None` if the site has none.
    """

    supplies: Supplies
    owners: GuestOwners
    inputs: InputServer
    results: ResultServer
    collector: StageOut
    states: StateFetch
    sweeper: Retention
    pilots: Pilots | None
    run_results: ResultServer | None


def keep_beside(core: Core, log: Log) -> Stores:
    """Returns what a daemon keeps beside its journal.

    Raises:
        ConfigError: the map of partners' users cannot be used.
    """
    config = core.config
    owners = GuestOwners(
        _beside(core, OWNERS_END),
        config.guests.banned,
        guest_accounts(config),
        partial(_limited, core),
    )
    limits = FileLimits(config.results.file_bytes, config.results.job_bytes)
    inputs = InputServer(ResultStore(_beside(core, INPUTS_END)), limits, core.shared)
    programs = ProgramFetcher(core.links, config.name, owners)
    lrms = core.driver.lrms
    folders = lrms.folders if isinstance(lrms, WithFolders) else None
    quota = PartnerQuota(folders, inputs.store, config.results.partner_bytes)
    fetcher = InputFetcher(programs, inputs, core.links, config.name, quota=quota)
    store = ResultStore(Path(config.results.folder or _beside(core, RESULTS_END)))
    keep_s = config.results.keep_days * DAY_S
    results = ResultServer(core.engine, folders, store, limits, keep_s=keep_s, log=log)
    state = core.engine.state
    users = UserQuota(store, config.results.user_bytes, partial(_owner, state))
    collector = StageOut(
        core.engine, core.links, store, limits, quota=users, keep_s=keep_s, log=log
    )
    results.why_coming = partial(_why, collector.problems)
    pilots = _pilots(core, inputs, log)
    runs = None if pilots is None else pilots.spool
    return Stores(
        Supplies(fetcher, inputs.place, owners.account, owners.of),
        owners,
        inputs,
        results,
        collector,
        StateFetch(core.engine, core.links, inputs, log=log),
        Retention(
            core.engine, folders, store, inputs.store, owners, keep_s=keep_s, log=log, runs=runs
        ),
        pilots,
        None
        if runs is None
        else ResultServer(core.engine, runs, store, limits, keep_s=keep_s, log=log),
    )


def _pilots(core: Core, inputs: InputServer, log: Log) -> Pilots | None:
    config = core.config
    if all(resource.pilot is None for resource in config.resources):
        return None
    if not isinstance(config.lrms, BatchSettings):
        text = f"resources.pilot: jobs of lrms.kind {config.lrms.kind!r} have no folders that nodes see"
        raise ConfigError(text)
    place = Path(config.lrms.spool or Path(config.journal.path).with_name("jobs"))
    return Pilots(
        config.resources,
        config.pilots,
        core.engine,
        hub=Hub(place / PILOTS, core.clock.now, log),
        spool=Spool(place / RUNS, core.shared),
        contents=inputs.given,
        clock=core.clock,
        log=log,
    )


def _owner(state: SiteState, job_id: str) -> str | None:
    job = state.job(job_id)
    return None if job is None else job.user


def _why(problems: Mapping[str, str], job_id: str) -> str:
    return problems.get(job_id, "")


def _limited(core: Core, partner: str, key: str, owner: str, taken: frozenset[str]) -> str:
    _, epoch, number = key.split("/")
    offer, now = OfferId(int(epoch, 16), int(number)), core.engine.clock.now()
    return why_user_not_taken(core.engine.state.memory, partner, offer, owner, now, also=taken)


def pseudonyms(core: Core) -> Pseudonyms:
    """Returns the pseudonyms of the site's users.

    Raises:
        ConfigError: the file with their key cannot be used.
    """
    try:
        return Pseudonyms(read_key(_beside(core, PSEUDONYMS_END)), told_names(core.config))
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _beside(core: Core, end: str) -> Path:
    # In the journal's folder.
    return Path(core.config.journal.path).with_name(f"{core.config.name}{end}")
