"""What users hear while the journal is read."""

from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from grms.site.gateway.startup_server import SERVICES, waiting_room
from grms.site.gateway.user_listener import UserSocket
from grms.v1 import job_pb2, job_pb2_grpc


async def test_the_daemon_is_there_and_not_ready(tmp_path: Path) -> None:
    """Health says so for every service; any other call is told how far the start is."""
    path = tmp_path / "users.sock"
    async with UserSocket(path, 10) as users:
        async with waiting_room(users) as notice, aio.insecure_channel(f"unix:{path}") as there:
            watch: Any = health_pb2_grpc.HealthStub(there)
            for name in ("", *SERVICES):
                request = health_pb2.HealthCheckRequest(service=name)
                answer = await watch.Check(request, timeout=300)
                assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
            notice.text = "7 of 9 records"
            jobs = job_pb2_grpc.JobServiceStub(there)
            with pytest.raises(aio.AioRpcError) as refused:
                await jobs.Get(job_pb2.GetRequest(job_id="a"), timeout=300)
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "the daemon is starting: 7 of 9 records" in (refused.value.details() or "")
            before = users.inner_address
        assert users.inner_address != before
