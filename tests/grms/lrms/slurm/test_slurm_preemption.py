"""How a Slurm ends jobs for others, by what it prints; `test_real_preemption.py` asks real ones."""

import re

import pytest
from pydantic import ValidationError

from grms.lrms.checks import FindingLevel
from grms.lrms.node_groups import NodeGroup
from grms.lrms.preemption import EndedBy
from grms.lrms.slurm.slurm_adapter import SlurmTable
from grms.lrms.slurm.slurm_check import ended_guests, unended
from grms.lrms.slurm.slurm_nodes import SlurmRules, read_nodes, read_rules
from grms.lrms.slurm.slurm_preemption import (
    GuestPartitions,
    PreemptionRules,
    find_preemption,
    read_preempted_partitions,
    read_preemption_rules,
    read_waiting,
)
from grms.lrms.slurm.slurm_preemption_lines import site_file, slurm_conf, sudoers

BOTH = GuestPartitions("guest", "guestp")
RULES = PreemptionRules("preempt/partition_prio", "CANCEL", 30.0)
NODE = (
    "NodeName=n{} CoresPerSocket=4 CPUAlloc=1 CPUEfctv=4 CPUTot=4 State={} RealMemory=1000 AllocMem=0 "
    "ThreadsPerCore=1 Partitions={}\n"
)


def nodes(*partitions: str, state: str = "MIXED") -> tuple[NodeGroup, ...]:
    """Returns nodes n0, n1, … with the partitions of each."""
    text = "".join(NODE.format(number, state, names) for number, names in enumerate(partitions))
    return read_nodes(text, SlurmRules())


def partition(name: str, mode: str, tier: int = 1, **more: object) -> str:
    """Returns a line of scontrol about a partition."""
    rest = " ".join(f"{key}={value}" for key, value in more.items())
    return f"PartitionName={name} AllowGroups=ALL GraceTime={more.get('GraceTime', 0)} PriorityTier={tier} PreemptMode={mode} {rest}\n"


MAIN, GUEST, SAFE = (
    partition("main", "OFF"),
    partition("guest", "CANCEL", 0),
    partition("guestp", "OFF", 0),
)


def test_rules() -> None:
    """Those of a cluster that says nothing end no job."""
    text = "SelectType = select/cons_tres\nPreemptType = preempt/partition_prio\nPreemptMode = GANG,SUSPEND\n"
    rules = read_rules(f"{text}KillWait = 12 sec\nPreemptExemptTime = 00:05:00\n")
    assert rules is not None
    assert rules.preemption == PreemptionRules(
        "preempt/partition_prio", "GANG,SUSPEND", 12.0, 300.0
    )
    assert read_preemption_rules({}) == PreemptionRules()
    assert read_preemption_rules({"KillWait": "long", "PreemptExemptTime": "never"}) == (
        PreemptionRules()
    )


@pytest.mark.parametrize(
    ("rules", "parts", "guests", "why"),
    [
        (RULES, MAIN + GUEST + SAFE, BOTH, ""),
        (RULES, MAIN + partition("guest", "REQUEUE", 0) + SAFE, BOTH, ""),
        (PreemptionRules("preempt/none"), MAIN + GUEST + SAFE, BOTH, "PreemptType is preempt/none"),
        (PreemptionRules("preempt/qos"), MAIN + GUEST + SAFE, BOTH, "PreemptType is preempt/qos"),
        (PreemptionRules(), MAIN + GUEST + SAFE, BOTH, "PreemptType is not said"),
        (RULES, MAIN + SAFE, BOTH, "there is no partition guest"),
        (RULES, MAIN + GUEST, BOTH, "there is no partition guestp"),
        (RULES, MAIN + partition("guest", "OFF", 0) + SAFE, BOTH, "PreemptMode of guest is OFF"),
        (
            RULES,
            MAIN + partition("guest", "GANG,SUSPEND", 0) + SAFE,
            BOTH,
            "guests are suspended",
        ),
        (
            RULES,
            MAIN + partition("guest", "CANCEL") + SAFE,
            BOTH,
            "PriorityTier is 1, that of guest 1",
        ),
        (RULES, MAIN, GuestPartitions(), "names no partition of guests"),
    ],
)
def test_who_ends_guests(
    rules: PreemptionRules, parts: str, guests: GuestPartitions, why: str
) -> None:
    """Slurm, if all of it is as it has to be; else the daemon, and the check says why and has a cure."""
    there, groups = read_preempted_partitions(parts), nodes("main,guest,guestp")
    found = find_preemption(rules, there, groups, guests)
    by = EndedBy.DAEMON if why else EndedBy.BATCH_SYSTEM
    assert found.preemption.ended_by is by
    assert why in found.preemption.why
    assert bool(why) == bool(found.preemption.why)
    assert found.unserved == (frozenset({"main"}) if why else frozenset())
    findings = ended_guests(rules, there, found, guests)
    level = FindingLevel.GOOD
    if why:
        level = FindingLevel.MISSING if "there is no" in why else FindingLevel.DOUBT
    assert [finding.level for finding in findings] == [level]
    assert ("grms lrms preemption" in findings[0].cure) == bool(why)
    assert (why or "Slurm ends guests in guest") in findings[0].text
    assert ("as long as it lives" in findings[0].text) == (level is FindingLevel.DOUBT)


def test_partitions_that_share_no_nodes_do_not_count() -> None:
    """Of those that do, each of a tier too low is told; the daemon serves it alone."""
    there = read_preempted_partitions(MAIN + GUEST + SAFE + partition("debug", "OFF", 0))
    apart = nodes("main,guest,guestp", "debug")
    assert find_preemption(RULES, there, apart, BOTH).unserved == frozenset()
    shared = find_preemption(RULES, there, nodes("main,guest,guestp,debug"), BOTH)
    assert shared.unserved == {"debug"}
    assert shared.preemption.ended_by is EndedBy.DAEMON
    assert shared.mode == "OFF"
    (finding,) = ended_guests(RULES, there, shared, BOTH)
    assert finding.text.startswith("jobs in debug take no processors of guests")
    lone = find_preemption(RULES, there, nodes("guest,guestp", "main"), BOTH)
    assert "no other partition has nodes of guest" in lone.preemption.why


def test_what_own_jobs_wait_for() -> None:
    """Grace time, and the time in which nobody is ended."""
    there = read_preempted_partitions(MAIN + partition("guest", "CANCEL", 0, GraceTime=60) + SAFE)
    rules = PreemptionRules("preempt/partition_prio", "CANCEL", 30.0, 300.0)
    found = find_preemption(rules, there, nodes("main,guest,guestp"), BOTH)
    assert (found.preemption.grace_s, found.preemption.kill_s) == (60.0, 30.0)
    good, grace, exempt = ended_guests(rules, there, found, BOTH)
    assert good.level is FindingLevel.GOOD
    assert "60 s" in grace.text
    assert "300 s" in exempt.text


@pytest.mark.parametrize(
    ("mode", "shared", "said"),
    [
        ("CANCEL", "main,long,guest,guestp", True),
        ("OFF", "main,long,guest,guestp", False),
        ("CANCEL", "main,guest,guestp", False),
    ],
)
def test_own_jobs_that_are_ended_for_others(mode: str, shared: str, said: bool) -> None:
    """Where preemption was switched on for guests, and a line was forgotten."""
    own = partition("main", mode) + partition("long", mode, 2)
    there = read_preempted_partitions(own + GUEST + SAFE)
    found = find_preemption(RULES, there, nodes(shared, "long"), BOTH)
    good, *doubts = ended_guests(RULES, there, found, BOTH)
    assert good.level is FindingLevel.GOOD
    text = "Slurm ends jobs in main for jobs in long, too (PreemptMode=CANCEL)"
    assert [each.text for each in doubts] == [text] * said
    assert all("PreemptMode=OFF to the line of main" in each.cure for each in doubts)


def test_a_site_that_says_nothing() -> None:
    """Its guests are as own jobs, which Slurm may end for those of a higher tier."""
    there = read_preempted_partitions(partition("main", "REQUEUE") + partition("urgent", "OFF", 9))
    finding = unended(RULES, there, ("main",))
    assert "for jobs in urgent Slurm ends them as it ends own jobs (REQUEUE)" in finding.text
    quiet = unended(PreemptionRules(), there, ("main",))
    assert finding.level is quiet.level is FindingLevel.GOOD
    assert "urgent" not in quiet.text
    assert "Slurm ends no jobs for others (PreemptMode=OFF)" in quiet.text
    assert "PreemptMode=OFF" not in finding.text
    by_qos = unended(PreemptionRules("preempt/qos", "CANCEL"), there, ("main",))
    assert "Slurm ends no jobs" not in by_qos.text


def test_jobs_that_wait_for_room() -> None:
    """In Slurm's order, those that it looks at first before the others; nobody who waits for something else."""
    text = (
        "5|PD|Priority|2|1|1:00|N/A|main\n6|PD|Resources|8|2|UNLIMITED|900|main,guest\n"
        "7|PD|Dependency|1|1|1:00|N/A|main\n8|R|None|1|1|1:00|1|main\nodd|line\n"
    )
    first, second = read_waiting(text, nodes("main", "guest"))
    assert (first.number, first.processors, first.nodes_min) == ("6", 8, 2)
    assert (first.limit_s, first.start_time) == (None, 900.0)
    assert first.places == {"n0", "n1"}
    assert (second.number, second.limit_s, second.start_time) == ("5", 60.0, None)
    assert second.places == {"n0"}
    assert read_waiting(text, nodes("main", state="DOWN"))[1].places == frozenset()


ROWS = [
    {"PartitionName": "main", "Default": "YES", "Nodes": "n[1-4]", "PriorityTier": "1"},
    {"PartitionName": "urgent", "Default": "NO", "Nodes": "n1", "PriorityTier": "9"},
]


def test_lines_for_slurm() -> None:
    """What is there is kept, and what is there already is not printed."""
    fields = {"PreemptType": "preempt/none", "SchedulerParameters": "bf_interval=30"}
    change, off, add = slurm_conf(fields, ROWS, (), BOTH, ["hanse"])
    assert change.lines == (
        "PreemptType=preempt/partition_prio",
        "PreemptMode=CANCEL",
        "SchedulerParameters=bf_interval=30,preempt_youngest_first",
    )
    assert [line.split()[1] for line in off.lines] == ["PartitionName=main", "PartitionName=urgent"]
    assert add.lines[0].startswith(
        "PartitionName=guest Nodes=n[1-4] AllowGroups=hanse PriorityTier=0 PreemptMode=CANCEL GraceTime=0"
    )
    assert add.then == "scontrol reconfigure"
    there = [*ROWS, {"PartitionName": "guest"}, {"PartitionName": "guestp"}]
    fields = {
        "PreemptType": "preempt/partition_prio",
        "SchedulerParameters": "preempt_youngest_first",
    }
    assert slurm_conf(fields, there, (), BOTH, []) == []
    fields["SchedulerParameters"] = "(null)"
    (only,) = slurm_conf(fields, there, ("main",), BOTH, [])
    assert (only.lines, only.then) == (
        ("SchedulerParameters=preempt_youngest_first",),
        "scontrol reconfigure",
    )


def test_lines_for_sudo_and_the_site() -> None:
    """As Slurm's own user, two commands."""
    fields = {"SlurmUser": "slurm(64030)"}
    found = sudoers(fields, BOTH, "/usr/bin/scontrol", keeps_place=True)
    assert found.lines[0].endswith('env_keep += "SLURM_CONF"')
    assert (
        r"ALL = (slurm) NOPASSWD: /usr/bin/scontrol update partitionname\=guestp"
        in (found.lines[1])
    )
    assert site_file(fields, BOTH, "/usr/bin/scontrol").lines[-1] == (
        'switch = ["sudo", "-n", "-u", "slurm", "/usr/bin/scontrol"]'
    )


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"protected": "guestp"}, "need each other"),
        ({"switch": ["scontrol"]}, "need each other"),
        (
            {"protected": "guestp", "switch": ["scontrol"]},
            "needs another lrms.preemption.partition",
        ),
        (
            {"partition": "guest", "protected": "guest", "switch": ["scontrol"]},
            "needs another lrms.preemption.partition",
        ),
        (
            {"partition": "guest", "protected": "guestp", "switch": ["sudo", ""]},
            "words that are empty",
        ),
        ({"partition": "--all"}, "is no name"),
        ({"allowance": "much"}, "allowance"),
        ({"wait_s": -1}, "wait_s"),
        ({"wait_s": float("inf")}, "wait_s"),
    ],
)
def test_a_table_that_says_too_little(table: dict[str, object], text: str) -> None:
    """It is refused, with what it lacks."""
    with pytest.raises(ValidationError, match=re.escape(text)):
        SlurmTable.model_validate({"kind": "slurm", "preemption": table})


def test_a_table() -> None:
    """An empty one has the daemon end guests; switching by sudo is something that needs it."""
    empty = SlurmTable.model_validate({"kind": "slurm", "preemption": {}})
    assert empty.of_site("A").guests == GuestPartitions()
    assert SlurmTable.model_validate({"kind": "slurm"}).of_site("A").guests is None
    whole = {"partition": "guest", "protected": "guestp", "switch": ["/usr/bin/sudo", "scontrol"]}
    table = SlurmTable.model_validate({"kind": "slurm", "preemption": whole})
    assert table.of_site("A").guests == BOTH
    assert table.needs_sudo == ["lrms.own_jobs", "lrms.preemption.switch"]
    whole["switch"] = ["scontrol"]
    table = SlurmTable.model_validate({"kind": "slurm", "preemption": whole})
    assert table.needs_sudo == ["lrms.own_jobs"]
