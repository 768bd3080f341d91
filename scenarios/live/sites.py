"""The daemons of a live scenario: their configurations and processes.

Every daemon has the reading end of a pipe whose other end is here. When this process ends, however
that happens, the pipe closes and the daemon stops by itself: no process is left behind.
"""

import asyncio
import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from grms.policy.constraints import RebalancingSpec
from grms.policy.registry import TRANSFER_DEFAULT, nearest_size
from grms.policy.transfer import rails_of
from lrms_sim.util.files import to_toml
from scenarios.run.replay import load_policies, local_time_of
from scenarios.spec.spec import ScenarioSpec, SiteSpec
from scenarios.util.errors import LiveError

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 30.0
READY_LINE: Final = b"serving"
"""What a daemon writes once it serves."""


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """How the daemons of a scenario run.

    Attributes:
        folder: for configurations, journals and logs.
        sockets: for sockets, whose paths must be short.
        clock: "virtual" for a conducted replay, else "scaled" or "wall".
        speed: seconds of a scaled clock for a real one.
        origin: when a scaled clock shows 0, seconds since 1970.
        survives: what a journal survives, as in a site's configuration.
        dashboards: ports of the loopback for the sites' pages; none if empty.
        reserves: whether sites offer what a broker can reserve.
    """

    folder: Path
    sockets: Path
    clock: Literal["virtual", "scaled", "wall"] = "virtual"
    speed: float = 1.0
    origin: float = 0.0
    survives: Literal["power_loss", "crash"] = "crash"
    dashboards: tuple[int, ...] = ()
    reserves: bool = False


def site_documents(
    spec: ScenarioSpec, settings: LiveSettings, ports: Sequence[int]
) -> dict[str, dict[str, Any]]:
    """Returns the configuration of every site's daemon, by name.

    Raises:
        LiveError: the scenario needs features of the replay.
    """
    _check_daemons_can(spec)
    if settings.clock == "virtual":
        _check_accounts(spec)
    addresses = {
        site.name: f"127.0.0.1:{port}" for site, port in zip(spec.sites, ports, strict=True)
    }
    documents = {site.name: _site_document(spec, site, settings, addresses) for site in spec.sites}
    for document, port in zip(documents.values(), settings.dashboards, strict=False):
        document["dashboard"] = {"listen": f"127.0.0.1:{port}"}
    return documents


def _check_daemons_can(spec: ScenarioSpec) -> None:
    for site in spec.sites:
        if site.deals_as is not None:
            raise LiveError(
                f"{site.name} is a Byzantine partner ({site.rogue}): only a replay in one process has Byzantine partners, "
                f"daemons are honest; leave rogue out, or do without daemons"
            )
        said = site.electricity
        if said is not None and (said.prefer is not None or said.delay):
            raise LiveError(
                f"{site.name} looks at prices (electricity.prefer, electricity.delay), which a replay in one process "
                f"does and daemons do not; leave these keys out, or do without daemons"
            )


def accounts_every(spec: ScenarioSpec) -> list[float]:
    """Returns how often each site looks at the account that it keeps of itself, seconds; infinity if it keeps none."""
    found = []
    for policies in load_policies(spec).values():
        rails = [one for policy in policies.values() if (one := rails_of(policy)) is not None]
        found.append(min((one.account.every for one in rails if one.account), default=math.inf))
    return found


def _check_accounts(spec: ScenarioSpec) -> None:
    # Daemons in step are to have the schedule of the replay in one process, where guests are sent home, too.
    accounts = accounts_every(spec)
    if min(accounts) == math.inf:
        return
    for site, every in zip(spec.sites, accounts, strict=True):
        why = ""
        if every == math.inf:
            why = "keeps no account of itself, as others do, and offers jobs that come home at once"
        elif site.workload.checkpoint is not None:
            why = "has jobs that keep their state, which no daemon knows of"
        elif site.discipline.endswith("-per-event"):
            why = f"makes passes per event ({site.discipline})"
        if why:
            raise LiveError(
                f"{site.name} {why}: under strict-exchange only a replay in one process can do that; or do without "
                "daemons in step (--speed)"
            )


def _site_document(
    spec: ScenarioSpec, site: SiteSpec, settings: LiveSettings, addresses: Mapping[str, str]
) -> dict[str, Any]:
    virtual = settings.clock == "virtual"
    clock: dict[str, Any] = {"kind": settings.clock}
    if settings.clock == "scaled":
        clock |= {"speed": settings.speed, "origin": settings.origin}
    partners = [
        {
            "name": other.name,
            "address": addresses[other.name],
            "processors": other.processors,
            **_transfer_entry(site, other),
        }
        for other in spec.sites
        if other is not site
    ]
    # Through daemons the word means what it means here where they are moved in step.
    location = "awrt-completed" if virtual and site.location == "awrt" else site.location
    document: dict[str, Any] = {
        "name": site.name,
        "processors": site.processors,
        "location": location,
        **({} if site.partners_asked is None else {"partners_asked": site.partners_asked}),
        "lrms": _lrms_document(spec, site, settings),
        "clock": clock,
        "listen": {
            "users": str(settings.sockets / f"{site.name}.sock"),
            "partners": addresses[site.name],
        },
        "journal": {"path": f"{site.name}.journal", "survives": settings.survives},
        "limits": {
            "open_jobs": 10**9,
            "open_jobs_per_user": 10**9,
            "ended_jobs": 10**9,
            "guest_jobs": 10**9,
            "submissions_per_s": 1e9,
            "offers_per_s": 1e9,
            "offer_timeout_s": 60.0 if virtual else 5.0,
        },
        "logging": {"format": "json"},
        "requeue": "allow",
    }
    if settings.reserves and site.reservable:
        document["resources"] = [each.model_dump() for each in site.reservable]
    if site.rails is not None:
        rails = site.rails
        document["rails"] = rails if isinstance(rails, str) else rails.model_dump(exclude_none=True)
    if site.reoffer is not None:
        rounds = site.reoffer
        document["reoffer"] = (
            rounds.model_dump(exclude_none=True) if isinstance(rounds, RebalancingSpec) else rounds
        )
    if partners:
        document["partners"] = partners
    return document


def _lrms_document(spec: ScenarioSpec, site: SiteSpec, settings: LiveSettings) -> dict[str, Any]:
    lrms: dict[str, Any] = {"discipline": site.discipline}
    if site.group_order is not None:
        lrms["group_order"] = site.group_order
    if site.strategy is not None:
        del lrms["discipline"]
        lrms["strategy"] = site.strategy
        zone, origin = local_time_of(site, spec.clock.shift)
        if zone is not None:
            lrms |= {"time_zone": zone, "time_origin": origin if settings.clock != "wall" else 0.0}
    return lrms


def _transfer_entry(site: SiteSpec, partner: SiteSpec) -> dict[str, str]:
    """Returns what a site's configuration says of its transfer policy for a partner.

    It is nothing if constraints decide alone.
    """
    transfer = site.transfer
    named = partner.name in transfer.partners or transfer.pool is not None or transfer.default
    if site.constraints_in_force is not None and not named:
        return {}
    return {"transfer": transfer_word(site, partner)}


def transfer_word(site: SiteSpec, partner: SiteSpec) -> str:
    """Returns the transfer policy of a site for a partner, as a site's configuration names it."""
    transfer = site.transfer
    named = transfer.partners.get(partner.name)
    if named is not None:
        return named
    if transfer.pool is not None:
        # The choice is the policies' own; here they are known by their words.
        named_policies: dict[int, Any] = {e.processors: e.policy for e in transfer.pool}
        return str(nearest_size(named_policies, partner.processors))
    return transfer.default or TRANSFER_DEFAULT


class SiteProcess:
    """A daemon in a process of its own."""

    def __init__(
        self, name: str, folder: Path, sockets: Path, program: str = "grms.command"
    ) -> None:
        self.name = name
        self._program = program
        self.folder = folder
        self.socket = sockets / f"{name}.sock"
        self.starts = 0
        self._process: asyncio.subprocess.Process | None = None
        self._lifeline: int | None = None
        self._detached = 0

    @property
    def config_path(self) -> Path:
        """The daemon's configuration."""
        return self.folder / f"{self.name}.toml"

    @property
    def log_path(self) -> Path:
        """What the daemon writes."""
        return self.folder / f"{self.name}.log"

    @property
    def users_address(self) -> str:
        """Where users reach the daemon."""
        return f"unix:{self.socket}"

    @property
    def coordinator_address(self) -> str:
        """Where the coordinator of a replay reaches the daemon."""
        return f"{self.users_address}.coordinator"

    @property
    def pid(self) -> int:
        """The process's id; 0 if none runs."""
        if self._detached:
            if os.waitpid(self._detached, os.WNOHANG) == (0, 0):
                return self._detached
            # It is buried, and its number may be another process's by now.
            self._detached = 0
        if self._process is not None and self._process.returncode is None:
            return self._process.pid
        return 0

    def configure(self, document: Mapping[str, Any]) -> None:
        """Writes the daemon's configuration."""
        self.config_path.write_text(to_toml(document), encoding="utf-8")

    async def start(self, *, detached: bool = False) -> None:
        """Starts the daemon and waits until it serves.

        Raises:
            LiveError: it has ended, or does not serve in time; the text has what it wrote last.
        """
        # Without -P a file of the user's folder that is called as a module would be imported for it.
        program = f"from {self._program} import main; main()"
        command = [sys.executable, "-P", "-c", program, "serve"]
        config = str(self.config_path.resolve())
        begin = self.log_path.stat().st_size if self.log_path.exists() else 0
        with self.log_path.open("ab") as log:
            if detached:
                self._detached = _spawn_detached([*command, config], log.fileno())
            else:
                reading, self._lifeline = os.pipe()
                try:
                    self._process = await asyncio.create_subprocess_exec(
                        *command,
                        "--until-eof",
                        config,
                        stdin=reading,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                finally:
                    os.close(reading)
        self.starts += 1
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._serves(begin)
        except TimeoutError:
            raise LiveError(
                f"the daemon of {self.name} does not serve after {START_TIMEOUT_S:g} s; it wrote: "
                f"{self._last_words()}"
            ) from None

    async def _serves(self, begin: int) -> None:
        while True:
            with self.log_path.open("rb") as log:
                log.seek(begin)
                if READY_LINE in log.read():
                    return
            if not self.pid:
                raise LiveError(
                    f"the daemon of {self.name} has ended; it wrote: {self._last_words()}"
                )
            await asyncio.sleep(0.02)

    def _last_words(self) -> str:
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        return " / ".join(lines[-3:]) or "nothing"

    async def ended(self) -> None:
        """Waits for the end of the process, if one was started."""
        if self._process is not None:
            await self._process.wait()

    async def kill(self) -> None:
        """Ends the daemon at once, as a crash would."""
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                # `send_signal` would take its end, if it has ended, from who waits for it.
                os.kill(process.pid, signal.SIGKILL)
            await process.wait()
        if process is self._process:
            # Otherwise somebody has started another meanwhile, which is to live.
            self._cut()

    async def stop(self) -> None:
        """Ends the daemon in order, or at once if that takes too long."""
        await self._stop_detached()
        if self._process is None or self._process.returncode is not None:
            self._cut()
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await self._process.wait()
        except TimeoutError:
            await self.kill()
        self._cut()

    async def _stop_detached(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + STOP_TIMEOUT_S
            if self.pid and self._detached:
                os.kill(self._detached, number)
            while self.pid and self._detached and time.monotonic() < deadline:  # noqa: ASYNC110  # the end of a process that nobody waits for has no event
                await asyncio.sleep(0.02)

    def _cut(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None


def _spawn_detached(command: list[str], log: int) -> int:
    return os.posix_spawn(
        command[0],
        command,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
        ],
        setsid=True,
    )


async def stop_all(processes: Sequence[SiteProcess]) -> None:
    """Ends daemons in order, all at a time, whatever happens meanwhile."""
    await asyncio.gather(*(process.stop() for process in processes))
