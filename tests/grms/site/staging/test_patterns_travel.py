"""Two sites above batch systems: what globs and folders stand for comes home, whatever the job has put there."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from grms.cli.main import run_command
from grms.client import Client, Results
from grms.daemon.ports import free_port
from grms.site.wire.convert import write_request
from grms.v1 import job_pb2
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.slurm import REAL_SLURM, SlurmCluster, need_slurm
from tests.grms.site.daemons import Running, document, running
from tests.grms.site.test_real_batch import free_at, full_and_half, table
from tests.waiting import TIME_OUT_S, until

CPUS = 8
GIVEN = b"#!/bin/sh\necho tool\n"
HOSTILE = """#!/bin/sh
mkdir -p out/deep made
./tool >out/said
echo a >out/a.csv; echo b >out/deep/b.csv; echo c >"out/c
line.csv"
ln -s {secret} out/link.csv; ln -s {folder} out/folder; mkfifo out/pipe.csv
echo x >made/run; chmod 750 made/run
echo upper >made/NAME; echo lower >made/name
truncate -s 1T out/sparse.csv
echo plain >undeclared
"""


@asynccontextmanager
async def two_batch_sites(
    folder: Path, kind: type[SlurmCluster] | type[FakeSlurm] = FakeSlurm, **more: Any
) -> AsyncIterator[tuple[Running, Running, ExitStack]]:
    """Yields north, whose machine is full until `gate` is there in the folder, and south, with half of its own free."""
    ports = {name: free_port() for name in ("north", "south")}
    with ExitStack() as clusters:
        async with AsyncExitStack() as daemons:
            sites = {}
            for name, partner in (("north", "south"), ("south", "north")):
                cluster = kind(folder / f"cluster-{name}", nodes=1, cpus=CPUS)
                clusters.callback(cluster.down)
                cluster.up()
                lrms = table(cluster, folder / f"spool-{name}")
                written = document(
                    folder, name, CPUS, {partner: ports[partner]}, ports[name], lrms=lrms
                )
                written.update(more)
                sites[name] = await daemons.enter_async_context(running(written, folder))
            for site in sites.values():
                await site.linked()
            north, south = sites["north"], sites["south"]
            script = f"#!/bin/sh\nuntil test -e {folder}/gate; do sleep 0.1; done\n"
            await submitted(north, script, CPUS)
            await until(lambda: starts_at(north, south))
            yield north, south, clusters


async def submitted(
    site: Running, script: str, processors: int, outputs: tuple[str, ...] = (), **inputs: bytes
) -> str:
    """Submits a job, and returns its name."""
    request = job_pb2.SubmitRequest(idempotency_key=f"{processors} {len(script)}")
    request.request.processors, request.request.requested_time_s = processors, 600.0
    program = request.request.program
    program.script = script
    program.outputs.extend(outputs)
    for name, content in inputs.items():
        given = program.inputs.add(name=name, size_bytes=len(content), mode=0o755)
        given.sha256 = hashlib.sha256(content).digest()
        put = job_pb2.PutInputRequest(file=given, content=content)
        await site.jobs.PutInput(put, timeout=TIME_OUT_S)
    job: job_pb2.Job = await site.jobs.Submit(request, timeout=TIME_OUT_S)
    return job.job_id


def starts_at(home: Running, partner: Running) -> bool:
    """Returns whether a job that comes to a full site now would start at its partner."""
    here, there = home.core.driver.load(), partner.core.driver.load()
    return (
        here is not None
        and there is not None
        and (here.processors_free, there.processors_free) == (0, CPUS)
    )


async def test_output_is_named_as_its_user_has_written(tmp_path: Path) -> None:
    """Wherever it ran; both streams in one where only one has a name, and added to what is there where that is asked for."""
    async with two_batch_sites(tmp_path) as (north, south, _):
        words = [
            "submit",
            "--socket",
            str(tmp_path / "north.sock"),
            "-p",
            f"{CPUS // 2}",
            "-t",
            "600",
        ]
        words += ["--output", "logs/%x-%j.log", "--open-mode", "append", "--name", "run"]
        (tmp_path / "job.sh").write_text("#!/bin/sh\necho out\necho err >&2\n")
        words += ["--script", str(tmp_path / "job.sh")]
        assert await asyncio.to_thread(run_command, words) == 0
        await until(lambda: full_and_half(north, south))
        assert (await north.ended("north-2")).executed_on == "south"
        results = await left(tmp_path, "north-2")
        assert [(file.name, file.size_bytes) for file in results.files] == [
            *(("stdout", 8), ("stderr", 0)),
        ]
        came = tmp_path / "came"
        (came / "logs").mkdir(parents=True)
        (came / "logs/run-2.log").write_text("before\n")
        words = ["fetch", "north-2", "--socket", str(tmp_path / "north.sock")]
        assert await asyncio.to_thread(run_command, [*words, "--output", str(came)]) == 0
        assert (came / "logs/run-2.log").read_text() == "before\nout\nerr\n"
        assert [path.name for path in came.iterdir()] == ["logs"]
        job = north.core.engine.state.job("north-2")
        assert job is not None
        assert b"%x-%j" in job.payload
        assert b"%x-%j" not in write_request(job.request, job.payload).SerializeToString()


async def test_folders_patterns_and_urls_go_with_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the partner that runs it, with what can be run; all of it comes back as it was sent, or changed."""
    monkeypatch.chdir(tmp_path)
    for name in ("data/a.csv", "data/deep/b.csv", "part-1.txt", "part-2.txt", "far/away.bin"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "data/tool").write_text(
        "#!/bin/sh\ncat data/a.csv data/deep/b.csv part-?.txt away.bin\n"
    )
    (tmp_path / "data/tool").chmod(0o755)
    (tmp_path / "job.sh").write_text("#!/bin/sh\ndata/tool >all.txt; echo more >>part-1.txt\n")
    async with two_batch_sites(tmp_path) as (north, south, _):
        words = [
            "submit",
            "--socket",
            str(tmp_path / "north.sock"),
            "-p",
            f"{CPUS // 2}",
            "-t",
            "600",
        ]
        words += [
            "--input",
            "data/",
            "--input",
            "part-*.txt",
            "--input",
            f"file://{tmp_path}/far/away.bin",
        ]
        words += ["--script", "job.sh", "--result", "./"]
        assert await asyncio.to_thread(run_command, words) == 0
        await until(lambda: full_and_half(north, south))
        ended = await north.ended("north-2")
        assert (ended.executed_on, ended.exit_code) == ("south", 0)
        results = await left(tmp_path, "north-2")
        assert [file.name for file in results.files[2:]] == ["all.txt", "part-1.txt"]
        async with Client(tmp_path / "north.sock", timeout_s=TIME_OUT_S) as user:
            said = b"".join([some async for some in user.fetch("north-2", "all.txt")])
        assert said == b"data/a.csvdata/deep/b.csvpart-1.txtpart-2.txtfar/away.bin"


async def left(folder: Path, job_id: str) -> Results:
    """Returns what a job of north's has left, once all is there."""
    async with Client(folder / "north.sock", timeout_s=TIME_OUT_S) as user:
        return await user.results(job_id, wait=True)


@pytest.mark.parametrize("kind", [FakeSlurm, REAL_SLURM])
async def test_globs_and_folders_come_home(
    kind: type[SlurmCluster] | type[FakeSlurm], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With their permissions; what leads elsewhere, is too large or has no name that can travel is told, and stays."""
    if kind is SlurmCluster:
        need_slurm()
    (tmp_path / "secret").write_text("key")
    script = HOSTILE.format(secret=tmp_path / "secret", folder=tmp_path)
    async with two_batch_sites(tmp_path, kind) as (north, south, _):
        declared = ("out/**/*.csv", "made/", "out/said", "absent/*", "absent/")
        away = await submitted(north, script, CPUS // 2, declared, tool=GIVEN)
        await until(lambda: full_and_half(north, south))
        ended = await north.ended(away)
        assert (ended.executed_on, ended.exit_code) == ("south", 0)
        results = await left(tmp_path, away)
        assert {file.name: file.problem for file in results.files} == {
            "stdout": "",
            "stderr": "",
            "out/said": "",
            "out/a.csv": "",
            "out/deep/b.csv": "",
            "made/NAME": "",
            "made/name": "",
            "made/run": "",
            "out/sparse.csv": "too_large",
            "out/link.csv": "no_file",
            "out/pipe.csv": "no_file",
            "absent/*": "missing",
            "absent/": "missing",
        }
        assert (results.left_out, results.other_files) == (1, 2)  # the odd name, and `undeclared`
        (folder,) = (tmp_path / "spool-south").glob("north+*")
        await until(lambda: not (folder / "made/run").exists())
        assert (folder / "undeclared").exists()
        capfd.readouterr()
        words = ["fetch", away, "--socket", str(tmp_path / "north.sock")]
        words += ["--output", str(tmp_path / "came")]
        assert await asyncio.to_thread(run_command, words) == 1
        told = capfd.readouterr().err
        assert "not brought: 3 files" in told
        assert "1 of them the job has not declared; at least 1 are too many or have names" in told
        came = tmp_path / "came"
        assert (came / "out/said").read_text() == "tool\n"
        assert [(came / f"made/{name}").read_text() for name in ("NAME", "name")] == [
            *("upper\n", "lower\n"),
        ]
        assert (came / "made/run").stat().st_mode & 0o777 == 0o750
        assert not list(came.rglob("*link*"))


async def test_all_that_is_new_comes_home(tmp_path: Path) -> None:
    """Of the working folder, except for what was given and is as it was, and for the site's own; also at home."""
    script = "#!/bin/sh\nmkdir d; echo x >d/x; echo .h >.h; echo changed >>two\n"
    async with two_batch_sites(tmp_path) as (north, south, _):
        inputs = {"one": b"given", "two": b"given"}
        away = await submitted(north, script, CPUS // 2, ("./",), **inputs)
        await until(lambda: full_and_half(north, south))
        assert (await north.ended(away)).executed_on == "south"
        names = [file.name for file in (await left(tmp_path, away)).files]
        assert names == ["stdout", "stderr", ".h", "d/x", "two"]
        (tmp_path / "gate").touch()
        await until(lambda: free_at(north) == CPUS)
        home = await submitted(north, script + "\n", CPUS, ("./",), **inputs)
        assert (await north.ended(home)).executed_on == "north"
        results = await left(tmp_path, home)
        assert [file.name for file in results.files] == names
        assert results.other_files == 0
