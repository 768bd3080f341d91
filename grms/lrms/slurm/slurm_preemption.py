"""Parses how a Slurm ends jobs for others, by its configuration and its partitions. Pure.

By `PreemptType=preempt/partition_prio` a waiting job takes the processors of jobs in partitions of a lower `PriorityTier`
that share its nodes, unless their `PreemptMode` is OFF (slurm.conf(5)). Every user may read all that is needed here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from grms.lrms.batch.guests_to_end import WaitingJob
from grms.lrms.node_groups import NodeGroup
from grms.lrms.preemption import EndedBy, Preemption
from grms.lrms.slurm.slurm_limits import read_limit
from grms.lrms.slurm.slurm_text import read_job

BY_PARTITION: Final = "preempt/partition_prio"
"""`PreemptType` by which partitions decide."""

NO_KIND: Final = "preempt/none"
"""`PreemptType` by which no job is ended for another one."""

OFF: Final = "OFF"

WAITING_FORMAT: Final = "%i|%t|%r|%C|%D|%l|%S|%P"
"""Format of squeue for waiting jobs: id, state, reason, processors, nodes, limit, planned start, partitions."""

_WAIT_FOR_ROOM: Final = frozenset(("Resources", "Priority"))


@dataclass(frozen=True, slots=True)
class PreemptionRules:
    """What `scontrol show config` says of preemption.

    Attributes:
        kind: `PreemptType`; empty if it does not say.
        mode: `PreemptMode` of the cluster, in capital letters.
        kill_s: how long after SIGTERM a job is killed, seconds.
        exempt_s: how long after its start no job is ended for another one, seconds.
    """

    kind: str = ""
    mode: str = OFF
    kill_s: float = 30.0
    exempt_s: float = 0.0

    @property
    def ends_nothing(self) -> bool:
        """Whether no job is ended for another one."""
        return self.mode == OFF or self.kind in {"", NO_KIND}


def read_preemption_rules(fields: Mapping[str, str]) -> PreemptionRules:
    """Returns the rules by the keys that `scontrol show config` prints."""
    kill = re.match(r"\d+", fields.get("KillWait", ""))
    try:
        exempt = read_limit(fields.get("PreemptExemptTime", "").removeprefix("-")) or 0.0
    except ValueError:
        exempt = 0.0
    return PreemptionRules(
        fields.get("PreemptType", ""),
        fields.get("PreemptMode", OFF).upper(),
        float(kill.group()) if kill else 30.0,
        exempt,
    )


@dataclass(frozen=True, slots=True)
class PreemptedPartition:
    """A partition as `scontrol show partition` prints it.

    Attributes:
        mode: what happens to jobs that are preempted: CANCEL, REQUEUE, SUSPEND, or OFF.
        tier: jobs of higher tiers take the processors of lower ones.
        grace_s: how long a job goes on after it was chosen, seconds.
    """

    name: str
    mode: str = OFF
    tier: int = 1
    grace_s: float = 0.0


def read_preempted_partitions(text: str) -> dict[str, PreemptedPartition]:
    """Returns the partitions that `scontrol --oneliner show partition` prints, by name."""
    found = {}
    for line in text.splitlines():
        fields = read_job(line)
        name = fields.get("PartitionName", "")
        if name:
            tier, grace = fields.get("PriorityTier", "1"), fields.get("GraceTime", "0")
            found[name] = PreemptedPartition(
                name,
                fields.get("PreemptMode", OFF).upper(),
                int(tier) if tier.isdecimal() else 1,
                float(grace) if grace.isdecimal() else 0.0,
            )
    return found


@dataclass(frozen=True, slots=True)
class GuestPartitions:
    """Partitions of guests that may be ended for other jobs, as a site's file names them.

    Attributes:
        partition: of all; empty: those of all jobs, and only the daemon ends them.
        protected: of those that are protected at times; empty for none.
    """

    partition: str = ""
    protected: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Those that there are."""
        return tuple(name for name in (self.partition, self.protected) if name)


@dataclass(frozen=True, slots=True)
class SlurmPreemption:
    """What happens to guests.

    Attributes:
        preemption: for the port.
        mode: `PreemptMode` of the partition of protected guests; empty without one, or if it decides nothing.
        unserved: partitions whose jobs take no processors from guests although they share nodes with them.
        problems: why not, for people; each by what it is about.
        endangered: partitions of the site's own whose jobs Slurm ends for jobs in others, with these.
    """

    preemption: Preemption
    mode: str = ""
    unserved: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()
    endangered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def find_preemption(
    rules: PreemptionRules,
    parts: Mapping[str, PreemptedPartition],
    groups: Sequence[NodeGroup],
    guests: GuestPartitions,
) -> SlurmPreemption:
    """Returns what happens to guests of these partitions."""
    sharing = _sharing(groups, guests.names)
    others = {name: part for name, part in parts.items() if name not in guests.names}
    near = frozenset(name for name in others if name in sharing or not guests.names)
    guest = parts.get(guests.partition)
    problems = tuple(_problems(rules, parts, guests, near))
    unserved = near
    if guest is not None and not problems:
        unserved = frozenset(name for name in near if others[name].tier <= guest.tier)
        problems = tuple(
            f"jobs in {name} take no processors of guests: its PriorityTier is {others[name].tier}, that of "
            f"{guest.name} {guest.tier}"
            for name in sorted(unserved)
        )
    safe = parts.get(guests.protected)
    ended_by = EndedBy.DAEMON if problems else EndedBy.BATCH_SYSTEM
    preemption = Preemption(
        ended_by,
        grace_s=0.0 if guest is None or ended_by is EndedBy.DAEMON else guest.grace_s,
        kill_s=rules.kill_s,
        protects=safe is not None,
        why="; ".join(problems),
    )
    mode = "" if safe is None or rules.kind != BY_PARTITION else safe.mode
    endangered = _endangered(others, groups) if rules.kind == BY_PARTITION else {}
    return SlurmPreemption(preemption, mode, unserved, problems, endangered)


def _endangered(
    others: Mapping[str, PreemptedPartition], groups: Sequence[NodeGroup]
) -> dict[str, tuple[str, ...]]:
    found = {}
    for name, part in others.items():
        if part.mode == OFF:
            continue
        near = _sharing(groups, (name,))
        above = tuple(
            each for each in sorted(near & others.keys()) if others[each].tier > part.tier
        )
        if above:
            found[name] = above
    return found


def _sharing(groups: Iterable[NodeGroup], names: Sequence[str]) -> set[str]:
    # The partitions of the nodes that these partitions have.
    found: set[str] = set()
    for group in groups:
        if group.partitions & set(names):
            found |= group.partitions
    return found


def _problems(
    rules: PreemptionRules,
    parts: Mapping[str, PreemptedPartition],
    guests: GuestPartitions,
    near: frozenset[str],
) -> Iterable[str]:
    # Why Slurm ends no guests at all.
    if not guests.partition:
        yield "the site's file names no partition of guests (lrms.preemption.partition)"
        return
    missing = [name for name in guests.names if name not in parts]
    if missing:
        yield f"there is no partition {' nor '.join(missing)}"
        return
    if rules.kind != BY_PARTITION:
        yield f"PreemptType is {rules.kind or 'not said'}: partitions do not decide"
        return
    mode = parts[guests.partition].mode
    if mode == OFF:
        yield f"PreemptMode of {guests.partition} is OFF"
    elif "SUSPEND" in mode:
        yield f"PreemptMode of {guests.partition} is {mode}: guests are suspended, and keep their memory"
    elif not near:
        yield f"no other partition has nodes of {guests.partition}"


def read_waiting(text: str, groups: Iterable[NodeGroup]) -> list[WaitingJob]:
    """Returns the jobs that wait for room, by rows of `WAITING_FORMAT` in the order of their priorities.

    Those that Slurm looks at first, with the reason Resources, come first. No name is asked for, which could imitate a row.
    """
    places: dict[str, set[str]] = {}
    for group in groups:
        for part in group.partitions:
            if not group.away:
                places.setdefault(part, set()).update(group.names)
    found: list[tuple[bool, WaitingJob]] = []
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) != 8 or fields[1] != "PD" or fields[2] not in _WAIT_FOR_ROOM:
            continue
        number, _, reason, processors, nodes, limit, start, names = fields
        job = WaitingJob(
            number,
            int(processors),
            max(1, int(nodes)),
            read_limit(limit),
            float(start) if start.isdecimal() else None,
            frozenset().union(*(places.get(name, set()) for name in names.split(","))),
            frozenset(names.split(",")),
        )
        found.append((reason != "Resources", job))
    return [job for _, job in sorted(found, key=lambda pair: pair[0])]
