"""The lines that an operator adds so that a Slurm ends guests for own jobs, for the cluster as it is.

Asking for them changes nothing, and any user may.
"""

import grp
import pwd
from collections.abc import Mapping, Sequence
from typing import Final

from grms.lrms.account_mapping import own_name
from grms.lrms.batch.subprocesses import Programs
from grms.lrms.preemption import FileLines
from grms.lrms.slurm.slurm import SlurmSettings, asked
from grms.lrms.slurm.slurm_check import read_configuration
from grms.lrms.slurm.slurm_preemption import BY_PARTITION, OFF, GuestPartitions
from grms.lrms.slurm.slurm_text import read_job

USUAL: Final = GuestPartitions("guest", "guestp")
"""Names of partitions where the site's file has none."""

YOUNGEST: Final = "preempt_youngest_first"
"""Of several guests that would do, Slurm ends the youngest; else the oldest."""


async def preemption_lines(
    programs: Programs,
    settings: SlurmSettings,
    accounts: Sequence[str],
    configuration_file: str | None = None,
) -> list[FileLines]:
    """Returns the lines for slurm.conf, sudoers and the site's file.

    Args:
        programs: of Slurm.
        settings: of the site.
        accounts: as which partners' jobs run, besides the daemon's own.
        configuration_file: path of slurm.conf, if the site's file has it.

    Raises:
        LrmsError: Slurm does not answer, or refuses to say it.
    """
    config = await asked(programs, "scontrol", "show", "config")
    parts = await asked(programs, "scontrol", "--all", "--oneliner", "show", "partition")
    fields = read_configuration(config.output.decode("utf-8", "replace"))
    text = parts.output.decode("utf-8", "replace")
    rows = [read_job(line) for line in text.splitlines() if line.strip()]
    guests = settings.guests if settings.guests and settings.guests.partition else USUAL
    guests = GuestPartitions(guests.partition, guests.protected or USUAL.protected)
    groups = dict.fromkeys(_group(name) for name in (own_name(), *accounts))
    return [
        *slurm_conf(fields, rows, settings.partitions, guests, [name for name in groups if name]),
        sudoers(fields, guests, programs.place("scontrol"), configuration_file is not None),
        site_file(fields, guests, programs.place("scontrol")),
    ]


def _group(account: str) -> str:
    # The main group of an account; empty if it has none here.
    try:
        return grp.getgrgid(pwd.getpwnam(account).pw_gid).gr_name
    except KeyError:
        return ""


def slurm_conf(
    fields: Mapping[str, str],
    rows: Sequence[Mapping[str, str]],
    own: Sequence[str],
    guests: GuestPartitions,
    groups: Sequence[str],
) -> list[FileLines]:
    """Returns the lines for slurm.conf, those to change and those to add.

    Args:
        fields: keys of `scontrol show config`.
        rows: fields of each partition.
        own: partitions of the site; none: the default one.
        guests: partitions to add.
        groups: Unix groups of the accounts as which guests run.
    """
    file, found = "slurm.conf", []
    others = [row for row in rows if row.get("PartitionName") not in guests.names]
    changed = []
    if fields.get("PreemptType") != BY_PARTITION:
        changed = [f"PreemptType={BY_PARTITION}", "PreemptMode=CANCEL"]
        # Slurm would now end jobs of lower tiers among these for each other.
        names = [row["PartitionName"] for row in others if row.get("PreemptMode", OFF) == OFF]
        if names:
            lines = tuple(f"#   PartitionName={name} … PreemptMode=OFF" for name in names)
            what = "add PreemptMode=OFF to the lines of these partitions, whose jobs are not to be ended for others"
            found.append(FileLines(file, what, lines))
    parameters = fields.get("SchedulerParameters", "")
    words = [word for word in parameters.split(",") if word not in {"", "(null)"}]
    if YOUNGEST not in words:
        changed.append(f"SchedulerParameters={','.join([*words, YOUNGEST])}")
    if changed:
        found.insert(
            0,
            FileLines(
                file, "in place of the lines with these keys, where there are any", tuple(changed)
            ),
        )
    missing = [
        name for name in guests.names if name not in {row.get("PartitionName") for row in rows}
    ]
    used = [
        row
        for row in others
        if (row.get("PartitionName") in own if own else row.get("Default") == "YES")
    ]
    if missing:
        nodes = ",".join(dict.fromkeys(row["Nodes"] for row in used if row.get("Nodes"))) or "ALL"
        tier = min((int(row.get("PriorityTier", "1")) for row in others), default=1) - 1
        lines = tuple(
            f"PartitionName={name} Nodes={nodes} AllowGroups={','.join(groups)} PriorityTier={max(0, tier)} "
            "PreemptMode=CANCEL GraceTime=0 DefaultTime=60 MaxTime=12:00:00 State=UP"
            for name in missing
        )
        found.append(FileLines(file, "behind the lines of the other partitions", lines))
    if found:
        last = found[-1]
        found[-1] = FileLines(last.file, last.what, last.lines, "scontrol reconfigure")
    return found


def sudoers(
    fields: Mapping[str, str], guests: GuestPartitions, scontrol: str, keeps_place: bool
) -> FileLines:
    """Returns the lines for sudoers: the daemon may switch one partition, as Slurm's own user.

    `keeps_place` says whether programs are told by a variable where slurm.conf is.
    """
    user = fields.get("SlurmUser", "slurm").partition("(")[0]
    commands = [
        f"{scontrol} update partitionname\\={guests.protected} preemptmode\\={mode}"
        for mode in ("off", "cancel")
    ]
    first = [f'Defaults:{own_name()} env_keep += "SLURM_CONF"'] if keeps_place else []
    line = f"{own_name()} ALL = ({user}) NOPASSWD: {', '.join(commands)}"
    file = "/etc/sudoers.d/hanse-preemption"
    return FileLines(
        file,
        f"lets the daemon protect the guests in {guests.protected}, as {user}; leave it out, with protected and switch in the "
        "site's file, and every guest can be ended",
        (*first, line),
        f"visudo -c -f {file}",
    )


def site_file(fields: Mapping[str, str], guests: GuestPartitions, scontrol: str) -> FileLines:
    """Returns the table for the site's file."""
    user = fields.get("SlurmUser", "slurm").partition("(")[0]
    words = ", ".join(f'"{word}"' for word in ("sudo", "-n", "-u", user, scontrol))
    lines = (
        "# in [guests]: preemptible = true",
        "[lrms.preemption]",
        f'partition = "{guests.partition}"',
        f'protected = "{guests.protected}"',
        f"switch = [{words}]",
    )
    return FileLines("the site's file", "as a table of its own", lines, "restart the daemon")
