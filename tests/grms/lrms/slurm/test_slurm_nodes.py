"""What Slurm 22.05 has printed of nodes, partitions, reservations and licences, as recorded; times are shortened."""

from dataclasses import replace

import pytest

from grms.lrms.node_groups import NodeGroup, Promised
from grms.lrms.nodes import Licence
from grms.lrms.partitions import Admitted, Partition
from grms.lrms.slurm.slurm_nodes import (
    SlurmRules,
    default_memory,
    read_licences,
    read_nodes,
    read_partitions,
    read_reservations,
    read_rules,
    read_slurm_machine,
)
from lrms_sim.workload.requests import Gpus, Memory, Request

CONFIGURATION = """\
Configuration data as of 2026-11-26T15:58:57
DefMemPerCPU            = 100
Licenses                = matlab:4,fluent:10
MaxMemPerNode           = UNLIMITED
SchedulerTimeSlice      = 30 sec
SchedulerType           = sched/backfill
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE_MEMORY
"""
NODES = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=1 CPUEfctv=8 CPUTot=8 CPULoad=5.77 AvailableFeatures=skylake,avx512 ActiveFeatures=skylake,avx512 Gres=(null) GresDrain=N/A GresUsed=gpu:0 NodeAddr=127.0.0.1 OS=Linux 6.18 #1 SMP @0  RealMemory=16000 AllocMem=15360 FreeMem=9000 Sockets=8 Boards=1 State=MIXED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=main,short  BootTime=1795668428 CfgTRES=cpu=8,mem=16000M,billing=8 AllocTRES=cpu=1,mem=15G
NodeName=n2 Arch=x86_64 CoresPerSocket=1  CPUAlloc=1 CPUEfctv=8 CPUTot=8 CPULoad=5.77 AvailableFeatures=skylake,avx512 ActiveFeatures=skylake,avx512 Gres=(null) GresDrain=N/A GresUsed=gpu:0 RealMemory=16000 AllocMem=15360 State=MIXED ThreadsPerCore=1 Weight=1 Partitions=main,short  AllocTRES=cpu=1,mem=15G
NodeName=n3 CoresPerSocket=1  CPUAlloc=8 CPUEfctv=8 CPUTot=8 AvailableFeatures=skylake,avx512 ActiveFeatures=skylake,avx512 Gres=(null) GresDrain=N/A GresUsed=gpu:0 RealMemory=16000 AllocMem=800 State=ALLOCATED+DRAIN ThreadsPerCore=1 Weight=1 Partitions=main,short  AllocTRES=cpu=8,mem=800M Reason=a b State=IDLE CPUAlloc=0 [root@2026-11-26T15:58:57]
NodeName=n4 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=16 CPUTot=16 AvailableFeatures=icelake,bigmem ActiveFeatures=icelake,bigmem Gres=(null) GresDrain=N/A GresUsed=gpu:0 RealMemory=64000 AllocMem=0 State=IDLE ThreadsPerCore=1 Weight=5 Partitions=main,short  AllocTRES=
NodeName=n5 CoresPerSocket=1  CPUAlloc=1 CPUEfctv=16 CPUTot=16 AvailableFeatures=icelake ActiveFeatures=icelake Gres=gpu:a100:4 GresDrain=N/A GresUsed=gpu:a100:2(IDX:0-1) RealMemory=32000 AllocMem=3072 State=MIXED ThreadsPerCore=1 Weight=10 Partitions=gpu,short  AllocTRES=cpu=1,mem=3G
NodeName=n6 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=8 CPUTot=8 AvailableFeatures=skylake ActiveFeatures=skylake Gres=gpu:v100:2 GresDrain=N/A GresUsed=gpu:v100:0(IDX:N/A) RealMemory=16000 AllocMem=0 State=UNKNOWN+NOT_RESPONDING ThreadsPerCore=1 Weight=10 Partitions=gpu,short  AllocTRES=
"""
PARTITIONS = """\
PartitionName=main AllowGroups=ALL Default=YES DefaultTime=01:00:00 ExclusiveUser=NO Hidden=NO MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=n[1-4] RootOnly=NO ReqResv=NO OverSubscribe=NO State=UP TotalCPUs=40 JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED TRES=cpu=40
PartitionName=gpu AllowGroups=ALL Default=NO DefaultTime=00:30:00 ExclusiveUser=NO Hidden=NO MaxNodes=1 MaxTime=04:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=n[5-6] RootOnly=NO ReqResv=NO OverSubscribe=NO State=UP TotalCPUs=24 JobDefaults=(null) DefMemPerCPU=500 MaxMemPerNode=UNLIMITED TRES=cpu=24
PartitionName=short AllowGroups=ALL Default=NO DefaultTime=NONE ExclusiveUser=NO Hidden=NO MaxNodes=UNLIMITED MaxTime=00:10:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=n[1-6] RootOnly=NO ReqResv=NO OverSubscribe=NO State=UP TotalCPUs=64 JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=8000 TRES=cpu=64
"""
RESERVATIONS = """\
ReservationName=maint StartTime=1795715937 EndTime=1795719537 Duration=01:00:00 Nodes=n[1-2] NodeCnt=2 CoreCnt=8 Features=(null) PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES TRES=cpu=8 Users=root State=INACTIVE
ReservationName=lic StartTime=1795712337 EndTime=1795715937 Duration=01:00:00 Nodes=(null) NodeCnt=0 CoreCnt=0 Features=(null) PartitionName=(null) Flags=ANY_NODES TRES=(null) Users=root Licenses=matlab:2 State=INACTIVE
"""
LICENCES = """\
LicenseName=fluent Total=10 Used=4 Free=6 Reserved=0 Remote=no
LicenseName=matlab Total=4 Used=0 Free=4 Reserved=0 Remote=no
"""


def rules() -> SlurmRules:
    """Returns those of the configuration."""
    found = read_rules(CONFIGURATION)
    assert found is not None
    return found


RULES = rules()


def test_rules_are_read() -> None:
    """By the words of slurm.conf's page; where it does not say how nodes are chosen, nothing is assumed."""
    assert (RULES.scheduler, RULES.whole_nodes, RULES.memory) == ("backfill", False, True)
    assert (RULES.granule, RULES.has_licences) == ("core", True)
    linear = read_rules("SelectType = select/linear\nSelectTypeParameters = (null)\n")
    assert linear is not None
    assert (linear.whole_nodes, linear.memory, linear.has_licences) == (True, False, False)
    sockets = read_rules(
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_SOCKET,CR_ONE_TASK_PER_CORE\n"
    )
    assert sockets is not None
    assert (sockets.granule, sockets.memory, sockets.one_task_a_core) == ("socket", False, True)
    assert read_rules("slurm_load_ctl_conf error: no") is None
    assert RULES.accounting
    unknown = read_rules(CONFIGURATION + "AccountingStorageType   = accounting_storage/none\n")
    assert unknown == replace(RULES, accounting=False)
    for said, keeps in (
        ("PriorityType = priority/basic", True),
        ("PriorityType = priority/multifactor", False),
        ("PriorityType = priority/multifactor\nPriorityFlags = MAX_TRES,ACCRUE_ALWAYS", True),
        (
            "PriorityType = priority/multifactor\nAccountingStorageType = accounting_storage/none",
            True,
        ),
    ):
        found = read_rules(f"SelectType = select/linear\n{said}\n")
        assert found is not None
        assert found.keeps_places is keeps, said
    empty = "PriorityFlags = \nSelectType = select/linear\nJobRequeue =\n"
    assert read_rules(empty) == SlurmRules(whole_nodes=True, memory=False)


def test_nodes_are_read() -> None:
    """What is held, and what they have at all; an operator's words are none of Slurm's."""
    full, drained, big, gpus, gone = read_nodes(NODES, RULES)
    assert full == NodeGroup(
        ("n1", "n2"),
        frozenset(["main", "short"]),
        8,
        16_000,
        (),
        frozenset(["skylake", "avx512"]),
        7,
        640,
        (),
        idle=False,
    )
    assert (drained.names, drained.away, drained.free_cores) == (("n3",), "DRAIN", 0)
    assert (big.idle, big.weight, big.free_memory) == (True, 5, 64_000)
    assert (gpus.gpus, gpus.free_gpus) == ((("a100", 4),), (("a100", 2),))
    assert gone.away == "UNKNOWN+NOT_RESPONDING"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Gres=gpu:4(S:0-1),disk:9 GresUsed=gpu:1(IDX:0,2),disk:1", ((("", 4),), (("", 3),))),
        ("Gres=gpu:a:1,gpu:b:2 GresUsed=gpu:b:2(IDX:0-1)", ((("a", 1), ("b", 2)), (("a", 1), ("b", 0)))),
        ("Gres=(null) GresUsed=N/A", ((), ())),
    ],
)  # fmt: skip
def test_gpus_are_read(field: str, value: tuple[object, object]) -> None:
    """Of several types, of none, and beside other generic resources."""
    line = f"NodeName=n CPUAlloc=0 CPUTot=4 {field} RealMemory=9 AllocMem=0 State=IDLE*\n"
    (node,) = read_nodes(line, RULES)
    assert (node.gpus, node.free_gpus) == value
    assert node.away == "NOT_RESPONDING"


@pytest.mark.parametrize(
    ("changed", "step", "memory"),
    [({}, 2, 5), ({"granule": "socket"}, 8, 5), ({"granule": "cpu"}, 1, 5), ({"memory": False}, 2, 9), ({"one_task_a_core": True}, 2, 5)],
)  # fmt: skip
def test_what_jobs_cannot_share_is_as_the_rules_have_it(
    changed: dict[str, object], step: int, memory: int
) -> None:
    """Cores with both their threads, whole sockets, and memory if it is counted."""
    line = (
        "NodeName=n CoresPerSocket=4 CPUAlloc=0 CPUEfctv=14 CPUTot=16 RealMemory=10 MemSpecLimit=1 "
        "AllocMem=4 State=IDLE+COMPLETING ThreadsPerCore=2\n"
    )
    (node,) = read_nodes(line, replace(RULES, **changed))  # type: ignore[arg-type]  # of its fields
    assert (node.cores, node.step, node.free_memory, node.memory) == (14, step, memory, 9)
    assert node.task_step == 2 if "one_task_a_core" in changed else node.task_step == 1
    assert not node.idle


def test_partitions_are_read() -> None:
    """With their limits, and with those of the whole cluster where they have none of their own."""
    (gpu, main, short), default = read_partitions(PARTITIONS, read_nodes(NODES, RULES), RULES)
    assert default == "main"
    assert main == Partition(
        "main", "UP", longest_s=86_400.0, widest=40, default_memory=Memory(100)
    )
    assert (gpu.nodes_max, gpu.widest, gpu.default_memory) == (1, 16, Memory(500))
    assert (short.memory_max, short.longest_s) == (8000, 600.0)


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("State=UP", "State=DOWN", {"state": "DOWN", "starts": False}),
        ("State=UP", "State=DRAIN", {"state": "DRAIN", "takes": False}),
        ("State=UP", "State=INACTIVE", {"state": "INACTIVE", "takes": False, "starts": False}),
        ("ReqResv=NO", "ReqResv=YES", {"state": "only for operators or reservations", "takes": False}),
        ("OverSubscribe=NO", "OverSubscribe=EXCLUSIVE", {"whole_nodes": True}),
        ("ExclusiveUser=NO", "ExclusiveUser=YES", {"whole_nodes": True}),
        ("MinNodes=0", "MinNodes=2", {"nodes_min": 2}),
        ("MaxCPUsPerNode=UNLIMITED", "MaxCPUsPerNode=6", {"cores_max": 6}),
        ("MaxMemPerNode=UNLIMITED", "MaxMemPerCPU=900", {"core_memory_max": 900}),
        ("DefMemPerNode=UNLIMITED", "DefMemPerNode=4000", {"default_memory": Memory(4000, "node")}),
        ("JobDefaults=(null)", "JobDefaults=DefCpuPerGPU=2,DefMemPerGPU=2000", {"default_gpu_memory": 2000, "default_gpu_cores": 2}),
        ("AllowGroups=ALL", "AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL", {}),
        ("AllowGroups=ALL", "AllowAccounts=bio,Chem DenyQos=low", {"accounts": Admitted(frozenset(["bio", "chem"]), barred=False), "qos": Admitted(frozenset(["low"]))}),
    ],
)  # fmt: skip
def test_what_a_partition_says_is_read(old: str, new: str, changes: dict[str, object]) -> None:
    """Each of its words changes what it stands for."""
    nodes = read_nodes(NODES, RULES)
    main = Partition("main", "UP", longest_s=86_400.0, widest=40, default_memory=Memory(100))
    (first, *_), _ = read_partitions(PARTITIONS.splitlines()[0].replace(old, new), nodes, RULES)
    assert first == replace(main, **changes)  # type: ignore[arg-type]  # of its fields


def test_a_partition_for_accounts_takes_nothing_where_these_are_unknown() -> None:
    """Slurm lets every job wait there for ever; whom it denies it cannot know either, and takes."""
    rules, line = replace(RULES, accounting=False), PARTITIONS.splitlines()[0]
    allowed, denied = (
        line.replace("AllowGroups=ALL", f"{word}Accounts=bio") for word in ("Allow", "Deny")
    )
    ((main,), _) = read_partitions(allowed, (), rules)
    said = "only for accounts, which this cluster does not know"
    assert (main.takes, main.state) == (False, said)
    for line_ in (denied, line.replace("AllowGroups=ALL", "AllowQos=high")):
        ((main,), _) = read_partitions(line_, (), rules)
        assert (main.takes, main.state) == (True, "UP")
        assert main.bars(Request(account="bio", qos="low")) == ""


def test_whether_a_job_is_refused_that_a_partition_does_not_take_is_read() -> None:
    """By default it waits."""
    for said, enforced in (("NO", ""), ("ANY", "any"), ("ALL", "all"), ("new", "")):
        rules = read_rules(f"{CONFIGURATION}EnforcePartLimits       = {said}\n")
        assert rules is not None
        assert rules.enforced == enforced
        machine = read_slurm_machine(NODES, PARTITIONS, (), rules)
        assert machine.nodes.enforced == enforced
    assert RULES.enforced == ""


def test_memory_of_a_gpu_is_that_of_the_cluster_where_a_partition_says_none() -> None:
    """As recorded: it goes before what a partition says of its nodes."""
    rules = read_rules(CONFIGURATION + "JobDefaults             = DefMemPerGPU=2000\n")
    assert rules is not None
    line = PARTITIONS.splitlines()[0].replace("DefMemPerNode=UNLIMITED", "DefMemPerNode=5000")
    ((main,), _) = read_partitions(line, (), rules)
    assert (main.default_gpu_memory, main.default_memory) == (2000, Memory(5000, "node"))
    fields = {"JobDefaults": "DefMemPerGPU=3G", "DefMemPerNode": "5000"}
    assert default_memory(fields, rules, gpus=True) == Memory(3072, "gpu")
    assert default_memory(fields, rules) == Memory(5000, "node")
    assert default_memory(fields, replace(rules, memory=False), gpus=True) is None


def test_a_node_that_says_it_has_no_threads_has_one() -> None:
    """As one that has not answered yet."""
    line = NODES.splitlines()[0].replace("ThreadsPerCore=1", "ThreadsPerCore=0")
    rules = replace(RULES, one_task_a_core=True)
    (node,) = read_nodes(line.replace("CoresPerSocket=1", "CoresPerSocket=0"), rules)
    assert (node.step, node.task_step) == (1, 1)
    (node,) = read_nodes(
        line.replace("CoresPerSocket=1", "CoresPerSocket=0"), replace(rules, granule="socket")
    )
    assert node.step == 1


def test_a_job_that_asks_for_no_memory_may_get_all_of_it() -> None:
    """Where nothing is said of a default, and memory is counted."""
    bare = replace(RULES, limits={})
    (_, main, _), _ = read_partitions(PARTITIONS, (), bare)
    assert (main.all_memory, main.default_memory) == (True, None)
    (_, main, _), _ = read_partitions(PARTITIONS, (), replace(bare, memory=False))
    assert not main.all_memory


def test_reservations_and_licences_are_read() -> None:
    """Those without nodes are of no account here."""
    assert read_reservations(RESERVATIONS) == (
        Promised(1795715937.0, 1795719537.0, frozenset(["n1", "n2"])),
    )
    assert read_reservations("No reservations in the system\n") == ()
    assert read_licences(LICENCES) == {"fluent": Licence(10, 6), "matlab": Licence(4, 4)}
    assert read_licences("No licenses configured in Slurm.\n") == {}


def test_the_machine_is_read() -> None:
    """Its working part is what is up in the partitions in use; what is drained works while a job is on it."""
    machine = read_slurm_machine(NODES, PARTITIONS, (), RULES)
    assert (machine.everything, machine.working, machine.free) == (64, 56, 45)
    assert [part.name for part in machine.partitions.each] == ["main"]
    machine = read_slurm_machine(NODES, PARTITIONS, ("gpu",), RULES)
    assert (machine.everything, machine.working, machine.free) == (24, 16, 15)
    nodes = machine.nodes
    assert nodes.starts_now(Request(gpus=Gpus(2), wall_time=600.0), 0.0)
    assert not nodes.starts_now(Request(gpus=Gpus(3), wall_time=600.0), 0.0)
    assert nodes.why_not(Request(gpus=Gpus(3), wall_time=600.0)) == ""
    assert nodes.never(Request(9, nodes_min=2)) == "a job in gpu has at most 1 node"
    down = PARTITIONS.replace("State=UP", "State=DOWN")
    machine = read_slurm_machine(NODES, down, (), RULES)
    assert (machine.everything, machine.working, machine.free) == (64, 0, 0)


@pytest.mark.parametrize(
    ("nodes", "partitions", "names", "text"),
    [
        ("slurm_load_node error", PARTITIONS, (), "where NodeName should be"),
        (NODES, "error", (), "where PartitionName should be"),
        (NODES, PARTITIONS, ("none",), "none of the partitions none"),
        (NODES.replace("State=IDLE", "Estate=IDLE"), PARTITIONS, (), "no 'State' of n4"),
        ("", PARTITIONS, (), "no nodes"),
        (NODES.replace("CPUAlloc=0", "CPUAlloc=x"), PARTITIONS, (), "invalid literal"),
    ],
)
def test_what_is_no_machine_is_no_answer(
    nodes: str, partitions: str, names: tuple[str, ...], text: str
) -> None:
    """Nothing is guessed of it."""
    with pytest.raises(ValueError, match=text):
        read_slurm_machine(nodes, partitions, names, RULES)
