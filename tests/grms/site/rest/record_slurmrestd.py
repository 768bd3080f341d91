"""Records the shapes of what Slurm's slurmrestd answers, which ours are compared with.

Runs Debian's slurmrestd on a Unix socket above a cluster of its own, and writes the keys of its answers with the kinds of
their values; nothing that it says. Run it from the repository's root, as root, with the path of the file:

    python -m tests.grms.site.rest.record_slurmrestd tests/grms/site/rest/slurmrestd.json
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.clusters.slurm import PATH, SlurmCluster, wait_for

VERSION: Final = "v0.0.38"
JOB: Final = {
    "name": "recorded",
    "tasks": 1,
    "time_limit": 5,
    "partition": "main",
    "current_working_directory": "/",
    "environment": {"PATH": "/usr/bin:/bin"},
    "standard_output": "/dev/null",
}


def shape_of(value: Any) -> Any:
    """Returns the keys of a document with the kinds of their values; lists have the shape of their first element."""
    if isinstance(value, dict):
        return {key: shape_of(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [shape_of(value[0])] if value else []
    if value is None:
        return "null"
    return {bool: "boolean", int: "integer", float: "number", str: "string"}[type(value)]


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(str(self._path))


def ask(path: Path, method: str, where: str, body: Any = None) -> tuple[int, Any]:
    """Returns the status and the document of an answer."""
    connection = _Unix(path)
    content = None if body is None else json.dumps(body)
    headers = {"Content-Type": "application/json"} if body is not None else {}
    connection.request(method, where, content, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text)


def recorded(path: Path) -> dict[str, Any]:
    """Returns the shapes of all answers by what was asked."""
    at = f"/slurm/{VERSION}"
    bad_job = {**JOB, "partition": "nowhere"}
    found = {"ping": ask(path, "GET", f"{at}/ping")}
    script = "#!/bin/sh\nsleep 60\n"
    found["submit"] = ask(path, "POST", f"{at}/job/submit", {"job": JOB, "script": script})
    number = found["submit"][1]["job_id"]
    found["jobs"] = ask(path, "GET", f"{at}/jobs")
    found["job"] = ask(path, "GET", f"{at}/job/{number}")
    found["cancel"] = ask(path, "DELETE", f"{at}/job/{number}")
    found["job_unknown"] = ask(path, "GET", f"{at}/job/99999")
    found["cancel_unknown"] = ask(path, "DELETE", f"{at}/job/99999")
    found["submit_refused"] = ask(
        path, "POST", f"{at}/job/submit", {"job": bad_job, "script": script}
    )
    _, document = ask(path, "GET", "/openapi/v3")
    served = sorted(each for each in document["paths"] if each.startswith(f"{at}/"))
    properties = document["components"]["schemas"][f"{VERSION}_job_properties"]["properties"]
    return {
        "answers": {
            name: {"status": status, "shape": shape_of(document)}
            for name, (status, document) in found.items()
        },
        "paths": {each: sorted(document["paths"][each]) for each in served},
        "job_properties": sorted(properties),
    }


def main(target: Path) -> None:
    """Runs a cluster with its slurmrestd, and writes what it has recorded."""
    with tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp") as name:
        folder = Path(name)
        cluster = SlurmCluster(folder / "cluster", nodes=1)
        cluster.up()
        place = folder / "rest"
        environment = {"PATH": PATH, **cluster.environment}
        environment["SLURMRESTD_SECURITY"] = "disable_user_check"
        words = ["slurmrestd", "-a", "rest_auth/local", "-s", f"openapi/{VERSION}", f"unix:{place}"]
        server = subprocess.Popen(words, env=os.environ | environment)  # noqa: S603  # of ours
        try:
            wait_for(place.exists() for _ in iter(int, 1))
            content = recorded(place)
        finally:
            server.terminate()
            server.wait(60)
            cluster.down()
    target.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
