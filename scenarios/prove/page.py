"""A run as a page: what was broken, what each command's jobs came to, and the picture."""

from lrms_sim.report.parts import (
    Facts,
    Figure,
    Page,
    Points,
    Section,
    Table,
    Words,
)
from lrms_sim.util.version import __version__
from scenarios.prove.picture import pair
from scenarios.prove.plan import WORDS
from scenarios.prove.result import BAD, COMMANDS, KINDS, FaultSpan, JobLine, Proof
from scenarios.prove.users import CLIENTS

TITLE = "Exactly once"
STORIES_MOST = 40
HOW = """\
Users submit each job by sbatch, and by grms submit with a key. A command that gets no answer is called again, as \
workflow engines do.
Each job appends a line to a file on its node when it begins, and another as its last act. Runs are counted by these lines alone.
The checker (scenarios/prove/checker.py) reads the history of a run. It needs nothing but Python, and shares no code with Hanse.
Lost: acknowledged, did not run to its end, and no user was shown an end. Failed: did not run to its end, and its user was shown why.
""".strip().splitlines()
MARKS = (
    "A stroke is a call of the command, a circle its answer. Bars are runs: green the first, orange each further one; outlined where "
    "the job did not come to its end. Behind them: grey while the controller hangs, red while it is dead, violet what it loses. Below each site: "
    "blue while the link is broken, yellow while the site’s daemon is dead."
)
_NUMBERS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


def number(count: int) -> str:
    """Returns a small number as a word."""
    return _NUMBERS[count] if count < len(_NUMBERS) else f"{count:,}"


def page_of(proof: Proof) -> Page:
    """Returns the page of a run."""
    return Page(
        TITLE,
        "scenario prove",
        [_worst(proof), _table(proof), _all(proof), _bad(proof), _made(proof)],
        headline=proof.headline,
        about=[
            f"On {proof.run.systems}, while controllers, daemons and the link between two sites were broken."
        ],
        notes=[]
        if proof.holds
        else [
            "Jobs of grms submit were lost, ran twice, or contradict what their users were shown: see below."
        ],
    )


def hang_words(proof: Proof, span: FaultSpan) -> str:
    """Returns what happened to the jobs that were submitted during a hang, in a sentence."""
    jobs = proof.during("sbatch", span)
    runs = [number(proof.starts(client, span)) for client in CLIENTS]
    many, they = ("job", "it") if len(jobs) == 1 else ("jobs", "they")
    return (
        f"{number(len(jobs)).capitalize()} {many}, submitted while the controller of {span.place} hung for "
        f"{span.end - span.begin:.0f} seconds: by sbatch with retries {they} ran {runs[0]} times, by grms submit --key {runs[1]}."
    )


def _worst(proof: Proof) -> Words:
    span = proof.worst
    if span is None:
        return ""
    return Section(
        "One hang, close up",
        [Figure(pair(proof, span), MARKS, "pair")],
        about=hang_words(proof, span),
    )


def result_table(proof: Proof) -> Table:
    """Returns how many jobs of each command came to which end."""
    shown = [
        kind
        for kind in KINDS
        if kind in {"once", "twice", "lost"} or any(proof.kinds(c)[kind] for c in CLIENTS)
    ]
    rows = [
        [
            COMMANDS[client],
            *(
                f"{count:,}"
                for count in (
                    len(proof.of(client)),
                    sum(len(job.tries) for job in proof.of(client)),
                    proof.starts(client),
                )
            ),
            *(f"{proof.kinds(client)[kind]:,}" for kind in shown),
        ]
        for client in CLIENTS
    ]
    return Table(["", "jobs", "calls", "runs", *shown], rows, title="What jobs came to")


def fault_table(proof: Proof) -> Table:
    """Returns what was broken, how often and for how long."""
    rows = []
    for kind, words in WORDS.items():
        spans = [span.end - span.begin for span in proof.faults if span.kind == kind]
        if spans:
            rows.append([words, f"{len(spans)}", f"{min(spans):.1f} – {max(spans):.1f}"])
    return Table(["", "times", "seconds"], rows, title="What was broken")


def _table(proof: Proof) -> Section:
    return Section("Counted", [result_table(proof), fault_table(proof), Points(HOW)])


def _all(proof: Proof) -> Section:
    return Section("All jobs", [Figure(pair(proof, None), MARKS, "pair")])


def bad_jobs(proof: Proof) -> list[JobLine]:
    """Returns the jobs that the checker found bad, those of `grms submit` first."""
    found = [job for job in proof.jobs if job.kind in (*BAD, "failed")]
    return sorted(found, key=lambda job: (job.client != "grms", job.kind, job.tries))


def _bad(proof: Proof) -> Words:
    jobs = bad_jobs(proof)
    if not jobs:
        return ""
    rows = [
        [f"{job.client}-{job.word}", job.site, job.kind, job.why, _story(job)]
        for job in jobs[:STORIES_MOST]
    ]
    title = "Jobs that did not run once"
    more = (
        f"{len(jobs) - STORIES_MOST} more are in the history." if len(jobs) > STORIES_MOST else ""
    )
    return Section(
        title,
        [Table(["job", "site", "", "why", "story"], rows, name=title, words={1, 2, 3, 4}), more],
    )


def _story(job: JobLine) -> str:
    words = [f"called at {', '.join(f'{moment:.1f}' for moment in job.tries)} s"]
    words += [f"answered at {moment:.1f} s" for moment in job.answers]
    for begin, end in job.runs:
        words.append(
            f"ran from {begin:.1f} s " + ("and never ended" if end is None else f"to {end:.1f} s")
        )
    return "; ".join(words)


def _made(proof: Proof) -> Section:
    rows: list[tuple[str, object]] = [
        ("Batch systems", proof.run.systems),
        ("Seed", proof.plan.seed),
        ("Hangs", proof.plan.hangs),
        ("A command gives up after", f"{proof.plan.patience_s} s"),
        ("Jobs that ran at the other site", proof.delegated),
        ("Took", f"{proof.run.seconds:.0f} s"),
        ("Program", f"Hanse {__version__}"),
    ]
    return Section("How it was made", [Facts(rows)])
