"""Two sites above two real batch systems that exchange jobs which really run."""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest

from grms.cli.main import run_command
from grms.client import Client
from grms.daemon.ports import free_port
from grms.site.staging.quotas import inputs_of
from grms.site.wire.convert import is_to_fetch
from grms.v1 import job_pb2, request_pb2
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.slurm import REAL_SLURM, SlurmCluster, need_slurm
from tests.grms.site.daemons import Running, document, running
from tests.waiting import TIME_OUT_S, until

CPUS = 8
GIVEN = b"given, " * 20_000
"""A file that jobs are given: more than travels at one time."""


def table(cluster: SlurmCluster | FakeSlurm, folder: Path) -> dict[str, Any]:
    """Returns the table `[lrms]` of a cluster."""
    found = {
        "kind": "slurm",
        "poll_s": 0.4,
        "settle_s": 0.0,
        "spool": str(folder),
        "completion_log": cluster.completion_log,
    }
    place = cluster.environment.get("SLURM_CONF")
    return found | ({"configuration": place} if place else {"programs": cluster.programs})  # type: ignore[union-attr]  # the fake


async def submitted(site: Running, key: str, script: str, processors: int) -> job_pb2.Job:
    """Submits a job with a script."""
    request = job_pb2.SubmitRequest(idempotency_key=key)
    request.request.processors = processors
    request.request.requested_time_s = 600.0
    request.request.program.script = script
    request.request.program.arguments.extend(["a b", "$(id)"])
    request.request.program.environment["VALUE"] = "x'y"
    request.request.program.outputs.extend(["made/here.bin", "link", "absent"])
    given = request.request.program.inputs.add(name="data/in", size_bytes=len(GIVEN))
    given.sha256 = hashlib.sha256(GIVEN).digest()
    put = job_pb2.PutInputRequest(file=given, content=GIVEN)
    assert (await site.jobs.PutInput(put, timeout=TIME_OUT_S)).held_bytes == len(GIVEN)
    job: job_pb2.Job = await site.jobs.Submit(request, timeout=TIME_OUT_S)
    return job


async def launched(site: Running, job: job_pb2.Job, log: Path, lines: int) -> None:
    """Waits until a script has said that it runs; one that ended before fails the test at once."""

    def lines_or_end() -> bool:
        job_now = site.core.engine.state.job(job.job_id)
        assert job_now is not None
        assert job_now.outcome is None, job_now
        return log.exists() and len(log.read_text().splitlines()) == lines

    await until(lines_or_end)


async def home_again(job_id: str, folder: Path, code: int) -> None:
    """Looks at what a job has left, as its user does."""
    socket = str(folder / "north.sock")
    async with Client(socket, timeout_s=TIME_OUT_S) as user:
        results = await user.results(job_id, wait=True)
    assert (results.complete, results.problem) == (True, "")
    assert {file.name: file.problem for file in results.files} == {
        "stdout": "",
        "stderr": "",
        "made/here.bin": "",
        "link": "no_file",
        "absent": "missing",
    }
    target = folder / f"came-{job_id}"
    words = ["fetch", job_id, "--socket", socket, "--output", str(target)]
    assert await asyncio.to_thread(run_command, words) == 1
    assert (target / "stdout").read_text() == f"said by {code}\n"
    assert (target / "stderr").read_text() == "not well\n"
    assert (target / "made/here.bin").read_bytes() == b"\0\n"
    assert sorted(path.name for path in target.iterdir()) == ["made", "stderr", "stdout"]


def left_alone(place: Path) -> bool:
    """Returns whether nothing is in a job's folder, and is kept of it but that it was there."""
    return not list(place.iterdir()) and (place.parent / ".marks" / f"{place.name}.json").exists()


def full_and_half(home: Running, partner: Running) -> bool:
    """Returns whether both know that a job of half a machine starts at once at the partner alone."""
    here, there = home.core.driver.load(), partner.core.driver.load()
    if here is None or there is None:
        return False
    free = (here.processors_free, there.processors_free, there.processors_waiting)
    return free == (0, CPUS // 2, 0)


def free_at(site: Running) -> int | None:
    """Returns how many processors are free by a site's newest look; None before one."""
    load = site.core.engine.load()
    return None if load is None else load.processors_free


async def in_place(site: Running, partner: Running, folder: Path) -> None:
    """Runs a job at the partner whose script and files are used where they lie."""
    place = folder / "shared/project"
    place.mkdir(parents=True)
    (place / "job.sh").write_text('#!/bin/sh\ncat data.csv "$1" >made.csv\nls >&2\n')
    (place / "job.sh").chmod(0o755)
    (place / "data.csv").write_text("data\n")
    words = ["submit", "--socket", str(folder / f"{site.name}.sock"), "-p", f"{CPUS // 2}"]
    words += ["-t", "600", "--script", str(place / "job.sh"), "--shared", "--wait"]
    words += ["--input", str(place / "data.csv"), "--result", str(place / "made.csv")]
    before = {path.name for path in folder.glob("*.inputs/*")}
    await until(lambda: full_and_half(site, partner))
    assert await asyncio.to_thread(run_command, [*words, str(place / "data.csv")]) == 0
    assert (place / "made.csv").read_text() == "data\n" * 2
    (*_, job) = site.core.engine.state.jobs()
    assert job.partner == "south"
    assert {path.name for path in folder.glob("*.inputs/*")} == before
    async with Client(str(folder / f"{site.name}.sock"), timeout_s=TIME_OUT_S) as user:
        results = await user.results(job.job_id, wait=True)
    assert [file.name for file in results.files] == ["stdout", "stderr"]
    (place / "data.csv").unlink()
    (place / "data.csv").symlink_to("/etc/passwd")
    assert await asyncio.to_thread(run_command, [*words, "x"]) == 2


async def sixty(sites: Mapping[str, Running], folder: Path) -> None:
    """Runs sixty jobs of both sites' users, each once, and looks at what has come home of them."""
    gate, log = folder / "second-gate", folder / "second-log"
    script = (
        f'#!/bin/sh\nprintf "%s|%s\\n" "$1" "$VALUE" >>{log}\n'
        f"while ! test -e {gate}; do sleep 0.1; done\n"
        'echo "said by $1"; mkdir made; printf "%s" "$VALUE" >made/here.bin; exit $2\n'
    )
    jobs: dict[str, tuple[Running, str, int]] = {}
    for number in range(60):
        site = sites["north" if number < 40 else "south"]
        request = job_pb2.SubmitRequest(idempotency_key=f"sixty {number}")
        request.request.processors = 1
        request.request.requested_time_s = 600.0
        program = request.request.program
        program.script = script
        program.arguments.extend([f"job {number}", str(number % 3)])
        program.environment["VALUE"] = f"'{number}'\t$"
        program.outputs.append("made/here.bin")
        job = await site.jobs.Submit(request, timeout=TIME_OUT_S)
        jobs[job.job_id] = (site, job.job_id, number)
    gate.touch()
    elsewhere = 0
    for site, job_id, number in jobs.values():
        job = await site.ended(job_id)
        assert job.exit_code == number % 3, job
        elsewhere += job.executed_on != site.name
        async with Client(folder / f"{site.name}.sock", timeout_s=TIME_OUT_S) as user:
            results = await user.results(job_id, wait=True)
            assert [file.problem for file in results.files] == ["", "", ""], (job, results)
            said = b"".join([some async for some in user.fetch(job_id, "stdout")])
            made = b"".join([some async for some in user.fetch(job_id, "made/here.bin")])
        assert (said, made) == (f"said by job {number}\n".encode(), f"'{number}'\t$".encode())
    assert elsewhere > 0
    lines = sorted(f"job {number}|'{number}'\t$" for number in range(60))
    assert sorted(log.read_text().splitlines()) == lines


async def as_with_sbatch(
    folder: Path, configuration: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Submits a job whose options Slurm reads, and one that no partner can be told of."""
    script = folder / "job.sh"
    script.write_text(
        "#!/bin/sh\n#SBATCH --ntasks=3 --time=0:90\n#SBATCH -J read\necho here; exit $1\n"
    )
    words = ["submit", "--socket", str(folder / "north.sock"), "--timeout", f"{TIME_OUT_S}"]
    capfd.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", configuration)
        patch.chdir(folder)
        assert await asyncio.to_thread(run_command, [*words, "--wait", str(script), "3"]) == 3
        more = ["--hold", "--array=1-2", f"--output={folder}/x", str(script)]
        assert await asyncio.to_thread(run_command, [*words, *more]) == 0
    out, error = capfd.readouterr()
    job_id = next(line for line in out.splitlines() if re.fullmatch(r"north-\d+", line))
    async with Client(folder / "north.sock", timeout_s=TIME_OUT_S) as user:
        job = await user.get(job_id)
    assert (job.processors, job.requested_time_s, job.name) == (3, 120.0, "read")
    assert re.search(r"^Submitted batch job \d+$", out, re.MULTILINE)
    assert "it stays at home for --hold: " in error
    # It ran where it was handed in, as by sbatch.
    (printed,) = folder.glob("slurm-*.out")
    assert printed.read_text() == "here\n"


@pytest.mark.parametrize("kind", [FakeSlurm, REAL_SLURM])
async def test_jobs_run_at_both_sites(
    kind: type[SlurmCluster] | type[FakeSlurm],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Each once, with arguments and environment; exit codes come home from the partner too."""
    if kind is SlurmCluster:
        need_slurm()
    ports = {name: free_port() for name in ("north", "south")}
    gate, log = tmp_path / "gate", tmp_path / "log"
    script = (
        f'#!/bin/sh\necho "$1|$2|$VALUE|$(wc -c <data/in)" >>{log}\n'
        f"while ! test -e {gate}; do sleep 0.1; done\n"
        "echo said by {code}; echo not well >&2; mkdir made; printf '\\0\\n' >made/here.bin\n"
        "ln -s /etc/passwd link\nexit {code}\n"
    )
    with ExitStack() as clusters:
        tables: dict[str, Mapping[str, Any]] = {}
        for name in ports:
            cluster = kind(tmp_path / f"cluster-{name}", nodes=1, cpus=CPUS)
            clusters.callback(cluster.down)
            cluster.up()
            tables[name] = table(cluster, tmp_path / f"spool-{name}")
        async with AsyncExitStack() as daemons:
            sites = {}
            for name, partner in (("north", "south"), ("south", "north")):
                written = document(
                    tmp_path, name, CPUS, {partner: ports[partner]}, ports[name], lrms=tables[name]
                )
                written["shared"] = {"roots": [str(tmp_path / "shared")]}
                written["partners"][0]["shared"] = True
                sites[name] = await daemons.enter_async_context(running(written, tmp_path))
            for site in sites.values():
                await site.linked()
            if kind is SlurmCluster:
                words = ["lrms", "check", str(tmp_path / "north.toml"), "--run"]
                assert await asyncio.to_thread(run_command, words) == 0
                looked = capfd.readouterr().out
                assert "one ran on" in looked
                assert not re.search(r"^NO", looked, re.MULTILINE)
                # Of the job that was run for it a look may still show what it had.
                await until(lambda: free_at(sites["north"]) == CPUS)
            first = await submitted(sites["north"], "1", script.format(code=3), CPUS)
            await launched(sites["north"], first, log, 1)
            second = await submitted(sites["north"], "2", script.format(code=5), CPUS // 2)
            await launched(sites["north"], second, log, 2)
            # The script went to the partner that had said yes, after that, and is in no journal there.
            (guest,) = sites["south"].core.engine.state.partners["north"].guests.values()
            assert is_to_fetch(guest.payload)
            came = (
                tmp_path / "south.inputs" / inputs_of(guest.lrms_key) / "content-0"
            ).read_bytes()
            assert came == GIVEN
            assert await asyncio.to_thread(
                run_command, ["partners", "--socket", str(tmp_path / "south.sock")]
            ) == 0  # fmt: skip
            (whose,) = re.findall(r"  guests of ([0-9a-f]{32}): (\S+)", capfd.readouterr().out)
            assert whose[1] == guest.lrms_key
            await in_place(sites["north"], sites["south"], tmp_path)
            gate.touch()
            ended = [await sites["north"].ended(job.job_id) for job in (first, second)]
            for job, code in zip(ended, (3, 5), strict=True):
                await home_again(job.job_id, tmp_path, code)
            # Of what has come home nothing is kept at the partner but that it was there.
            places = list((tmp_path / "spool-south").glob("*+*+*"))
            await until(lambda: list(map(left_alone, places)) == [True, True])
            if kind is SlurmCluster:
                await sixty(sites, tmp_path)
                await as_with_sbatch(tmp_path, tables["north"]["configuration"], capfd)
    assert [job.exit_code for job in ended] == [3, 5]
    assert [job.outcome for job in ended] == [request_pb2.OUTCOME_FAILED] * 2
    assert [job.executed_on for job in ended] == ["north", "south"]
    assert log.read_text() == f"a b|$(id)|x'y|{len(GIVEN)}\n" * 2
