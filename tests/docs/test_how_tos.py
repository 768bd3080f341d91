"""What the how-tos say to type can be typed, what they say to write is taken, and what is cheap is run."""

import asyncio
import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from broker.cli.main import run_command as gorba
from broker.io.jobshop import parse_flexible_job_shop
from grms.cli.main import run_command as grms
from grms.lrms.slurm.slurm_adapter import SlurmTable
from grms.site.config.load import load_config
from grms.v1 import job_pb2, request_pb2
from lrms_sim.cli.main import run_command as lrms_sim
from lrms_sim.util.trace_folders import LOG_FILES
from scenarios.cli.main import run_command as scenario
from tests.broker.brokers import configure, serving
from tests.docs.typed import HOW_TOS, ROOT, blocks, commands, page, parse
from tests.grms.site.daemons import Running, document, running
from tests.programs import run_program
from tests.waiting import run

PAGES = sorted(path.name for path in HOW_TOS.glob("*.md"))


@pytest.mark.parametrize("name", PAGES)
def test_commands_can_be_typed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is one, with options and arguments that it takes, where its files are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    # These are only looked for.
    for name_of_file in (LOG_FILES["ctc"], LOG_FILES["kth"], "hello.sh", "wait.sh"):
        (tmp_path / name_of_file).touch()
    monkeypatch.setenv("HANSE_TRACES", str(tmp_path))
    monkeypatch.setenv("HANSE_SOCKET", "users.sock")
    monkeypatch.setenv("GORBA_SOCKET", "broker.sock")
    typed = commands(page(name))
    assert typed or name == "backup-and-restore.md"
    for words in typed:
        parse(words)


@pytest.mark.parametrize("name", PAGES)
def test_no_umask_keeps_the_daemon_from_what_is_installed(name: str) -> None:
    """Pip keeps to the umask of the shell; one that is meant for a copy holds in a subshell alone."""
    for block in blocks(page(name), "sh"):
        before, installs, _ = block.partition("pip install")
        assert not installs or not re.search(r"^umask", before, re.MULTILINE)


def test_every_page_is_in_the_lists() -> None:
    """In the site's navigation and in the README."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in PAGES if f"how-to/{name}\n" not in navigation] == []
    assert [name for name in PAGES if f"docs/how-to/{name}" not in readme] == []


def site_of(name: str, folder: Path, *more: str) -> Path:
    """Returns a site's file made of the pieces of one on a page."""
    pieces = [text for text in blocks(page(name), "toml") if "[[sites]]" not in text]
    path = folder / "site.toml"
    path.write_text("\n".join([*more, *pieces]), encoding="utf-8")
    return path


LEAST = (
    'name = "north"\nprocessors = 4\njournal.path = "north.journal"\n'
    'listen = { users = "n.sock", partners = "127.0.0.1:7001" }\n'
)
NEIGHBOUR = '[[partners]]\nname = "south"\naddress = "127.0.0.1:7002"\n'


@pytest.mark.parametrize(
    "name", ["production.md", "a-partner-misbehaves.md", "other-languages.md", "pilots.md"]
)
def test_pieces_of_a_sites_file_are_taken(name: str, tmp_path: Path) -> None:
    """Every key is one, and every value is allowed."""
    head = () if name == "other-languages.md" else (LEAST,)
    path = site_of(name, tmp_path, *head)
    if name == "pilots.md":
        # Which has a workflow as well, and needs a real batch system.
        piece, *more = blocks(page(name), "toml")
        assert all("workflows" in each or "[[sites]]" in each for each in more)
        text = LEAST.replace("processors = 4", "processors = 128") + 'lrms = { kind = "slurm" }\n'
        path.write_text(text + piece, encoding="utf-8")
    path.write_text(re.sub(r"login\.\w+\.example", "127.0.0.1", path.read_text("utf-8")), "utf-8")
    load_config(path)


def test_the_table_for_preemption_is_taken(tmp_path: Path) -> None:
    """As the page has it, and as the command prints it there."""
    (piece,) = blocks(page("preemption.md"), "toml")
    assert piece.strip() in page("preemption.md").partition("## 2.")[0]
    path = tmp_path / "north.toml"
    path.write_text(f'{LEAST}[lrms]\nkind = "slurm"\n{piece}', encoding="utf-8")
    lrms = load_config(path).lrms
    assert isinstance(lrms, SlurmTable)
    assert lrms.preemption is not None
    assert lrms.preemption.needs_sudo


def test_from_a_log_to_a_policy_that_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's lines in its order, with few jobs and two generations of few children."""
    monkeypatch.chdir(tmp_path)
    text = page("train-on-our-logs.md")
    for block in blocks(text, "toml"):
        found = tomllib.loads(block)
        if "sites" in found:
            # Logs are as long as a test has time for: a twentieth.
            short = block.replace("_day = 25", "_day = 1.25").replace("days = ", "days = 0.")
            Path(f"{found['name']}.toml").write_text(short)
    for words in commands(text):
        if words[0] == "lrms-sim":
            assert lrms_sim([word.replace("3000", "150") for word in words[1:]]) == 0
        elif words[1] == "train":
            small = ["--generations", "1", "--parents", "2", "--offspring", "4", "--workers", "1"]
            assert grms([*words[1:], *small]) == 0
        elif words[0] == "scenario":
            assert scenario([*words[1:], "--no-html"]) == 0
        else:
            assert grms(words[1:]) == 0
    for name in ("learned", "awf"):
        result = json.loads(Path("out", name, "result.json").read_text(encoding="utf-8"))
        assert [site["name"] for site in result["sites"]] == ["ours", "theirs"]
        assert all(site["jobs"] > 10 for site in result["sites"])


@pytest.mark.usefixtures("forks")
def test_a_workflow_that_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The page's lines in its order, with tasks of parts of a second; what it says to be refused is; its program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GORBA_SOCKET", str(tmp_path / "gorba.sock"))
    text = page("growing-workflows.md")
    (refine,), (program,) = blocks(text, "toml"), blocks(text, "python")
    Path("refine.toml").write_text(refine.replace("20", "0.2"))
    Path("points.txt").write_text("0.1\n0.2\n0.3 --fine\n")
    Path("two.toml").write_text('[[resources]]\nname = "alpha"\n[[resources]]\nname = "beta"\n')
    with serving(configure(tmp_path, "[simulation]\nshortest = 0.5\n")) as (_, client):
        assert gorba(["resources", "add", "two.toml"]) == 0
        typed = commands(text)
        # What comes from a file is added before it is closed.
        typed.sort(key=lambda words: words[1] in {"close", "wait", "record", "generate", "plan"})
        for words in typed:
            if words[1] == "logs":
                continue  # nothing is run here
            short = [re.sub(r"^(1m|10s|20s|5s|4s)$", "0.3s", word) for word in words[1:]]
            assert gorba(short) == (3 if words[1] == "wait" else 0), words
        assert (
            len(json.loads(Path("sweep.json").read_text())["workflow"]["execution"]["tasks"]) == 9
        )
        (console,) = blocks(text, "console")
        gorba(["open", "sweep", "--key", "other"])
        gorba(["add", "sweep", "--name", "best", "--work", "5s", "--", "./pick-best"])
        capfd.readouterr()
        lines = console.splitlines()
        for line, refusal in zip(lines[::2], lines[1::2], strict=True):
            words = line.removeprefix("$ gorba ").replace(" --after fit", "").split()
            assert gorba(words) != 0
            assert capfd.readouterr().err == f"{refusal}\n"
        names: dict[str, Any] = {}
        exec(compile(program.replace("5.0", "0.3"), "growing", "exec"), names)  # noqa: S102  # the page's
        ended = client.get(names["search"](str(tmp_path / "gorba.sock"), 3))
        assert (len(ended.tasks), ended.tasks_simulated) == (3, 3)


def test_a_job_shop(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Those whose results do not depend on the machine end at the optimum."""
    monkeypatch.chdir(ROOT)
    (words,) = [words for words in commands(page("job-shops.md")) if "--evaluations" in words]
    assert gorba(words[1:]) == 0
    assert capsys.readouterr().out.rstrip().endswith("Makespan: 55")
    shown, flexible = blocks(page("job-shops.md"), "text")
    assert (ROOT / "docs/examples/ft06.txt").read_text("utf-8").startswith(shown)
    shop = tmp_path / "shop.fjs"
    shop.write_text(flexible, "utf-8")
    assert gorba(["jobshop", str(shop), "--evaluations", "200"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("Makespan: 7")
    first = parse_flexible_job_shop(flexible, file="page").workflows[0].tasks[0].alternatives
    assert [(each.primary, each.seconds) for each in first] == [("m0", 4.0), ("m2", 2.5)]


def test_a_project(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The pieces that are shown are the file's, and what is said of it is so."""
    monkeypatch.chdir(ROOT)
    (words,) = [words for words in commands(page("projects.md")) if "--evaluations" in words]
    assert gorba(words[1:]) == 0
    out = capsys.readouterr().out.splitlines()
    shown, ends = blocks(page("projects.md"), "text")
    assert (out[-3], out[-1]) == (ends.splitlines()[0], ends.splitlines()[-1])
    lines = (ROOT / "docs/examples/bridge.sm").read_text("utf-8").splitlines()
    assert set(shown.splitlines()) <= set(lines)


def test_a_journal_is_put_back(tmp_path: Path) -> None:
    """By the page's lines: what was in the copy is there again, what came later is not."""

    def shell(lines: str) -> str:
        done = run_program(
            ["/bin/bash", "-ec", lines],
            cwd=tmp_path,
            env={"PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"},
            check=True,
        )
        return done.stdout

    async def submit(site: Running, key: str) -> None:
        work = request_pb2.JobRequest(processors=1, requested_time_s=600)
        work.simulated.run_time_s = 500
        asked = job_pb2.SubmitRequest(request=work, idempotency_key=key)
        await site.jobs.Submit(asked, timeout=60)

    copying, restoring = blocks(page("backup-and-restore.md"), "sh")
    configuration = document(tmp_path)
    epoch: list[int] = []

    async def before() -> None:
        async with running(configuration, tmp_path) as site:
            await submit(site, "kept")
            assert "all as written" in shell(copying)
            assert (tmp_path / "home.backup").stat().st_mode & 0o077 == 0
            epoch.append(site.core.engine.state.memory.epoch)
            await submit(site, "lost")

    async def after() -> None:
        async with running(configuration, tmp_path) as site:
            found = await site.jobs.List(job_pb2.ListRequest(), timeout=60)
            assert [job.job_id for job in found.jobs] == ["home-1"]
            assert site.core.engine.state.memory.epoch > epoch[0]

    run(before)
    shell(restoring)
    run(after)
    assert "all as written" in shell("grms journal check home.journal.lost")


def test_the_client_in_node_speaks_the_contract() -> None:
    """Its calls, fields and words are there, and the page shows lines of it; `.ci/run` runs it."""
    code = (ROOT / "docs/examples/submit_and_wait.mjs").read_text(encoding="utf-8")
    (shown,) = blocks(page("other-languages.md"), "js")
    assert shown in code
    service = job_pb2.DESCRIPTOR.services_by_name["JobService"]
    called = set(re.findall(r"\bsite\.([A-Z]\w+)\(", code))
    assert called == {"Submit", "Watch"}
    assert called <= {method.name for method in service.methods}
    fields = {"idempotency_key", "name", "request"}
    assert fields <= set(job_pb2.SubmitRequest.DESCRIPTOR.fields_by_name)
    inner = set(request_pb2.JobRequest.DESCRIPTOR.fields_by_name)
    assert {"processors", "requested_time_s", "simulated"} <= inner
    for word in re.findall(r'"(JOB_STATE_\w+)"', code):
        assert word in job_pb2.JobState.keys()  # noqa: SIM118  # protobuf's own
    for word in re.findall(r'"(OUTCOME_\w+)"', code):
        assert word in request_pb2.Outcome.keys()  # noqa: SIM118  # as above


async def test_snakemake_is_told_how_its_jobs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the page's program, for its plugin: what was cancelled, hit its limit or is unknown has failed, and nobody waits for it."""
    (text,) = [each for each in blocks(page("workflow-engines.md"), "sh") if "grms status" in each]
    program = tmp_path / "grms-status"
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    folder = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    async def says(job_id: str) -> str:
        process = await asyncio.create_subprocess_exec(
            program, job_id, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await process.communicate()
        assert process.returncode == 0
        return said.decode()

    configuration = document(tmp_path, "north")
    async with running(configuration, tmp_path) as site:
        monkeypatch.setenv("HANSE_SOCKET", str(configuration["listen"]["users"]))
        well = await site.submit("well", processors=1, run_time_s=0.01, requested_time_s=60.0)
        late = await site.submit("late", processors=1, run_time_s=60.0, requested_time_s=0.01)
        job = await site.submit("long", processors=1, run_time_s=9e3, requested_time_s=9e3)
        assert await says(job.job_id) == "running\n"
        for each, word in ((well, "success\n"), (late, "failed\n")):
            await site.ended(each.job_id)
            assert await says(each.job_id) == word
        await site.jobs.Cancel(job_pb2.CancelRequest(job_id=job.job_id), timeout=300)
        await site.ended(job.job_id)
        assert await says(job.job_id) == "failed\n"
        assert await says("north-999") == "failed\n"
    assert await says(job.job_id) == "running\n", "the site does not answer"
