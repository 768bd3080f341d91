"""Messages of the wire as plain values."""

from grms.daemon.messages import enum_word, of_message
from grms.v1 import job_pb2, operator_pb2


def test_a_field_that_is_not_there_is_null() -> None:
    """One that may be left out; others have their defaults, and maps are mappings."""
    message = operator_pb2.StatusResponse(site="KTH", jobs={"QUEUED": 2})
    found = of_message(message)
    assert found["lrms_load_age_s"] is None
    assert found["jobs"] == {"QUEUED": 2}
    assert found["draining"] is False
    message.lrms_load_age_s = 0.0
    assert of_message(message, "lrms_load_age_s", "site") == {"site": "KTH", "lrms_load_age_s": 0.0}


def test_a_message_within_a_message_is_a_mapping() -> None:
    """One that is not there is null, like any field that may be left out."""
    message = operator_pb2.StatusResponse()
    assert of_message(message, "circuit_breaker") == {"circuit_breaker": None}
    message.circuit_breaker.jobs = 7
    circuit_breaker = of_message(message, "circuit_breaker")["circuit_breaker"]
    assert (circuit_breaker["jobs"], circuit_breaker["stops"], circuit_breaker["looked_s"]) == (
        7,
        False,
        None,
    )


def test_what_there_is_several_times_is_a_list() -> None:
    """Of plain values, or of messages as they are said here."""
    partner = operator_pb2.PartnerStatus(name="away")
    partner.guest_owners.add(pseudonym="a", jobs=["away/1/2"])
    found = of_message(partner, "guest_owners")
    assert found == {"guest_owners": [{"pseudonym": "a", "jobs": ["away/1/2"]}]}
    assert type(found["guest_owners"][0]["jobs"]) is list


def test_a_value_of_an_enum_is_a_word() -> None:
    """One of a later version is named by its number."""
    job = job_pb2.Job(state=job_pb2.JOB_STATE_RUNNING)
    assert of_message(job, "state") == {"state": "running"}
    job.state = 99  # type: ignore[assignment]  # as a later version has it
    assert enum_word(job) == "state 99 of a later version"
