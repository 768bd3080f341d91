"""The recorded workloads of paper 003, Table 1, and how the tests cut them.

Fölling, Grimme, Lepping, Papaspyrou: "Decentralized Grid Scheduling with Evolutionary Fuzzy
Systems" (JSSPP 2009). "-5" is everything submitted in the first 150 days of a log, "-6" what was
submitted after that; of three logs the paper used only the beginning of that.
"""

from functools import cache
from pathlib import Path

from lrms_sim.workload.jobs import JobTable, window_by_days
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.swf import read_swf

LOGS = {
    "KTH": "KTH-SP2-1996-2.swf.gz",
    "CTC": "CTC-SP2-1996-3.1-cln.swf.gz",
    "SDSC05": "SDSC-DS-2004-2.1-cln.swf.gz",
    "SDSC00": "SDSC-SP2-1998-4.2-cln.swf.gz",
}
"""File of each log in the Parallel Workloads Archive."""

PROCESSORS = {"KTH": 100, "CTC": 430, "SDSC05": 1664, "SDSC00": 128}
"""Size of each machine in the paper."""

SPLIT_DAY = 150
LAST_DAY_6 = {"SDSC05": 339}
FIRST_JOBS_6 = {"KTH": 16_699, "SDSC00": 16_316}


@cache
def whole_log(folder: Path, site: str) -> JobTable:
    """Returns all usable jobs of a log, prepared by the default rules."""
    return prepare(read_swf(folder / LOGS[site]), PROCESSORS[site]).jobs


def recorded(folder: Path, name: str) -> JobTable:
    """Returns a workload by the paper's name for it, as "KTH-5", or "KTH" for the whole log."""
    site, _, months = name.partition("-")
    jobs = whole_log(folder, site)
    if months == "5":
        return window_by_days(jobs, last_day=SPLIT_DAY)
    if months == "6":
        return window_by_days(
            jobs, SPLIT_DAY, LAST_DAY_6.get(site), first_jobs=FIRST_JOBS_6.get(site)
        )
    return jobs
