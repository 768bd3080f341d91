"""The table of all modules, made of the first lines of their docstrings: `python docs/site/modules.py` prints it."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("lrms_sim", "grms", "broker", "scenarios")
_FIRST = re.compile(r'\A(?:#[^\n]*\n|\s)*(?:r|)"""(.+?)(?:"""|\n\n|\Z)', re.DOTALL)


def first_line(path: Path) -> str:
    """Returns the first paragraph of a module's docstring in one line; empty where there is none."""
    found = _FIRST.match(path.read_text(encoding="utf-8"))
    return "" if found is None else " ".join(found[1].split())


def modules(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the modules of a folder with their first lines; kernels are those that begin with `_`."""
    for path in sorted([*folder.glob("*.py"), *folder.glob("*.pyx")]):
        if path.name not in {"__init__.py", "__main__.py"} and "_pb2" not in path.name:
            yield path.stem, first_line(path)


def page() -> str:
    """Returns the page as Markdown."""
    lines = ["# Modules", "", "The first line of every module, folder by folder.", ""]
    for package in PACKAGES:
        for init in sorted((ROOT / package).rglob("__init__.py")):
            name = ".".join(init.parent.relative_to(ROOT).parts)
            rows = [f"| `{module}` | {line} |" for module, line in modules(init.parent)]
            table = ["| module | |", "|---|---|", *rows, ""] if rows else []
            lines += [f"## `{name}`", "", first_line(init), "", *table]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page())
