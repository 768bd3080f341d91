"""Every method of every service, at every port of a site, has an answer to whatever it is sent."""

from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from grms.daemon.ports import free_port
from grms.daemon.rpc.health import HEALTH
from grms.security.tls import TlsFiles, channel_credentials, channel_options
from grms.site.gateway.startup_server import waiting_room
from grms.site.gateway.user_listener import UserSocket
from tests.every_method import Served, answers_of_every_method, recorded, wrong
from tests.grms.keys import new_federation
from tests.grms.site.daemons import document, running


def listening(servers: list[Served], word: str) -> Served:
    """Returns the server that has registered a service."""
    (found,) = (each for each in servers if any(f"/{word}/" in name for name in each.methods))
    return found


@pytest.mark.parametrize("clock", ["wall", "virtual"])
async def test_no_method_at_any_port_meets_an_error_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    """Users' socket, partners' TLS port, and where time is a coordinator's, the coordinator's socket."""
    servers = recorded(monkeypatch)
    federation = new_federation(tmp_path)
    mine, theirs, broker = (federation.site(name) for name in ("home", "away", "planner"))
    port = free_port()
    address = f"127.0.0.1:{port}"
    configuration = document(
        tmp_path,
        partners={"away": free_port()},
        port=port,
        brokers=["planner"],
        clock={"kind": clock},
        resources=[{"resource_id": "1", "processors": 3}],
        tls={key: str(getattr(mine, key)) for key in ("authority", "certificate", "key")},
        mqtt={"enabled": False},
    )
    with capture_logs() as logs:
        async with running(configuration, tmp_path) as site:

            def secure(files: TlsFiles) -> aio.Channel:
                options = list(channel_options("home"))
                return aio.secure_channel(address, channel_credentials(files), options=options)

            ports = [
                ("grms.v1.JobService", aio.insecure_channel(site.users_address)),
                ("grms.v1.PartnerService", secure(theirs)),
                ("grms.v1.PartnerService", secure(broker)),
            ]
            if clock == "virtual":
                path = f"{site.users_address}.coordinator"
                ports.append(("grms.v1.ReplayService", aio.insecure_channel(path)))
            assert len(servers) == len(ports) - 1
            for service, channel in ports:
                async with channel:
                    served = listening(servers, service)
                    found = await answers_of_every_method(channel, served)
                    assert not list(wrong(found)), service
                    assert found["/grpc.health.v1.Health/Watch"] >= {grpc.StatusCode.OK}
                    assert all(found.values())
            assert site.core.engine.failure is None
    assert not [each for each in logs if each["event"] == "unexpected_error"]


async def test_no_method_in_the_waiting_room_does_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the journal is read health answers, and every other method says that the site is starting."""
    servers = recorded(monkeypatch)
    path = tmp_path / "users.sock"
    async with (
        UserSocket(path, 10) as users,
        waiting_room(users),
        aio.insecure_channel(f"unix:{path}") as channel,
    ):
        (served,) = servers
        found = await answers_of_every_method(channel, served)
        assert not list(wrong(found))
        assert set(found) == {f"/{HEALTH}/Check", f"/{HEALTH}/Watch"}


async def test_health_at_the_port_of_partners_is_for_those_on_the_list(tmp_path: Path) -> None:
    """A site of the same authority that is no partner learns nothing, asked or watched; a partner and a broker do."""
    federation = new_federation(tmp_path)
    files = {name: federation.site(name) for name in ("home", "away", "planner", "eve")}
    port = free_port()
    configuration = document(
        tmp_path,
        partners={"away": free_port()},
        port=port,
        brokers=["planner"],
        tls={key: str(getattr(files["home"], key)) for key in ("authority", "certificate", "key")},
        mqtt={"enabled": False},
    )

    async def asked(name: str) -> list[Any]:
        credentials = channel_credentials(files[name])
        options = list(channel_options("home"))
        async with aio.secure_channel(f"127.0.0.1:{port}", credentials, options=options) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            request = health_pb2.HealthCheckRequest(service="grms.v1.JobService")
            found: list[Any] = []
            try:
                found.append((await health.Check(request, timeout=300)).status)
            except aio.AioRpcError as error:
                found.append(error.code())
            try:
                async for answer in health.Watch(request, timeout=300):
                    found.append(answer.status)
                    break
            except aio.AioRpcError as error:
                found.append(error.code())
            return found

    serving, denied = health_pb2.HealthCheckResponse.SERVING, grpc.StatusCode.PERMISSION_DENIED
    async with running(configuration, tmp_path):
        assert await asked("away") == [serving, serving]
        assert await asked("planner") == [serving, serving]
        assert await asked("eve") == [denied, denied]
