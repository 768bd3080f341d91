"""Errors of providers."""


class SubmitException(Exception):  # noqa: N818  # Parsl's name
    """A block was not submitted."""

    def __init__(self, job_name: str, message: str) -> None:
        super().__init__(f"Cannot launch job {job_name}: {message}")
