"""Writes the Python code of the wire contract, or checks that it is up to date.

`make proto` runs it. The code of `proto/X/v1/*.proto` goes to `X/v1/`, so that the import path
mirrors the path of the source; it is checked in, and a test compares it with a fresh run.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GENERATED = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", "_pb2_grpc.pyi")
"""Endings of the files that the compiler writes for one source."""


class GenerationError(Exception):
    """The compiler is missing, or has refused a source; the text is the compiler's own."""


def protos(root: Path) -> list[Path]:
    """Returns the sources of the contract, `X/v1/Y.proto`, relative to `root/proto`."""
    folder = root / "proto"
    return sorted(path.relative_to(folder) for path in folder.glob("*/v*/*.proto"))


def generate(root: Path, target: Path) -> list[Path]:
    """Writes the code of every source below `target`.

    Args:
        root: the checkout.
        target: an existing folder.

    Returns:
        The files written, relative to `target`.

    Raises:
        GenerationError: the compiler did not succeed.
    """
    sources = protos(root)
    if not sources:
        return []
    # The compiler writes stubs of messages, but none of services.
    stubs = Path(sys.executable).with_name("protoc-gen-mypy_grpc")
    outputs = [f"--{kind}_out={target}" for kind in ("python", "pyi", "grpc_python", "mypy_grpc")]
    files = [str(path) for path in sources]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", "--proto_path=."),
            f"--plugin=protoc-gen-mypy_grpc={stubs}",
            *outputs,
            *files,
        ],
        cwd=root / "proto",
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise GenerationError(done.stderr.strip())
    return [path.with_name(path.stem + ending) for path in sources for ending in GENERATED]


def stale(root: Path) -> list[str]:
    """Returns what is wrong with the generated code in the checkout, one line for each file.

    Raises:
        GenerationError: the compiler did not succeed.
    """
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        expected = generate(root, fresh)
        found = []
        for path in expected:
            if not (root / path).exists():
                found.append(f"{path} is missing")
            elif (root / path).read_bytes() != (fresh / path).read_bytes():
                found.append(f"{path} is not what its source gives")
    surplus = {
        path.relative_to(root) for ending in GENERATED for path in root.glob(f"*/v*/*{ending}")
    }
    return found + [f"{path} has no source" for path in sorted(surplus - set(expected))]


def main() -> int:
    """Regenerates the code in the checkout and says what was written."""
    if not protos(ROOT):
        print("There is no .proto file under proto/*/v1 yet: nothing to generate.")
        return 0
    try:
        for path in generate(ROOT, ROOT):
            print(f"wrote {path}")
    except GenerationError as error:
        print(f"The protocol compiler failed:\n{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
