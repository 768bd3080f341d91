"""Submits fifty jobs at once and says where each of them ran."""

import asyncio
import os
from collections import Counter

from grms.client import Client


async def main() -> None:
    """Submits all, waits for all, and counts."""
    async with Client(os.environ["HANSE_SOCKET"]) as site:
        jobs = await asyncio.gather(
            *(
                site.submit(processors=1, requested_time_s=60, run_time_s=0.01, name=f"part {n}")
                for n in range(50)
            )
        )
        ended = await asyncio.gather(*(site.wait(job.job_id) for job in jobs))
    for place, number in sorted(Counter(job.executed_on for job in ended).items()):
        print(f"{number} ran on {place}")


if __name__ == "__main__":
    asyncio.run(main())
