"""Messages and values, there and back, and messages that mean nothing."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.daemon.job_files import JobFile, WantedFiles
from grms.daemon.messages import WireError
from grms.daemon.shared_folders import SharedFile
from grms.site.model.jobs import Completion, Exit, HomeJob, OfferId, Request
from grms.site.model.lifecycle import PROVISIONAL, WAITING, GuestState, JobState, Outcome
from grms.site.wire.convert import (
    checkpoint_of,
    declared_outputs,
    executed_on,
    given_inputs,
    is_to_fetch,
    lrms_job,
    read_answer,
    read_completion,
    read_job_state,
    read_offer,
    read_request,
    read_rerun,
    read_seen,
    read_status,
    restored,
    shared_files,
    state_files,
    whole,
    without_program,
    write_completion,
    write_job,
    write_offer,
    write_request,
    write_status,
)
from grms.v1 import job_pb2, partner_pb2, request_pb2
from lrms_sim.workload.requests import Request as Needs
from tests.any_requests import any_requests
from tests.field_paths import is_field
from tests.grms.site.jobs import home_job

offers = st.builds(OfferId, st.integers(1, 2**63 - 1), st.integers(1, 2**63 - 1))
moments = st.floats(allow_nan=False, allow_infinity=False)
completions = st.builds(
    Completion,
    offers,
    st.sampled_from(Outcome),
    moments,
    st.floats(0, allow_infinity=False),
)


@given(completion=completions)
def test_an_end_comes_back_as_it_was(completion: Completion) -> None:
    """To the last bit."""
    assert read_completion(write_completion(completion), "x") == completion
    assert read_offer(write_offer(completion.offer)) == completion.offer


@given(
    processors=st.integers(1, 2**31 - 1),
    requested_time=st.floats(1e-9, 1e15),
    run_time=st.floats(1e-9, 1e15),
)
def test_a_request_comes_back_as_it_was(
    processors: int, requested_time: float, run_time: float
) -> None:
    """What a decision sees and what runs are parted and joined again."""
    message = request_pb2.JobRequest(processors=processors, requested_time_s=requested_time)
    message.simulated.run_time_s = run_time
    request, payload = read_request(message, "job")
    assert request == Request(processors, requested_time)
    carried = request_pb2.JobRequest.FromString(payload)
    assert (carried.processors, carried.requested_time_s) == (0, 0.0)
    assert write_request(request, payload) == message


@given(needs=any_requests())
def test_all_that_a_job_needs_comes_back_as_it_was(needs: Needs) -> None:
    """Beside what runs, and not in it."""
    request = Request.of(needs)
    message = write_request(request, b"")
    message.program.script = "#!/bin/sh\n"
    read, payload = read_request(message, "job")
    assert read == request
    assert not request_pb2.JobRequest.FromString(payload).HasField("needs")
    assert write_request(read, payload) == message


def test_needs_are_of_the_processors_that_are_said() -> None:
    """One number for who decides by processors, the same for who looks closer."""
    message = request_pb2.JobRequest(processors=3, requested_time_s=60.0)
    message.needs.tasks, message.needs.cores_per_task = 2, 2
    with pytest.raises(WireError, match="needs are 4 processors") as found:
        read_request(message, "job")
    assert found.value.field == "job.needs"


@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_request_or_an_error(data: bytes) -> None:
    """What comes over the wire is read, or refused with a field; nothing else happens."""
    message = request_pb2.JobRequest()
    try:
        message.ParseFromString(data)
    except Exception:  # noqa: BLE001  # protobuf's own refusal; gRPC answers that one
        return
    try:
        request, payload = read_request(message, "job")
    except WireError as error:
        assert error.field.startswith("job.")  # noqa: PT017  # one of two ends
    else:
        assert write_request(request, payload).processors == message.processors


def test_a_request_for_longer_than_sums_can_hold_is_refused() -> None:
    """One job of a partner that asks for 1e308 s on four processors would make its account infinite, and then nan."""
    message = request_pb2.JobRequest(processors=4, requested_time_s=1e308)
    with pytest.raises(WireError) as error:
        read_request(message, "job")
    assert error.value.field == "job.requested_time_s"
    assert str(error.value) == "requested_time_s is 1e+308; it must be at most 1e+15"
    message.requested_time_s = 1e15
    assert read_request(message, "job")[0].requested_time == 1e15


@pytest.mark.parametrize("run_time", [0.0, -1.0, math.inf, math.nan])
def test_a_simulated_job_runs_for_some_time(run_time: float) -> None:
    """The error names the field, and says what is wrong in words alone."""
    message = request_pb2.JobRequest(processors=1, requested_time_s=1.0)
    message.simulated.run_time_s = run_time
    with pytest.raises(WireError) as error:
        read_request(message, "job")
    assert error.value.field == "job.simulated.run_time_s"
    assert str(error.value) == f"run_time_s is {run_time}; it must be finite and more than 0"


@pytest.mark.parametrize("status", [None, GuestState.ACCEPTED, GuestState.DECLINED])
def test_a_status_comes_back_as_it_was(status: GuestState | None) -> None:
    """With and without an end."""
    assert read_status(write_status(status, None)) == (status, None)
    end = Completion(OfferId(1, 2), Outcome.FAILED, 3.0, 0.0)
    assert read_status(write_status(GuestState.ENDED, end)) == (GuestState.ENDED, end)


@pytest.mark.parametrize(
    "message",
    [
        partner_pb2.OfferStatus(),
        partner_pb2.OfferStatus(state=partner_pb2.OFFER_STATE_ENDED),
    ],
)
def test_a_status_that_says_nothing_is_an_error(message: partner_pb2.OfferStatus) -> None:
    """No state, and an end without its completion, are refused."""
    with pytest.raises(WireError):
        read_status(message)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"end_time_s": math.nan}, "end_time_s"),
        ({"end_time_s": math.inf}, "end_time_s"),
        ({"run_time_s": -1.0}, "run_time_s"),
        ({"run_time_s": math.nan}, "run_time_s"),
        ({"outcome": 0}, "outcome"),
        ({"offer": partner_pb2.OfferId()}, "offer"),
    ],
)
def test_an_end_that_is_none_is_an_error(change: dict[str, Any], field: str) -> None:
    """The field is named."""
    message = write_completion(Completion(OfferId(1, 1), Outcome.COMPLETED, 1.0, 1.0))
    for name, value in change.items():
        if name == "offer":
            message.offer.CopyFrom(value)
        else:
            setattr(message, name, value)
    with pytest.raises(WireError) as error:
        read_completion(message, "completions[0]")
    assert error.value.field == f"completions[0].{field}"
    assert is_field(partner_pb2.ReportRequest.DESCRIPTOR, error.value.field)


def test_offers_have_numbers() -> None:
    """Zero is what a message has that says nothing."""
    for epoch, number in ((0, 1), (1, 0), (2**64 - 1, 1), (2**63, 1), (1, 2**63)):
        with pytest.raises(WireError, match="both numbers are at least 1"):
            read_offer(partner_pb2.OfferId(epoch=epoch, number=number))


def job(state: JobState) -> HomeJob:
    """Returns a job in a state."""
    return home_job(Request(1, 2.0), name="n", submit_time=3.0, state=state)


@pytest.mark.parametrize("state", JobState)
def test_every_state_is_on_the_wire(state: JobState) -> None:
    """A job's state is the same for its user, and a site is named only where one has the job."""
    found = job(state)
    there = {JobState.DELEGATED, JobState.SUSPECT, *PROVISIONAL}
    found.partner = "away" if state in there else ""
    message = write_job(found, "home")
    # That a place is asked for elsewhere, as it waits, is no state: older clients know none.
    shown = JobState.QUEUED if state in PROVISIONAL else state
    assert read_job_state(message.state) is shown
    assert message.state == job_pb2.JobState.Value(f"JOB_STATE_{shown.name}")
    assert message.offered_to == ("away" if state in PROVISIONAL else "")
    assert message.leaving == (state is JobState.LEAVING)
    assert not message.HasField("start_time_s")
    assert message.executed_on in {"", "home", "away"}
    assert isinstance(executed_on(job(state), "home"), str)
    assert bool(message.executed_on) == (
        state
        in {
            JobState.SUBMITTING,
            *WAITING,
            JobState.RUNNING,
            JobState.DELEGATED,
            JobState.SUSPECT,
        }
    )


def test_a_user_sees_all_of_a_job() -> None:
    """Whose it is, what it asks for, and how it stands."""
    found = job(JobState.SUSPECT)
    found.partner, found.reason, found.revision, found.cancel_requested = "away", "lost", 7, True
    assert write_job(found, "home") == job_pb2.Job(
        job_id="home-1",
        user="me",
        name="n",
        request=request_pb2.JobRequest(processors=1, requested_time_s=2.0),
        state=job_pb2.JOB_STATE_SUSPECT,
        executed_on="away",
        submit_time_s=3.0,
        cancel_requested=True,
        revision=7,
        reason="lost",
    )


def test_the_same_request_is_the_same_bytes() -> None:
    """In whatever order the variables of its environment were set."""
    names = [f"V{number}" for number in range(50)]
    forth, back = (
        request_pb2.JobRequest(
            processors=1,
            requested_time_s=2.0,
            program=request_pb2.Program(script="#!/bin/sh", environment=dict.fromkeys(each, "x")),
        )
        for each in (names, reversed(names))
    )
    assert read_request(forth, "request") == read_request(back, "request")


def test_an_ended_job_names_where_it_ran() -> None:
    """Nowhere, where it never started."""
    found = job(JobState.ENDED)
    assert executed_on(found, "home") == ""
    found.start_time = 4.0
    assert executed_on(found, "home") == "home"
    found.partner = "away"
    assert executed_on(found, "home") == "away"


def test_an_ended_job_says_how() -> None:
    """One that is open says nothing of an end."""
    found = job(JobState.RUNNING)
    assert write_job(found, "home").outcome == request_pb2.OUTCOME_UNSPECIFIED
    found.state, found.outcome, found.exit = JobState.ENDED, Outcome.TIMEOUT, Exit(None, 9)
    found.start_time, found.end_time = 4.0, 6.0
    message = write_job(found, "home")
    assert (message.outcome, message.signal) == (request_pb2.OUTCOME_TIMEOUT, 9)
    assert (message.start_time_s, message.end_time_s) == (4.0, 6.0)


@pytest.mark.parametrize("outcome", Outcome)
def test_every_end_has_a_number_of_its_own(outcome: Outcome) -> None:
    """By which the home site reads the same end."""
    end = Completion(OfferId(1, 2), outcome, 3.0, 0.0, Exit(2, 9))
    message = write_completion(end)
    assert message.outcome == request_pb2.Outcome.Value(f"OUTCOME_{outcome.name}")
    assert read_completion(message, "completion") == end


@pytest.mark.parametrize(("field", "value"), [("exit_code", 256), ("exit_code", -1), ("signal", 0)])
def test_an_exit_has_its_bounds(field: str, value: int) -> None:
    """The error names the field."""
    message = write_completion(Completion(OfferId(1, 2), Outcome.FAILED, 3.0, 0.0))
    setattr(message, field, value)
    with pytest.raises(WireError, match=f"{field} is {value}") as error:
        read_completion(message, "completion")
    assert error.value.field == f"completion.{field}"


def used_in_place(name: str = "in", path: str = "/a/in", **more: Any) -> request_pb2.JobRequest:
    """Returns a request whose job uses a file in place, and is given another."""
    message = request_pb2.JobRequest(processors=1, requested_time_s=1.0)
    message.program.inputs.add(name=name, shared_path=path, **more)
    message.program.inputs.add(name="other", sha256=b"x" * 32)
    return message


@pytest.mark.parametrize("field", ["processors", "requested_time_s"])
def test_a_request_without_a_number_is_refused_by_its_name(field: str) -> None:
    """As it is called in the message."""
    message = request_pb2.JobRequest(processors=1, requested_time_s=1.0)
    message.ClearField(field)
    with pytest.raises(WireError) as error:
        read_request(message, "job")
    assert error.value.field == f"job.{field}"


def test_files_in_place_are_apart_from_those_that_are_given() -> None:
    """One list for each, so that a number names the same file at both sites."""
    _, payload = read_request(used_in_place(written=True), "job")
    assert shared_files(payload) == (SharedFile("in", "/a/in", written=True),)
    assert [file.name for file in given_inputs(payload)] == ["other"]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (used_in_place(path="a/in"), "shared_path"),
        (used_in_place(path="/a/../in"), "shared_path"),
        (used_in_place(name="other"), "inputs"),
        (used_in_place(name="launch"), "inputs"),
        (used_in_place(name="program", written=True), "shared_path"),
    ],
)
def test_files_in_place_that_are_none(message: request_pb2.JobRequest, field: str) -> None:
    """They are refused with the field, before anything is looked at."""
    with pytest.raises(WireError) as caught:
        read_request(message, "job")
    assert caught.value.field.endswith(field)


def test_an_offer_has_a_script_to_fetch_and_not_the_script() -> None:
    """What has no script is told as it is."""
    message = request_pb2.JobRequest(processors=1, requested_time_s=1.0)
    message.simulated.run_time_s = 2.0
    _, simulated = read_request(message, "job")
    assert without_program(simulated) == simulated
    assert not is_to_fetch(simulated)
    assert declared_outputs(simulated) is None
    message.program.script = "#!/bin/sh\n"
    message.program.outputs.append("table")
    _, script = read_request(message, "job")
    assert not is_to_fetch(script)
    assert declared_outputs(script) == WantedFiles(("table",))
    offered = without_program(script)
    assert is_to_fetch(offered)
    assert request_pb2.JobRequest.FromString(offered).HasField("to_fetch")


def test_how_a_job_runs_at_home_is_in_no_message() -> None:
    """It is kept with what runs, and neither an offer nor what its user is shown has it."""
    message = request_pb2.JobRequest(processors=1, requested_time_s=1.0)
    message.program.script = "#!/bin/sh\n"
    message.home.folder = "/users/ann"
    message.home.environment.append(b"PASSWORD=x")
    request, payload = read_request(message, "job")
    assert request_pb2.JobRequest.FromString(payload).home == message.home
    for carried in (payload, without_program(payload)):
        assert not write_request(request, carried).HasField("home")
    assert b"PASSWORD" not in write_request(request, payload).SerializeToString()


@pytest.mark.parametrize("name", ["x" * 129, "a\0b"])
def test_a_name_has_its_bounds(name: str) -> None:
    """A script finds it in a variable."""
    message = request_pb2.JobRequest(processors=1, requested_time_s=1.0)
    message.program.name = name
    with pytest.raises(WireError, match="at most 128 characters"):
        read_request(message, "job")


def test_a_script_is_here_or_in_place() -> None:
    """Of two nobody would know which runs."""
    message = used_in_place(name="program", path="/a/job.sh")
    read_request(message, "job")
    message.program.script = "true"
    with pytest.raises(WireError, match="both here and used in place"):
        read_request(message, "job")


def test_an_offer_is_accepted_or_declined() -> None:
    """Nothing at all is no answer; what a later version may say is neither."""
    accepted = partner_pb2.OfferResponse(answer=partner_pb2.ANSWER_ACCEPTED)
    declined = partner_pb2.OfferResponse(answer=partner_pb2.ANSWER_DECLINED)
    assert read_answer(accepted) is True
    assert read_answer(declined) is False
    unknown = partner_pb2.OfferResponse()
    unknown.ParseFromString(b"\x08\x63")  # field 1, number 99
    assert read_answer(unknown) is None
    with pytest.raises(WireError, match="must be a known one") as error:
        read_answer(partner_pb2.OfferResponse())
    assert error.value.field == "answer"


@pytest.mark.parametrize(
    ("epoch", "own", "taken"),
    [
        (1_000_000_000, 1, True),
        (1_000_000_000 + 86_400 * 10**9, 1, True),
        (1_000_000_001 + 86_400 * 10**9, 1, False),
        (2**62, 2**62, True),
        (2**62 + 1, 2**62, False),
    ],
)
def test_a_partner_has_seen_no_offer_of_an_epoch_still_to_come(
    epoch: int, own: int, taken: bool
) -> None:
    """An epoch is the moment of a journal, by a clock that may be a day ahead; or it is the site's own."""
    message = partner_pb2.DescribeResponse(offer_seen=partner_pb2.OfferId(epoch=epoch, number=3))
    if taken:
        seen = read_seen(message, epoch=own, now_ns=1_000_000_000)
        assert seen == OfferId(epoch, 3)
        return
    with pytest.raises(WireError, match=f"{epoch}/3, of an epoch that is still to come") as error:
        read_seen(message, epoch=own, now_ns=1_000_000_000)
    assert error.value.field == "offer_seen"


def test_a_partner_may_have_seen_no_offer() -> None:
    """Then it says none."""
    assert read_seen(partner_pb2.DescribeResponse(), epoch=1, now_ns=1) is None


def test_a_job_that_goes_on_is_given_its_state_in_place_of_inputs_of_that_name() -> None:
    """Whoever reads it: the last of each name counts, and a variable says that it goes on."""
    wanted = request_pb2.JobRequest(processors=1, requested_time_s=60.0)
    wanted.program.script = "#!/bin/sh\n"
    wanted.program.environment["HANSE_ARRAY_TASK_ID"] = "7"
    for name, content in (("state", b"1" * 32), ("data", b"2" * 32)):
        wanted.program.inputs.add(name=name, size_bytes=3, sha256=content)
    wanted.program.checkpoint.every_s = 5.0
    wanted.program.checkpoint.files.append("state*")
    _, payload = read_request(wanted, "job")
    state = JobFile("state", 4, b"3" * 32, mode=0o600), JobFile("state.2", 5, b"4" * 32)
    goes_on = payload + restored(state, 2)
    assert checkpoint_of(payload) == checkpoint_of(goes_on) == 5.0
    assert state_files(goes_on).declared == ("state*",)
    given = {file.name: file.sha256[:1] for file in given_inputs(goes_on)}
    assert given == {"state": b"3", "data": b"2", "state.2": b"4"}
    assert [each.name for each in whole(goes_on).program.inputs] == [*given]
    program = lrms_job("a/1/1", Request(1, 60.0), goes_on, user="ann").program
    assert program is not None
    assert [each.file.name for each in program.inputs] == [*given]
    assert program.environment["HANSE_RESTART_COUNT"] == "2"
    assert program.environment["HANSE_ARRAY_TASK_ID"] == "7"
    assert program.checkpoint == ("state*",)


@pytest.mark.parametrize("left", [(-1.0, 0.0), (0.0, math.nan), (61.0, 0.0), (0.0, math.inf)])
def test_an_offer_that_says_what_cannot_be_left_is_refused(left: tuple[float, float]) -> None:
    """Neither is longer than the request."""
    said = partner_pb2.OfferRequest(checkpoint_s=left[0], left_s=left[1])
    with pytest.raises(WireError, match="it must be from 0 to the requested time"):
        read_rerun(said, Request(1, 60.0))


@pytest.mark.parametrize("kept", [-1.0, math.nan, math.inf])
def test_what_is_kept_is_a_duration(kept: float) -> None:
    """A partner that says anything else says nonsense."""
    said = write_completion(Completion(OfferId(1, 1), Outcome.PREEMPTED, 5.0, 4.0, kept=3.0))
    assert read_completion(said, "completion").kept == 3.0
    said.kept_s = kept
    with pytest.raises(WireError, match="kept_s is"):
        read_completion(said, "completion")
