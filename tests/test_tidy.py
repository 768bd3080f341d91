"""The rules of the house that linters cannot see.

Every rule is a function from source text to the list of its violations. The tree is held to it,
and a small bad snippet beside it shows that the rule can fail.
"""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from lrms_sim.version import __version__
from tests.covered_elsewhere import COVERED_ELSEWHERE
from tests.source_imports import ROOT, parsed, read

# --- the data ------------------------------------------------------------------------------------

PACKAGES = ("lrms_sim", "grms", "broker", "scenarios")
CODE_FOLDERS = (*PACKAGES, "tests", "benchmarks", "proto", ".ci")
TEXT_FOLDERS = (*CODE_FOLDERS, "docs")
TEXT_SUFFIXES = {".py", ".pyi", ".pyx", ".pxd", ".md", ".toml", ".proto", ".json", ".csv", ".html"}
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")

MODULE_LINES_MAX = 800
"""Longer than this a module has two subjects; well before it, that is for its author to judge."""

FUNCTION_LINES_MAX = 70

FORBIDDEN = {
    r"(?<![\w.])/(work|root)[/]": "a path of one machine",
    r"(?<![\w.])/home/\w": "a path of one machine",
    r"\bpypi[.](org|python)": "a package registry; say the package's name",
    r"\bpythonhosted[.]": "a package registry; say the package's name",
    r"\b(registry|registry-1)[.](npmjs|docker)[.]": "a package registry; say the package's name",
}
"""Patterns that no file contains, with the reason."""

# --- reading sources -----------------------------------------------------------------------------


def files(folders: tuple[str, ...], suffixes: set[str]) -> list[Path]:
    """Returns the files with those suffixes in the folders, relative to the root."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    return sorted(
        path.relative_to(ROOT)
        for path in found
        if path.suffix in suffixes and path.is_file() and not GENERATED.search(path.name)
    )


PYTHON = [*files(CODE_FOLDERS, {".py", ".pyi"}), Path("setup.py")]
CYTHON = files(PACKAGES, {".pyx", ".pxd"})
MARKDOWN = [
    *files(TEXT_FOLDERS, {".md"}),
    *sorted(path.relative_to(ROOT) for path in ROOT.glob("*.md")),
]
TEXTS = [
    *files(TEXT_FOLDERS, TEXT_SUFFIXES),
    *(path.relative_to(ROOT) for path in sorted((ROOT / ".ci").iterdir()) if not path.suffix),
    *(path.relative_to(ROOT) for path in sorted(ROOT.glob("*.*")) if path.suffix in TEXT_SUFFIXES),
    Path("Makefile"),
]


def docstring_lines(node: ast.AST) -> int:
    """Returns how many lines the docstring of a node takes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
        node, clean=False
    ):
        first = node.body[0]
        return (first.end_lineno or first.lineno) - first.lineno + 1
    return 0


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Yields name, line and length without docstring of every function of Python source."""
    for node in statements(parsed(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield node.name, node.lineno, length - docstring_lines(node)


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yields every statement of a tree; what is in expressions would take four times as long."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(tree, block, ()):
            if isinstance(child, ast.stmt):
                yield child
            yield from statements(child)


_BEGINS = re.compile(
    r"^(?P<indent> *)(?:(?P<kind>cpdef|cdef|def)\s+(?!class\b|struct\b|enum\b|extern\b)"
    r"(?:[\w*.\[\]:, ]*?[ *])?(?P<name>\w+)\s*\(|(?P<class>(?:cdef\s+)?class)\s+(?P<cname>\w+))"
)


def block_end(lines: list[str], start: int, indent: int) -> tuple[int, int]:
    """Returns where the body of an indented block begins and where it ends (exclusive).

    Args:
        lines: the source.
        start: number of the line with `def`, counted from 0.
        indent: spaces before `def`.
    """
    depth = 0
    body = start
    for body in range(start, len(lines)):
        code = lines[body].split("#")[0]
        depth += code.count("(") + code.count("[") - code.count(")") - code.count("]")
        if depth <= 0:
            break
    end = body + 1
    for number in range(body + 1, len(lines)):
        line = lines[number]
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if len(line) - len(line.lstrip()) <= indent:
            break
        end = number + 1
    return body + 1, end


def leading_docstring(lines: list[str]) -> int:
    """Returns how many lines a docstring at the beginning of a body takes; 0 without one."""
    text = "\n".join(lines)
    match = re.match(r'\s*[rR]?("""|\'\'\'|")(?:\\.|(?!\1).)+\1', text, re.DOTALL)
    return match.group().lstrip("\n").count("\n") + 1 if match else 0


def cython_definitions(text: str) -> Iterator[tuple[str, str, int, int, bool]]:
    """Yields kind, name, line, length without docstring and whether there is a docstring.

    The kind is `def`, `cpdef`, `cdef` or `class`; declarations without a body are left out.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        match = _BEGINS.match(line)
        if match is None:
            continue
        indent = len(match["indent"] or "") if match["kind"] else len(line) - len(line.lstrip())
        body, end = block_end(lines, number, indent)
        if not lines[body - 1].split("#")[0].rstrip().endswith(":"):
            continue
        doc = leading_docstring(lines[body:end])
        kind = "class" if match["class"] else match["kind"]
        yield kind, match["name"] or match["cname"], number + 1, end - number - doc, doc > 0


# --- the rules -----------------------------------------------------------------------------------


def length_violations(text: str, path: Path) -> list[str]:
    """Returns the module and the functions of a file that are too long."""
    found = []
    lines = text.count("\n")
    if lines > MODULE_LINES_MAX:
        found.append(f"{path}: {lines} lines; at most {MODULE_LINES_MAX}")
    if path.suffix in {".pyx", ".pxd"}:
        functions = [d[1:4] for d in cython_definitions(text) if d[0] != "class"]
    else:
        functions = list(python_functions(text))
    return found + [
        f"{path}:{line}: {name} has {length} lines; at most {FUNCTION_LINES_MAX}"
        for name, line, length in functions
        if length > FUNCTION_LINES_MAX
    ]


def undocumented(text: str, path: Path) -> list[str]:
    """Returns the public names of a module that have no docstring."""
    if path.suffix == ".pyx":
        found = [] if leading_docstring(text.split("\n")) else [f"{path}: the module"]
        return found + [
            f"{path}:{line}: {name}"
            for kind, name, line, _, documented in cython_definitions(text)
            if kind != "cdef" and not name.startswith("_") and not documented
        ]
    tree = parsed(text)
    found = [] if ast.get_docstring(tree, clean=False) else [f"{path}: the module"]
    return found + list(_undocumented_in(tree, path))


def _undocumented_in(node: ast.Module | ast.ClassDef, path: Path) -> Iterator[str]:
    for child in node.body:
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        overloaded = any(ast.unparse(d).endswith("overload") for d in child.decorator_list)
        if child.name.startswith("_") or overloaded:
            continue
        if not ast.get_docstring(child, clean=False):
            yield f"{path}:{child.lineno}: {child.name}"
        if isinstance(child, ast.ClassDef):
            yield from _undocumented_in(child, path)


_EXEMPTION = re.compile(
    r"#\s*(?:ruff:\s*)?(?:(?P<noqa>noqa)(?P<codes>:[ ]*[A-Z]+[0-9]+(?:,[ ]*[A-Z]+[0-9]+)*)?"
    r"|type:\s*ignore(?P<kinds>\[[\w, -]+\])?)(?P<rest>.*)"
)


def unreasoned_exemptions(text: str, path: Path) -> list[str]:
    """Returns the exemptions from a lint or type rule that do not name the rule and a reason."""
    if not _EXEMPTION.search(text):
        return []  # the tokens of every source would take seconds
    if path.suffix in {".pyx", ".pxd"}:
        comments = [
            (number, line[line.index("#") :])
            for number, line in enumerate(text.split("\n"), 1)
            if "#" in line
        ]
    else:
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        comments = [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]
    found = []
    for line, comment in comments:
        match = _EXEMPTION.search(comment)
        if match is None:
            continue
        if not (match["codes"] or match["kinds"]):
            found.append(f"{path}:{line}: names no rule: {comment}")
        elif len(re.findall(r"\w+", match["rest"])) < 1:
            found.append(f"{path}:{line}: gives no reason: {comment}")
    return found


def forbidden_words(text: str, path: Path) -> list[str]:
    """Returns the lines that have no place in a repository that others use."""
    return [
        f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {reason}"
        for pattern, reason in FORBIDDEN.items()
        for match in re.finditer(pattern, text)
    ]


def build_directives(text: str, path: Path) -> list[str]:
    """Returns the compiler directives in a source, which belong to the build alone.

    A check that is switched off in a file stays off in the checked build.
    """
    directive = re.compile(
        r"^#\s*cython:|(?:@|with\s+)(?:cython\.)?(?:boundscheck|wraparound|cdivision|initializedcheck)"
    )
    return [
        f"{path}:{number}: {line.strip()}"
        for number, line in enumerate(text.split("\n"), 1)
        if directive.search(line.lstrip())
    ]


def unreasoned_entries(text: str) -> list[str]:
    """Returns the dependencies and ignored rules of a pyproject.toml without a reason beside them."""
    data = tomllib.loads(text)
    project, ruff = data["project"], data["tool"]["ruff"]["lint"]
    entries = [
        *data["build-system"]["requires"],
        *project["dependencies"],
        *(entry for extra in project["optional-dependencies"].values() for entry in extra),
        *ruff["ignore"],
        *(rule for rules in ruff["per-file-ignores"].values() for rule in rules),
    ]
    lines = text.split("\n")
    reasoned = re.compile(r'^\s*"(?P<entry>[^"]+)",?\s*#\s*\S+')
    given = [match["entry"] for line in lines if (match := reasoned.match(line))]
    return [entry for entry in entries if given.count(entry) < entries.count(entry)]


def missing_mirrors(
    modules: list[Path], tests: set[Path], elsewhere: dict[str, tuple[str, str]]
) -> list[str]:
    """Returns the modules that no test module is named after, or whose stated one is not there."""
    found = []
    for module in modules:
        if module.stem == "__init__":
            continue
        mirror = Path("tests") / module.parent / f"test_{module.stem.lstrip('_')}.py"
        if str(module) in elsewhere:
            mirror = Path(elsewhere[str(module)][0])
        if mirror not in tests:
            found.append(f"{module} has no {mirror}")
    return found


def broken_links(text: str, path: Path, root: Path) -> list[str]:
    """Returns the relative links of a Markdown file that lead nowhere."""
    prose = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)", prose)
    links += re.findall(r"^\[[^\]]+\]:\s*(\S+)", prose, re.MULTILINE)
    links += re.findall(r"<(?:img|a)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"", prose)
    found = []
    for link in links:
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        name, _, anchor = link.partition("#")
        target = root / path.parent / name if name else root / path
        if not target.exists():
            found.append(f"{path}: {link}: there is no such file")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            found.append(f"{path}: {link}: there is no such heading")
    return found


def anchors(path: Path) -> set[str]:
    """Returns the anchors that the headings of a Markdown file get."""
    text = re.sub(
        r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    headings = re.findall(r"^#+\s+(.*?)\s*#*$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading.replace("`", "")).strip().lower().replace(" ", "-")
        for heading in headings
    }


def missing_targets(text: str, makefile: str) -> list[str]:
    """Returns the `make` targets that a Markdown file names in code and the Makefile lacks."""
    code = re.findall(r"^```.*?^```|^(?: {4}|\t).*?$|`[^`\n]+`", text, re.DOTALL | re.MULTILINE)
    command = re.compile(r"(?:^|`|&&|;|\$)\s*(?:\w+=\S*\s+)*make\s+([a-z][\w-]*)", re.MULTILINE)
    named = {match for part in code for match in command.findall(part)}
    return sorted(named - set(re.findall(r"^([a-z][\w-]*):(?!=)", makefile, re.MULTILINE)))


# --- the tree ------------------------------------------------------------------------------------


def test_nothing_is_too_long() -> None:
    """No module is longer than 800 lines and no function, docstring apart, than 70."""
    found = [line for path in [*PYTHON, *CYTHON] for line in length_violations(read(path), path)]
    assert found == []


def test_a_long_thing_is_caught() -> None:
    """One line more than allowed is a violation; a docstring does not count."""
    docstring = '    """Does.\n\n    At length.\n    """\n'
    for name, signature in (
        ("a.py", "def f(\n    a: int,\n) -> None:\n"),
        ("_a.pyx", "cdef inline int f(\n    int a,\n) except -1 nogil:\n"),
        ("_a.pyx", "cpdef f(\n    int a\n):  # three\n"),
    ):
        most = signature + docstring + "    x = 1\n" * (FUNCTION_LINES_MAX - 3)
        assert length_violations(most, Path(name)) == []
        assert len(length_violations(most + "    x = 1\n", Path(name))) == 1
    assert len(length_violations("x = 1\n" * (MODULE_LINES_MAX + 1), Path("a.py"))) == 1
    assert length_violations("x = 1\n" * MODULE_LINES_MAX, Path("a.py")) == []


def test_every_public_name_is_documented() -> None:
    """Every public module, class, function and method of the packages has a docstring."""
    modules = [path for path in PYTHON if path.parts[0] in PACKAGES and path.suffix == ".py"]
    kernels = [path for path in CYTHON if path.suffix == ".pyx"]
    assert [name for path in [*modules, *kernels] for name in undocumented(read(path), path)] == []


@pytest.mark.parametrize(
    ("path", "text", "count"),
    [
        ("a.py", "x = 1", 1),
        ("a.py", '"""A."""\ndef f():\n    pass', 1),
        ("a.py", '"""A."""\nclass C:\n    def f(self):\n        pass', 2),
        ("a.py", '"""A."""\ndef _f():\n    pass\nclass _C:\n    def f(self): ...', 0),
        ("_a.pyx", "cdef int x = 1", 1),
        ("_a.pyx", '"""A."""\n\ndef f():\n    return 1\n', 1),
        ("_a.pyx", '"""A."""\n\ncpdef double f(\n    double a,\n) except -1:\n    return 1\n', 1),
        (
            "_a.pyx",
            '"""A."""\n\ncdef class C:\n    cdef int x\n\n    def f(self):\n        pass',
            2,
        ),
        ("_a.pyx", '"""A."""\n\ndef f():\n    """F."""\ncdef int g() noexcept:\n    return 1', 0),
    ],
)
def test_an_undocumented_name_is_caught(path: str, text: str, count: int) -> None:
    """Each public thing without a docstring is a violation; private ones and cdefs are not."""
    assert len(undocumented(text, Path(path))) == count


def test_every_kernel_has_a_stub() -> None:
    """The types of every compiled module are written down in a `.pyi` beside it."""
    kernels = [path for path in CYTHON if path.suffix == ".pyx"]
    assert kernels
    assert [path for path in kernels if not (ROOT / path).with_suffix(".pyi").exists()] == []


def test_directives_belong_to_the_build() -> None:
    """No source switches a check of the compiler on or off by itself."""
    assert [line for path in CYTHON for line in build_directives(read(path), path)] == []


@pytest.mark.parametrize(
    "text",
    [
        "# cython: boundscheck=False",
        "@cython.boundscheck(False)\ndef f(): pass",
        "def f():\n    with cython.wraparound(False):\n        pass",
    ],
)
def test_a_directive_is_caught(text: str) -> None:
    """Each way to set a directive in a source is a violation."""
    assert len(build_directives(text, Path("_a.pyx"))) == 1


def test_every_exemption_has_a_reason() -> None:
    """Every `noqa` and `type: ignore` names its rule and says why."""
    found = [
        line for path in [*PYTHON, *CYTHON] for line in unreasoned_exemptions(read(path), path)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("comment", "count"),
    [
        ("noqa", 1),
        ("noqa: S603", 1),
        ("noqa: S603, T201", 1),
        ("type: ignore", 1),
        ("type: ignore  # because", 1),
        ("type: ignore[arg-type]", 1),
        ("ruff: noqa", 1),
        ("noqa: S603  # a tool of ours", 0),
        ("noqa: S603, T201 - a tool of ours", 0),
        ("type: ignore[arg-type]  # the column's own type", 0),
        ("an ordinary comment", 0),
    ],
)
def test_an_exemption_without_reason_is_caught(comment: str, count: int) -> None:
    """An exemption without rule or without reason is a violation; words in a string are not."""
    for name in ("a.py", "_a.pyx"):
        assert len(unreasoned_exemptions(f"x = 1  # {comment}\n", Path(name))) == count
    assert unreasoned_exemptions(f"x = '# {comment}'\n", Path("a.py")) == []


def test_every_entry_of_the_project_file_has_a_reason() -> None:
    """Each dependency and each ignored lint rule has its reason beside it."""
    assert unreasoned_entries(read(Path("pyproject.toml"))) == []


def test_an_entry_without_reason_is_caught() -> None:
    """A dependency on a line of its own without a comment, or among others, is a violation."""
    text = """
[build-system]
requires = ["setuptools"]
[project]
dependencies = [
    "numpy>=2",  # arrays
    "rich",
]
[project.optional-dependencies]
dev = [
    "pytest",  # runner
]
[tool.ruff.lint]
ignore = [
    "S101",  # invariants
    "E501",
]
[tool.ruff.lint.per-file-ignores]
"tests/**" = [
    "D100",
]
"""
    assert unreasoned_entries(text) == ["setuptools", "rich", "E501", "D100"]


def test_no_file_says_what_is_true_on_one_machine_only() -> None:
    """No file names an absolute path of its author or the address of a package registry."""
    assert [line for path in TEXTS for line in forbidden_words(read(path), path)] == []


@pytest.mark.parametrize(
    "parts",
    [("cd /", "work/main"), ("/", "root/.cache"), ("'/home", "/me'"), ("https://py", "pi.org/x")],
)
def test_a_forbidden_word_is_caught(parts: tuple[str, str]) -> None:
    """Each kind of forbidden word is a violation, and an ordinary path is not."""
    assert len(forbidden_words("fine\n" + "".join(parts), Path("a.md"))) == 1
    assert forbidden_words("docs/work/here and ./root/x", Path("a.md")) == []


def test_every_module_has_its_test_module() -> None:
    """`tests/x/test_y.py` covers `x/y.py` or `x/_y.pyx`, or a reason says what does instead."""
    modules = files(PACKAGES, {".py", ".pyx"})
    tests = set(files(("tests",), {".py"}))
    assert missing_mirrors(modules, tests, COVERED_ELSEWHERE) == []
    assert [name for name in COVERED_ELSEWHERE if Path(name) not in modules] == []


def test_a_missing_mirror_is_caught() -> None:
    """A module without a test module of its name is a violation; a kernel shares its face's."""
    modules = [
        Path("grms/policy/files.py"),
        Path("lrms_sim/_machine.pyx"),
        Path("grms/__init__.py"),
    ]
    tests = {Path("tests/lrms_sim/test_machine.py"), Path("tests/grms/test_files.py")}
    assert missing_mirrors(modules, tests, {}) == [
        "grms/policy/files.py has no tests/grms/policy/test_files.py"
    ]
    elsewhere = {"grms/policy/files.py": ("tests/grms/test_files.py", "why")}
    assert missing_mirrors(modules, tests, elsewhere) == []
    assert missing_mirrors(modules, set(), elsewhere) == [
        "grms/policy/files.py has no tests/grms/test_files.py",
        "lrms_sim/_machine.pyx has no tests/lrms_sim/test_machine.py",
    ]


def test_every_link_in_the_docs_leads_somewhere() -> None:
    """Relative links of all Markdown files name files, and headings, that exist."""
    assert {Path("README.md"), Path("CHANGELOG.md"), Path("docs/architecture.md")} <= set(MARKDOWN)
    assert [line for path in MARKDOWN for line in broken_links(read(path), path, ROOT)] == []


def test_a_broken_link_is_caught(tmp_path: Path) -> None:
    """A link to a missing file or heading is a violation; one in a code block is not."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# One `word`, two\n")
    good = "[a](a.md) [b](a.md#one-word-two) [c](https://example.org/x) ![d](../docs/a.md)\n"
    assert broken_links(good, Path("docs/b.md"), tmp_path) == []
    assert broken_links("```\n[a](none.md)\n```\n", Path("docs/b.md"), tmp_path) == []
    bad = '[a](none.md) [b](a.md#two) ![c](x.png)\n<img alt="" src="y.svg">\n\n[d]: z.md\n'
    assert len(broken_links(bad, Path("docs/b.md"), tmp_path)) == 5


def test_the_changelog_knows_this_version() -> None:
    """The version is a release with its own heading, or what comes before the first of them."""
    text = read(Path("CHANGELOG.md"))
    assert "## [Unreleased]" in text
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", text, re.MULTILINE)
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
    assert not released or released[0] == __version__


def test_the_makefile_has_every_target_the_docs_name() -> None:
    """Whoever types what the documentation says finds it there."""
    makefile = read(Path("Makefile"))
    assert {path: t for path in MARKDOWN if (t := missing_targets(read(path), makefile))} == {}


def test_the_readme_lists_every_document() -> None:
    """Nobody has to look into a folder to find out what there is to read."""
    readme = read(Path("README.md"))
    documents = [path for path in MARKDOWN if path.parent == Path("docs")]
    assert [str(path) for path in documents if f"]({path})" not in readme] == []
    assert Path("docs/scenarios.md") in documents


def test_a_missing_target_is_caught() -> None:
    """A target named in code and absent from the Makefile is a violation; prose is not."""
    makefile = "run: setup  ## Run\n\t@true\nX := 1\n"
    text = (
        "Type `make run`, then make sure of\n\n    make fly\n    apt install make gcc\n\n"
        "```\n$ make run PYTHON=x\n$ make hop\ncd x && A=b make swim\n```\n"
    )
    assert missing_targets(text, makefile) == ["fly", "hop", "swim"]
