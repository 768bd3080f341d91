"""Jobs as a site's state has them."""

from typing import Any

from grms.site.model.jobs import HomeJob, Request


def home_job(request: Request | None = None, /, number: int = 1, **changes: Any) -> HomeJob:
    """Returns a job of one processor and a second that came at 0, unless something else is said."""
    job = HomeJob(
        job=number,
        job_id=f"home-{number}",
        lrms_key=f"home/1/{number}",
        user="me",
        idempotency_key="k",
        name="",
        request=request or Request(1, 1.0),
        payload=b"",
        submit_time=0.0,
    )
    for name, value in changes.items():
        setattr(job, name, value)
    return job
