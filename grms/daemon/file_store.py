"""Files stored at a daemon: results fetched from partners, and inputs of jobs.

One folder per job, or per uploaded file. Contents are numbered, so that no chosen name becomes a path; the
manifest is written last. A partial content is resumed as long as the partner describes it the same way.
"""

import asyncio
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from grms.daemon.job_files import FileProblem, JobFile
from lrms_sim.util.files import sync_folder, write_durable

LIST: Final = "list.json"

PIECE_BYTES: Final = 1 << 20
"""Bytes read at a time for a digest."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What has come home of a job.

    Attributes:
        problem: why nothing has come, and nothing will; empty if files have.
        folder: where the job has run, if files stay there; else empty.
        until: when they expire there, seconds since 1970.
        other_files, other_bytes: those not in the list.
        left_out: of these, those that the job declares and that no list can have.
    """

    files: tuple[JobFile, ...] = ()
    problem: str = ""
    folder: str = ""
    until: float = 0.0
    other_files: int = 0
    other_bytes: int = 0
    left_out: int = 0


class WrongContentError(Exception):
    """What has come is not what the partner has said it would be."""


class ResultStore:
    """The folders; every method accesses the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[str, int] = {}
        self._counting = threading.Lock()

    def _place(self, job_id: str) -> Path:
        assert "/" not in job_id, job_id
        assert job_id[:1].isalnum(), job_id
        return self._folder / job_id

    def manifest(self, job_id: str) -> Manifest | None:
        """Returns the manifest of a job; `None` if it is not complete."""
        try:
            said = json.loads((self._place(job_id) / LIST).read_text(encoding="utf-8"))
            files = tuple(map(_read_file, said["files"]))
            return Manifest(files, said["problem"], **said.get("stays", {}))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            # A corrupt manifest is fetched again.
            return None

    def path(self, job_id: str, number: int) -> Path:
        """Returns the path of a content, by its index in the list."""
        return self._place(job_id) / _name(number)

    def content(self, job_id: str, number: int) -> tuple[Path, str]:
        """Returns folder and name of a content, by its place in the list."""
        return self._place(job_id), _name(number)

    def begun(self, job_id: str, number: int, file: JobFile) -> int:
        """Returns the size of a partial content after making room for the rest."""
        place = self._place(job_id)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        path, said = place / _name(number), place / f"{_name(number)}.sha256"
        if not said.exists() or said.read_bytes() != file.sha256:
            path.unlink(missing_ok=True)
            said.write_bytes(file.sha256)
        try:
            there = path.stat().st_size
        except FileNotFoundError:
            return 0
        if there > file.size:
            path.unlink()
            return 0
        return there

    def append(self, job_id: str, number: int, some: bytes) -> None:
        """Appends to a content."""
        with (self._place(job_id) / _name(number)).open("ab") as file:
            file.write(some)
        self._changed(job_id)

    def check(self, job_id: str, number: int, file: JobFile, digest: bytes = b"") -> None:
        """Makes a complete content durable; without `digest` it is read in full.

        Raises:
            WrongContentError: it differs, and was deleted.
        """
        path = self.path(job_id, number)
        with path.open("ab+") as content:
            if not digest:
                content.seek(0)
                digest = hashlib.file_digest(content, "sha256").digest()
            size = os.fstat(content.fileno()).st_size
            os.fsync(content.fileno())
        if size != file.size or digest != file.sha256:
            path.unlink()
            self._changed(job_id)
            raise WrongContentError(f"{file.name} has come with another content")

    def finish(self, job_id: str, manifest: Manifest) -> None:
        """Notes that all is there; durable when this returns."""
        place = self._place(job_id)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        said: dict[str, Any] = {
            "files": [_write_file(file) for file in manifest.files],
            "problem": manifest.problem,
        }
        if manifest.folder:
            names = ("folder", "until", "other_files", "other_bytes", "left_out")
            said["stays"] = {name: getattr(manifest, name) for name in names}
        write_durable(place / LIST, said)
        self._changed(job_id)
        sync_folder(self._folder)

    def touch(self, job_id: str) -> None:
        """Renews the age of a job's content, if there is any."""
        with suppress(FileNotFoundError):
            os.utime(self._place(job_id))

    def held(self, prefix: str) -> tuple[int, int]:
        """Returns how many jobs there are whose ids begin so, and how many bytes they have here."""
        sizes = [_size(place) for place in self._folder.glob(f"{prefix}*")]
        return len(sizes), sum(sizes)

    def size(self, job_id: str) -> int:
        """Returns how many bytes a job has here."""
        return _size(self._place(job_id))

    def sizes(self) -> dict[str, int]:
        """Returns how many bytes each job has here; each is looked at once, until it changes."""
        with self._counting:
            try:
                names = [place.name for place in self._folder.iterdir()]
            except FileNotFoundError:
                names = []
            before = self._sizes
            self._sizes = {
                name: before[name] if name in before else _size(self._folder / name)
                for name in names
            }
            return dict(self._sizes)

    def _changed(self, job_id: str) -> None:
        # After the change: whoever has counted meanwhile has counted less, or more.
        with self._counting:
            self._sizes.pop(job_id, None)

    def empty(self, job_id: str, manifest: Manifest) -> None:
        """Deletes the contents of a job, and leaves another list in their place."""
        self.finish(job_id, manifest)
        for path in self._place(job_id).glob("content-*"):
            path.unlink(missing_ok=True)
        self._changed(job_id)

    def stale(self, before: float) -> Sequence[str]:
        """Returns the jobs without new content since a moment, seconds since 1970."""
        try:
            places = list(self._folder.iterdir())
        except FileNotFoundError:
            return []
        return sorted(place.name for place in places if place.lstat().st_mtime < before)

    def is_stale(self, job_id: str, before: float) -> bool:
        """Returns whether a job has no new content since a moment, seconds since 1970."""
        try:
            return self._place(job_id).lstat().st_mtime < before
        except FileNotFoundError:
            return False

    def remove(self, job_id: str) -> None:
        """Deletes what has come of a job."""
        shutil.rmtree(self._place(job_id), ignore_errors=True)
        self._changed(job_id)


def _size(place: Path) -> int:
    total = 0
    for path in place.glob("content-*"):
        with suppress(FileNotFoundError):
            total += 0 if path.suffix else path.lstat().st_size
    return total


def _name(number: int) -> str:
    return f"content-{number}"


def _write_file(file: JobFile) -> dict[str, Any]:
    problem = "" if file.problem is None else file.problem.value
    digest = file.sha256.hex()
    found = {"name": file.name, "size": file.size, "sha256": digest, "problem": problem}
    return found | ({"mode": file.mode} if file.mode else {})


def _read_file(said: dict[str, Any]) -> JobFile:
    problem = FileProblem(said["problem"]) if said["problem"] else None
    digest = bytes.fromhex(said["sha256"])
    return JobFile(said["name"], said["size"], digest, problem, said.get("mode", 0))


async def digest_of(path: Path) -> bytes:
    """Returns the SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()

    def piece(begin: int) -> int:
        with path.open("rb") as file:
            file.seek(begin)
            some = file.read(PIECE_BYTES)
        digest.update(some)
        return len(some)

    read = 0
    while some := await asyncio.to_thread(piece, read):
        read += some
    return digest.digest()
