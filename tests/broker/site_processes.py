"""Sites' daemons as processes of their own, over their sockets or over mutual TLS on loopback."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from broker.model.resources import Resource
from broker.scheduler.records import Supply
from grms.daemon.ports import free_port
from grms.security.tls import TlsFiles
from tests.grms.keys import new_federation

SERVE = "from grms.command import main; main()"
BROKER = "hanse-broker"
"""The name in the broker's certificate."""

RESOURCES = (("fast", 2.0, 2), ("slow", 1.0, 1))
"""Name, speed and processors of what each site has."""


def pool(*sites: str) -> tuple[Supply, ...]:
    """Returns the resources of sites."""
    return tuple(
        Supply(Resource(f"{site}-{name}", performance=speed, capacity=units), site, name)
        for site in sites
        for name, speed, units in RESOURCES
    )


class SiteProcess:
    """A site's daemon.

    Attributes:
        name: of the site.
        config: file of its configuration.

    Args:
        folder: for socket and journal.
        name: of the site.
        port: of the loopback, for the broker; 0 for none.
        keys: of the site.
    """

    def __init__(
        self, folder: Path, name: str, port: int = 0, keys: TlsFiles | None = None
    ) -> None:
        self.name = name
        self._folder = folder
        self._port = port
        self._log = folder / f"{name}.log"
        self.config = folder / f"{name}.toml"
        resources = "".join(
            f'[[resources]]\nresource_id = "{resource}"\nprocessors = {units}\nspeed = {speed}\n'
            for resource, speed, units in RESOURCES
        )
        partners = f'partners = "127.0.0.1:{port}"\n' if port else ""
        self.config.write_text(
            f'name = "{name}"\nprocessors = 4\n'
            + (f'brokers = ["{BROKER}"]\n' if keys is not None else "")
            + f'[listen]\nusers = "{folder}/{name}.sock"\n{partners}'
            + f'[journal]\npath = "{folder}/{name}.journal"\n'
            + (f"[tls]\n{_keys(keys)}" if keys is not None else "")
            + resources
        )
        self._process: subprocess.Popen[bytes] | None = None

    def entry(self, keys: TlsFiles | None = None, *, name: str = "") -> str:
        """Returns the site's part of a broker's configuration.

        Args:
            keys: of the broker.
            name: what the broker takes the site for; its own where left out.
        """
        head = f'[[sites]]\nname = "{name or self.name}"\n'
        if keys is None:
            return f'{head}address = "unix:{self._folder}/{self.name}.sock"\n'
        return f'{head}address = "127.0.0.1:{self._port}"\n[sites.tls]\n{_keys(keys)}'

    def start(self) -> None:
        """Starts it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # this program
                [sys.executable, "-c", SERVE, "serve", str(self.config)], stderr=log
            )

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process is not None
        return self._process.pid

    def until_serving(self) -> None:
        """Returns when it serves."""
        end = time.monotonic() + 300
        while "serving" not in self._log.read_text():
            assert time.monotonic() < end, self._log.read_text()
            time.sleep(0.02)

    def kill(self) -> None:
        """Ends it without a word; twice is nothing."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(300)


def _keys(files: TlsFiles) -> str:
    return (
        f'authority = "{files.authority}"\ncertificate = "{files.certificate}"\n'
        f'key = "{files.key}"\n'
    )


@contextlib.contextmanager
def running(sites: Sequence[SiteProcess]) -> Iterator[dict[str, SiteProcess]]:
    """Yields daemons by name, which have been started."""
    started: list[SiteProcess] = []
    try:
        for site in sites:
            site.start()
            started.append(site)
        for site in started:
            site.until_serving()  # a broker that finds it away would plan around it
        yield {site.name: site for site in sites}
    finally:
        for site in started:
            site.kill()


def plain_sites(folder: Path, *names: str) -> list[SiteProcess]:
    """Returns sites that are reached over their users' sockets."""
    return [SiteProcess(folder, name) for name in names]


def tls_sites(folder: Path, *names: str) -> tuple[list[SiteProcess], TlsFiles]:
    """Returns sites that are reached over mutual TLS, and the broker's keys."""
    federation = new_federation(folder)
    made = [SiteProcess(folder, name, free_port(), federation.site(name)) for name in names]
    return made, federation.site(BROKER)
