"""Submits a job to the site named by HANSE_SOCKET and waits for its end."""

import os
import sys

from grms.client import Outcome, SiteError, SyncClient


def main() -> int:
    """Submits, waits, and says where the job ran."""
    try:
        with SyncClient(os.environ["HANSE_SOCKET"]) as site:
            # A key of one's own makes a repeated run of this program the same job.
            job = site.submit(
                processors=2, requested_time_s=60, run_time_s=0.5, name="example", key="example-1"
            )
            print(f"{job.job_id} was taken")
            job = site.wait(job.job_id)
    except SiteError as error:
        print(f"the site refused: {error}", file=sys.stderr)
        return 1
    print(f"{job.job_id} {job.outcome} on {job.executed_on}")
    return 0 if job.outcome is Outcome.COMPLETED else 1


if __name__ == "__main__":
    sys.exit(main())
