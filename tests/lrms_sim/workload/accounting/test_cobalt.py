"""Cobalt's records, and the tables made of them."""

import pytest

from lrms_sim.workload.accounting.importing import import_lines
from lrms_sim.workload.accounting.records import AccountingError

END = (
    "04/02/2019 22:00:00;E;331;Exit_status=0 Resource_List.ncpus=2048 Resource_List.nodect=32 "
    'Resource_List.walltime=7:00:00 account=phys args="start=5 x y" ctime=1554251500.1 cwd=/p end=1554255116.32 '
    'etime=1554251516.32 exec_host="0-4,6-32" group=^U474^ jobname="a job" mode=script qtime=1554251516.32 '
    'queue=R.pm2 resources_used.location="0-4,6-32" resources_used.nodect={used} resources_used.walltime=0:59:50 '
    "session=1 start=1554251526.32 user=zoe"
)
TABLE = (
    "JOB_NAME,QUEUED_TIMESTAMP,START_TIMESTAMP,END_TIMESTAMP,USERNAME_GENID,PROJECT_NAME_GENID,QUEUE_NAME,WALLTIME_SECONDS,NODES_USED,CORES_USED,EXIT_STATUS",
    "331.mira,2019-04-02 21:00:00,2019-04-02 21:00:10,2019-04-02 22:00:10,7,8,prod,25200.0,32.0,512.0,0",
    "332.mira,2019-04-02 21:00:00.000000,2019-04-02 21:01:00,2019-04-02 21:02:00,9,8,prod,600,64,1024,143.0",
)


def test_records() -> None:
    """Texts in quotes are texts; a job holds the processors of all nodes that it was given."""
    lines = [
        END.format(used=32),
        END.format(used=512).replace(";331;", ";332;"),
        "04/02/2019 22:00:00;Q;333;queue=x",
    ]
    found = import_lines("cobalt", lines, name="log", unreadable="error")
    log = found.log
    assert found.counts == {"other": 1}
    assert log.processors_allocated.tolist() == [2048, 32768]
    assert log.requested_time.tolist() == [25200, 25200]
    assert log.wait_time.tolist() == [10, 10]
    assert log.run_time.tolist() == [3590, 3590]
    assert log.status.tolist() == [1, 1]


def test_widths() -> None:
    """Where nothing says what was held, what was asked for; where nothing says either, none."""
    lines = [
        END.format(used="None"),
        END.format(used=4).replace("ncpus=2048", "ncpus=None"),
        END.format(used=4).replace("nodect=32", "nodect=None").replace(";331;", ";332;"),
        END.format(used=4).replace("ncpus=2048", "ncpus=8").replace(";331;", ";333;"),
    ]
    widths = [
        import_lines("cobalt", [one], name="log").log.processors_allocated[0] for one in lines
    ]
    assert widths == [2048, 4, 4, 4]
    nothing = END.replace("Resource_List.ncpus=2048 Resource_List.nodect=32 ", "").format(used="")
    with pytest.raises(AccountingError, match="log:1: nothing says how many processors"):
        import_lines("cobalt", [nothing], name="log", unreadable="error")


def test_tables() -> None:
    """Cores where the table says them, moments of the site, the code of the end."""
    log = import_lines("cobalt", TABLE, name="log", unreadable="error").log
    assert log.processors_allocated.tolist() == [1024, 512]
    assert log.run_time.tolist() == [60, 3600]
    assert log.requested_time.tolist() == [600, 25200]
    assert log.status.tolist() == [0, 1]
    nodes = [line.replace("CORES_USED", "OTHER") for line in TABLE]
    assert import_lines("cobalt", nodes, name="log").log.processors_allocated.tolist() == [64, 32]
