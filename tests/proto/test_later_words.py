"""What a newer peer says in words that this version does not know: no end, no stop, and no traceback."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message

import grms.site.peers.peers as sending
import grms.site.rpc.partner_service as answering
from broker.cli.show_command import state_of
from broker.executor.base import ReservationState
from broker.executor.remote import _read as read_reservation
from broker.v1 import plan_pb2, resource_pb2, workflow_pb2
from broker.wire.convert import read_additions, read_open_workflow
from grms.client.answers import JobState, read_job, read_results
from grms.daemon.messages import WireError, of_message
from grms.site.model.jobs import OfferId
from grms.site.model.lifecycle import GuestState
from grms.site.rpc.replay import problem_of_step
from grms.site.wire import convert
from grms.util.outcomes import Outcome
from grms.v1 import (
    job_pb2,
    operator_pb2,
    partner_pb2,
    replay_pb2,
    request_pb2,
    reservation_pb2,
    results_pb2,
)
from tests.grms.site.daemons import two_sites

LATER = 99
"""A number that no enum has yet."""

FILES = (
    *(each.DESCRIPTOR for each in (job_pb2, operator_pb2, partner_pb2, replay_pb2, request_pb2)),
    *(each.DESCRIPTOR for each in (reservation_pb2, results_pb2)),
    *(each.DESCRIPTOR for each in (plan_pb2, resource_pb2, workflow_pb2)),
)


def with_later(message: Message, *names: str, **more: Any) -> Any:
    """Returns a message in which fields have a number of a later version.

    Args:
        message: any.
        names: of the fields.
        more: values of others.
    """
    for name, value in more.items():
        setattr(message, name, value)
    for name in names:
        setattr(message, name, LATER)
    return message


def completion(**numbers: int) -> partner_pb2.Completion:
    """Returns an end as a newer partner reports it."""
    message = partner_pb2.Completion(end_time_s=5.0, run_time_s=1.0, outcome_text="preempted")
    message.offer.CopyFrom(convert.write_offer(OfferId(1, 2)))
    for name, number in numbers.items():
        setattr(message, name, number)
    return message


def outcome() -> None:
    """At home, at a client and at a broker."""
    read = convert.read_completion(completion(outcome=LATER), "x")
    assert (read.outcome.value, read.said) == ("unknown", "preempted")
    silent = completion(outcome=LATER)
    silent.outcome_text = ""
    assert convert.read_completion(silent, "x").said == "outcome 99"
    silent.outcome_text = "\x1b[2J" + "long" * 1000
    said = convert.read_completion(silent, "x").said
    assert said.startswith("\\x1b[2J")
    assert len(said) == convert.SAID_MAX
    job = read_job(with_later(job_pb2.Job(), "outcome", state=job_pb2.JOB_STATE_ENDED))
    assert (job.outcome, job.has_ended) == (Outcome.UNKNOWN, True)
    assert "outcome 99" in job.reason
    ended = reservation_pb2.Reservation(state=reservation_pb2.RESERVATION_STATE_ENDED)
    assert read_reservation(with_later(ended, "outcome")).outcome is Outcome.FAILED


def job_state() -> None:
    """At a client it has not ended."""
    job = read_job(with_later(job_pb2.Job(), "state"))
    assert (job.state, job.has_ended) == (JobState.UNKNOWN, False)


def job_phase() -> None:
    """Nothing is said of a partner's job, and a user sees that a job has no phase."""
    offer = partner_pb2.OfferId(epoch=1, number=2)
    told = with_later(partner_pb2.JobProgress(offer=offer), "phase")
    answered = partner_pb2.ProgressResponse(jobs=[told])
    assert convert.read_progress(answered, [OfferId(1, 2)]) == ()
    assert read_job(with_later(job_pb2.Job(), "phase")).phase is None


def dependency_kind() -> None:
    """A job that would not wait for what it is to wait for is not taken; at a client it is shown."""
    later = with_later(job_pb2.Dependency(), "kind", job_id="a-1")
    with pytest.raises(WireError, match="must be a known one"):
        convert.read_dependencies([later])
    (shown,) = read_job(job_pb2.Job(dependencies=[later])).dependencies
    assert shown == "kind 99 of a later version:a-1"


def answer() -> None:
    """At home it is neither yes nor no."""
    assert convert.read_answer(with_later(partner_pb2.OfferResponse(), "answer")) is None


def offer_state() -> None:
    """At home the partner has the job, and it has not ended."""
    status = with_later(partner_pb2.OfferStatus(), "state")
    assert convert.read_status(status) == (GuestState.ACCEPTED, None)


def reservation_state() -> None:
    """At a broker it stands."""
    message = with_later(reservation_pb2.Reservation(), "state")
    assert read_reservation(message).state is ReservationState.OTHER


def file_problem() -> None:
    """At a client there is no content; what comes of it at home is `test_collector`'s."""
    answer = results_pb2.ResultList(files=[with_later(results_pb2.ResultFile(), "problem")])
    assert read_results(answer).files[0].problem == "no_file"


def workflow_state() -> None:
    """A broker's client shows the number."""
    assert of_message(with_later(workflow_pb2.Workflow(), "state"))["state"] == (
        "state 99 of a later version"
    )


def task_state() -> None:
    """In a workflow and in a plan."""
    flow = workflow_pb2.Workflow(tasks=[with_later(workflow_pb2.Task(), "state")])
    assert of_message(flow)["tasks"][0]["state"] == "state 99 of a later version"
    assert state_of(with_later(plan_pb2.Placement(), "state")) == "state 99 of a later version"


def on_failure() -> None:
    """At a broker the workflow, or the task, is not taken, as it would go on otherwise than was asked."""
    spec = with_later(workflow_pb2.WorkflowSpec(name="flow"), "on_failure")
    with pytest.raises(WireError, match="a later version"):
        read_open_workflow(spec)
    task = workflow_pb2.TaskSpec(name="t", work_s=1.0)
    task.alternatives.add().demands.add(resource="a", units=1)
    with pytest.raises(WireError, match="a later version"):
        read_additions(workflow_pb2.AddRequest(tasks=[with_later(task, "on_failure")]))


def scope(part: str, amount: str) -> None:
    """At a partner the job is not taken, as it would have something else."""
    message = request_pb2.JobRequest(processors=1, requested_time_s=1.0)
    message.needs.tasks = message.needs.cores_per_task = 1
    with_later(getattr(message.needs, part), "per", **{amount: 1})
    with pytest.raises(WireError, match="a later version"):
        convert.read_request(message, "job")
    assert "cannot be shown here" in read_job(job_pb2.Job(request=message)).needs


def step_kind() -> None:
    request = with_later(replay_pb2.StepRequest(at_s=1.0), "kind")
    assert problem_of_step(request) == f"kind is {LATER}; it must be one of [1, 2, 3]"
    assert problem_of_step(replay_pb2.StepRequest(kind=replay_pb2.STEP_KIND_DUE)) is None


READERS: dict[str, Callable[[], None]] = {
    "grms.v1.Answer": answer,
    "grms.v1.GpuScope": partial(scope, "gpus", "count"),
    "grms.v1.MemoryScope": partial(scope, "memory", "mib"),
    "grms.v1.FileProblem": file_problem,
    "grms.v1.DependencyKind": dependency_kind,
    "grms.v1.JobPhase": job_phase,
    "grms.v1.JobState": job_state,
    "grms.v1.OfferState": offer_state,
    "grms.v1.Outcome": outcome,
    "grms.v1.ReservationState": reservation_state,
    "grms.v1.StepKind": step_kind,
    "broker.v1.OnFailure": on_failure,
    "broker.v1.TaskState": task_state,
    "broker.v1.WorkflowState": workflow_state,
}
"""By the enum that is read."""


def enums(files: tuple[FileDescriptor, ...]) -> Iterator[str]:
    """Yields the names of all enums of the wire."""
    for file in files:
        assert not any(message.enum_types for message in file.message_types_by_name.values())
        yield from (each.full_name for each in file.enum_types_by_name.values())


def test_every_enum_of_the_wire_has_its_readers_here() -> None:
    """One that is added is to say what comes of its later values."""
    assert sorted(enums(FILES)) == sorted(READERS)


@pytest.mark.parametrize("name", READERS)
def test_a_later_word_is_read(name: str) -> None:
    """By whoever reads that enum."""
    READERS[name]()


async def test_a_job_that_ended_at_a_newer_partner_in_a_later_way_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user reads that, and the partner's own word for how; other jobs of the same report end as well."""

    def later_end(end: Any) -> Any:
        return with_later(convert.write_completion(end), "outcome", outcome_text="preempted")

    monkeypatch.setattr(sending, "write_completion", later_end)
    async with two_sites(tmp_path) as (home, _):
        await home.submit("fills", processors=4, run_time_s=60.0)
        jobs = [await home.submit(key, processors=2) for key in ("one", "two")]
        for job in jobs:
            ended = await home.ended(job.job_id)
            assert ended.executed_on == "away"
            told = read_job(ended)
            assert told.outcome is Outcome.UNKNOWN
            assert told.reason.startswith("ran at away, which says")
            assert told.reason.endswith("how it ended: preempted")


async def test_an_offer_that_is_answered_in_a_later_word_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is neither lost nor run twice, and the partner is not held for faulty; its state too has a later word."""
    offer, status = answering.PartnerService.Offer, convert.write_status

    async def answered(self: Any, request: Any, context: Any) -> Any:
        return with_later(await offer(self, request, context), "answer")

    def stands(state: Any, end: Any) -> Any:
        message = status(state, end)
        return with_later(message, "state") if state is GuestState.ACCEPTED else message

    monkeypatch.setattr(answering.PartnerService, "Offer", answered)
    monkeypatch.setattr(answering, "write_status", stands)
    async with two_sites(tmp_path) as (home, away):
        await home.submit("fills", processors=4, run_time_s=60.0)
        job = await home.submit("goes", processors=3, run_time_s=0.5)
        ended = await home.ended(job.job_id)
        assert (ended.executed_on, ended.outcome) == ("away", request_pb2.OUTCOME_COMPLETED)
        (partner,) = (await home.operator.Partners(operator_pb2.PartnersRequest())).partners
        assert (partner.faulty, partner.faults) == (False, 0)
        kinds = [type(record).__name__ for record in away.core.journal.records()]
        assert kinds.count("GuestAccepted") == 1


def test_a_script_that_a_newer_home_lets_be_fetched_is_fetched() -> None:
    """Whatever else it says of that; and what runs in a later way is refused, as here nothing would be run."""
    payload = request_pb2.JobRequest(processors=1, requested_time_s=1.0)
    payload.to_fetch.ParseFromString(b"\x9a\x06\x01x")
    _, kept = convert.read_request(payload, "job")
    assert convert.is_to_fetch(kept)
    payload = request_pb2.JobRequest(processors=1, requested_time_s=1.0)
    convert.read_request(payload, "job")
    payload.MergeFromString(b"\x9a\x06\x01x")
    with pytest.raises(WireError, match="of a kind that came with a later version") as error:
        convert.read_request(payload, "job")
    assert error.value.field == "job.payload"
