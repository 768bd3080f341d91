"""Checks of `.ci/run` that are more than a command: `check.py skips|dist|slim|report|oldest|oldest-core|node PATH`."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("lrms_sim", "grms", "broker", "scenarios")
SDIST_NEEDS = ("setup.py", "pyproject.toml", "Makefile", "LICENSE", "README.md", "CHANGELOG.md")
SDIST_FOLDERS = ("tests", "docs", "proto", "benchmarks", "share", "requirements")
SHARED_NEEDS = {
    f"share/{form.format(command)}"
    for command in ("lrms-sim", "grms", "gorba", "scenario")
    for form in (
        "man/man1/{}.1",
        "bash-completion/completions/{}",
        "zsh/site-functions/_{}",
        "fish/vendor_completions.d/{}.fish",
    )
}
SOURCE_ONLY = {".pyx", ".c"}
REPORT_BYTES_MIN = 20_000

WIRE = (
    "protobuf",
    "grpcio",
    "grpcio-health-checking",
    "grpcio-reflection",
    "googleapis-common-protos",
)
"""What messages and calls between programs are made of."""

SKIPS_ALLOWED = ("HANSE_TRACES", "HANSE_WORKFLOWS")
"""Variables that name folders of recordings; tests may be skipped where one is not set."""


def check_skips(path: Path) -> list[str]:
    """Returns the tests of a JUnit file that were skipped for no accepted reason."""
    allowed = [f"{name} is not set" for name in SKIPS_ALLOWED if not os.environ.get(name)]
    suites = ET.parse(path).getroot()  # noqa: S314  # our own pytest has just written it
    cases = list(suites.iter("testcase"))
    found = [] if cases else [f"{path.name}: no test was run"]
    for case in cases:
        for skip in case.iter("skipped"):
            reason = skip.get("message", "")
            name = f"{case.get('classname')}::{case.get('name')}"
            if any(reason.startswith(beginning) for beginning in allowed):
                print(f"skipped, as expected: {name}: {reason}")
            else:
                found.append(f"{name} was skipped: {reason}")
    return found


def package_files() -> set[str]:
    """Returns what the packages in the checkout consist of, without build products."""
    return {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix not in {".so", ".c", ".pyc"}
    }


def examples() -> set[str]:
    """Returns where a wheel has the examples of the documentation."""
    folder = ROOT / "docs" / "examples"
    return {
        f"share/hanse/examples/{path.relative_to(folder)}"
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def check_dist(path: Path) -> list[str]:
    """Returns what is missing in, or too much of, the sdist and the wheel in a folder."""
    (sdist,) = path.glob("*.tar.gz")
    (wheel,) = path.glob("*.whl")
    sources = package_files()
    with tarfile.open(sdist) as archive:
        packed = {member.name.partition("/")[2] for member in archive if member.isfile()}
    tests = {str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("*.py")}
    found = [f"sdist lacks {name}" for name in sorted({*sources, *tests, *SDIST_NEEDS} - packed)]
    pages = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "share").glob("*/**/*")
        if file.is_file() and file.suffix != ".pyc"
    } | SHARED_NEEDS  # some of each kind, as `make dist` has to write them first
    found += [f"sdist lacks {name}" for name in sorted(pages - packed)]
    found += [
        f"sdist has nothing of {folder}/"
        for folder in SDIST_FOLDERS
        if not any(name.startswith(folder + "/") for name in packed)
    ]
    found += [f"sdist has {name}" for name in sorted(packed) if name.endswith((".c", ".so"))]

    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not name.endswith("/")}
    shared = {name.partition(".data/data/")[2] for name in packed if ".data/data/" in name}
    found += [f"wheel lacks {name}" for name in sorted((pages | examples()) - shared)]
    code = {name for name in packed if ".dist-info/" not in name and ".data/" not in name}
    expected = {name for name in sources if Path(name).suffix not in SOURCE_ONLY}
    found += [f"wheel lacks {name}" for name in sorted(expected - code)]
    kernels = {re.sub(r"\.cpython-.*\.so$", "", name) for name in code if name.endswith(".so")}
    needed = {name.removesuffix(".pyx") for name in sources if name.endswith(".pyx")}
    found += [f"wheel lacks the compiled {name}" for name in sorted(needed - kernels)]
    surplus = {name for name in code - expected if not name.endswith(".so")}
    found += [f"wheel has {name}" for name in sorted(surplus)]
    parts = json.loads(next(path.glob("*.cdx.json")).read_text(encoding="utf-8"))["components"]
    locked = re.findall(
        r"^([\w.-]+)==", (ROOT / "requirements/all.txt").read_text("utf-8"), re.MULTILINE
    )
    named = {part["name"] for part in parts}
    found += [f"the bill of materials lacks {name}" for name in locked if name not in named]
    print(f"{sdist.name}: {sdist.stat().st_size} bytes; {wheel.name}: {wheel.stat().st_size} bytes")
    return found


SLIM_WORKS: tuple[tuple[str, ...], ...] = (
    ("lrms-sim", "generate", "--processors", "16", "--jobs", "200", "-o", "log.swf"),
    ("lrms-sim", "run", "log.swf", "--discipline", "easy", "--json"),
    ("scenario", "run", "synthetic-three-sites", "--output", "run"),
    ("gorba", "generate", "benchmark", "--class", "lRlD", "--tasks", "20", "--output", "p.json"),
    ("gorba", "plan", "p.json", "--evaluations", "50", "--html", "plan.html"),
    ("grms", "--help"),
    ("grms", "examples", "hanse-grms@.service", "hanse-grms@.service.d/sudo.conf", "sudoers"),
    ("grms", "examples", "job_submit.lua", "monitoring", "--output", "examples"),
)
SLIM_LACKS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("grms", "status", "--socket", "none.sock"), "hanse[site]"),
    (("grms", "pki", "init", "ca"), "hanse[site]"),
    (("gorba", "list", "--socket", "none.sock"), "hanse[site]"),
    (("scenario", "up", "synthetic-three-sites"), "hanse[site]"),
)
SLIM_BYTES_MAX = 150_000_000
"""Most that the core may take with all it needs, without pip."""


def check_slim(path: Path) -> list[str]:
    """Returns what is wrong with an environment that has the core alone: what fails, or is not said.

    Nothing but its own programs is on the path: no compiler.
    """
    environment = {"PATH": str(path / "bin"), "HOME": str(path), "LANG": "C.UTF-8"}
    found = []

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [path / "bin" / words[0], *words[1:]],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    with tempfile.TemporaryDirectory() as folder:
        for words in SLIM_WORKS:
            done = run(*words)
            if done.returncode:
                found.append(f"{' '.join(words)}: status {done.returncode}: {done.stderr[-500:]}")
        for words, extra in SLIM_LACKS:
            done = run(*words)
            if done.returncode != 2 or extra not in done.stderr or "Traceback" in done.stderr:
                found.append(f"{' '.join(words)} does not name {extra}: {done.stderr[-500:]}")
    files = [each for each in path.rglob("*") if each.is_file() and not each.is_symlink()]
    size = sum(each.stat().st_size for each in files if "pip" not in each.relative_to(path).parts)
    print(f"the core takes {size / 1e6:.0f} MB")
    if size > SLIM_BYTES_MAX:
        found.append(f"the core takes {size} bytes; at most {SLIM_BYTES_MAX} are expected")
    return found


def check_report(path: Path) -> list[str]:
    """Returns what is wrong with a report: too little in it, or something from elsewhere."""
    text = path.read_text(encoding="utf-8")
    found = []
    if len(text) < REPORT_BYTES_MIN:
        found.append(
            f"{path.name} has {len(text)} characters; at least {REPORT_BYTES_MIN} expected"
        )
    found += [
        f"{path.name} has no {tag}" for tag in ("<svg", "<table", "</html>") if tag not in text
    ]
    loads = re.findall(
        r"(?:\bsrc=|<link\b[^>]*\bhref=|\burl\(|@import)\s*[\"'(]*(?:https?:)?//[^\"') >]+", text
    )
    found += [f"{path.name} loads {each}" for each in loads]
    return found


def print_oldest(path: Path) -> list[str]:
    """Prints, as constraints for pip, the oldest releases that pyproject.toml allows on the wire."""
    site = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["optional-dependencies"][
        "site"
    ]
    return _print_bounds(path, site, WIRE)


def print_oldest_core(path: Path) -> list[str]:
    """Prints the same of what all commands are made of."""
    core = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["dependencies"]
    return _print_bounds(path, core, [re.split(r"[^\w-]", each, maxsplit=1)[0] for each in core])


def _print_bounds(path: Path, dependencies: list[str], names: Iterable[str]) -> list[str]:
    bounds = dict(re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(dependencies), re.MULTILINE))
    print("\n".join(f"{name}=={bounds[name]}" for name in names if name in bounds))
    return [f"{path.name} has no lower bound of {name}" for name in names if name not in bounds]


NODE_SAYS = ["home-1 was taken", "home-1 OUTCOME_COMPLETED on home"]
"""First and last line of the client in Node."""

SERVES_WITHIN_S = 120.0


def check_node(path: Path) -> list[str]:
    """Returns what is wrong with the client in Node, run twice against a site, from a folder with its packages."""
    (site,) = re.findall(
        r"```toml\n(.*?)```",
        (ROOT / "docs/how-to/other-languages.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    (path / "home.toml").write_text(site, encoding="utf-8")
    client = shutil.copy(ROOT / "docs/examples/submit_and_wait.mjs", path)
    environment = os.environ | {
        "HANSE_SOCKET": str(path / "home.sock"),
        "HANSE_PROTO": str(ROOT / "proto"),
    }
    found = []
    with (path / "home.log").open("wb") as log:
        words = [str(ROOT / ".venv/bin/grms"), "serve", "home.toml"]
        daemon = subprocess.Popen(words, cwd=path, stderr=log)
        try:
            deadline = time.monotonic() + SERVES_WITHIN_S
            while b"serving" not in (path / "home.log").read_bytes():
                if daemon.poll() is not None or time.monotonic() > deadline:
                    return [f"the site does not serve; see {path / 'home.log'}"]
                time.sleep(0.1)
            for _ in range(2):
                done = subprocess.run(
                    [shutil.which("node") or "node", client],
                    cwd=path,
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                lines = done.stdout.splitlines()
                print("\n".join(lines))
                # The second time it is the same job.
                if done.returncode or [*lines[:1], *lines[-1:]] != NODE_SAYS:
                    found.append(
                        f"the client in Node: status {done.returncode}: {done.stdout}{done.stderr}"
                    )
        finally:
            daemon.terminate()
            daemon.wait()
    return found


def main() -> int:
    """Runs the check named on the command line and prints what it found."""
    checks = {
        "skips": check_skips,
        "dist": check_dist,
        "slim": check_slim,
        "report": check_report,
        "oldest": print_oldest,
        "oldest-core": print_oldest_core,
        "node": check_node,
    }
    found = checks[sys.argv[1]](Path(sys.argv[2]))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
