"""Own jobs that are elsewhere, and their places in the queue at home."""

import asyncio
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from grms.daemon.clock import WallClock
from grms.lrms.base import (
    Accepted,
    Away,
    Ended,
    LrmsError,
    LrmsJob,
    LrmsPhase,
    LrmsRefusedError,
    LrmsUnavailableError,
    Program,
    QueuePlace,
    Started,
    UserAwayError,
    WithPlaces,
    place_words,
    queue_place_of,
)
from grms.lrms.batch.kept_places import OVER_MAX
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.queue_snapshot import JobRow, QueueSnapshot
from grms.lrms.exit_status import ASIDE, FENCED, NOT_HERE
from grms.lrms.job_notes import KeptPlace
from grms.lrms.simulated.machine import SteppedMachine
from grms.lrms.simulated.simulated import SimulatedLrms
from grms.util.outcomes import Outcome
from lrms_sim.scheduling.disciplines import Fcfs
from tests.clusters.accounting import AccountingCluster, need_accounting, own_user
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.slurm import SlurmCluster, need_slurm
from tests.clusters.up import up
from tests.examples import THOROUGH
from tests.grms.lrms.batch.scene import Scene
from tests.waiting import TIME_OUT_S, meanwhile, until

WAITS = "#!/bin/sh\necho ran >>runs\nwhile ! test -e go; do sleep 0.05; done\n"
QUICK = '#!/bin/sh\necho ran >>runs\necho "$1" >>../../order\n'


def job(number: int, script: str = QUICK, *, times: int = 1) -> LrmsJob:
    """Returns a job of the site's own, after so many submissions."""
    key = f"S/1/{number}" + (f"/{times}" if times > 1 else "")
    return LrmsJob(key, 1, 600.0, program=Program(script, (key,)))


def markers(scene: Scene[Any]) -> list[list[str]]:
    """Returns the rows of markers."""
    return [row for row in scene.rows() if row[-1].endswith(":away")]


async def waiting(scene: Scene[Any], number: int) -> str:
    """Submits a job, and returns its key when it waits."""
    one = job(number)
    await scene.lrms.submit(one)
    await until(lambda: scene.has(one.key, Accepted))
    await until(lambda: _phase(scene, one.key) == "PD")
    return one.key


def _phase(scene: Scene[Any], key: str) -> str:
    found = [row for row in scene.rows() if row[-1].endswith(f":{key}")]
    return found[0][0] if found and found[0][1] != "JobHeldUser" else ""


def is_back(scene: Scene[Any], waiting: int) -> bool:
    """Returns whether so many jobs wait for room, and none for a moment."""
    rows = [row for row in scene.rows() if row[0] == "PD"]
    return len(rows) == waiting and not any(row[1] == "BeginTime" for row in rows)


def scene_of(folder: Path) -> Scene[Any]:
    """Returns a machine of one processor."""
    return Scene(FakeSlurm(folder / "cluster", nodes=1, cpus=1), folder)


async def let_all_run(scene: Scene[Any], first: str, keys: list[str]) -> None:
    """Lets the job that has the machine end, and all others run."""
    (scene.lrms.folders.place(first) / "go").touch()
    await until(lambda: all(scene.has(key, Ended) for key in keys))


async def aside(scene: Scene[Any], one: LrmsJob) -> None:
    """Has the place of a job kept, and returns when it stands."""
    before = len(markers(scene))
    await scene.lrms.keep_place(one)
    await until(lambda: [row[1] for row in markers(scene)] == ["BeginTime"] * (before + 1))


async def test_who_comes_back_stands_where_it_stood(tmp_path: Path) -> None:
    """A job that was given away on its arrival, and one that had waited here; also after a restart of the site."""
    scene = scene_of(tmp_path)
    async with scene.started():
        async with scene.life():
            first = job(1, WAITS)
            await scene.lrms.submit(first)
            await until(lambda: scene.has(first.key, Started))
            await aside(scene, job(2))
            await waiting(scene, 3)
            assert await scene.lrms.leave("S/1/3")
            (end,) = [each.end for each in scene.events if isinstance(each, Ended)]
            assert (end.outcome, end.run_time) == (Outcome.CANCELLED, 0.0)
            assert await scene.lrms.look_up("S/1/2") is None
            last = await waiting(scene, 4)
            assert len(markers(scene)) == 2
        async with scene.life():
            known = (await scene.lrms.snapshot()).jobs
            assert {known[key].phase for key in ("S/1/2", "S/1/3")} == {LrmsPhase.HELD}
            await scene.lrms.submit(job(3, times=2))
            for _ in range(2):
                await scene.lrms.submit(job(2))
            back = ["S/1/2", "S/1/3/2"]
            await until(lambda: all(scene.has(key, Accepted) for key in back))
            await let_all_run(scene, first.key, [*back, last])
        order = (tmp_path / "order").read_text().split()
        assert order == [*back, last]
        assert {key: scene.runs(key) for key in order} == dict.fromkeys(order, 1)


MULTIFACTOR = """
PriorityType=priority/multifactor
PriorityWeightAge=1000000
PriorityMaxAge=0-00:30:00
PriorityFlags=ACCRUE_ALWAYS
"""


@pytest.mark.services
@pytest.mark.parametrize("more", ["", MULTIFACTOR], ids=["basic", "multifactor"])
async def test_real_slurm_keeps_the_place_through_the_death_of_its_controller(
    tmp_path: Path, more: str
) -> None:
    """With the rights of the jobs' owner alone: the controller forgets that two jobs came back."""
    need_slurm()
    cluster = SlurmCluster(tmp_path / "cluster", nodes=1, cpus=1, more=more)
    scene: Scene[Any] = Scene(cluster, tmp_path)
    async with scene.up():
        first = await with_first(scene)
        await aside(scene, job(2))
        await waiting(scene, 3)
        assert await scene.lrms.leave("S/1/3")
        last = await waiting(scene, 4)
        assert queue_place_of(scene.lrms) is QueuePlace.KEPT
        await until(lambda: [row[1] for row in markers(scene)] == ["BeginTime"] * 2)
        await asyncio.to_thread(scene.cluster.save_state)
        back = ["S/1/2", "S/1/3/2"]
        await scene.lrms.submit(job(2))
        await scene.lrms.submit(job(3, times=2))
        await asyncio.to_thread(scene.cluster.lose_state)
        await asyncio.to_thread(scene.cluster.start_controller)
        await until(lambda: is_back(scene, 3))
        await let_all_run(scene, first.key, [*back, last])
    assert (tmp_path / "order").read_text().split() == [*back, last]


def altered(scene: Scene[Any], number: str, **values: object) -> None:
    """Has the controller take a job for what it was, as after a crash."""
    scene.cluster.machine._table[number].update(values)  # there is no other way


async def with_first(scene: Scene[Any]) -> LrmsJob:
    """Submits a job that has the machine."""
    first = job(1, WAITS)
    await scene.lrms.submit(first)
    await until(lambda: scene.has(first.key, Started))
    return first


@pytest.mark.parametrize("late", [False, True])
async def test_a_start_that_a_crash_has_undone_is_done_again(tmp_path: Path, *, late: bool) -> None:
    """The controller has forgotten the job's name and its start; also where its state is older than what is noted."""
    scene = scene_of(tmp_path)
    async with scene.up():
        first = await with_first(scene)
        await aside(scene, job(2))
        name = markers(scene)[0][-1]
        last = await waiting(scene, 3)
        await scene.lrms.submit(job(2))
        if late:
            await until(lambda: not scene.lrms.folders.places())
        altered(scene, "2", name=name, far=True)
        await until(lambda: is_back(scene, 2))
        await let_all_run(scene, first.key, ["S/1/2", last])
        assert (tmp_path / "order").read_text().split() == ["S/1/2", last]


async def test_a_job_whose_return_a_crash_has_undone_stays_where_it_is_to_leave(
    tmp_path: Path,
) -> None:
    """Its marker is the job itself, and is not given up, until a poll does again what was undone."""
    scene = scene_of(tmp_path)
    scene.cluster.up()
    try:
        async with asyncio.timeout(TIME_OUT_S):
            async with scene.life():
                await with_first(scene)
                await aside(scene, job(2))
                places: Any = scene.lrms._places
                place = await places.of("S/1/2")
                async with places.lock:  # no poll comes before
                    await places.note("S/1/2", replace(place, back="S/1/2"))
                    assert not await places.end("S/1/2", only_away=True)
                assert not await scene.lrms.leave("S/1/2")
                await until(lambda: _phase(scene, "S/1/2") == "PD")
                assert not markers(scene)
    finally:
        scene.cluster.down()


async def test_a_leaving_that_a_crash_has_undone_is_done_again(tmp_path: Path) -> None:
    """The job waits as before, and would start; its row is not taken for one whose cancel was undone."""
    scene = scene_of(tmp_path)
    async with scene.up():
        await with_first(scene)
        key = await waiting(scene, 2)
        (name,) = [row[-1] for row in scene.rows() if row[-1].endswith(key)]
        assert await scene.lrms.leave(key)
        altered(scene, "2", name=name, far=False)
        await until(lambda: [row[1] for row in markers(scene)] == ["BeginTime"])
        assert scene.states() == ["PD", "R"]


@pytest.mark.parametrize("anew", [False, True])
async def test_a_crash_that_has_undone_leaving_and_return_ends_nothing(
    tmp_path: Path, *, anew: bool
) -> None:
    """The job starts under the name that it had before it left; also where the daemon dies meanwhile."""
    scene = scene_of(tmp_path)
    back = job(2, WAITS, times=2)
    with up(scene.cluster):
        async with asyncio.timeout(TIME_OUT_S):
            async with scene.life():
                first = await with_first(scene)
                key = await waiting(scene, 2)
                (name,) = [row[-1] for row in scene.rows() if row[-1].endswith(f":{key}")]
                assert await scene.lrms.leave(key)
                lrms: Any = scene.lrms
                places, system = lrms._places, lrms._placing
                async with places.lock:  # no poll is acted on before it runs
                    place = await places.comes_back(back.key)
                    await lrms._brought_back(places, place, back, back.program)
                    altered(scene, "2", name=name, far=False)
                    (scene.lrms.folders.place(first.key) / "go").touch()
                    await until(lambda: _phase(scene, key) == "R")
                    await until(lambda: scene.runs(back.key) == 1)
                    if anew:
                        system.rename = system.cancel = _unanswered
                if not anew:
                    await until(lambda: _phase(scene, back.key) == "R")
            async with scene.life():
                assert back.key in (await scene.lrms.snapshot()).jobs
                assert not await scene.lrms.cancel(key)
                await until(lambda: _phase(scene, back.key) == "R")
                (scene.lrms.folders.place(back.key) / "go").touch()
                await until(lambda: scene.has(back.key, Ended))
                (end,) = [
                    one.end
                    for one in scene.events
                    if isinstance(one, Ended) and one.key == back.key
                ]
                assert end.outcome is Outcome.COMPLETED
    assert scene.runs(back.key) == 1


@pytest.mark.parametrize(
    ("name", "number", "known"),
    [
        ("S/1/2", "7", "S/1/2/10"),
        ("S/1/2/9", "7", "S/1/2/10"),
        ("S/1/2/10", "7", ""),
        ("S/1/2/11", "7", ""),
        ("S/1/3", "7", ""),
        ("S/1/2", "8", ""),
    ],
)
async def test_who_came_back_is_known_by_earlier_names_alone(
    tmp_path: Path, name: str, number: str, known: str
) -> None:
    """A controller that has forgotten its number may give it to a later submission, which is not to be renamed."""
    scene = scene_of(tmp_path)
    scene.lrms.folders.open()
    places: Any = scene.lrms._places
    await places.note("S/1/2", KeptPlace("7", "S/1/2", back="S/1/2/10"))
    row = JobRow(scene.lrms.encode(name), number, 1.0, LrmsPhase.HELD, 1)
    (told,) = (await places._known(QueueSnapshot(1.0, 1.0, 1, 1, 1, 0, (row,)))).rows
    assert told == replace(row, known_as=known)


@pytest.mark.parametrize(
    "text",
    [
        '{"number": "1", "key": "S/1/9", "back": "garbage"}',
        '{"number": "1", "key": "S/1/9", "back": "S/1/8/2"}',
        '{"number": ["1"], "key": "S/1/9", "back": "S/1/9/2"}',
        '{"number": "1", "key": null}',
        "",
    ],
)
async def test_a_damaged_note_is_no_matter_of_other_jobs(tmp_path: Path, text: str) -> None:
    """One that is in the folder as the daemon starts, also of a number that another job has."""
    scene = scene_of(tmp_path)
    folder = tmp_path / "jobs" / ".places"
    folder.mkdir(parents=True)
    (folder / "S+1+9.json").write_text(text)
    (folder / "S+1+8.json").mkdir()
    (folder / "no+site+s.json").write_text('{"number": "1", "key": "S/1/9"}')
    async with scene.up():
        await scene.lrms.submit(job(1))
        await until(lambda: scene.has("S/1/1", Ended))
        away = [event.reason for event in scene.events if isinstance(event, Away)]
        assert all("within 2 s" in reason for reason in away)  # a busy machine, not a note


async def test_what_is_noted_while_notes_are_read_stays_noted(tmp_path: Path) -> None:
    """Two ask for them at once at the daemon's start, and the first goes on with a note before the second has read."""
    scene = scene_of(tmp_path)
    places: Any = scene.lrms._places
    slow, place = asyncio.Event(), KeptPlace("7", "S/1/2")
    do = places._disk.do

    async def second_is_slow(work: Any, *arguments: Any) -> Any:
        answer = await do(work, *arguments)
        if work == scene.lrms.folders.places and not slow.is_set():
            slow.set()
            await noted.wait()
        return answer

    noted = asyncio.Event()
    places._disk.do = second_is_slow
    scene.lrms.folders.open()
    late = asyncio.create_task(places.away())
    await slow.wait()
    await places.note("S/1/2", place)
    noted.set()
    assert await late == {"S/1/2": place} == await places.away()


async def _unanswered(*_: object) -> None:
    raise LrmsUnavailableError("the daemon dies first")


@pytest.mark.parametrize("left", [False, True])
async def test_a_marker_never_runs(tmp_path: Path, *, left: bool) -> None:
    """Whoever starts it: its launcher ends before the script. Its place is lost; the job comes back behind all others."""
    scene = scene_of(tmp_path)
    async with scene.up():
        first = await with_first(scene)
        if left:
            key = await waiting(scene, 2)
            assert await scene.lrms.leave(key)
        else:
            await aside(scene, job(2))
        last = await waiting(scene, 3)
        folder = scene.lrms.folders.place("S/1/2")
        (folder.parent.parent / "order").touch()
        system: Any = scene.lrms._placing
        system.is_aside = lambda _row: True  # no poll comes in time to put it off again
        altered(scene, "2", far=False)
        (scene.lrms.folders.place(first.key) / "go").touch()
        await until(lambda: scene.has(last, Ended))
        await until(lambda: not scene.lrms.folders.places())
        assert not (folder / "runs").exists()
        assert (tmp_path / "order").read_text().split() == [last]
        back = job(2, times=2 if left else 1)
        await scene.lrms.submit(back)
        await until(lambda: scene.has(back.key, Ended))
        assert scene.runs(back.key) == 1
        assert (tmp_path / "order").read_text().split() == [last, back.key]


async def test_a_marker_that_somebody_ends_has_lost_its_place(tmp_path: Path) -> None:
    """The job itself has not ended: it is elsewhere."""
    scene = scene_of(tmp_path)
    async with scene.up():
        await with_first(scene)
        await aside(scene, job(2))
        scene.cluster.ask("scancel", "2")
        await until(lambda: not scene.lrms.folders.places())
        assert not [event for event in scene.events if isinstance(event, Ended)]
        await scene.lrms.submit(job(2))
        await until(lambda: _phase(scene, "S/1/2") == "PD")


async def test_a_place_is_given_up(tmp_path: Path) -> None:
    """By any key of the job, which has ended elsewhere; and by nobody's note."""
    scene = scene_of(tmp_path)
    async with scene.up():
        await with_first(scene)
        for number in (2, 3):
            await aside(scene, job(number))
        assert not await scene.lrms.cancel("S/1/2/2")
        assert [row[0] for row in markers(scene)].count("CA") == 1
        await scene.lrms.keep_place(job(3))
        assert len(markers(scene)) == 2
        (note,) = (scene.lrms.folders.place("S/1/3").parent / ".places").iterdir()
        note.write_text("{")
        async with asyncio.timeout(TIME_OUT_S):
            scene.lrms = scene._made()  # beside the other, which knows no better
            async with meanwhile(scene.lrms.run()):
                await until(lambda: [row[0] for row in markers(scene)].count("CA") == 2)


async def test_a_place_is_told_where_the_queue_still_shows_the_job_that_has_left(
    tmp_path: Path,
) -> None:
    """Under its first key: else nobody would give up the marker of a job that has ended elsewhere while the daemon was dead."""
    scene = scene_of(tmp_path)
    async with scene.up():
        await with_first(scene)
        key = await waiting(scene, 2)
        assert await scene.lrms.cancel(key, only_waiting=True)
        await aside(scene, job(2, times=2))
        known = (await scene.lrms.snapshot()).jobs
        assert known[key].phase is LrmsPhase.HELD
        assert [row[0] for row in scene.rows() if row[-1].endswith(f":{key}")] == ["CA"]


async def test_what_has_begun_or_would_begin_anyway_keeps_no_place(tmp_path: Path) -> None:
    """A job that runs stays; one with a launcher of an older version leaves without its place."""
    scene = scene_of(tmp_path)
    async with scene.up():
        first = await with_first(scene)
        assert not await scene.lrms.leave(first.key)
        await scene.looks(2)
        assert not scene.lrms.folders.places()
        key = await waiting(scene, 2)
        launch = scene.lrms.folders.place(key) / "launch"
        launch.chmod(0o700)
        launch.write_text(launch.read_text().replace(ASIDE, "begun.before"))
        assert await scene.lrms.leave(key)
        assert not markers(scene)
        await until(lambda: scene.has(key, Ended))


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize(
    ("done", "error"),
    [(True, LrmsUnavailableError), (False, LrmsUnavailableError), (True, LrmsRefusedError)],
)
async def test_a_coming_back_that_was_cut_off_goes_on(
    tmp_path: Path, *, left: bool, done: bool, error: type[LrmsError]
) -> None:
    """The daemon dies as Slurm gives the marker its name; or Slurm does it, and says no, as for a closed partition."""
    scene = scene_of(tmp_path)
    back = job(2, times=2 if left else 1)
    with up(scene.cluster):
        async with asyncio.timeout(TIME_OUT_S):
            async with scene.life():
                first = await with_first(scene)
                if left:
                    assert await scene.lrms.leave(await waiting(scene, 2))
                else:
                    await aside(scene, job(2))
                last = await waiting(scene, 3)
                system: Any = scene.lrms._placing
                rename = system.rename

                async def cut_off(row: JobRow, name: str) -> None:
                    system.rename = rename
                    if done:
                        await rename(row, name)
                    raise error("cut off")

                system.rename = cut_off
                with suppress(LrmsUnavailableError):
                    await scene.lrms.submit(back)
            async with scene.life():
                await scene.lrms.submit(back)
                await until(lambda: is_back(scene, 2))
                await let_all_run(scene, first.key, [back.key, last])
        assert (tmp_path / "order").read_text().split() == [back.key, last]
        assert scene.runs(back.key) == 1


async def test_a_start_that_is_refused_is_asked_for_again(tmp_path: Path) -> None:
    """Whatever the job is said to wait for meanwhile: its start is far ahead."""
    scene = scene_of(tmp_path)
    async with scene.up():
        await aside(scene, job(2))
        system: Any = scene.lrms._placing
        start_now, refused = system.start_now, 0

        async def closed(_row: JobRow) -> None:
            nonlocal refused
            refused += 1
            if refused > 3:
                system.start_now = start_now
            raise LrmsRefusedError("Requested partition configuration not available now")

        system.start_now, system.is_aside = closed, lambda _row: False
        await scene.lrms.submit(job(2))
        await until(lambda: scene.has("S/1/2", Ended))
        assert (scene.runs("S/1/2"), refused) == (1, 4)


async def test_what_is_cut_off_as_it_comes_back_can_be_cancelled(tmp_path: Path) -> None:
    """It does not start all the same."""
    scene = scene_of(tmp_path)
    async with scene.up():
        await with_first(scene)
        await aside(scene, job(2))
        places = scene.lrms._places
        assert places is not None
        place = await places.of("S/1/2")
        assert place is not None
        await places.note("S/1/2", replace(place, back="S/1/2"))
        await scene.lrms.cancel("S/1/2")
        assert [row[0] for row in markers(scene)] == ["CA"]
        assert not scene.lrms.folders.places()


async def test_a_job_that_starts_as_it_leaves_keeps_its_name(tmp_path: Path) -> None:
    """Slurm refuses to put off its start, and gives it the name of a marker all the same."""
    scene = scene_of(tmp_path)
    async with scene.up():
        first = await with_first(scene)
        two = job(2, WAITS)
        await scene.lrms.submit(two)
        await until(lambda: _phase(scene, two.key) == "PD")
        spool: Any = scene.lrms.folders
        ask_aside = spool.ask_aside

        def later(key: str) -> None:
            (spool.place(first.key) / "go").touch()
            deadline = time.monotonic() + TIME_OUT_S
            while not scene.runs(two.key):
                assert time.monotonic() < deadline
                scene.rows()  # it starts jobs as it is asked something
            ask_aside(key)

        spool.ask_aside = later
        assert not await scene.lrms.leave(two.key)
        assert not markers(scene)
        assert not spool.places()
        assert (await scene.ends(two.key)).outcome is Outcome.COMPLETED
        assert scene.runs(two.key) == 1


async def test_a_job_that_is_held_as_it_leaves_can_be_released(tmp_path: Path) -> None:
    """It stays, and its start is not far ahead; Slurm says that it refuses the name, and does it, where the partition is closed."""
    scene = scene_of(tmp_path)
    async with scene.up():
        first = await with_first(scene)
        key = await waiting(scene, 2)
        rows = scene.cluster.ask("squeue", "-h", "-o", "%t|%i").splitlines()
        (number,) = [row.partition("|")[2] for row in rows if row.startswith("PD")]
        system: Any = scene.lrms._placing
        set_aside, rename = system.set_aside, system.rename

        async def held(row: JobRow, name: str) -> None:
            await set_aside(row, name)
            scene.cluster.ask("scontrol", "hold", row.number)

        async def refused(row: JobRow, name: str) -> None:
            await rename(row, name)
            raise LrmsRefusedError("Requested partition configuration not available now")

        system.set_aside, system.rename = held, refused
        with pytest.raises(LrmsRefusedError, match="holds it"):
            await scene.lrms.leave(key)
        assert (markers(scene), scene.lrms.folders.places()) == ([], {})
        scene.cluster.ask("scontrol", "release", number)
        await until(lambda: _phase(scene, key) == "PD")
        await let_all_run(scene, first.key, [key])
        assert scene.runs(key) == 1


@pytest.mark.parametrize("answered", [True, False])
async def test_a_job_that_starts_just_as_it_is_asked_to_leave_begins(
    tmp_path: Path, *, answered: bool
) -> None:
    """Its launcher waits until it is known that it stays; also where Slurm's answer comes with a later poll alone."""
    scene = scene_of(tmp_path)
    async with scene.up():
        first = await with_first(scene)
        key = await waiting(scene, 2)
        system: Any = scene.lrms._placing
        set_aside = system.set_aside

        async def late(row: JobRow, name: str) -> None:
            (scene.lrms.folders.place(first.key) / "go").touch()
            await until(lambda: _phase(scene, key) == "R")
            if answered:
                await set_aside(row, name)
            else:
                system.set_aside = set_aside
                await system.rename(row, name)
                raise LrmsUnavailableError("no answer")

        system.set_aside = late
        if answered:
            assert not await scene.lrms.leave(key)
        else:
            with pytest.raises(LrmsUnavailableError):
                await scene.lrms.leave(key)
        assert (await scene.ends(key)).outcome is Outcome.COMPLETED
        assert (scene.runs(key), scene.lrms.folders.places()) == (1, {})


@pytest.mark.parametrize("cut", ["ask_aside", "set_aside"])
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_job_that_starts_where_its_leaving_was_cut_off_begins(
    tmp_path: Path, *, cut: str, restarted: bool
) -> None:
    """It was not set aside, and nobody asks again, or not soon: its launcher waits no longer than that is unknown."""
    scene = scene_of(tmp_path)
    with up(scene.cluster):
        async with asyncio.timeout(TIME_OUT_S):
            async with scene.life():
                first = await with_first(scene)
                key = await waiting(scene, 2)
                system: Any = scene.lrms._placing
                spool: Any = scene.lrms.folders

                def unwritten(_key: str) -> None:
                    raise OSError("no answer")

                async def unanswered(_row: JobRow, _name: str) -> None:
                    raise LrmsUnavailableError("no answer")

                if cut == "ask_aside":
                    spool.ask_aside = unwritten
                system.set_aside = unanswered
                with pytest.raises(LrmsError):
                    await scene.lrms.leave(key)
                if not restarted:
                    (spool.place(first.key) / "go").touch()
                    assert (await scene.ends(key)).outcome is Outcome.COMPLETED
            if restarted:
                (spool.place(first.key) / "go").touch()
                await until(lambda: _phase(scene, key) not in {"", "PD"})
                async with scene.life():
                    await until(lambda: scene.runs(key) == 1)
                    await until(lambda: not scene.lrms.folders.places())
        assert scene.runs(key) == 1


async def test_a_job_that_has_begun_before_it_leaves_waits_for_no_moment(tmp_path: Path) -> None:
    """It was started, and had to wait again, while Slurm was asked to put off its start."""
    scene = scene_of(tmp_path)
    async with scene.up():
        await with_first(scene)
        key = await waiting(scene, 2)
        system: Any = scene.lrms._placing
        set_aside = system.set_aside

        async def late(row: JobRow, name: str) -> None:
            await set_aside(row, name)
            (scene.lrms.folders.place(key) / "begun").write_text("0 90\n")

        system.set_aside = late
        assert not await scene.lrms.leave(key)
        assert is_back(scene, 1)
        assert not scene.lrms.folders.places()


async def test_a_job_that_has_ended_as_it_was_asked_to_leave_is_told_as_it_ended(
    tmp_path: Path,
) -> None:
    """Slurm refuses to give it its name again."""
    scene = scene_of(tmp_path)
    async with scene.up():
        first = await with_first(scene)
        key = await waiting(scene, 2)
        spool: Any = scene.lrms.folders
        ask_aside = spool.ask_aside

        def later(one: str) -> None:
            (spool.place(first.key) / "go").touch()
            deadline = time.monotonic() + TIME_OUT_S
            while not scene.runs(one):
                assert time.monotonic() < deadline
                scene.rows()  # it starts jobs as it is asked something
            ask_aside(one)

        spool.ask_aside = later
        system: Any = scene.lrms._placing
        system.rename = refuses
        assert not await scene.lrms.leave(key)
        assert (await scene.ends(key)).outcome is Outcome.COMPLETED
        assert (scene.runs(key), spool.places()) == (1, {})


async def test_a_job_that_is_cancelled_while_its_launcher_waits_is_told_as_it_ended(
    tmp_path: Path,
) -> None:
    """By an operator, as it starts where it was to leave: Slurm shows it under its marker's name alone."""
    scene = scene_of(tmp_path)
    async with scene.up():
        first = await with_first(scene)
        key = await waiting(scene, 2)
        system: Any = scene.lrms._placing
        set_aside = system.set_aside

        async def late(row: JobRow, name: str) -> None:
            (scene.lrms.folders.place(first.key) / "go").touch()
            await until(lambda: _phase(scene, key) == "R")
            with suppress(LrmsRefusedError):  # which has given it the name all the same
                await set_aside(row, name)
            await until(lambda: [row[0] for row in markers(scene)] == ["R"])
            scene.cluster.ask("scancel", row.number)
            await until(lambda: [row[0] for row in markers(scene)] == ["CA"])

        system.set_aside = late
        assert not await scene.lrms.leave(key)
        assert (await scene.ends(key)).outcome is Outcome.CANCELLED
        assert (scene.runs(key), scene.lrms.folders.places()) == (0, {})


async def refuses(row: JobRow, _: str) -> None:
    """Says what Slurm says of a job that is over."""
    raise LrmsRefusedError(f"Job has already finished for job {row.number}")


async def test_one_user_s_process_keeps_no_other_place(tmp_path: Path) -> None:
    """It does not answer; the markers of others are let wait for their moment, and that one when it answers again."""
    scene = scene_of(tmp_path)
    async with scene.up():
        system: Any = scene.lrms._placing
        release = system.release

        async def away(row: JobRow) -> None:
            if "S/1/2:" in row.name:
                raise UserAwayError("no answer")
            await release(row)

        system.release = away
        for number in (2, 3):
            await scene.lrms.keep_place(job(number))
        await until(lambda: [row[1] for row in markers(scene)].count("BeginTime") == 1)
        system.release = release
        await until(lambda: [row[1] for row in markers(scene)].count("BeginTime") == 2)


async def test_places_that_are_kept_no_more_are_given_up(tmp_path: Path) -> None:
    """With `keep_places = false` what was kept before is shown, so that the site has it ended."""
    scene = scene_of(tmp_path)
    async with scene.started():
        async with scene.life():
            await with_first(scene)
            await aside(scene, job(2))
            assert await scene.lrms.leave(await waiting(scene, 3))
        scene.settings["keep_places"] = False
        async with scene.life():
            await scene.lrms.keep_place(job(4))
            assert len(markers(scene)) == 2
            assert queue_place_of(scene.lrms) is QueuePlace.BEHIND
            assert {"S/1/2", "S/1/3"} < set((await scene.lrms.snapshot()).jobs)
            for key in ("S/1/2", "S/1/3"):
                assert not await scene.lrms.cancel(key, only_waiting=True)
            assert [row[0] for row in markers(scene)] == ["CA", "CA"]


def limited(kind: type[Any], folder: Path) -> Any:
    """Returns a Slurm of one processor with room for three jobs of a user."""
    if kind is FakeSlurm:
        return FakeSlurm(folder, nodes=1, cpus=1)
    need_accounting()
    of = f"user {own_user()}"
    known = (
        "add account bio cluster=test",
        f"add {of} account=bio cluster=test MaxSubmitJobs=3",
        f"modify {of} set DefaultAccount=bio",
    )
    return AccountingCluster(folder, nodes=1, cpus=1, known=known)


@pytest.mark.parametrize(
    "kind",
    [
        FakeSlurm,
        *([pytest.param(AccountingCluster, marks=pytest.mark.services)] if THOROUGH else []),
    ],
)
async def test_at_the_limit_of_submitted_jobs_no_job_is_lost(
    tmp_path: Path, kind: type[Any]
) -> None:
    """A marker counts as a job. One that is refused costs the place alone; whoever comes back at the limit has its marker."""
    scene: Scene[Any] = Scene(limited(kind, tmp_path / "cluster"), tmp_path)
    async with scene.up():
        if kind is FakeSlurm:
            scene.cluster.machine.most = 3
        first = await with_first(scene)
        await aside(scene, job(2))
        assert place_words(scene.lrms, "S/1/2/2", away=True) == (
            "it keeps its place by a marker, job 2 of the batch system"
        )
        last = await waiting(scene, 3)
        with pytest.raises(LrmsRefusedError, match="AssocMaxSubmitJobLimit") as marker:
            await scene.lrms.keep_place(job(4))
        words = place_words(scene.lrms, "S/1/4", away=True)
        assert words.startswith("it has no place here, and stands behind all that wait when it")
        assert "was refused: sbatch: AssocMaxSubmitJobLimit" in words
        for one in (job(5), job(4)):
            with pytest.raises(LrmsRefusedError) as refused:
                await scene.lrms.submit(one)
            assert refused.value.passing
            assert "; 1 of the jobs that count keep the places of jobs that" in refused.value.reason
        assert marker.value.full
        assert len(markers(scene)) == 1
        await scene.lrms.submit(job(2))
        assert place_words(scene.lrms, "S/1/2", away=False) == "it came back to its place"
        await until(lambda: is_back(scene, 2))
        await let_all_run(scene, first.key, ["S/1/2", last])
        for one in (job(4), job(5)):
            await scene.lrms.submit(one)
            await until(partial(scene.has, one.key, Ended))
        order = (tmp_path / "order").read_text().split()
        assert order == ["S/1/2", last, "S/1/4", "S/1/5"]
        assert {key: scene.runs(key) for key in order} == dict.fromkeys(order, 1)


def test_what_place_who_comes_back_has_is_told(tmp_path: Path) -> None:
    """Behind all others where nothing is known of the batch system."""
    scene = scene_of(tmp_path)
    assert isinstance(scene.lrms, WithPlaces)
    assert queue_place_of(scene.lrms) is QueuePlace.BEHIND
    assert queue_place_of(object()) is QueuePlace.BEHIND
    machine = SimulatedLrms(SteppedMachine(8, Fcfs()), WallClock())
    assert queue_place_of(machine) is QueuePlace.AS_SUBMITTED
    assert not isinstance(machine, WithPlaces)
    behind = "a place behind all that wait then, or by a priority that counts from then on"
    assert place_words(scene.lrms, "S/1/2", away=True) == f"it comes back to {behind}"
    simulated = "it comes back to where it would stand by its submission"
    assert place_words(machine, "S/1/2", away=True) == simulated
    assert place_words(machine, "S/1/2", away=False) == ""


async def test_what_has_become_of_a_place_is_told(tmp_path: Path) -> None:
    """Until the job has ended elsewhere; of very many the latest."""
    scene = scene_of(tmp_path)
    async with scene.up():
        await with_first(scene)
        places = scene.lrms._places
        assert places is not None
        await aside(scene, job(2))
        places._refused["S/1/2"] = "no answer"
        assert places.words("S/1/2").endswith("of which that says: no answer")
        scene.cluster.ask("scancel", "2")
        lost = "it has lost its place, and stands behind all that wait when it comes back: its marker was ended"
        await until(lambda: places.words("S/1/2").startswith(lost))
        await scene.lrms.cancel("S/1/2")
        assert places.words("S/1/2") == ""
        for number in range(OVER_MAX + 1):
            places.tell(f"S/1/{number}", "lost")
        assert (places.words("S/1/0"), places.words("S/1/1")) == ("", "lost")


def test_a_job_that_has_come_back_begins_in_its_own_folder(tmp_path: Path) -> None:
    """With the output that the batch system has begun where its place was kept."""
    spool = Spool(tmp_path)
    spool.open()
    for key in ("S/1/2", "S/1/2/2"):
        spool.prepare(key, Program(QUICK, (key,)), run=True, aside=True)
    first, second = spool.place("S/1/2"), spool.place("S/1/2/2")
    assert run(first).returncode == NOT_HERE
    spool.ask_aside("S/1/2")
    assert not spool.is_asked_aside("S/1/2"), "it is set aside already"
    (first / ASIDE).unlink()
    assert spool.is_asked_aside("S/1/2"), "or is to be"
    assert spool.can_be_aside("S/1/2")
    spool.ask_aside("S/1/2")
    assert spool.is_asked_aside("S/1/2")
    spool.set_aside("S/1/2")
    assert not spool.is_asked_aside("S/1/2")
    assert not spool.is_asked_aside("S/1/3")
    assert run(first).returncode == NOT_HERE
    spool.lift_aside("S/1/2", "S/1/2/2")
    (first / "stdout").write_text("")
    assert run(first).returncode == 0
    assert (second / "runs").read_text() == "ran\n"
    assert (second / "stdout").samefile(first / "stdout")
    assert not (first / "begun").exists()
    assert spool.runs("S/1/2/2") == ["0"]
    assert run(second).returncode == FENCED


def run(folder: Path) -> "subprocess.CompletedProcess[bytes]":
    """Runs a launcher as a batch system does."""
    (folder.parent.parent / "order").touch()
    launch = [str(folder / "launch")]
    return subprocess.run(launch, cwd=folder, check=False, timeout=TIME_OUT_S)  # noqa: S603  # the job
