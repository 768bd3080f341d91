"""How jobs that two real Slurms have exchanged are judged: by their notes, by Slurm's logs, and beside a run without exchange."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.real_exchange import Plan, wanted_of
from benchmarks.real_exchange_late import Queues, explain
from benchmarks.real_exchange_verdict import (
    Journals,
    Ran,
    Run,
    Told,
    Verdict,
    Wanted,
    computed,
    judge_jobs,
    read_runs,
    starts_compared,
    waited,
)
from benchmarks.real_exchange_waits import judge_waits, protected_spans, read_jobs
from grms.client import Job, JobState, Outcome, SentHome
from grms.site.model.jobs import GuestRef, OfferId
from grms.site.model.lifecycle import Outcome as Ending
from grms.site.model.records import JobEnded

WANTED = Wanted("job-0", "north", False, 0.0, 2, 5, 60.0, keeps=True, deaf=False)
AWAY, HOME = Path("/jobs-south/north+1+7"), Path("/jobs-north/north+1+1")
RIGHT = f"5 {computed(5)}\n"


def noted(folder: Path, start: float, begins_at: int, reaches: int, *, ends: bool = False) -> str:
    """Returns the notes of a run, a step each second."""
    restarts = int(begins_at > 0)
    lines = [("start", start, begins_at)]
    lines += [
        ("step", start + at - begins_at, at) for at in range(begins_at + 1, begins_at + reaches + 1)
    ]
    lines += [("end", start + reaches, begins_at + reaches)] if ends else []
    return "".join(
        f"{kind} {folder} 3 {moment} {restarts} {at} {computed(at)}\n" for kind, moment, at in lines
    )


WENT_ON = noted(AWAY, 10.0, 0, 3) + noted(HOME, 20.0, 3, 2, ends=True)


def told(outcome: Outcome = Outcome.COMPLETED, times: int = 1, result: str = RIGHT) -> Told:
    """Returns what the job's user has."""
    sent = (SentHome("south", times, 1.0),) if times else ()
    state = JobState.ENDED
    job = Job("n-1", "", "u", 2, 60.0, state, "north", 0.0, 1.0, 30.0, outcome, False, "")
    return Told(replace(job, sent_home=sent), result)


def judged(folder: Path, text: str, said: Told, wanted: Wanted = WANTED) -> Verdict:
    """Returns the verdict on one job."""
    (folder / "job-0").write_text(text)
    return judge_jobs([wanted], {"job-0": said}, folder, {"job-0": 0.0}, lost_natives=False)[1]


def test_one_that_went_on_elsewhere_is_well(tmp_path: Path) -> None:
    """It was sent home once, and began again where it had come to."""
    verdict = judged(tmp_path, WENT_ON, told())
    assert verdict.problems == []
    assert verdict.counts["went_on_from_state"] == 1
    assert verdict.counts["steps_kept"] == 3
    assert verdict.counts["right_results_after_being_sent_home"] == 1


def test_one_that_came_to_its_end_while_it_was_ended_runs_again(tmp_path: Path) -> None:
    """Slurm says that it was preempted."""
    text = noted(AWAY, 10.0, 0, 5, ends=True) + noted(HOME, 20.0, 5, 0, ends=True)
    verdict = judged(tmp_path, text, told())
    assert verdict.problems == []
    assert verdict.counts["came_to_their_ends_while_they_were_ended"] == 1


@pytest.mark.parametrize(
    ("text", "said", "wanted", "problem"),
    [
        (WENT_ON, told(times=0), WANTED, "has begun 2 times, and was sent home 0 times"),
        (WENT_ON, told(result="5 1\n"), WANTED, "has the result '5 1"),
        (WENT_ON, told(Outcome.FAILED), WANTED, "is failed"),
        (WENT_ON.replace(f" {computed(2)}\n", " 1\n"), told(), WANTED, "has computed 1 in 2"),
        (WENT_ON, told(), replace(WANTED, keeps=False), "keeps nothing, and began at step 3"),
        (WENT_ON.replace(" 1 3 ", " 0 3 "), told(), WANTED, "was not told that it had run"),
        (noted(AWAY, 10.0, 0, 3), told(), WANTED, "has come to its end 0 times"),
        (
            noted(AWAY, 10.0, 0, 1) + noted(HOME, 20.0, 3, 2, ends=True),
            told(),
            WANTED,
            "went on from step 3; it had come to 1",
        ),
        (
            noted(AWAY, 10.0, 0, 3) + noted(HOME, 12.5, 3, 2, ends=True),
            told(),
            WANTED,
            "ran twice at a time",
        ),
    ],
)
def test_what_is_wrong_is_found(
    tmp_path: Path, text: str, said: Told, wanted: Wanted, problem: str
) -> None:
    """Each by itself."""
    assert any(problem in each for each in judged(tmp_path, text, said, wanted).problems)


def test_one_that_is_not_known_any_more_is_lost(tmp_path: Path) -> None:
    """Also one of a user without a daemon that never ran."""
    native = replace(WANTED, name="native-1", native=True)
    moments = {"job-0": 0.0, "native-1": 0.0}
    _, verdict = judge_jobs([WANTED, native], {}, tmp_path, moments, lost_natives=False)
    assert verdict.problems == ["job-0 is not known any more", "native-1 never ran"]


def journals(noted_at: float, home_at: float, outcome: Ending = Ending.PREEMPTED) -> Journals:
    """Returns the journals of a host and a home with the end of one guest."""
    found = Journals(Path(), ())
    ended = JobEnded(noted_at, GuestRef("north", OfferId(1, 7)), outcome, noted_at, 3.0, "")
    found.ended_there["south", "north+1+7"] = ended
    found.sent_home["job-0"] = [home_at]
    found.ends["job-0"] = 1
    return found


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (journals(13.5, 13.6), ""),
        (journals(13.5, 20.5), "began again at 20.000"),
        (journals(12.5, 13.6), "wrote until 13.000"),
        (journals(13.5, 13.6, Ending.COMPLETED), "never sent home"),
    ],
)
def test_a_job_begins_again_after_its_hosts_word(
    tmp_path: Path, found: Journals, problem: str
) -> None:
    """And its home's."""
    (tmp_path / "job-0").write_text(WENT_ON)
    runs, _ = read_runs(tmp_path / "job-0")
    verdict = found.judge({"job-0": Ran(WANTED, 0.0, runs, 1)})
    assert verdict.counts["restarts_after_the_hosts_word"] == (not problem)
    if problem:
        assert problem in verdict.problems[0]
    else:
        assert verdict.problems == []


def log(*lines: tuple[float, str]) -> str:
    """Returns a log of slurmctld of one hour."""
    return "".join(
        f"[2026-11-29T09:{int(second) // 60:02}:{second % 60:06.3f}] {text}\n"
        for second, text in lines
    )


SUBMIT, DONE = (
    "_slurm_rpc_submit_batch_job: JobId={} InitPrio={} usec=1",
    "_job_complete: JobId={} done",
)
START = "sched: Allocate JobId={} NodeList=n1 #CPUs=1 Partition=x"
RELEASE = "sched: _release_job_rec: release hold on JobId={} by uid 0"
ENDED = "preempted JobId={} has been killed to reclaim resources for JobId={}"
SWITCH = "update_part: setting preempt_mode to {} for partition guestp"


def completed(number: int, partition: str, processors: int, second: int, end: int) -> str:
    """Returns a line of jobcomp/filetxt."""
    name = "sleep" if partition == "main" else "hanse:south:north/1/7"
    return (
        f"JobId={number} UserId=root(0) Name={name} JobState=COMPLETED Partition={partition} TimeLimit=1 StartTime=Unknown "
        f"EndTime=2026-11-29T09:00:{end:02} NodeList=n1 NodeCnt=1 ProcCnt={processors} WorkDir=/ "
        f"SubmitTime=2026-11-29T09:00:{second:02} EligibleTime=Unknown\n"
    )


GUEST = [(1.0, SUBMIT.format(1, 0)), (2.0, RELEASE.format(1)), (3.0, START.format(1))]


def scene(partition: str, *lines: tuple[float, str], start: float = 19.0) -> tuple[str, str]:
    """Returns the logs of a guest with all processors, and of an own job that comes after 10 s."""
    own = [(10.0, SUBMIT.format(2, 7)), (start, ENDED.format(1, 2)), (start, START.format(2))]
    ended = completed(1, partition, 8, 1, int(start)) + completed(2, "main", 4, 10, 40)
    return log(*GUEST, *own, *lines), ended


def test_an_own_job_may_wait_for_no_guest() -> None:
    """But for as long as Slurm takes to end it; and for protected ones."""
    late = judge_waits(*scene("guest"), processors=8, bound_s=7.0)
    assert "started 9.0 s after nothing but guests was in its way" in late.problems[0]
    assert "1 (guest, 8); 1 were ended for it" in late.problems[0]
    assert late.figures["own_with_guests_there"] == 1
    assert late.figures["guests_ended_for_own_jobs"] == 1
    assert judge_waits(*scene("guest", start=16.0), processors=8, bound_s=7.0).problems == []
    off, on = (4.0, SWITCH.format("OFF")), (14.0, SWITCH.format("CANCEL"))
    spared = judge_waits(*scene("guestp", off, on), processors=8, bound_s=7.0)
    assert (spared.problems, spared.figures["wait_s"]["max"]) == ([], 5.0)
    away = judge_waits(*scene("guest"), processors=8, bound_s=7.0, away=[(0.0, 3e9)])
    assert (away.problems, away.figures["own_started"]) == ([], 0)


@pytest.mark.parametrize("second", [21.0, 24.5])
def test_slurm_ends_guests_for_one_own_job_after_the_other(second: float) -> None:
    """Who comes second has a wait of its own, after that of the first."""
    lines = [
        *GUEST,
        (3.5, SUBMIT.format(2, 9)),
        (3.6, START.format(2)),
        (10.0, SUBMIT.format(3, 7)),
        (10.5, ENDED.format(1, 3)),
        (11.0, SUBMIT.format(4, 6)),
        (16.5, START.format(3)),
        (16.6, ENDED.format(2, 4)),
        (second, START.format(4)),
    ]
    ended = [
        (1, "guest", 4, 1, 16),
        (2, "guest", 4, 3, 23),
        (3, "main", 4, 10, 40),
        (4, "main", 4, 11, 40),
    ]
    text = "".join(completed(*words) for words in ended)
    found = judge_waits(log(*lines), text, processors=8, bound_s=7.0)
    assert [problem[:9] for problem in found.problems] == ["own job 4"] * (second > 23.5)
    assert found.figures["of_these_behind_own_jobs_with_guests_in_the_way_s"]["max"] == 5.5
    assert found.figures["wait_with_guests_there_s"]["max"] == second - 11.0


def test_own_jobs_wait_for_own_jobs() -> None:
    """For those that run, and for those that wait before them; not for what was cancelled meanwhile."""
    lines = [
        *GUEST[:1],
        (3.0, SUBMIT.format(2, 9)),
        (4.0, START.format(2)),
        (5.0, SUBMIT.format(3, 8)),
        (6.0, SUBMIT.format(4, 7)),
        (20.0, "_slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=3 uid 0"),
        (20.5, START.format(4)),
        (25.0, DONE.format(2)),
    ]
    ended = [
        (1, "guest", 1, 1, 30),
        (2, "main", 4, 3, 25),
        (3, "main", 6, 5, 20),
        (4, "main", 4, 6, 30),
    ]
    text = "".join(completed(*words) for words in ended)
    found = judge_waits(log(*lines), text, processors=8, bound_s=7.0)
    assert found.problems == []
    assert found.figures["own_started"] == 2
    assert found.figures["wait_s"]["max"] == 1.0


NAMED, BEGIN = (
    "sched: _update_job: setting name to hanse:north:north/1/{} for JobId={}",
    "sched: _update_job: setting begin to {} for JobId={}",
)
FAR, NOW = "2027-11-29T09:00:00", "2026-11-29T09:00:20"

LEAVES = [
    (1.0, SUBMIT.format(2, 0)),
    (7.0, RELEASE.format(2)),
    (9.0, NAMED.format("2:away", 2)),
    (9.1, BEGIN.format(FAR, 2)),
    (20.0, NAMED.format("2/2", 2)),
    (20.1, BEGIN.format(NOW, 2)),
]
"""A job that waits, leaves the queue, and comes back to its place."""


def named(line: str, name: str) -> str:
    """Returns a line of jobcomp/filetxt of a job with another name."""
    return line.replace("Name=sleep", f"Name=hanse:north:north/1/{name}")


def test_who_is_elsewhere_stands_in_nobodys_way() -> None:
    """A marker is no waiting job: not one that a job leaves behind, nor one that was submitted as such."""
    lines = [
        *LEAVES[:1],
        (2.0, SUBMIT.format(3, 0)),
        *LEAVES[1:2],
        (8.0, RELEASE.format(3)),
        *LEAVES[2:],
        (20.3, START.format(2)),
        (21.0, BEGIN.format(NOW, 4)),
    ]
    text = named(completed(2, "main", 8, 1, 30), "2/2") + named(
        completed(3, "main", 8, 2, 25), "3:away"
    )
    two, three = read_jobs(log(*lines), text)
    assert (two.placed - two.submitted, two.came_back) == (6.0, True)
    assert [round(end - begin, 1) for begin, end in two.waits()] == [2.1, 0.2]
    assert (three.waits(), three.came_back) == ([], False)
    lines[6:6] = [(19.0, NAMED.format("3", 3)), (19.1, BEGIN.format(NOW, 3))]
    back = named(completed(3, "main", 8, 2, 25), "3")
    assert [job.came_back for job in read_jobs(log(*lines), back)] == [True] * bool(back)


def test_who_comes_back_stands_before_all_that_came_later() -> None:
    """Nothing that came later waits for a guest meanwhile; and who was passed by whom is said."""
    own = [(10.0, SUBMIT.format(4, 7)), (24.0, START.format(4))]
    lines = [*GUEST, *LEAVES, *own, (23.5, START.format(2)), (23.6, DONE.format(2))]
    ends = completed(1, "guest", 1, 1, 50) + completed(4, "main", 8, 10, 40)
    ends += named(completed(2, "main", 8, 1, 23), "2/2")
    text = log(*sorted(lines))
    found = judge_waits(text, ends, processors=8, bound_s=3.0)
    assert [each[:9] for each in found.problems] == ["own job 2", "own job 4"]
    assert "did not start 10.1 s after nothing but guests was in its way" in found.problems[1]


def test_a_late_start_is_explained() -> None:
    """By what had the processors, who stood before it, and who came later and was first; without exchange nothing did."""
    own = [(10.0, SUBMIT.format(4, 7)), (24.0, START.format(4))]
    lines = [*GUEST, *LEAVES, *own, (23.5, START.format(2)), (23.6, DONE.format(2))]
    ends = completed(1, "guest", 1, 1, 50) + completed(4, "main", 8, 10, 40)
    ends += named(completed(2, "main", 8, 1, 23), "2/2")
    names = {
        "hanse:north:north/1/2/2": "job-2",
        "hanse:south:north/1/7": "job-7",
        "sleep": "native-4",
    }
    with_it = Queues({"north": read_jobs(log(*sorted(lines)), ends)}, names.__getitem__)
    alone = [(10.0, SUBMIT.format(4, 7)), (10.5, START.format(4))]
    without = Queues(
        {"north": read_jobs(log(*alone), completed(4, "main", 8, 10, 40))}, names.__getitem__
    )
    job = with_it.own("north", "native-4")
    assert job is not None
    wanted = replace(WANTED, name="native-4", native=True)
    run = Run(Path(), "", job.start, 0, 0, 5, job.start + 5)
    why = explain(Ran(wanted, job.submitted, [run]), with_it, without)
    assert why["in_its_way_and_not_without_exchange"] == [
        "job-2 (8, came back) ran 0.1 s, stood before it 3.4 s"
    ]
    assert why["guests_that_ran_meanwhile"] == ["job-7 (guest, 1) 14.0 s"]
    assert why["came_later_and_started_first"] == []
    assert why["what_became_of_it"] == [
        "north, main: submitted 0.0; in the queue 0.0 to 14.0; ran 14.0 to 31.0"
    ]
    assert (why["controller_killed_at"], why["mean_processors_in_use"]) == ([], 1.1)
    assert why["explained"]
    away = {"north": [(job.submitted + 2.0, job.submitted + 3.0), (job.start, job.start + 1.0)]}
    killed = explain(Ran(wanted, job.submitted, [run]), replace(with_it, away=away), without)
    assert killed["controller_killed_at"] == [2.0]


def test_a_controller_that_begins_protects_nobody() -> None:
    """As slurm.conf has it."""
    text = log(
        (1.0, SWITCH.format("OFF")),
        (2.0, SWITCH.format("OFF")),
        (5.0, "slurmctld version 22.05.8 started on cluster test"),
        (7.0, SWITCH.format("OFF")),
    )
    (first, last), (begin, end) = protected_spans(text)
    assert (last - first, begin - first, end) == (4.0, 6.0, float("inf"))


def test_starts_are_held_against_a_run_without_exchange() -> None:
    """Steps that were kept count as if it had begun earlier."""

    def ran(start: float, began_at: int = 0, times: int = 0) -> Ran:
        run = Run(HOME, "3", start, 0, began_at, 5, start + 5, ended=True)
        return Ran(WANTED, 100.0, [run], times, completed=True)

    alone = waited({"a": ran(110.0), "b": ran(110.0)})
    assert alone == {"a": 10.0, "b": 10.0}
    found = starts_compared(alone, {"a": ran(172.0, 3), "b": ran(171.0)})
    assert (found["own_jobs"], found["within_60_s"]) == (2, 1)
    assert [late["job"] for late in found["late"]] == ["b"]


def test_jobs_come_by_the_seed() -> None:
    """Half of those that daemons get keep their state, and each site has some."""
    jobs = wanted_of(Plan(jobs=300, natives=60))
    assert jobs == wanted_of(Plan(jobs=300, natives=60)) != wanted_of(Plan(seed=2))
    assert sum(job.keeps for job in jobs) == 150
    assert {job.site for job in jobs if job.native} == {"north", "south"}
    assert [job.submit for job in jobs] == sorted(job.submit for job in jobs)
