"""What status requests over HTTP cost: `python -m benchmarks.rest [REQUESTS]`.

One daemon in a process of its own, four connections that are kept, one job that is asked for again and again. Printed are
requests a second, and the daemon's processor time for 1,000 of them.
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

import jwt

from grms.daemon.ports import free_port
from lrms_sim.util.files import to_toml

CONNECTIONS: Final = 4
SECRET: Final = "0123456789abcdef0123456789abcdef"  # noqa: S105  # of this run alone
AT: Final = "/slurm/v0.0.38"


def configuration(folder: Path, port: int) -> str:
    """Returns a site that takes tokens for the user `nobody`."""
    keys = folder / "key"
    keys.write_text(SECRET)
    keys.chmod(0o600)
    issuer = {"issuer": "bench", "audience": "bench", "algorithm": "HS256", "keys": str(keys)}
    return to_toml(
        {
            "name": "bench",
            "processors": 4,
            "listen": {"users": str(folder / "s")},
            "journal": {"path": str(folder / "journal")},
            "rest": {
                "listen": f"127.0.0.1:{port}",
                "issuers": [{**issuer, "users": {"user": "nobody"}}],
            },
        }
    )


def processor_time_s(pid: int) -> float:
    """Returns what a process has used, seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(count: int) -> None:
    """Measures, and prints."""
    now, port = int(time.time()), free_port()
    claims = {"iss": "bench", "aud": "bench", "sub": "user", "iat": now, "exp": now + 3600}
    token = jwt.encode({**claims, "scope": "jobs:read jobs:write"}, SECRET, "HS256")
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def asked(
        requests: int, method: str = "GET", path: str = "/job/1", body: str | None = None
    ) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for _ in range(requests):
            connection.request(method, AT + path, body, headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise RuntimeError(answer.read())
            answer.read()
        connection.close()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "site.toml").write_text(configuration(folder, port))
        with (folder / "log").open("wb") as log:
            daemon = subprocess.Popen(
                [sys.executable, "-m", "grms", "serve", str(folder / "site.toml")], stderr=log
            )
        try:
            while True:
                try:
                    asked(1, path="/ping")
                    break
                except ConnectionError:
                    time.sleep(0.1)
            job = {"time_limit": 60, "environment": {"A": "1"}}
            asked(1, "POST", "/job/submit", json.dumps({"script": "#!/bin/sh\n", "job": job}))
            threads = [
                threading.Thread(target=asked, args=(count // CONNECTIONS,))
                for _ in range(CONNECTIONS)
            ]
            used, begin = processor_time_s(daemon.pid), time.monotonic()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            took_s, used = time.monotonic() - begin, processor_time_s(daemon.pid) - used
        finally:
            daemon.terminate()
            daemon.wait(60)
    print(f"{count / took_s:.0f} requests a second; {1e3 * used / count:.3f} s for 1,000")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
