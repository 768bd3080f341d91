"""Over a real Slurm, with curl: a job runs as the user for whom the token speaks."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from lrms_sim.util.files import to_toml
from tests.clusters.slurm import SlurmCluster, need_slurm, wait_for
from tests.grms.lrms.test_own_users import USER
from tests.grms.lrms.test_own_users_deputies import AS_USER
from tests.grms.site.daemons import document
from tests.grms.site.rest.callers import AT, table, token

SCRIPT: Final = "#!/bin/sh\nid -un; pwd; echo $GREETING\n"


@contextmanager
def process(words: list[str], environment: dict[str, str]) -> Iterator[None]:
    """Has a program run meanwhile."""
    quiet = subprocess.DEVNULL
    there = subprocess.Popen(words, stdout=quiet, stderr=quiet, env=environment)  # noqa: S603  # this program
    try:
        yield
    finally:
        there.terminate()
        there.wait(300)


def until(condition: Callable[[], bool]) -> None:
    """Returns when a condition holds."""

    def tries() -> Iterator[bool]:
        while not condition():
            time.sleep(0.3)
            yield False
        yield True

    wait_for(tries())


@pytest.mark.services
@pytest.mark.skipif(os.getuid() != 0, reason="root alone can start a process of another user")
def test_a_job_runs_as_the_user_of_the_token() -> None:
    """Submit, list and cancel by curl, with a deputy of that user."""
    need_slurm()
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("there is no curl")
    # Not below pytest's own folder, which other users may not enter.
    with tempfile.TemporaryDirectory(prefix="hanse-") as name:
        Path(name).chmod(0o755)
        scene(Path(name), curl)


def scene(folder: Path, curl: str) -> None:
    """Goes through all of it in a folder."""
    cluster = SlurmCluster(folder / "cluster", nodes=1, cpus=4)
    lrms = {"kind": "slurm", "own_jobs": "by-client", "poll_s": 0.4, "settle_s": 0.0}
    lrms |= {"spool": str(folder / "jobs"), "completion_log": cluster.completion_log}
    lrms |= {"configuration": cluster.environment["SLURM_CONF"]}
    served = table(folder)
    site = folder / "home.toml"
    site.write_text(to_toml(document(folder, lrms=lrms, **served)))
    url = f"http://{served['rest']['listen']}{AT}"
    work = folder / "work"
    work.mkdir()
    work.chmod(0o777)

    def asked(path: str, *words: str) -> Any:
        header = f"Authorization: Bearer {token()}"
        command = [curl, "-s", "-H", header, "-H", "Content-Type: application/json", *words]
        ended = subprocess.run([*command, url + path], capture_output=True, check=False)  # noqa: S603  # as above
        return json.loads(ended.stdout) if ended.stdout else {"pings": [], "jobs": []}

    def submitted(script: str) -> int:
        job = {"time_limit": 5, "current_working_directory": str(work)}
        job |= {"environment": {"PATH": "/usr/bin:/bin", "GREETING": "hello"}}
        job |= {"standard_output": "said"}
        body = json.dumps({"script": script, "job": job})
        return int(asked("/job/submit", "-d", body)["job_id"])

    def states() -> dict[int, str]:
        return {each["job_id"]: each["job_state"] for each in asked("/jobs")["jobs"]}

    environment = os.environ | dict(cluster.environment)
    cluster.up()
    cluster.open_to_all()
    try:
        serve = [sys.executable, "-m", "grms", "serve", str(site)]
        deputy = [sys.executable, "-c", AS_USER, USER, "deputy", "--socket"]
        with process(serve, environment):
            until(lambda: bool(asked("/ping")["pings"]))
            with process([*deputy, str(folder / "home.sock")], environment):
                first = submitted(SCRIPT)
                until(lambda: states()[first] == "COMPLETED")
                assert (work / "said").read_text() == f"{USER}\n{work}\nhello\n"
                second = submitted("#!/bin/sh\nsleep 600\n")
                until(lambda: states()[second] == "RUNNING")
                assert asked(f"/job/{second}", "-X", "DELETE")["errors"] == []
                until(lambda: states()[second] == "CANCELLED")
    finally:
        cluster.down()
