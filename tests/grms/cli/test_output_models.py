"""What `grms` shows as JSON; the commands' own tests hold what they print against the schemas."""

from dataclasses import fields

from grms.cli.output_models import JobOutput, PartnerOutput, SiteOutput
from grms.client import Job
from grms.v1 import operator_pb2


def test_every_field_that_a_site_tells_is_shown() -> None:
    """Of a job, of the site, and of a partner: what programs get by the client, they get in JSON."""
    assert list(JobOutput.model_fields) == [field.name for field in fields(Job)]
    for model, message in (
        (SiteOutput, operator_pb2.StatusResponse),
        (PartnerOutput, operator_pb2.PartnerStatus),
    ):
        assert set(model.model_fields) == {field.name for field in message.DESCRIPTOR.fields}
