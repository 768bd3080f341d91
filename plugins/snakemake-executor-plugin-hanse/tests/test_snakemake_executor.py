"""The executor over a site that fails in all ways; `benchmarks.snakemake_jobs` runs it under Snakemake and a real Slurm."""

import errno
from pathlib import Path

import pytest
from snakemake_interface_common.exceptions import WorkflowError

from grms.client import Outcome, SiteError
from snakemake_executor_plugin_hanse import Executor, common_settings
from snakemake_executor_plugin_hanse.open_jobs import OpenJobs, grouped
from snakemake_scene import FakeSite, RuleJob, Scene, file


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSite:
    made = FakeSite()
    monkeypatch.setattr("snakemake_executor_plugin_hanse.site_jobs.SyncClient", made)
    monkeypatch.delenv("HANSE_SOCKET", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Snakefile").write_text("rule all")
    (tmp_path / "in.txt").write_text("given")
    return made


async def test_files_travel_and_come_home(site: FakeSite, tmp_path: Path) -> None:
    """With the sources, and with a folder and a log; the site keeps none of them."""
    scene = Scene(site, sites="a,b", runtime=7)
    outputs = ["out/x", file("d", directory=True), file("e", directory=True)]
    scene.run(RuleJob("r", input=["in.txt"], output=outputs, log=["r.log"], threads=2))
    wanted = site.wanted["home-1"]
    assert set(wanted["inputs"]) == {"in.txt", ".hanse-sources.tar.gz"}
    assert wanted["outputs"] == ["out/x", "d/", "e/", "r.log"]
    assert wanted["script"] == "#!/bin/sh\ntar -xzf .hanse-sources.tar.gz || exit 1\nrun r\n"
    assert (wanted["needs"].processors, wanted["needs"].wall_time) == (2, 420.0)
    assert (wanted["sites"], wanted["home_only"]) == (["a", "b"], False)
    assert wanted["environment"] == {"WORD": "said"}
    assert scene.executor.additional_general_args() == "--directory ."
    assert await scene.look() == 1
    site.left["r"] = {
        "stdout": b"x",
        "out/x": b"made",
        "d/y/z": b"",
        "r.log": b"said",
        "other": b"",
    }
    site.end("home-1", Outcome.COMPLETED, exit_code=0)
    site.incomplete.add("home-1")
    assert await scene.look() == 1  # not everything has come from a partner
    site.incomplete.clear()
    (tmp_path / "r.log").write_text("of an earlier attempt")
    assert await scene.look() == 0
    assert (scene.executor.succeeded, scene.executor.failed) == (["r"], {})
    assert (tmp_path / "out/x").read_bytes() == b"made"
    assert (tmp_path / "d/y/z").exists()
    assert (tmp_path / "e").is_dir()
    assert (tmp_path / "r.log").read_text() == "said"
    assert not (tmp_path / "other").exists()
    scene.executor.shutdown()
    assert site.removed == ["home-1"]


async def test_a_run_after_one_that_was_killed_finds_its_jobs(
    site: FakeSite, tmp_path: Path
) -> None:
    """Whether they run, have ended, or were brought home without a note of it; and only where nothing has changed."""
    rules = [RuleJob(name, input=["in.txt"], output=[name]) for name in "abcd"]
    first = Scene(site)
    first.run(*rules)
    for job, name in (("home-1", "a"), ("home-2", "b")):
        site.left[name] = {name: b"made"}
        site.end(job, Outcome.COMPLETED, exit_code=0)
        await first.look()
        site.calls.clear()
    assert first.executor.succeeded == ["a", "b"]
    assert site.removed == ["home-1"]  # b was not noted before the run was killed
    site.end("home-3", Outcome.FAILED, exit_code=1)
    again = Scene(site)
    again.executor.format_job_exec = lambda job: f"{job.name} run"  # in another order
    again.run(*rules)
    assert len(site.jobs) == 5  # with the next look b's would have been over as well
    assert await again.look() == 2
    assert again.executor.succeeded == ["b"]
    assert set(again.executor.failed) == {"c"}
    again.run(rules[2])
    (tmp_path / "in.txt").write_text("given anew")
    again.run(rules[3])
    assert len(site.jobs) == 7
    again.executor.cancel()
    assert list((tmp_path / ".snakemake/hanse_open").iterdir()) == []


async def test_on_a_shared_disk_nothing_travels(site: FakeSite, tmp_path: Path) -> None:
    """Jobs run at home, unless their user names sites that see the disk."""
    Scene(site, shared=True).run(RuleJob("r", input=["in.txt"], output=["x"]))
    wanted = site.wanted["home-1"]
    assert wanted["script"] == f"#!/bin/sh\ncd {tmp_path} || exit 1\nrun r\n"
    assert "inputs" not in wanted
    assert wanted["home_only"]
    scene = Scene(site, shared=True, sites="b")
    scene.run(RuleJob("s", output=["x"]))
    assert not site.wanted["home-2"]["home_only"]
    site.end("home-2", Outcome.COMPLETED, exit_code=0)
    assert await scene.look() == 0
    assert scene.executor.succeeded == ["s"]
    assert common_settings.can_transfer_local_files


async def test_every_other_end_is_a_failure_with_its_reason(site: FakeSite, tmp_path: Path) -> None:
    """Nothing is waited for that has ended; what a failed job has printed and logged comes home, its outputs do not."""
    scene = Scene(site)
    names = ["code", "signal", "gone", "over", "node", "memory", "lost", "plain", "forgotten"]
    scene.run(*(RuleJob(name, output=[f"{name}.x"], log=[f"logs/{name}"]) for name in names))
    site.left["code"] = {"stdout": b"no such luck", "logs/code": b"why", "code.x": b"half"}
    site.left["over"] = {"logs/over": b"so far"}
    site.end("home-1", Outcome.FAILED, exit_code=3, executed_on="b")
    site.end("home-2", Outcome.FAILED, signal=9)
    site.end("home-3", Outcome.CANCELLED, reason="by its user")
    site.end("home-4", Outcome.TIMEOUT)
    site.end("home-5", Outcome.NODE_FAIL)
    site.end("home-6", Outcome.OUT_OF_MEMORY)
    site.end("home-7", Outcome.UNKNOWN)
    site.end("home-8", Outcome.FAILED)
    del site.jobs["home-9"]
    assert await scene.look() == 0
    failed = {name: reason.strip() for name, reason in scene.executor.failed.items()}
    assert failed == {
        "code": "Job home-1 ended with exit code 3 at b.",
        "signal": "Job home-2 was ended by signal 9.",
        "gone": "Job home-3 was cancelled: by its user.",
        "over": "Job home-4 was ended at the limit of its requested time (1 min).",
        "node": "Job home-5 was lost with its node.",
        "memory": "Job home-6 was ended as it needed more memory than it had.",
        "lost": "Job home-7 is over, and nobody can say how it ended.",
        "plain": "Job home-8 failed.",
        "forgotten": "The site has no such job: there is no job of that name (NOT_FOUND).",
    }
    assert scene.executor.logs == [".snakemake/hanse_logs/home-1/stdout"]
    assert (tmp_path / scene.executor.logs[0]).read_text() == "no such luck"
    logs = {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()}
    assert logs == {"code": "why", "over": "so far"}
    assert not (tmp_path / "code.x").exists()
    assert scene.executor.succeeded == []


async def test_a_lost_answer_makes_no_second_job(site: FakeSite) -> None:
    """The same key goes again, with the next look, for as long as it takes."""
    scene = Scene(site)
    site.loses = True
    scene.run(RuleJob("a"), RuleJob("b"))
    assert await scene.look() == 2
    assert scene.executor.active_jobs[0].external_jobid is None
    site.loses = False
    assert await scene.look() == 2
    assert [each.external_jobid for each in scene.executor.active_jobs] == ["home-1", "home-2"]
    assert len(site.jobs) == 2
    assert len(scene.told) == 1  # and not with every attempt


async def test_a_site_that_is_away_is_waited_for(site: FakeSite) -> None:
    scene = Scene(site)
    scene.run(RuleJob("a"))
    site.is_away = True
    assert [await scene.look(), await scene.look()] == [1, 1]
    assert len(scene.told) == 1
    site.is_away = False
    site.end("home-1", Outcome.COMPLETED, exit_code=0)
    assert await scene.look() == 0
    assert scene.executor.succeeded == ["a"]


async def test_one_call_asks_for_all_jobs(site: FakeSite) -> None:
    scene = Scene(site)
    scene.run(*(RuleJob(f"r{n}") for n in range(200)))
    site.calls.clear()
    assert await scene.look() == 200
    assert site.calls == ["get_many"]


async def test_a_look_before_the_executor_is_complete_finds_nothing() -> None:
    """Snakemake starts its thread for looks first; if that ended by an error, it would wait for ever."""
    incomplete = Executor.__new__(Executor)
    assert [each async for each in incomplete.check_active_jobs([])] == []


async def test_what_is_refused_stops_no_other(site: FakeSite) -> None:
    """By the site, by the client, and here."""
    (Path.cwd() / "bad").touch()
    scene = Scene(site)
    scene.run(
        RuleJob("none", resources={"partition": "none"}),
        RuleJob("bad", input=["bad"]),
        RuleJob("far", input=["/etc/hosts"]),
        RuleJob("word", resources={"runtime": "soon"}),
        RuleJob("good"),
    )
    assert {name: name in str(why) for name, why in scene.executor.failed.items()} == {
        "none": True,
        "bad": True,
        "far": False,
        "word": False,
    }
    assert "/etc/hosts is not below" in scene.executor.failed["far"]
    assert "runtime is 'soon'" in scene.executor.failed["word"]
    assert await scene.look() == 1
    assert [each.name for each in site.jobs.values()] == ["good"]


@pytest.mark.parametrize(
    ("problem", "why"),
    [("", "the job has left no such file"), ("too_large", "it is larger than the site hands out")],
)
async def test_an_output_that_is_not_there_is_a_failure(
    site: FakeSite, problem: str, why: str
) -> None:
    """What the site has is not deleted then."""
    scene = Scene(site)
    scene.run(RuleJob("r", output=["x", file("t", temp=True)], log=["l"]))
    if problem:
        site.problems["x"] = problem
    site.end("home-1", Outcome.COMPLETED, exit_code=0)
    assert await scene.look() == 0
    assert f"x is not brought: {why}" in scene.executor.failed["r"]
    assert site.removed == []
    again = Scene(site)
    again.run(RuleJob("s", output=[file("t", temp=True)], log=["l"]))
    site.end("home-2", Outcome.COMPLETED, exit_code=0)
    assert await again.look() == 0
    assert again.executor.succeeded == ["s"]


async def test_ctrl_c_cancels_all_jobs(site: FakeSite) -> None:
    """Also those that are being looked at, and those whose answers were lost; then the connection ends."""
    scene = Scene(site)
    scene.run(RuleJob("a"))
    site.loses = True
    scene.run(RuleJob("b"))
    scene.executor.active_jobs = []
    scene.executor.cancel()
    assert [each.outcome for each in site.jobs.values()] == [Outcome.CANCELLED] * 2
    assert not site.is_open


def test_a_site_that_cannot_be_cancelled_at_is_told(site: FakeSite) -> None:
    scene = Scene(site)
    scene.run(RuleJob("a"))
    site.is_away = True
    scene.executor.cancel()
    assert "may go on" in scene.told[0]
    assert "home-1" in scene.told[0]


def test_a_site_has_to_be_named_and_to_answer(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nothing begins."""
    with pytest.raises(WorkflowError, match="no site is named"):
        Scene(site, socket="")
    monkeypatch.setenv("HANSE_SOCKET", "users.sock")
    Scene(site, socket="")
    site.is_away = True
    with pytest.raises(WorkflowError, match="no daemon answers"):
        Scene(site)
    assert not site.is_open


@pytest.mark.parametrize("content", [b"", b"\xff\0", b"snakemake-12", b"\0" * 42])
async def test_a_damaged_key_is_none(site: FakeSite, tmp_path: Path, content: bytes) -> None:
    """A job goes with a new one, which is kept."""
    rule = RuleJob("a", input=["in.txt"], output=["a"])
    Scene(site).run(rule)
    [path] = (tmp_path / ".snakemake/hanse_open").iterdir()
    path.write_bytes(content)
    for _ in range(2):
        again = Scene(site)
        again.run(rule)
        assert not again.executor.failed
    assert len(site.jobs) == 2
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_leaves_no_half_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job is not begun, and the reason is said."""

    def full(path: Path, *_: object) -> None:
        path.write_bytes(b"")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        OpenJobs(tmp_path).key({}, [])
    assert list(tmp_path.iterdir()) == []


async def test_where_nobody_knows_what_has_changed_a_job_is_new(site: FakeSite) -> None:
    """On a shared disk without a git that says it, and for what is in a storage."""

    def no_git() -> list[str]:
        raise WorkflowError("fatal: detected dubious ownership in repository")

    for count in (1, 2):
        scene = Scene(site, shared=True)
        scene.executor.dag.get_sources = no_git
        scene.run(RuleJob("a", input=["in.txt"], output=["a"]))
        assert not scene.executor.failed
        assert len(site.jobs) == count
    for count in (3, 4):
        Scene(site).run(RuleJob("b", input=[file("s3://x", is_storage=True)], output=["b"]))
        assert len(site.jobs) == count


async def test_keys_that_cannot_be_asked_for_stop_nothing(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its key a job that is there stays one job."""
    rule = RuleJob("a", input=["in.txt"], output=["a"])
    Scene(site).run(rule)
    again = Scene(site)

    def refused(*_: object, **__: object) -> None:
        raise SiteError("RESOURCE_EXHAUSTED", "too many calls")

    monkeypatch.setattr(site, "get_many", refused)
    again.run(rule)
    assert not again.executor.failed
    assert len(site.jobs) == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("run --mode x --triggers a b", "run --triggers b a --mode x", True),
        ("run --target-jobs 'r:x=a p q b'", "run --target-jobs 'r:x=a q p b'", False),
        ("run --cores 1 --jobs 2", "run --cores 2 --jobs 1", False),
        ("it's run", "it's  run", False),
    ],
)
def test_commands_that_differ_in_more_than_order_are_others(
    one: str, other: str, same: bool
) -> None:
    """Of options, and of the values of one."""
    assert (grouped(one) == grouped(other)) is same
