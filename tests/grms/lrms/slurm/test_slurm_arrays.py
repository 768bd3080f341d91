"""Jobs that are submitted together, as an array of Slurm, of which each is a job like any other."""

import asyncio
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from grms.lrms.account_mapping import own_name
from grms.lrms.base import (
    Ended,
    Lost,
    LrmsJob,
    LrmsPhase,
    LrmsRefusedError,
    LrmsUnavailableError,
    Requeued,
    Started,
    Vanished,
)
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.queue_snapshot import Ending, JobRow, Question
from grms.lrms.batch.subprocesses import Programs, SilentError
from grms.lrms.exit_status import LAUNCH
from grms.lrms.slurm import slurm
from grms.lrms.slurm.slurm import Slurm, SlurmSettings
from grms.lrms.slurm.slurm_arrays import (
    SIZE,
    ArrayElements,
    array_folder,
    array_tag,
    array_words,
    element_name,
    is_array_name,
)
from grms.lrms.slurm.slurm_text import read_log
from grms.util.outcomes import Outcome
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.up import up
from tests.grms.lrms.batch.scene import Scene, undisturbed
from tests.programs import run_program
from tests.waiting import until

JOBS = range(997, 1003)
"""They are in two arrays, of which one has names without a thousand."""


@given(st.integers(1, 10**20 - 1), st.integers(1, 10**9))
def test_an_element_is_known_by_the_arrays_name_and_its_index(number: int, array: int) -> None:
    """With what its user calls it, too."""
    tag = f"hanse:S:A/1f/{number}"
    found = array_tag(tag)
    assert found is not None
    name, index = found
    assert 0 <= index < SIZE
    assert is_array_name(name)
    assert not is_array_name(tag)
    assert element_name(name, f"{array}_{index}") == tag
    assert element_name(f"word@{name}", f"{array}_{index}") == f"word@{tag}"
    for other in (str(array), f"{array}_{SIZE}", f"{array}_[1-3]"):
        assert element_name(name, other) == name
    assert element_name(tag, f"{array}_{index}") == tag


def test_a_job_that_was_lost_before_goes_alone() -> None:
    """An index would not say how often it was."""
    assert array_tag("hanse:S:A/1f/17/1") is None


@given(st.sets(st.integers(0, SIZE - 1), min_size=1))
def test_the_indices_are_said_as_ranges(indices: set[int]) -> None:
    """Each is in one of them."""
    said: list[int] = []
    for word in array_words(indices).split(","):
        first, _, last = word.partition("-")
        said += range(int(first), int(last or first) + 1)
    assert said == sorted(indices)


@pytest.mark.parametrize("number", [1, 17, 999, 1000, 1017, 10999])
def test_the_launcher_finds_the_folder_of_its_job(tmp_path: Path, number: int) -> None:
    """Whatever the number; and its script finds nothing of the array."""
    place = Spool(tmp_path).place(f"A/1f/{number}")
    place.mkdir()
    (place / "launch").write_text(LAUNCH)
    (place / "values").write_text("set -- /usr/bin/env\n")
    begin, word, pad = array_folder(place)
    found = array_tag(f"hanse:S:A/1f/{number}")
    assert found is not None
    name, index = found
    assert begin + (str(index).zfill(3) if pad == "%3a" else str(index)) == str(place)
    done = run_program(
        ["/bin/sh", place / "launch", begin, word],
        cwd="/",
        check=True,
        env={
            "SLURM_ARRAY_TASK_ID": str(index),
            "SLURM_ARRAY_JOB_ID": "7",
            "SLURM_JOB_NAME": f"word@{name}",
            "SLURM_SUBMIT_DIR": "/",
        },
    )
    said = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert (said["PWD"], said["SLURM_SUBMIT_DIR"]) == (str(place), str(place))
    assert said["SLURM_JOB_NAME"] == f"word@hanse:S:A/1f/{number}"
    assert not [name for name in said if name.startswith("SLURM_ARRAY")]
    assert (place / "begun").exists()


def test_the_log_says_which_element_has_ended() -> None:
    """By the array's number and its index, as the queue does; the name may still be the array's."""
    line = (
        "JobId=5 UserId=root(0) GroupId=root(0) Name=w@hanse:S:A/1/1* JobState=FAILED Partition=main TimeLimit=5 "
        "StartTime=2026-11-29T15:26:42 EndTime=2026-11-29T15:26:43 NodeList=n1 NodeCnt=1 ProcCnt=1 WorkDir=/ "
        "ReservationName= Tres=cpu=1 Account= QOS= WcKey= Cluster=unknown SubmitTime=2026-11-29T15:26:42 "
        "EligibleTime=2026-11-29T15:26:42 ArrayJobId=1 ArrayTaskId=31 DerivedExitCode=0:0 ExitCode=3:0 \n"
    )
    (logged,) = read_log([line], is_owner=lambda _name, _user: True, prefix="hanse:S:")
    assert (logged.name, logged.number) == ("hanse:S:A/1/1031", "1_31")
    assert logged.fields["ExitCode"] == "3:0"


def test_an_element_that_was_parted_is_so_whatever_name_is_shown() -> None:
    """Where a plugin has refused its own: should it be gone, that does not say that it never began."""
    elements = ArrayElements()
    elements.keep("7", {"7_1": "hanse:S:A/1/1", "7_2": "hanse:S:A/1/2"})
    elements.part("7_1")
    rows = [
        JobRow("hanse:S:A/1/1", "7_1", 1.0, LrmsPhase.WAITING, 1, in_array=True),
        JobRow("hanse:S:A/1/2", "7_2", 1.0, LrmsPhase.HELD, 1, in_array=True),
    ]
    assert elements.told_in(rows) == rows
    assert [elements.waits(row.number) for row in rows] == [False, True]


def test_an_element_that_is_parted_while_a_new_process_looks_is_parted() -> None:
    """What the queue shows was read before that; the next look's may be read after it."""
    elements = ArrayElements()
    elements.look_begins()
    elements.part("7_1")
    rows = [
        JobRow("hanse:S:A/1/1", "7_1", 1.0, LrmsPhase.HELD, 1, in_array=True),
        JobRow("hanse:S:A/1/2", "7_2", 1.0, LrmsPhase.HELD, 1, in_array=True),
    ]
    assert elements.told_in(rows) == rows
    assert [elements.waits(row.number) for row in rows] == [False, True]
    elements.look_begins()
    assert elements.told_in(rows) == rows
    assert [elements.waits(row.number) for row in rows] == [False, True]


def test_when_an_array_was_submitted_is_known_by_the_first_look_at_it() -> None:
    """And not by one at another array, to which a crash has given its number."""
    elements = ArrayElements()
    names = {"7_1": "hanse:S:A/1/1", "7_2": "hanse:S:A/1/2"}
    elements.keep("7", names)
    assert elements.submitted("7_1") is None
    other = JobRow("hanse:S:A/1/1002", "7_2", 90.0, LrmsPhase.HELD, 1, in_array=True)
    elements.told_in([replace(other, number="7_3")])
    elements.keep("7", names)
    elements.told_in([other])
    assert elements.submitted("7_1") is None
    row = JobRow("hanse:S:A/1/2", "7_2", 50.0, LrmsPhase.HELD, 1, in_array=True)
    elements.told_in([row])
    elements.told_in([replace(row, submit_time=60.0)])
    assert elements.submitted("7_1") == 50.0
    elements.keep("7", names)
    assert elements.submitted("7_1") is None


async def test_an_element_that_is_ended_before_a_look_has_shown_it_has_ended(
    tmp_path: Path,
) -> None:
    """By what the look has shown of the others; it is not lost, to be submitted again."""
    cluster = FakeSlurm(tmp_path / "cluster", nodes=1, cpus=4)
    with up(cluster):
        system = Slurm(Programs({}, folder=str(cluster.programs)), SlurmSettings("S", own_name()))
        await system.look()
        keys = [f"A/1/{number}" for number in (1, 2, 3)]
        numbers = await system.submit_all(
            [
                (system.encode(key), LrmsJob(key, 1, 60.0), tmp_path / key.replace("/", "+"))
                for key in keys
            ]
        )
        cluster.ask("scancel", numbers[0])
        question = Question(keys[0], system.encode(keys[0]), numbers[0], None, None)
        assert await system.knows(question) is False
        assert {row.number for row in (await system.look()).rows} == set(numbers[1:])
        ending = await system.knows(question)
        assert isinstance(ending, Ending)
        assert (ending.start_time, ending.end.outcome) == (None, Outcome.CANCELLED)


# --- what operators and crashes do to them -------------------------------------------------------


def scene_at(folder: Path, **settings: Any) -> Scene[FakeSlurm]:
    """Returns a scene with a fake of Slurm."""
    return Scene(FakeSlurm(folder / "cluster", nodes=1, cpus=2 * len(JOBS)), folder, **settings)


async def together(
    scene: Scene[FakeSlurm], numbers: Iterable[int] = JOBS, *, held: bool = False
) -> list[str]:
    """Submits jobs at one time, and returns their keys; the first look is over, as it is when a site has begun."""
    await scene.lrms.snapshot()
    return await asyncio.gather(*(scene.submitted(number, held=held) for number in numbers))


def names(scene: Scene[FakeSlurm]) -> list[str]:
    """Returns the names that the queue shows."""
    return sorted(row[3] for row in scene.rows())


async def begun_once(scene: Scene[FakeSlurm], keys: list[str]) -> None:
    """Returns when each has begun, and ends them."""
    await until(lambda: all(scene.runs(key) == 1 for key in keys))
    await undisturbed(scene, keys)


async def unanswered(scene: Scene[FakeSlurm]) -> None:
    """Submits jobs at one time, of which no answer comes."""
    tries = (scene.submitted(number) for number in JOBS)
    answers = await asyncio.gather(*tries, return_exceptions=True)
    assert {type(answer) for answer in answers} <= {LrmsUnavailableError, SilentError}


async def run_once(scene: Scene[FakeSlurm], keys: list[str]) -> None:
    """Returns when each has begun once, has been let end, and has completed."""
    await until(lambda: all(scene.runs(key) == 1 for key in keys))
    for key in keys:
        end = await scene.ends(key)
        assert (end.outcome, scene.runs(key)) == (Outcome.COMPLETED, 1)


async def test_jobs_that_come_together_are_an_array_and_have_their_own_names(
    tmp_path: Path,
) -> None:
    """Held they have its name; before one is released it gets its own."""
    scene = scene_at(tmp_path)
    async with scene.up():
        keys = await together(scene, held=True)
        assert sorted(scene.cluster.machine.arrays) == [3, 3]
        assert names(scene) == ["hanse:S:A/1/*"] * 3 + ["hanse:S:A/1/1*"] * 3
        for key in keys:
            record = await scene.lrms.look_up(key)
            assert record is not None
            assert record.phase is LrmsPhase.HELD
            await scene.lrms.release(key)
        await begun_once(scene, keys)
        assert names(scene) == sorted(f"hanse:S:{key}" for key in keys)


async def test_one_of_many_is_cancelled_alone(tmp_path: Path) -> None:
    """While all are held, and while all run; Slurm ends all that are not parted where a filter is given."""
    scene = scene_at(tmp_path)
    async with scene.up():
        first, second, *rest = await together(scene, held=True)
        assert await scene.lrms.cancel(first)
        await until(lambda: scene.has(first, Ended))
        assert await scene.lrms.cancel(second, only_waiting=True)
        for key in rest:
            await scene.lrms.release(key)
        await until(lambda: all(scene.runs(key) == 1 for key in rest))
        third, *rest = rest
        assert await scene.lrms.cancel(third)
        await until(lambda: scene.has(third, Ended))
        await undisturbed(scene, rest)
        assert scene.states() == ["CA"] * 3 + ["CD"] * 3


async def test_many_of_an_array_are_cancelled_at_once(tmp_path: Path) -> None:
    """And no others."""
    scene = scene_at(tmp_path)
    async with scene.up():
        keys = await together(scene, held=True)
        await scene.looks(1)
        assert all(await asyncio.gather(*map(scene.lrms.cancel, keys[1::2])))
        await until(lambda: all(scene.has(key, Ended) for key in keys[1::2]))
        for key in keys[::2]:
            await scene.lrms.release(key)
        await begun_once(scene, keys[::2])
        assert scene.states() == ["CA"] * 3 + ["CD"] * 3


@pytest.mark.parametrize("gone", [1, 3])
async def test_one_of_many_that_an_operator_ends_while_all_are_held_has_ended(
    tmp_path: Path, gone: int
) -> None:
    """Slurm keeps no record of it: the array is there without it. Neither is it submitted again, nor waited for."""
    scene = scene_at(tmp_path)
    async with scene.up():
        keys = await together(scene, range(1, 5), held=True)
        await scene.looks(2)
        scene.cluster.ask("scancel", f"1_{gone}")
        assert len(scene.rows()) == 3
        key = keys.pop(gone - 1)
        await until(lambda: scene.has(key, Ended, Lost, Vanished))
        (end,) = (event.end for event in scene.events if isinstance(event, Ended))
        assert (end.outcome, end.run_time) == (Outcome.CANCELLED, 0.0)
        for each in keys:
            await scene.lrms.release(each)
        await begun_once(scene, keys)


async def test_one_that_is_forgotten_while_another_array_has_its_number_is_lost(
    tmp_path: Path,
) -> None:
    """By a submission that came later: that it is not in there does not say that somebody has ended it."""
    scene = scene_at(tmp_path)
    async with scene.up():
        first = await together(scene, range(1, 5), held=True)
        await scene.looks(1)
        scene.cluster.kill_controller()
        scene.cluster.start_controller()
        words = ("--hold", "--array=5-6", "--ntasks=1", "--time=1", "/bin/true")
        scene.cluster.ask("sbatch", "--parsable", "--job-name=hanse:S:A/1/*", *words)
        await until(lambda: all(scene.has(key, Lost) for key in first))
        assert not [event for event in scene.events if isinstance(event, Ended)]


async def test_an_array_that_an_operator_ends_has_ended_for_all(tmp_path: Path) -> None:
    """What Slurm shows of it then is one row, without an index; nothing is submitted again."""
    scene = scene_at(tmp_path)
    async with scene.up():
        keys = await together(scene, range(1, 5), held=True)
        await scene.looks(1)
        scene.cluster.ask("scancel", "1")
        assert scene.rows() == [["CA", "JobHeldUser", "main", "hanse:S:A/1/*"]]
        await until(lambda: all(scene.has(key, Ended, Lost, Vanished) for key in keys))
        ends = [event.end for event in scene.events if isinstance(event, Ended)]
        assert [end.outcome for end in ends] == [Outcome.CANCELLED] * 4


async def test_an_operator_requeues_one_of_many(tmp_path: Path) -> None:
    """It alone runs anew."""
    scene = scene_at(tmp_path, requeue=True)
    async with scene.up():
        first, *rest = await together(scene)
        await until(lambda: scene.has(first, Started) and scene.runs(first) == 1)
        words = ("squeue", "-h", "-a", "-t", "all", "-o", "%j %i")
        numbers = dict(line.split() for line in scene.cluster.ask(*words).splitlines())
        number = numbers[f"hanse:S:{first}"]
        assert number.endswith("_997")
        scene.cluster.ask("scontrol", "requeue", number)
        await until(lambda: scene.has(first, Requeued))
        scene.cluster.ask("scontrol", "update", f"JobId={number}", "StartTime=now")
        await until(lambda: scene.runs(first) == 2)
        await undisturbed(scene, rest)
        await scene.ends(first)


@pytest.mark.parametrize("life", ["same", "next"])
async def test_an_array_whose_answer_is_lost_is_found(tmp_path: Path, life: str) -> None:
    """By this process and by the next one: each job is looked up, and runs once."""
    scene = scene_at(tmp_path)
    with up(scene.cluster):
        async with scene.life():
            await scene.lrms.snapshot()
            scene.cluster.machine.loses = 2
            await unanswered(scene)
            assert names(scene) == ["hanse:S:A/1/*"] * 3 + ["hanse:S:A/1/1*"] * 3
            keys = [f"A/1/{number}" for number in JOBS]
            if life == "same":
                for key in keys:
                    assert await scene.lrms.look_up(key) is not None
                assert await together(scene) == keys
                await begun_once(scene, keys)
        if life == "next":
            async with scene.life():
                for key in keys:
                    assert await scene.lrms.look_up(key) is not None
                assert await together(scene) == keys
                await run_once(scene, keys)
        assert len(names(scene)) == len(JOBS)


async def test_an_array_that_comes_late_is_of_copies(tmp_path: Path) -> None:
    """The controller has hung, and everybody has submitted again: what comes of it then is ended, and nothing else."""
    scene = scene_at(tmp_path, program_timeout_s=2.0)
    async with scene.up():
        await scene.lrms.snapshot()
        scene.cluster.hang_controller()
        await unanswered(scene)
        late = scene.cluster.machine
        keys = [f"A/1/{number}" for number in JOBS]
        scene.cluster.wake_controller()
        await until(lambda: len(late.arrays) == 2)
        # Under other numbers than what is submitted now; the first to come are not known to this process.
        assert await together(scene) == keys
        await run_once(scene, keys)
        await until(lambda: "PD" not in scene.states())
        anomalies = asdict(scene.lrms.anomalies)
        assert anomalies["run_again"] == 0


@pytest.mark.parametrize("way", ["size", "refused"])
async def test_where_there_are_no_arrays_each_job_is_submitted_alone(
    tmp_path: Path, way: str
) -> None:
    """Where the configuration says so none is tried; a plugin's refusal is not tried again and again."""
    scene = scene_at(tmp_path)
    async with scene.up():
        machine = scene.cluster.machine
        if way == "size":
            machine.array_size = 100
        else:
            machine.refuses_arrays = "Batch job submission failed: Unspecified error"
        keys = await together(scene)
        keys += await together(scene, range(1, 3))
        assert machine.arrays == []
        await run_once(scene, keys)


async def test_arrays_are_tried_again_after_pauses_that_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One refusal, as at a limit of submitted jobs, has not all jobs of the next minutes go alone."""
    monkeypatch.setattr(slurm, "NO_ARRAYS_FIRST_S", 1e-6)
    monkeypatch.setattr(slurm, "NO_ARRAYS_S", 4e-6)
    scene = scene_at(tmp_path)
    async with scene.up():
        machine, pauses = scene.cluster.machine, list[float]()
        for at, refused in enumerate((True, True, True, True, False, True)):
            machine.refuses_arrays = "Job violates accounting/QOS policy" if refused else ""
            with capture_logs() as logs:
                await together(scene, range(10 * at + 1, 10 * at + 3), held=True)
            pauses += [each["for_s"] for each in logs if each["event"] == "lrms.no_arrays"]
            assert len(machine.arrays) == (at > 3)
        assert pauses == [1e-6, 2e-6, 4e-6, 4e-6, 1e-6]


async def test_a_short_pause_ends_no_longer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are refused for ten minutes; an array that was on its way then is refused for ten seconds."""
    monkeypatch.setattr(slurm, "NO_ARRAYS_FIRST_S", 1e-6)
    cluster = FakeSlurm(tmp_path / "cluster", nodes=1, cpus=1)
    with up(cluster):
        system = Slurm(Programs({}, folder=str(cluster.programs)), SlurmSettings("S", own_name()))
        await system.look()
        jobs = [
            (f"hanse:S:A/1/{at}", LrmsJob(f"A/1/{at}", 1, 60.0), tmp_path / f"A+1+{at}")
            for at in range(1, 3)
        ]
        for _, _, folder in jobs:
            folder.mkdir()
            (folder / "launch").write_text("#!/bin/sh\n")
        number, _ = await system.submit_all(jobs)
        row = JobRow(jobs[0][0], number, 1.0, LrmsPhase.HELD, 1, in_array=True)
        cluster.machine.refuses_arrays = "Job violates accounting/QOS policy"
        with pytest.raises(LrmsRefusedError):
            await system.submit_all(jobs)
        assert system.alike(*jobs[0]) is not None  # that was short
        cluster.machine.fixes_names = True
        await system.cancel_all([row])
        with pytest.raises(LrmsRefusedError):
            await system.submit_all(jobs)
        assert system.alike(*jobs[0]) is None


async def test_an_array_that_a_crash_has_undone_is_lost_as_its_jobs_are(tmp_path: Path) -> None:
    """Each is told, and may be submitted again."""
    scene = scene_at(tmp_path)
    async with scene.up():
        keys = await together(scene, held=True)
        await scene.looks(1)
        scene.cluster.kill_controller()
        scene.cluster.start_controller()
        await until(lambda: all(scene.has(key, Lost) for key in keys))
        scene.events.clear()
        assert await together(scene) == keys
        await run_once(scene, keys)


async def test_where_names_are_fixed_jobs_are_known_all_the_same(tmp_path: Path) -> None:
    """A plugin forbids the change: none is ended in place of another, all run, and no further array is made."""
    scene = scene_at(tmp_path)
    async with scene.up():
        scene.cluster.machine.fixes_names = True
        first, second, *rest = await together(scene, held=True)
        assert await scene.lrms.cancel(first)
        assert all(await asyncio.gather(*map(scene.lrms.cancel, [second, rest.pop()])))
        for key in rest:
            await scene.lrms.release(key)
        await begun_once(scene, rest)
        assert len(scene.cluster.machine.arrays) == 2
        await together(scene, [1, 2], held=True)
        assert len(scene.cluster.machine.arrays) == 2


async def test_the_number_of_an_array_that_a_crash_has_undone_is_anothers(tmp_path: Path) -> None:
    """What has the number then is shown, alone or as an array, and is not taken for what had it before."""
    scene = scene_at(tmp_path)
    async with scene.up():
        first = await together(scene, range(1, 5), held=True)
        await scene.looks(1)
        scene.cluster.kill_controller()
        scene.cluster.start_controller()
        await until(lambda: all(scene.has(key, Lost) for key in first))
        alone = await scene.submitted(5, held=True)
        assert "1 " in scene.cluster.ask("squeue", "-h", "-a", "-t", "all", "-o", "%i %j")
        await scene.looks(2)
        record = await scene.lrms.look_up(alone)
        assert record is not None
        assert record.phase is LrmsPhase.HELD
        await scene.lrms.release(alone)
        await run_once(scene, [alone])
        assert not scene.has(alone, Lost)


async def test_where_there_is_room_for_some_these_get_in(tmp_path: Path) -> None:
    """A limit of the account's jobs refuses the array as a whole; the others are told so, and may come again."""
    scene = scene_at(tmp_path)
    async with scene.up():
        await scene.lrms.snapshot()
        scene.cluster.machine.most = 3
        tries = (scene.submitted(number) for number in range(1, 51))
        answers = await asyncio.gather(*tries, return_exceptions=True)
        keys = [answer for answer in answers if isinstance(answer, str)]
        others = [answer for answer in answers if isinstance(answer, LrmsRefusedError)]
        assert (len(keys), len(others)) == (3, 47)
        assert all(error.full and error.passing for error in others)
        await run_once(scene, keys)
        scene.cluster.machine.most = None
        left = [number for number in range(1, 51) if f"A/1/{number}" not in keys]
        await run_once(scene, await together(scene, left[:4]))


async def test_an_element_of_another_array_of_that_number_is_not_ended(tmp_path: Path) -> None:
    """A crash has given the number to another array, and what was to be ended is only known by what was seen before."""
    cluster = FakeSlurm(tmp_path / "cluster", nodes=1, cpus=4)
    with up(cluster):
        system = Slurm(Programs({}, folder=str(cluster.programs)), SlurmSettings("S", own_name()))
        words = ("--hold", "--array=1-2", "--ntasks=1", "--time=1", "/bin/true")
        cluster.ask("sbatch", "--parsable", "--job-name=hanse:S:A/1/1*", *words)
        row = next(each for each in (await system.look()).rows if each.number == "1_1")
        cluster.kill_controller()
        cluster.start_controller()
        cluster.ask("sbatch", "--parsable", "--job-name=hanse:S:A/1/2*", *words)
        assert not await system.cancel(row)
        rows = (await system.look()).rows
        assert sorted((each.name, each.live) for each in rows) == [
            ("hanse:S:A/1/2001", True),
            ("hanse:S:A/1/2002", True),
        ]
