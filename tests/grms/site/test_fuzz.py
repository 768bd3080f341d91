"""Whatever comes over the wire, a site answers with a status and keeps serving."""

import tempfile
from pathlib import Path
from typing import Any

import grpc
from grpc import aio
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from grms.daemon.ports import free_port
from grms.v1 import job_pb2, partner_pb2, request_pb2, reservation_pb2
from tests.grms.site.daemons import document, running
from tests.waiting import run

numbers = st.sampled_from([0, 1, 2, 3, 4, 5, -1, 2**31 - 1, -(2**31)])
naturals = st.sampled_from([0, 1, 2, 3, 2**31, 2**63 - 1, 2**63, 2**64 - 1])
seconds = st.one_of(
    st.sampled_from([0.0, -1.0, 1.0, 1e-300, 1e300, float("nan"), float("inf"), -float("inf")]),
    st.floats(),
)
words = st.sampled_from(["", "away", "home", "eve", "home-1", "1", "x" * 200, "ä/\0"])

requests = st.builds(
    request_pb2.JobRequest,
    processors=numbers,
    requested_time_s=seconds,
    simulated=st.one_of(st.none(), st.builds(request_pb2.SimulatedProgram, run_time_s=seconds)),
)
offer_ids = st.builds(partner_pb2.OfferId, epoch=naturals, number=naturals)
completions = st.builds(
    partner_pb2.Completion,
    offer=offer_ids,
    outcome=st.sampled_from([0, 1, 2, 3, 99]),
    end_time_s=seconds,
    run_time_s=seconds,
)
windows = st.builds(reservation_pb2.Window, begin_s=seconds, end_s=seconds)

to_partner: Any = {
    "Describe": st.builds(
        partner_pb2.DescribeRequest, site=words, processors=numbers, protocol_version=numbers
    ),
    "Offer": st.builds(
        partner_pb2.OfferRequest,
        site=words,
        offer=offer_ids,
        settled_below=naturals,
        job=requests,
        replay_time_s=seconds,
    ),
    "Resolve": st.builds(partner_pb2.ResolveRequest, site=words, offer=offer_ids),
    "Withdraw": st.builds(
        partner_pb2.WithdrawRequest, site=words, offer=offer_ids, cancel=st.booleans()
    ),
    "Report": st.builds(
        partner_pb2.ReportRequest, site=words, completions=st.lists(completions, max_size=3)
    ),
    "FetchProgram": st.builds(partner_pb2.FetchProgramRequest, site=words, offer=offer_ids),
    "ListGuestResults": st.builds(partner_pb2.ListGuestResultsRequest, site=words, offer=offer_ids),
    "ReadGuestOutput": st.builds(
        partner_pb2.ReadGuestOutputRequest,
        site=words,
        offer=offer_ids,
        offset_bytes=st.integers(0, 2**64 - 1),
    ),
    "DropGuestResults": st.builds(partner_pb2.DropGuestResultsRequest, site=words, offer=offer_ids),
}
to_jobs: Any = {
    "PutInput": st.builds(
        job_pb2.PutInputRequest,
        file=st.builds(
            request_pb2.InputFile,
            name=words,
            size_bytes=st.integers(0, 2),
            sha256=st.binary(max_size=33),
        ),
        offset_bytes=st.integers(0, 2**64 - 1),
        content=st.binary(max_size=3),
    ),
    "Submit": st.builds(job_pb2.SubmitRequest, request=requests, idempotency_key=words, name=words),
    "Get": st.builds(job_pb2.GetRequest, job_id=words),
    "List": st.builds(
        job_pb2.ListRequest,
        states=st.lists(numbers, max_size=2),
        all_users=st.booleans(),
        page_size=numbers,
        page_token=words,
    ),
    "Cancel": st.builds(job_pb2.CancelRequest, job_id=words),
}
to_reservations: Any = {
    "Offer": st.builds(reservation_pb2.ResourceOfferRequest, window=windows),
    "Book": st.builds(
        reservation_pb2.BookRequest,
        idempotency_key=words,
        resource_id=words,
        window=windows,
        processors=numbers,
    ),
    "Release": st.builds(reservation_pb2.ReleaseRequest, reservation_id=words),
    "Launch": st.builds(
        reservation_pb2.LaunchRequest, idempotency_key=words, reservation_id=words, job=requests
    ),
    "LaunchGroup": st.builds(
        reservation_pb2.LaunchGroupRequest,
        resource_id=words,
        window=windows,
        processors=numbers,
        programs=st.lists(
            st.builds(
                reservation_pb2.GroupedProgram,
                idempotency_key=words,
                job=requests,
                estimate_s=numbers.map(float),
            ),
            max_size=3,
        ),
    ),
}
SERVICES = (
    ("PartnerService", to_partner),
    ("JobService", to_jobs),
    ("ReservationService", to_reservations),
)
calls = st.one_of(
    *(
        st.tuples(
            st.just(f"/grms.v1.{service}/{method}"),
            st.one_of(messages.map(lambda m: m.SerializeToString()), st.binary(max_size=40)),
        )
        for service, table in SERVICES
        for method, messages in table.items()
    )
)

EXPECTED = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}


@settings(max_examples=8, phases=[Phase.generate])
@given(story=st.lists(calls, min_size=20, max_size=80))
def test_any_story_leaves_the_site_serving(story: list[tuple[str, bytes]]) -> None:
    """Every call has an answer or a refusal that says why; the state stays good for a restart."""

    async def scene(folder: Path) -> None:
        configuration = document(
            folder,
            partners={"away": free_port()},
            port=free_port(),
            resources=[{"resource_id": "1", "processors": 3}],
        )
        async with (
            running(configuration, folder) as site,
            aio.insecure_channel(site.users_address) as users,
            aio.insecure_channel(configuration["listen"]["partners"]) as partners,
        ):
            for method, content in story:
                channel = partners if "PartnerService" in method else users
                call: Any = channel.unary_unary(method)
                try:
                    await call(content, timeout=300)
                except aio.AioRpcError as error:
                    assert error.code() in EXPECTED, (method, content, error)  # noqa: PT017  # one of two ends
            assert site.core.engine.failure is None
            job = await site.submit("the last", run_time_s=0.01)
            assert job.job_id
        async with running(configuration, folder) as site:
            assert site.core.engine.state.job(job.job_id) is not None

    with tempfile.TemporaryDirectory() as folder:
        run(lambda: scene(Path(folder)))
