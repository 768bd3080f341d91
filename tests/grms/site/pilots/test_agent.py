"""The agent of a pilot, as a process of its own, with a small site in this one."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from grms.site.pilots import agent
from tests.grms.site.pilots.small_site import PILOT, Heard, SmallSite, listening_site, pilot
from tests.grms.site.runtime.test_full_disk import fill, mounted
from tests.waiting import until


def ended(*names: str) -> Callable[[Heard], bool]:
    """Returns the condition that runs have ended."""
    return lambda heard: set(names) <= set(heard.ends)


async def test_a_run_leaves_its_output_and_its_exit_code(tmp_path: Path) -> None:
    """Streams are files of its folder, which is its working folder; code and signal are told apart."""
    async with listening_site(tmp_path) as site:
        async with pilot(site):
            await site.until(lambda heard: heard.hellos)
            site.run(
                site.order("good", "pwd; echo to err >&2"),
                site.order("bad", "exit 3"),
                site.order("shot", "kill -SEGV $$"),
                site.order("high", "exit 139"),
            )
            await site.until(ended("good", "bad", "shot", "high"))
        runs = site.heard.runs
        assert site.read("good") == f"{tmp_path}/good\n"
        assert site.read("good", "stderr") == "to err\n"
        assert (runs["good"].code, runs["good"].signal) == (0, None)
        assert (runs["bad"].code, runs["bad"].signal) == (3, None)
        assert (runs["shot"].code, runs["shot"].signal) == (None, signal.SIGSEGV)
        assert (runs["high"].code, runs["high"].signal) == (139, None)
        assert all(run.why == "" and run.problem == "" for run in runs.values())
        assert [line.split()[0] for line in site.read("bad", "begun").splitlines()] == [
            "0",
            "ended",
        ]
        assert site.read("bad", "begun").splitlines()[1].split()[1] == "3"


async def test_processors_are_handed_out_by_the_clock(tmp_path: Path) -> None:
    """A run begins at its beginning and when as many processors are free, and has them for itself."""
    async with listening_site(tmp_path) as site:
        async with pilot(site):
            await site.until(lambda heard: heard.hellos)
            now = time.time()
            show = "taskset -cp $$ | sed 's/.*: //'; sleep 0.4"
            site.run(
                site.order("later", show, begin=now + 1.0),
                site.order("first", show),
                site.order("second", show),
                site.order("wide", show, processors=2, begin=now + 0.1),
            )
            await site.until(ended("first", "second", "wide", "later"))
        runs = site.heard.runs
        starts = {name: told.start or 0.0 for name, told in runs.items()}
        ends = {name: told.end or 0.0 for name, told in runs.items()}
        assert starts["wide"] >= max(ends["first"], ends["second"]) - 0.01
        assert starts["later"] >= max(now + 1.0, ends["wide"]) - 0.01
        if len(os.sched_getaffinity(0)) >= 2:
            assert site.read("first") != site.read("second")
            assert site.read("wide").strip().replace("-", ",").count(",") == 1


async def test_a_run_that_is_moved_begins_at_its_new_beginning(tmp_path: Path) -> None:
    """Earlier or later, and its end moves with it while it runs."""
    async with listening_site(tmp_path) as site:
        async with pilot(site):
            await site.until(lambda heard: heard.hellos)
            now = time.time()
            site.run(
                site.order("earlier", "true", begin=now + 500.0, until=now + 600.0),
                site.order("longer", "sleep 1.2", until=now + 0.8),
            )
            site.hub.send(PILOT, moves=[["earlier", now, now + 10.0], ["longer", now, now + 60.0]])
            await site.until(ended("earlier", "longer"))
        assert site.heard.runs["earlier"].code == 0
        assert site.heard.runs["longer"].code == 0


async def test_what_takes_too_long_is_ended_with_all_its_processes(tmp_path: Path) -> None:
    """At its limit, at the end of its window or on demand: first politely; nothing of it stays."""
    daemon = f"setsid {sys.executable} -c 'import time; time.sleep(300)' & echo $! >child"
    async with listening_site(tmp_path) as site, pilot(site):
        await site.until(lambda heard: heard.hellos)
        now = time.time()
        site.run(
            site.order("limit", f"{daemon}; trap '' TERM; sleep 300 & wait; sleep 300", limit=0.5)
        )
        site.run(
            site.order("window", "trap 'echo told; exit 7' TERM; sleep 300 & wait", until=now + 0.7)
        )
        await site.until(ended("limit"))
        assert site.heard.runs["window"].state == "running"
        site.run(site.order("wide", "true", processors=2))
        await site.until(ended("window", "wide"))
        site.run(site.order("killed", "sleep 300"), site.order("leaves", daemon))
        await site.until(
            lambda heard: heard.runs.get("killed", heard.runs["limit"]).state == "running"
        )
        site.hub.send(PILOT, kills=["killed", "unknown"])
        await site.until(ended("killed", "leaves"))
        runs = site.heard.runs
        assert (runs["limit"].signal, runs["limit"].why) == (signal.SIGKILL, "limit")
        assert (runs["window"].code, runs["window"].why) == (7, "until")
        assert site.read("window") == "told\n"
        assert (runs["killed"].signal, runs["killed"].why) == (signal.SIGTERM, "killed")
        assert (runs["leaves"].code, runs["leaves"].why) == (0, "")
        for name in ("limit", "leaves"):
            assert not Path(f"/proc/{int(site.read(name, 'child'))}").exists()


async def test_runs_go_on_while_the_site_is_away_and_are_told_until_it_knows(
    tmp_path: Path,
) -> None:
    """What is sent again to the pilot that has it runs once; what has ended is told until it is known."""
    async with listening_site(tmp_path) as site:
        async with pilot(site):
            await site.until(lambda heard: heard.hellos)
            script = f"echo once >>{tmp_path}/log; until test -e {tmp_path}/go; do sleep 0.05; done"
            long, short = site.order("long", script), site.order("short", "exit 4")
            site.run(long, short)
            await site.until(lambda heard: "short" in heard.ends and "long" in heard.runs)
            await site.hub.close()
            (tmp_path / "go").touch()
            await until(lambda: "ended" in site.read("long", "begun"))
            # A new process: another port and another certificate; it has not seen an end.
            again = SmallSite(tmp_path)
            await again.open()
            again.heard.runs.clear()
            await again.until(lambda heard: heard.hellos)
            assert {told.run: (told.state, told.code) for told in again.heard.hellos[0].runs} == {
                "long": ("ended", 0),
                "short": ("ended", 4),
            }
            again.run(long, short)
            again.hub.send(PILOT, known=["long"])
            again.run(again.order("next", "true"))
            await again.until(ended("next"))
            assert again.heard.ends.count("long") == 1
            await again.hub.close()
            last = SmallSite(tmp_path)
            await last.open()
            await last.until(lambda heard: heard.hellos)
            assert {told.run for told in last.heard.hellos[0].runs} == {"short", "next"}
            await last.hub.close()
        assert (tmp_path / "log").read_text() == "once\n"


async def test_a_folder_that_is_there_is_no_fresh_one(tmp_path: Path) -> None:
    """A run that began in another pilot, or in a job that was started anew, does not begin again."""
    async with listening_site(tmp_path) as site:
        async with pilot(site) as process:
            await site.until(lambda heard: heard.hellos)
            site.run(site.order("run", f"echo once >>{tmp_path}/log"))
            await site.until(ended("run"))
            process.kill()
            await process.wait()
        async with pilot(site):
            await site.until(lambda heard: len(heard.hellos) == 2)
            site.run(site.order("run", f"echo twice >>{tmp_path}/log"))
            site.run(
                {**site.order("prepared", "true"), "files": None, "folder": str(tmp_path / "run")}
            )
            await site.until(
                lambda heard: heard.ends.count("run") == 2 and "prepared" in heard.ends
            )
            assert site.heard.runs["run"].why == "folder"
            assert "File exists" in site.heard.runs["run"].problem
            assert site.heard.runs["prepared"].problem == "it has begun before"
        assert (tmp_path / "log").read_text() == "once\n"


async def test_a_run_that_cannot_have_its_folder_says_so(tmp_path: Path) -> None:
    """It has not begun, and others go on."""
    async with listening_site(tmp_path) as site:
        async with pilot(site):
            await site.until(lambda heard: heard.hellos)
            site.run({**site.order("nowhere", "true"), "folder": str(tmp_path / "not" / "there")})
            full = site.order("full", "true")
            full["files"][0][0] = "../full/values"
            site.run(full, site.order("other", "true"))
            await site.until(ended("nowhere", "other"))
        told = site.heard.runs["nowhere"]
        assert (told.start, told.why) == (None, "folder")
        assert "No such file" in told.problem
        assert site.heard.runs["other"].code == 0


async def test_a_full_disk_lets_nothing_begin_and_breaks_nothing(tmp_path: Path) -> None:
    """Runs that do not begin are told as such; when there is room again, runs begin."""
    small = tmp_path / "small"
    small.mkdir()

    with mounted(small):
        async with listening_site(tmp_path) as site, pilot(site):
            await site.until(lambda heard: heard.hellos)
            free = fill(small / "others", inodes=False)
            site.run({**site.order("full", "true"), "folder": str(small / "full")})
            await site.until(ended("full"))
            told = site.heard.runs["full"]
            assert (told.start, told.why, told.code) == (None, "folder", None)
            assert "No space left" in told.problem
            free()
            site.run({**site.order("room", "true"), "folder": str(small / "room")})
            await site.until(ended("room"))
            assert site.heard.runs["room"].code == 0


async def test_a_pilot_that_is_told_to_drain_ends_with_its_last_run(tmp_path: Path) -> None:
    """What waits is told as not begun, what runs goes on; then it leaves, with exit code 0."""
    async with listening_site(tmp_path) as site:
        async with pilot(site) as process:
            await site.until(lambda heard: heard.hellos)
            site.run(
                site.order("runs", f"until test -e {tmp_path}/go; do sleep 0.05; done; exit 5"),
                site.order("waits", "true", begin=time.time() + 30),
            )
            await site.until(lambda heard: "runs" in heard.runs)
            process.send_signal(signal.SIGUSR1)
            await site.until(ended("waits"))
            site.run(site.order("late", "true"))
            await site.until(ended("late"))
            (tmp_path / "go").touch()
            await site.until(lambda heard: heard.left)
            site.hub.let_go(PILOT)
            assert await process.wait() == 0
        runs = site.heard.runs
        assert (runs["runs"].code, runs["runs"].why) == (5, "")
        assert (runs["waits"].start, runs["waits"].why) == (None, "pilot")
        assert (runs["late"].start, runs["late"].why) == (None, "pilot")
        assert "SIGUSR1" in site.heard.drained[0]


async def test_a_pilot_that_the_batch_system_ends_tells_how_its_runs_ended(tmp_path: Path) -> None:
    """They are ended first, and the last word comes even where the site was away at that moment."""
    async with listening_site(tmp_path) as site, pilot(site) as process:
        await site.until(lambda heard: heard.hellos)
        site.run(site.order("runs", "sleep 300"))
        await site.until(lambda heard: "runs" in heard.runs)
        await site.hub.close()
        process.send_signal(signal.SIGTERM)
        await until(lambda: "ended" in site.read("runs", "begun"))
        again = SmallSite(tmp_path)
        await again.open()
        await again.until(lambda heard: heard.left or (heard.hellos and heard.hellos[0].over))
        told = again.heard.runs["runs"]
        assert (told.signal, told.why) == (signal.SIGTERM, "pilot")
        again.hub.let_go(PILOT)
        assert await process.wait() == 0
        await again.hub.close()


async def test_a_run_that_is_ended_with_its_pilot_says_so(tmp_path: Path) -> None:
    """Also where the signal has come to it first; one that is killed alone has failed by itself."""
    async with listening_site(tmp_path) as site:
        async with pilot(site) as process:
            await site.until(lambda heard: heard.hellos)
            site.run(site.order("alone", "kill -TERM $$"), site.order("first", "sleep 300"))
            await site.until(ended("alone"))
            await site.until(lambda heard: "first" in heard.runs)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            os.kill(int(children[0]), signal.SIGTERM)
            process.send_signal(signal.SIGTERM)
            await site.until(ended("first"))
            await site.until(lambda heard: heard.left)
            site.hub.let_go(PILOT)
            assert await process.wait() == 0
        runs = site.heard.runs
        assert (runs["alone"].signal, runs["alone"].why) == (signal.SIGTERM, "")
        assert (runs["first"].signal, runs["first"].why) == (signal.SIGTERM, "pilot")


async def test_a_run_whose_shell_says_how_its_command_was_ended_is_ended_with_its_pilot(
    tmp_path: Path,
) -> None:
    """A batch system sends a signal to every process: the shell may outlive its command, and exits with 128 and more."""
    async with listening_site(tmp_path) as site:
        async with pilot(site) as process:
            await site.until(lambda heard: heard.hellos)
            words = "trap 'exit 143' TERM; touch ready; sleep 300 & wait"
            site.run(site.order("alone", "exit 143"), site.order("terminated", words))
            await site.until(ended("alone"))
            await until((site.folder / "terminated/ready").exists)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for child in children:  # to the runs first
                os.kill(int(child), signal.SIGTERM)
            process.send_signal(signal.SIGTERM)
            await site.until(ended("terminated"))
            await site.until(lambda heard: heard.left)
            site.hub.let_go(PILOT)
            assert await process.wait() == 0
        runs = site.heard.runs
        assert (runs["alone"].code, runs["alone"].why) == (143, "")
        assert (runs["terminated"].code, runs["terminated"].why) == (143, "pilot")


async def test_a_damaged_message_ends_the_connection_and_no_run(tmp_path: Path) -> None:
    """The pilot connects anew, and what was sent after it is asked for by its hello."""
    async with listening_site(tmp_path) as site, pilot(site) as process:
        await site.until(lambda heard: heard.hellos)
        site.run(site.order("goes on", "until test -e go; do sleep 0.1; done"))
        await site.until(lambda heard: "goes on" in heard.runs)
        for times, damaged in enumerate(
            ({}, 7, site.order("1", "true", begin="now"), site.order("1", "true", limit=None)),
            1,
        ):
            site.hub.send(PILOT, runs=[damaged])
            await site.until(lambda heard, times=times: len(heard.hellos) == times + 1)
        site.hub.send(PILOT, runs={"run": 1})
        await site.until(lambda heard: len(heard.hellos) == 6)
        site.run(site.order("after", "true"))
        await site.until(ended("after"))
        (site.folder / "goes on" / "go").touch()
        await site.until(ended("goes on"))
        assert {name: told.code for name, told in site.heard.runs.items()} == {
            "goes on": 0,
            "after": 0,
        }
        process.terminate()
        await site.until(lambda heard: heard.left)
        site.hub.let_go(PILOT)
        assert await process.wait() == 0


@pytest.mark.parametrize("limit", ["idle_limit", "wall_time"])
async def test_a_pilot_ends_by_itself(limit: str, tmp_path: Path) -> None:
    """Without work for its idle limit, and before its wall time; runs keep the first from being reached."""
    async with listening_site(tmp_path, **{limit: 1.0, "spare": 0.0}) as site:
        async with pilot(site) as process:
            await site.until(lambda heard: heard.hellos)
            site.run(site.order("runs", "sleep 1.5; exit 2"))
            await site.until(lambda heard: heard.left)
            site.hub.let_go(PILOT)
            assert await process.wait() == 0
        told = site.heard.runs["runs"]
        assert (told.code, told.why) == ((2, "") if limit == "idle_limit" else (None, "pilot"))


async def test_nobody_else_is_believed(tmp_path: Path) -> None:
    """A pilot with another secret is refused, and a site with another certificate is told nothing."""
    async with listening_site(tmp_path) as site:
        contact = site.hub.place(PILOT) / "contact.json"
        right = contact.read_text()
        known = json.loads(right)
        assert contact.stat().st_mode & 0o077 == 0
        assert contact.parent.stat().st_mode & 0o077 == 0
        contact.write_text(json.dumps({**known, "secret": known["secret"][::-1]}))
        async with pilot(site):
            other = SmallSite(tmp_path / "other")
            (tmp_path / "other").mkdir()
            await until(lambda: "pilot_refused" in site.said)
            assert not site.heard.hellos
            await other.open()
            stranger = json.loads((other.hub.place(PILOT) / "contact.json").read_text())
            contact.write_text(json.dumps({**known, "port": stranger["port"]}))
            await until(lambda: "certificate" in (tmp_path / "agent.log").read_text())
            assert not other.heard.hellos
            contact.write_text(right)
            await site.until(lambda heard: heard.hellos)
            await other.hub.close()


def test_the_agent_needs_the_standard_library_alone() -> None:
    """It is copied to nodes where nothing of this package is."""
    text = Path(agent.__file__).read_text(encoding="utf-8")
    words = [
        line.split()[1].partition(".")[0]
        for line in text.splitlines()
        if line.startswith(("import ", "from "))
    ]
    assert set(words) <= sys.stdlib_module_names


async def test_runs_of_a_group_share_its_processors_in_their_order(tmp_path: Path) -> None:
    """One after the other without a word of the site's, and others run beside it; one that is cancelled is passed over."""
    async with listening_site(tmp_path) as site:
        async with pilot(site):
            await site.until(lambda heard: heard.hellos)
            group = {"group": "7", "share": 1, "length": 1.0}
            names = [f"g{number}" for number in range(6)]
            line = "while [ ! -e ../gate ]; do sleep 0.05; done; echo {} >>../order"
            site.run(
                *(site.order(name, line.format(name), **group) for name in names),
                site.order("beside", "true"),
            )
            await site.until(lambda heard: "g0" in heard.runs)
            site.hub.send(PILOT, kills=["g3"], withdraws=["g4", "g0"])
            await site.until(ended("g3", "g4", "beside"))
            (tmp_path / "gate").touch()
            await site.until(ended(*names))
            # Nothing is left of a group whose runs are over: a later one of that name is as new.
            site.run(site.order("late", "true", **group))
            await site.until(ended("late"))
        runs = site.heard.runs
        spans = [
            (runs[name].start or 0.0, runs[name].end or 0.0) for name in ("g0", "g1", "g2", "g5")
        ]
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
        assert (tmp_path / "order").read_text().split() == ["g0", "g1", "g2", "g5"]
        assert {(runs[name].start, runs[name].why) for name in ("g3", "g4")} == {(None, "killed")}
        assert runs["late"].code == runs["beside"].code == 0


async def test_what_a_group_has_no_time_for_is_handed_back(tmp_path: Path) -> None:
    """It has not begun, while what runs goes on, also where no processor is free."""
    async with listening_site(tmp_path) as site:
        async with pilot(site):
            await site.until(lambda heard: heard.hellos)
            now = time.time()
            group = {"group": "7", "share": 2, "length": 0.5, "until": now + 1.0}
            slow = f"while [ ! -e {tmp_path}/gate ]; do sleep 0.05; done"
            site.run(
                *(site.order(f"slow{number}", slow, **group) for number in range(2)),
                *(site.order(f"g{number}", "true", **group) for number in range(3)),
            )
            await site.until(ended("g0", "g1", "g2"))
            assert site.heard.runs["slow0"].state == "running"
            (tmp_path / "gate").touch()
            await site.until(ended("slow0", "slow1"))
        runs = site.heard.runs
        assert {runs[f"g{number}"].why for number in range(3)} == {"until"}
        assert {runs[f"g{number}"].start for number in range(3)} == {None}
        assert [runs[f"slow{number}"].code for number in range(2)] == [0, 0]
