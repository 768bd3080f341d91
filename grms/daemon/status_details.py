"""What an error of gRPC tells programs, as `google.rpc` defines it: the wrong field, and when to try again."""

from typing import Final

DETAILS_KEY: Final = "grpc-status-details-bin"
"""Metadata key of `google.rpc.Status`."""


def read_details(content: bytes) -> tuple[str, float | None]:
    """Returns the wrong field of the request and the seconds to wait before another try.

    They are "" and `None` if the status does not say. A wait of 0 means "at once".
    """
    from google.rpc import error_details_pb2, status_pb2  # noqa: PLC0415  # few calls are refused

    field: str = ""
    retry_s: float | None = None
    for detail in status_pb2.Status.FromString(content).details:
        bad, retry = error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
        if detail.Unpack(bad) and bad.field_violations:
            field = bad.field_violations[0].field
        elif detail.Unpack(retry):
            retry_s = retry.retry_delay.ToNanoseconds() / 1e9
    return field, retry_s
