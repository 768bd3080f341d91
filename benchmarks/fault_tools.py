"""What breaks on a machine, for real: the MQTT broker, a journal's disk; links are `scenarios.prove.line`."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

BLOCK_BYTES: Final = 65_536
START_TIMEOUT_S: Final = 20.0


def mosquitto_path() -> str | None:
    """Returns where Mosquitto is; None where it is not installed."""
    # On Debian it is only in root's search path.
    return shutil.which("mosquitto", path=os.environ.get("PATH", "") + os.pathsep + "/usr/sbin")


class MqttBroker:
    """A Mosquitto on a loopback port that can be stopped and restarted."""

    def __init__(self, program: str, port: int, folder: Path) -> None:
        self.port = port
        self._program = program
        self._config = folder / "mosquitto.conf"
        self._log = folder / "mosquitto.log"
        lines = f"listener {port} 127.0.0.1\nallow_anonymous true\nlog_dest stderr\n"
        if os.geteuid() == 0:
            lines += "user root\n"  # or it could not read its own folder
        self._config.write_text(lines, encoding="utf-8")
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Starts it and waits until it accepts connections; `TimeoutError` if it does not."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                self._program, "-c", str(self._config), stdout=log, stderr=log
            )
        async with asyncio.timeout(START_TIMEOUT_S):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                except OSError:
                    await asyncio.sleep(0.02)
                else:
                    writer.close()
                    return

    async def stop(self) -> None:
        """Ends it; nothing where it does not run."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.terminate()
            await process.wait()


class DiskError(Exception):
    """A small disk cannot be made here; the text says why."""


class SmallDisk:
    """A small file system in memory, mounted at an empty folder, that can be filled up.

    Raises:
        DiskError: this process may not mount.
    """

    def __init__(self, folder: Path, size_bytes: int) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"
        tool = shutil.which("mount")
        if tool is None:
            raise DiskError("there is no mount")
        command = [tool, "-t", "tmpfs", "-o", f"size={size_bytes},mode=700", "tmpfs", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DiskError(f"a tmpfs cannot be mounted: {done.stderr.strip()}")

    def fill(self) -> None:
        """Leaves not a byte."""
        with self._ballast.open("ab", buffering=0) as ballast:
            for size in (BLOCK_BYTES, 4096, 1):
                with suppress(OSError):
                    while ballast.write(bytes(size)):
                        pass

    def free(self) -> None:
        """Gives the room back."""
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        """Takes the file system away, with all that is on it."""
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)  # noqa: S607  # of the system, as `mount`


async def until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Returns as soon as a condition holds, or after some time; says whether it holds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            while not condition():  # noqa: ASYNC110  # any condition, which has no event to wait for
                await asyncio.sleep(0.002)
    return condition()
