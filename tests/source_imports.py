"""Reads what Cython sources import, for the tests that hold them to the rules of the tree."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@cache
def read(path: Path) -> str:
    """Returns the text of a file given relative to the root."""
    return (ROOT / path).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Import:
    """One imported module, with the names taken from it; none for `import module`."""

    module: str
    names: tuple[str, ...]
    line: int


def resolve(module: str, level: int, importer: Path) -> str:
    """Returns the absolute name of a possibly relative import in the file `importer`."""
    if level == 0:
        return module
    package = list(importer.parts[:-1])
    base = package[: len(package) - (level - 1)]
    return ".".join([*base, module] if module else base)


_TRIVIA = re.compile(
    r"""[a-zA-Z]{0,2}(\"{3}|'{3})(?:\\.|.)*?\1     # long strings
      | [a-zA-Z]{0,2}"(?:\\.|[^"\\\n])*"
      | [a-zA-Z]{0,2}'(?:\\.|[^'\\\n])*'
      | \#[^\n]*""",
    re.DOTALL | re.VERBOSE,
)


@cache
def cython_code(text: str) -> str:
    """Returns Cython or Python source without comments and strings, every line where it was."""
    return _TRIVIA.sub(lambda match: '""' + "\n" * match.group().count("\n"), text)


_FROM = re.compile(
    r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+c?import[ \t]*(\([^)]*\)|[^\n;]*)", re.MULTILINE
)
_IMPORT = re.compile(r"^[ \t]*c?import[ \t]+([^\n;(]+)$", re.MULTILINE)
_ALIAS = re.compile(r"^([\w.*]+)(?:\s+as\s+\w+)?$")


def _found(text: str, importer: Path) -> Iterator[Import]:
    code = cython_code(text).replace("\\\n", " \n")
    for match in _FROM.finditer(code):
        dots, module, names = match.groups()
        taken = [_ALIAS.match(name.strip()) for name in names.strip("()").split(",")]
        line = code.count("\n", 0, match.start()) + 1
        yield Import(
            resolve(module, len(dots), importer),
            tuple(name.group(1) for name in taken if name),
            line,
        )
    for match in _IMPORT.finditer(code):
        for part in match.group(1).split(","):
            alias = _ALIAS.match(part.strip())
            if alias:
                yield Import(alias.group(1), (), code.count("\n", 0, match.start()) + 1)


@cache
def imports(text: str, importer: Path) -> tuple[Import, ...]:
    """Returns every import and cimport of Cython source."""
    return tuple(_found(text, importer))


def _is_inside(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def reaches(found: Import, modules: tuple[str, ...]) -> bool:
    """Returns whether an import takes one of the modules, as `import x.y` or `from x import y`."""
    return _is_inside(found.module, modules) or any(
        _is_inside(f"{found.module}.{name}", modules) for name in found.names
    )
