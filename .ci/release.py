"""Whether this checkout is the release that it says it is: `make release` asks before it builds one."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIGNERS = ".ci/allowed_signers"
"""Public keys of those who release, as ssh-keygen(1) has them under ALLOWED SIGNERS; a key of GnuPG is in its user's keyring."""


def unsigned(root: Path, tag: str) -> str:
    """Returns why a tag is not known to be of somebody who releases; nothing where it is."""
    signers = root / SIGNERS
    known = ["-c", f"gpg.ssh.allowedSignersFile={signers}"] if signers.exists() else []
    done = subprocess.run(
        [shutil.which("git") or "git", *known, "verify-tag", tag],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return ""
    said = done.stderr.strip().splitlines() or ["no signature"]
    return f"the signature of {tag} is not good ({said[-1]}): git tag --sign {tag}; keys are in {SIGNERS}"


def mistakes(root: Path) -> list[str]:
    """Returns what keeps a checkout from being a release, one line for each thing."""

    def git(*words: str) -> list[str]:
        return subprocess.check_output(
            [shutil.which("git") or "git", *words], cwd=root, text=True
        ).splitlines()

    def found(file: str, pattern: str) -> str:
        match = re.search(pattern, (root / file).read_text(encoding="utf-8"), re.MULTILINE)
        return "" if match is None else match[1]

    version = found("lrms_sim/util/version.py", r'^__version__ = "(.+)"$')
    day = found("CHANGELOG.md", rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$")
    wrong = [f"not committed: {line}" for line in git("status", "--porcelain")]
    if f"v{version}" not in git("tag", "--points-at", "HEAD"):
        wrong.append(f"HEAD is not tagged v{version}, the version of lrms_sim/util/version.py")
    elif why := unsigned(root, f"v{version}"):
        wrong.append(why)
    if not day:
        wrong.append(f"CHANGELOG.md has no section [{version}] with a day")
    if re.search(
        r"^-", found("CHANGELOG.md", r"^## \[Unreleased\]\n([\s\S]*?)^## \["), re.MULTILINE
    ):
        wrong.append("CHANGELOG.md has entries that are unreleased")
    if found("CITATION.cff", r"^version: (\S+)$") != version:
        wrong.append(f"CITATION.cff does not have version {version}")
    if day and found("CITATION.cff", r"^date-released: (\S+)$") != day:
        wrong.append(f"CITATION.cff does not have date-released {day}, the day of CHANGELOG.md")
    if not (root / "tests" / "release" / version / "commit").exists():
        wrong.append(f"tests/release has no recording of {version}")
    return wrong


if __name__ == "__main__":
    problems = mistakes(ROOT)
    print("\n".join(problems) or "this is a release")
    sys.exit(bool(problems))
