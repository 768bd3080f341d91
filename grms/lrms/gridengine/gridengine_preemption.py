"""What a Grid Engine does with jobs in a queue of guests when other queues on the same hosts have jobs. Pure.

A queue is suspended on a host as soon as so many slots of another one are in use there as the other's `subordinate_list` says
(queue_conf(5)); the `suspend_method` of the suspended queue is then run for each of its jobs on that host, as the job's
owner. By default that stops a job, which keeps its memory. `SUSPEND_METHOD` notes in the job's folder why it ends, and deletes it.

A method has to be a signal or to begin with `/`, and may use no variables but those of queue_conf(5). Any other makes
every job of the queue fail, or ends the shepherd of a job that goes on.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from grms.lrms.batch.guests_to_end import WaitingJob
from grms.lrms.exit_status import EVICTED
from grms.lrms.gridengine.gridengine_text import WaitingRow
from grms.lrms.preemption import EndedBy, Preemption

SUBMITTED_IN: Final = "SGE_O_WORKDIR"
"""The variable of a job that has the folder where `qsub` was run, which is the job's."""

NONE: Final = "NONE"

Instances = Mapping[str, Mapping[str, int]]
"""The slots of each queue, by host."""


def suspend_method(qdel: str) -> str:
    """Returns the suspend method of a queue of guests.

    Args:
        qdel: path of that program. Where it has no right or no answer, the job's processes are killed.
    """
    folder = f"`/usr/bin/printenv {SUBMITTED_IN}`"
    return f'/usr/bin/touch "{folder}/{EVICTED}"; {qdel} $job_id || kill -9 -$job_pid'


_METHOD: Final = re.compile(re.escape(suspend_method("QDEL")).replace("QDEL", r"/\S+"))


@dataclass(frozen=True, slots=True)
class GridPreemption:
    """What happens to guests.

    Attributes:
        preemption: for the port.
        problems: why Grid Engine does not end them, each for people.
        unserved: other queues on their hosts, of which the site's file says nothing, whose jobs end none.
        open: jobs that name no queue may come into theirs.
    """

    preemption: Preemption
    problems: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()
    open: bool = False


def read_configurations(text: str) -> dict[str, dict[str, str]]:
    """Returns the fields of the queues that `qconf -sq` prints, by name."""
    found: dict[str, dict[str, str]] = {}
    name = ""
    for line in text.replace("\\\n", " ").splitlines():
        key, _, value = line.partition(" ")
        value = " ".join(value.split())
        if key == "qname":
            name = value
        if key and name:
            found.setdefault(name, {})[key] = value
    return found


def find_preemption(
    queues: Mapping[str, Mapping[str, str]],
    instances: Instances,
    own: Sequence[str],
    guest: str,
) -> GridPreemption:
    """Returns what happens to guests of a queue.

    Args:
        queues: fields of each.
        instances: slots of each.
        own: queues of the site.
        guest: queue of the guests; empty without one.
    """
    hosts = instances.get(guest, {})
    near = sorted(name for name in instances if name != guest and instances[name].keys() & hosts)
    problems = tuple(_problems(queues, instances, own, guest, near))
    ended_by = EndedBy.DAEMON if problems else EndedBy.BATCH_SYSTEM
    users = queues.get(guest, {}).get("user_lists", NONE)
    return GridPreemption(
        Preemption(ended_by, why="; ".join(problems)),
        problems,
        tuple(
            name for name in near if name not in own and threshold(queues[name], guest, 1) is None
        ),
        open=users == NONE,
    )


def _problems(
    queues: Mapping[str, Mapping[str, str]],
    instances: Instances,
    own: Sequence[str],
    guest: str,
    near: Sequence[str],
) -> Iterable[str]:
    if not guest:
        yield "the site's file names no queue of guests (lrms.preemption.queue)"
        return
    if guest not in queues:
        yield f"there is no queue {guest}"
        return
    method = queues[guest].get("suspend_method", NONE)
    if method == NONE:
        yield f"suspend_method of {guest} is NONE: guests are stopped, and keep their memory"
    elif _METHOD.fullmatch(method) is None:
        yield f"suspend_method of {guest} is another one than grms lrms preemption prints: {method[:120]}"
    if not set(near) & set(own):
        yield f"no queue of lrms.queues has hosts of {guest}"
    for name in near:
        if name in own:
            yield from _unsubordinated(queues[name], instances, name, guest)


def _unsubordinated(
    fields: Mapping[str, str], instances: Instances, name: str, guest: str
) -> Iterable[str]:
    # Why jobs in a queue of the site's own do not have the processors that their slots stand for.
    if threshold(fields, guest, 1) is None:
        said = fields.get("subordinate_list", NONE)
        yield f"subordinate_list of {name} has no {guest} with a number of slots alone: {said[:120]}"
        return
    for host, guests in sorted(instances[guest].items()):
        slots = instances[name].get(host)
        if slots is None:
            continue
        beside = (threshold(fields, guest, slots) or slots) - 1
        if beside + guests > slots:
            yield (
                f"on {host} {beside} slots of {name} and {guests} of {guest} may be in use together, and there are {slots}"
            )
            return


def threshold(fields: Mapping[str, str], guest: str, slots: int) -> int | None:
    """Returns how many slots of a queue are in use on a host when the guests there are ended.

    Args:
        fields: of the queue.
        guest: queue of the guests.
        slots: of the queue on the host, which all have to be used if its list names no number.

    Returns:
        `None` if they are not ended, or not on all hosts alike; by `slots=N(…)` jobs are counted and not slots.
    """
    text = fields.get("subordinate_list", NONE)
    if "[" in text or "(" in text:
        return None
    for word in re.split(r"[,\s]+", text):
        name, _, number = word.partition("=")
        if name == guest:
            return int(number) if number.isdecimal() else slots
    return None


def waiting_jobs(
    rows: Iterable[WaitingRow], instances: Instances, own: Sequence[str]
) -> list[WaitingJob]:
    """Returns jobs that wait for slots of the site's own queues, in the order of the rows.

    Args:
        rows: of jobs that wait.
        instances: slots of each queue.
        own: queues of the site.
    """
    found = []
    for row in rows:
        names = [name for name in row.queues or own if name in own]
        places = frozenset(f"{name}@{host}" for name in names for host in instances.get(name, ()))
        if places:
            found.append(
                WaitingJob(row.number, row.slots, 1, row.limit_s, None, places, frozenset(names))
            )
    return found
