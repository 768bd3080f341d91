"""What `grms` shows as JSON; the commands' own tests hold what they print against the schemas."""

from dataclasses import fields

from grms.cli.output_models import JobShown, PartnerShown, SiteShown
from grms.client import Job
from grms.v1 import operator_pb2


def test_every_field_that_a_site_tells_is_shown() -> None:
    """Of a job, of the site, and of a partner: what programs get by the client, they get in JSON."""
    assert list(JobShown.model_fields) == [field.name for field in fields(Job)]
    for model, message in (
        (SiteShown, operator_pb2.StatusResponse),
        (PartnerShown, operator_pb2.PartnerStatus),
    ):
        assert set(model.model_fields) == {field.name for field in message.DESCRIPTOR.fields}
