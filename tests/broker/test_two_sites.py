"""A live cycle over two site daemons, with kill -9 of the broker and of a site."""

import importlib.util
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.records import Supply
from broker.resources import Resource
from broker.v1 import workflow_pb2
from tests.broker.brokers import check_history, configure, diamond, register, serving, until_running

SITES = ("luebeck", "riga")
POOL = tuple(
    Supply(Resource(f"{site}-{name}", performance=speed, capacity=units), site, name)
    for site in SITES
    for name, speed, units in (("fast", 2.0, 2), ("slow", 1.0, 1))
)
NAMES = tuple(supply.name for supply in POOL)
SERVE = "from grms.cli import main; main()"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("grms.site.reservation_service") is None,
    reason="there is no grms.site.reservation_service: site daemons do not serve reservations",
)


class SiteProcess:
    """A site's daemon.

    Args:
        folder: for socket and journal.
        name: of the site.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._log = folder / f"{name}.log"
        self._path = folder / f"{name}.toml"
        self._path.write_text(
            f'name = "{name}"\nprocessors = 4\n'
            f'[listen]\nusers = "{folder}/{name}.sock"\n'
            f'[journal]\npath = "{folder}/{name}.journal"\n'
            '[[resources]]\nresource_id = "fast"\nprocessors = 2\nspeed = 2.0\n'
            '[[resources]]\nresource_id = "slow"\n'
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # this program
                [sys.executable, "-c", SERVE, "serve", str(self._path)], stderr=log
            )

    def kill(self) -> None:
        """Ends it without a word."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)


@contextmanager
def sites(folder: Path) -> Iterator[dict[str, SiteProcess]]:
    """Yields the sites' daemons, which have been started."""
    made = {name: SiteProcess(folder, name) for name in SITES}
    try:
        for site in made.values():
            site.start()
        yield made
    finally:
        for site in made.values():
            site.kill()


def sited(folder: Path) -> Path:
    """Writes the broker's configuration."""
    more = "".join(
        f'[[sites]]\nname = "{name}"\naddress = "unix:{folder}/{name}.sock"\n' for name in SITES
    )
    return configure(folder, "[limits]\nsite_down_s = 1.0\n" + more)


def test_two_sites_a_breakdown_a_cancel_and_a_killed_broker(tmp_path: Path) -> None:
    """Everything that was taken ends within precedence, and nothing is lost or done twice."""
    with sites(tmp_path), serving(sited(tmp_path)) as (process, client):
        register(client, *POOL)
        client.submit(diamond("first", 1.5, *NAMES))
        client.submit(diamond("second", 1.5, *NAMES))
        place = until_running(client, "first")
        broken = next(supply for supply in POOL if supply.name == place)
        client.update(Supply(broken.resource, broken.site, broken.site_resource, broken=True))
        client.submit(diamond("unwanted", 5.0, *NAMES))
        client.cancel("unwanted")
        process.end(signal.SIGKILL)
        process.start()
        client.submit(diamond("third", 0.5, *NAMES))
        for name in ("first", "second", "third"):
            assert client.wait(name).state == workflow_pb2.WORKFLOW_STATE_COMPLETED
        process.end(signal.SIGTERM)
    launches = check_history(tmp_path / "broker.journal")
    assert launches.pop("first/a") == 2
    assert sum(launches.values()) >= 11


def test_a_site_that_is_killed_under_a_run_is_waited_for(tmp_path: Path) -> None:
    """What runs there is taken up by its id when the site is back, and not run a second time."""
    with sites(tmp_path) as daemons, serving(sited(tmp_path)) as (process, client):
        register(client, *POOL)
        client.submit(diamond("flow", 3.0, *NAMES))
        place = until_running(client, "flow")
        site = daemons[place.partition("-")[0]]
        site.kill()
        client.submit(diamond("other", 0.5, *NAMES))
        assert client.wait("other").state == workflow_pb2.WORKFLOW_STATE_COMPLETED
        site.start()
        ended = client.wait("flow")
        assert ended.state == workflow_pb2.WORKFLOW_STATE_COMPLETED
        process.end(signal.SIGTERM)
    launches = check_history(tmp_path / "broker.journal")
    assert launches["flow/a"] == 1
