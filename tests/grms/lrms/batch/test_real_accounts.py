"""Over a real Slurm with accounting: partitions that tell accounts and QOS apart start whom the table of nodes says they start.

Also by default, as a site's file says whose jobs are whose; and what Slurm refuses at once is told before.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from grms.lrms.base import LrmsJob
from grms.lrms.batch.subprocesses import Programs
from grms.lrms.partitions import Partitions
from grms.lrms.slurm.slurm import Slurm, SlurmSettings
from grms.lrms.slurm.slurm_machine import hindrance
from lrms_sim.workload.requests import Request
from tests.clusters.accounting import AccountingCluster, need_accounting, own_user
from tests.clusters.up import up
from tests.examples import THOROUGH
from tests.grms.lrms.batch.test_real_nodes import clear, starts, state, submitted

pytestmark = pytest.mark.services

PARTITIONS = """
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP
PartitionName=bio Nodes=ALL MaxTime=60 AllowAccounts=bio State=UP
PartitionName=rest Nodes=ALL MaxTime=60 DenyAccounts=chem State=UP
PartitionName=high Nodes=ALL MaxTime=60 AllowQos=high State=UP
PartitionName=slow Nodes=ALL MaxTime=60 DenyQos=low State=UP
"""
KNOWN = (
    *("add account bio cluster=test", "add account chem cluster=test"),
    *("add qos high", "add qos low"),
    *(f"add user {own_user()} account={account} cluster=test" for account in ("bio", "chem")),
    f"modify user {own_user()} set DefaultAccount=chem qos=normal,high,low",
)
ENFORCED = ("NO", "ANY", "ALL")
CHARGED = (("bio", "high"), ("chem", "low"))
NAMED = (("", ""), ("bio", ""), ("chem", "high"))
CHOSEN = ("main", "bio", "rest", "high", "slow", "main,bio")


@pytest.fixture(scope="module", params=ENFORCED)
def cluster(request: pytest.FixtureRequest) -> Iterator[AccountingCluster]:
    """A Slurm with two accounts and three QOS."""
    need_accounting()
    with tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp") as name:  # its paths are short
        cluster = AccountingCluster(
            Path(name) / "cluster",
            partitions=PARTITIONS,
            more=f"EnforcePartLimits={request.param}\n",
            known=KNOWN,
        )
        with up(cluster):
            (cluster.folder / "job.sh").write_text("#!/bin/sh\nexec sleep 600\n")
            yield cluster


@pytest.mark.parametrize(("account", "qos"), CHARGED)
async def test_who_is_taken_starts(cluster: AccountingCluster, account: str, qos: str) -> None:
    """And who is not waits, or is refused, as the cluster has it; whoever waits in one partition learns why."""
    settings = SlurmSettings(
        "S", "root", slurm_account="chem", guest_account=account, guest_qos=qos
    )
    slurm = Slurm(Programs(dict(cluster.environment)), settings)
    # Each way to be charged, and each way in which a cluster enforces limits, tries other pairs of both.
    of_this = ENFORCED.index(cluster.more.split("=")[1].strip()) + CHARGED.index((account, qos))
    for number, partition in enumerate(CHOSEN):
        for named, (named_account, named_qos) in enumerate(NAMED):
            if not THOROUGH and (number + named + of_this) % len(NAMED):
                continue
            seen = await slurm.look()
            assert seen.nodes is not None
            asked = Request(
                partition=partition, account=named_account, qos=named_qos, wall_time=600.0
            )
            judged = seen.nodes.named(asked, guest=True)
            expected = seen.nodes.starts_now(judged, seen.taken_at)
            assert (seen.nodes.why_not(judged) == "") is expected
            options = slurm.options(LrmsJob("k", 1, 600.0, partner="p", request=asked))
            mine = submitted(cluster, options, 600.0)
            assert bool(mine) is (seen.nodes.lacks(judged) == "")
            assert (bool(mine) and starts(cluster, mine)) is expected
            if mine and not expected:
                chosen = Partitions(seen.nodes.chosen(judged))
                assert hindrance(state(cluster, mine)[1], chosen, judged).startswith("Slurm says: ")
            if mine:
                clear(cluster, [mine])
