"""The start of a site's daemon as a process, and its end.

The users' socket is open from the first moment: while the journal is read, in a thread, clients are
told that the daemon is starting. The service manager, if any, is notified once it serves.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from grms.daemon.journal import MODE
from grms.daemon.process import signals, status
from grms.site.assembly import Loaded, build_core, check_certificate, check_privileges, load
from grms.site.config.load import load_config
from grms.site.config.schema import SiteConfig
from grms.site.daemon import Daemon
from grms.site.gateway.connection_budget import connection_limits, user_socket
from grms.site.gateway.startup_server import waiting_room
from grms.site.runtime.journal import Journal
from grms.site.runtime.recovery import Progress, StoppedError, without_collection

Log = structlog.typing.FilteringBoundLogger


@asynccontextmanager
async def lifeline(stop: Callable[[], None], *, wanted: bool) -> AsyncIterator[None]:
    """Lets the end of standard input stop a daemon: who has started it is gone."""
    if not wanted:
        yield
        return
    loop = asyncio.get_running_loop()

    def ended() -> None:
        loop.remove_reader(0)
        stop()

    loop.add_reader(0, ended)
    try:
        yield
    finally:
        loop.remove_reader(0)


class _Reins:
    """What signals wish of a daemon, also before there is one."""

    def __init__(self) -> None:
        self.stopping = False
        self._reloading = False
        self._daemon: Daemon | None = None

    def take(self, daemon: Daemon) -> None:
        """Hands on what has been wished already, and everything from now on."""
        self._daemon = daemon
        if self.stopping:
            daemon.stop()
        if self._reloading:
            # What was read for this start may be older than the wish.
            daemon.reload()

    def stop(self) -> None:
        self.stopping = True
        if self._daemon is not None:
            self._daemon.stop()

    def reload(self) -> None:
        self._reloading = True
        if self._daemon is not None:
            self._daemon.reload()


def serve(config_path: Path, log: Log, *, until_eof: bool = False, behind: bool = False) -> None:
    """Runs a site daemon until it is stopped by a signal.

    With `behind` the clock may lag the journal's last record by any time.

    Raises:
        ConfigError: the configuration cannot be used.
        JournalError: the journal cannot be used.
        LrmsError: the machine of the journal's jobs cannot be made.
        SocketInUseError: another process listens on the users' socket.
        OSError: an address cannot be listened on.
    """
    config = load_config(config_path)
    durability = {"power_loss": "power", "crash": "process"}[config.journal.survives]

    async def main() -> None:
        reins = _Reins()
        shares, port_limits = connection_limits(config, log)
        with Journal(
            Path(config.journal.path),
            config.name,
            durability=durability,  # type: ignore[arg-type]  # one of the two words
        ) as journal:
            if journal.narrowed is not None:
                log.warning(
                    "journal_was_open_to_others",
                    journal=str(journal.path),
                    mode=f"{journal.narrowed:04o}",
                    now=f"{MODE:04o}",
                )
            if journal.cut_bytes:
                log.warning(
                    "journal_end_cut_off", journal=str(journal.path), bytes=journal.cut_bytes
                )
            async with (
                user_socket(config, shares, port_limits) as users,
                signals(reins.stop, reins.reload),
                lifeline(reins.stop, wanted=until_eof),
            ):
                check_certificate(config, log)
                check_privileges(config, log)
                async with waiting_room(users) as notice:

                    def tell(text: str) -> None:
                        notice.text = text
                        status(text)

                    tell(f"reading the journal: {journal.count} records")
                    progress = Progress(log, journal.count, lambda: reins.stopping, tell)
                    with without_collection():
                        loaded = await _loaded(config, config_path, journal, progress, log)
                        # What was read stays; Python need never look through it for garbage.
                        gc.freeze()
                if loaded is None:
                    log.info("stopped")
                    return
                core = build_core(config, config_path, journal, log, loaded, behind=behind)
                daemon = Daemon(core, config_path, log, (users, port_limits))
                reins.take(daemon)
                await daemon.run()

    asyncio.run(main())


async def _loaded(
    config: SiteConfig, config_path: Path, journal: Journal, progress: Progress, log: Log
) -> Loaded | None:
    """Reads the journal in a thread; returns `None` if the daemon is to stop meanwhile."""
    try:
        return await asyncio.to_thread(load, config, config_path, journal, log, progress)
    except StoppedError:
        return None
