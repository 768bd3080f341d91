"""Reads what Python and Cython sources import, for the tests that hold the tree to its rules."""

import ast
import gc
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# The rules ask for the same sources again and again: a text is read and parsed once.


@cache
def read(path: Path) -> str:
    """Returns the text of a file given relative to the root."""
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def parsed(text: str) -> ast.Module:
    """Returns the tree of Python source, which callers only read."""
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        # It stays: looking for garbage in millions of nodes takes longer than to parse them.
        gc.freeze()
        gc.enable()


@cache
def nodes(text: str) -> tuple[ast.AST, ...]:
    """Returns every node of the tree of Python source."""
    return tuple(ast.walk(parsed(text)))


@dataclass(frozen=True)
class Import:
    """One imported module, with the names taken from it; none for `import module`."""

    module: str
    names: tuple[str, ...]
    line: int


def module_name(path: Path) -> str:
    """Returns the dotted name of a source file given relative to the root."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def resolve(module: str, level: int, importer: Path) -> str:
    """Returns the absolute name of a possibly relative import in the file `importer`."""
    if level == 0:
        return module
    package = list(importer.parts[:-1])
    base = package[: len(package) - (level - 1)]
    return ".".join([*base, module] if module else base)


def python_imports(text: str, importer: Path) -> Iterator[Import]:
    """Yields every import of Python source, those inside functions and `if` blocks as well."""
    for node in nodes(text):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, (), node.lineno)
        elif isinstance(node, ast.ImportFrom):
            module = resolve(node.module or "", node.level, importer)
            yield Import(module, tuple(alias.name for alias in node.names), node.lineno)
        elif (
            isinstance(node, ast.Call)
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.func, ast.Name | ast.Attribute)
            and ast.unparse(node.func) in {"import_module", "importlib.import_module", "__import__"}
        ):
            yield Import(str(node.args[0].value), (), node.lineno)


_TRIVIA = re.compile(
    r"""[a-zA-Z]{0,2}(\"{3}|'{3})(?:\\.|.)*?\1     # long strings
      | [a-zA-Z]{0,2}"(?:\\.|[^"\\\n])*"
      | [a-zA-Z]{0,2}'(?:\\.|[^'\\\n])*'
      | \#[^\n]*""",
    re.DOTALL | re.VERBOSE,
)


@cache
def cython_code(text: str) -> str:
    """Returns Cython source without comments and strings, every line where it was."""
    return _TRIVIA.sub(lambda match: '""' + "\n" * match.group().count("\n"), text)


_FROM = re.compile(
    r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+c?import[ \t]*(\([^)]*\)|[^\n;]*)", re.MULTILINE
)
_IMPORT = re.compile(r"^[ \t]*c?import[ \t]+([^\n;(]+)$", re.MULTILINE)
_ALIAS = re.compile(r"^([\w.*]+)(?:\s+as\s+\w+)?$")


def cython_imports(text: str, importer: Path) -> Iterator[Import]:
    """Yields every import and cimport of Cython source."""
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
    """Returns every import of a source file, by its suffix."""
    found = cython_imports if importer.suffix in {".pyx", ".pxd", ".pxi"} else python_imports
    return tuple(found(text, importer))


def is_inside(module: str, packages: tuple[str, ...]) -> bool:
    """Returns whether a module is one of the packages or within one."""
    return any(module == package or module.startswith(package + ".") for package in packages)


def reaches(found: Import, modules: tuple[str, ...]) -> bool:
    """Returns whether an import takes one of the modules, as `import x.y` or `from x import y`."""
    return is_inside(found.module, modules) or any(
        is_inside(f"{found.module}.{name}", modules) for name in found.names
    )
