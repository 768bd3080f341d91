"""A diamond of dependencies with a large array in it, and whether its jobs kept to it.

    top -> wide (an array) and side -> bottom

Beside it `pairs`, an array that follows the first elements of `wide` one by one, and two jobs of which one may run and
one may not: `good`, if all of `wide` completed, and `bad`, if it did not. What was kept to is judged by the lines that
each job has written itself when it started and ended (`batch_verdict`), on the one clock of this host.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from benchmarks.batch_verdict import SCRIPT, JobsVerdict, Line
from grms.client import Client, Job, Outcome
from grms.site.model.records import ArrayReceived, JobEnded, JobReceived, JobReleased, Record

PAIRS: Final = 20
"""Most elements of the second array."""

LIMIT_S: Final = 60.0
RUN_S: Final = 2.0
EDGES: Final = (
    ("top", "wide", "afterok"),
    ("top", "side", "afterok"),
    ("wide", "pairs", "aftercorr"),
    ("wide", "bottom", "afterany"),
    ("side", "bottom", "afterok"),
    ("wide", "good", "afterok"),
    ("wide", "bad", "afternotok"),
)
"""Who goes before whom, and how."""

ORDER: Final = ("top", "wide", "side", "pairs", "bottom", "good", "bad")


class Diamond:
    """The jobs of a diamond; `elements` of the large array, `at_once` of which may be under way."""

    def __init__(self, elements: int, at_once: int) -> None:
        self.elements = elements
        self.at_once = at_once
        self._indices = {
            "wide": range(1, elements + 1),
            "pairs": range(1, min(elements, PAIRS) + 1),
        }

    async def submit(self, client: Client, site: str, notes: str) -> dict[str, tuple[str, str]]:
        """Submits everything to a site; returns site and id of each job, by the word it writes under."""
        taken: dict[str, tuple[str, str]] = {}
        ids: dict[str, str] = {}
        for name in ORDER:
            indices = self._indices.get(name)
            array = "" if indices is None else f"{indices[0]}-{indices[-1]}"
            job = await client.submit(
                processors=1,
                requested_time_s=LIMIT_S,
                script=SCRIPT,
                arguments=[f"{notes}/{name}", f"{RUN_S:.1f}"],
                key=name,
                name=name,
                array=f"{array}%{self.at_once}" if name == "wide" else array,
                dependency=",".join(
                    f"{kind}:{ids[first]}" for first, then, kind in EDGES if then == name
                ),
            )
            ids[name] = job.job_id
            for word, job_id in self._words(name, job.job_id):
                taken[word] = (site, job_id)
        return taken

    def _words(self, name: str, job_id: str) -> Iterator[tuple[str, str]]:
        indices = self._indices.get(name)
        if indices is None:
            yield name, job_id
        else:
            for index in indices:
                yield f"{name}[{index}]", f"{job_id}_{index}"

    def words(self, name: str) -> list[str]:
        """Returns the words under which a job of the diamond, or the elements of an array, write."""
        return [word for word, _ in self._words(name, "")]

    def _before(self, word: str) -> Iterator[tuple[list[str], str]]:
        # The words of all that a job waits for, and how.
        name, _, index = word.partition("[")
        for first, then, kind in EDGES:
            if then == name:
                yield ([f"{first}[{index}"] if kind == "aftercorr" else self.words(first)), kind

    def hopeless(self, jobs: Mapping[str, Job]) -> set[str]:
        """Returns the jobs that may not run, by how those that they wait for are said to have ended."""
        found: set[str] = set()
        for word in (word for name in ORDER for word in self.words(name)):
            for before, kind in self._before(word):
                ok = all(jobs[other].outcome is Outcome.COMPLETED for other in before)
                if kind != "afterany" and ok is (kind == "afternotok"):
                    found.add(word)
        return found

    def judge(self, jobs: Mapping[str, Job], written: Mapping[str, Sequence[Line]]) -> JobsVerdict:
        """Judges order and limit; `jobs` are as shown after the end of all, `written` what each has written."""
        verdict = JobsVerdict()
        problems, hopeless = verdict.problems, self.hopeless(jobs)
        for word in sorted(hopeless):
            told = jobs[word].outcome
            if told is not Outcome.CANCELLED or written[word]:
                problems.append(f"{word} may not run, is {told}, and wrote {written[word]}")
        ends: dict[str, float] = {}
        for name in ORDER:
            for word in self.words(name):
                lines = written[word]
                moments = [line.time for line in lines]
                ends[word] = max(moments, default=0.0)
                for before, _ in self._before(word):
                    last = max(before, key=ends.__getitem__)
                    if lines and min(moments) < ends[last]:
                        early = ends[last] - min(moments)
                        problems.append(f"{word} began {early:.3f} s before the end of {last}")
        most = most_at_once([written[word] for word in self.words("wide")])
        if most > self.at_once:
            problems.append(f"{most} elements ran at a time; at most {self.at_once} may")
        verdict.counts.update(
            elements=self.elements,
            elements_at_once=most,
            dependents_cancelled=len(hopeless),
        )
        return verdict


def most_under_way(records: Iterable[Record]) -> dict[str, int]:
    """Returns how many elements were decided and had not ended at one moment at most, of each array with a limit.

    By the records of its site's journal; arrays by their idempotency keys.
    """
    keys: dict[int, str] = {}
    of: dict[int, str] = {}
    under_way: dict[str, set[int]] = {}
    most: dict[str, int] = {}
    for record in records:
        if isinstance(record, ArrayReceived) and "%" in record.elements:
            keys[record.array] = record.idempotency_key
            most[record.idempotency_key] = 0
        elif isinstance(record, JobReceived) and record.array in keys:
            of[record.job] = keys[record.array]
        elif isinstance(record, JobReleased) and record.job in of:
            key = of[record.job]
            under_way.setdefault(key, set()).add(record.job)
            most[key] = max(most[key], len(under_way[key]))
        elif isinstance(record, JobEnded) and isinstance(record.job, int) and record.job in of:
            under_way.get(of[record.job], set()).discard(record.job)
    return most


def most_at_once(written: Sequence[Sequence[Line]]) -> int:
    """Returns how many of some jobs ran at one moment at most; one that wrote no end ran for a moment."""
    changes = []
    for lines in written:
        if lines:
            moments = [line.time for line in lines]
            changes += [(min(moments), 1), (max(moments), -1)]
    running = most = 0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return most
