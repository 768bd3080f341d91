"""The rules of the house that linters cannot see.

Every rule is a function from source text to the list of its violations. The tree is held to it,
and a small bad snippet beside it shows that the rule can fail.
"""

import re
import tomllib
from pathlib import Path

import pytest

from lrms_sim.util.version import __version__
from tests.source_imports import ROOT, read

PACKAGES = ("lrms_sim", "grms", "broker", "scenarios")
CODE_FOLDERS = (*PACKAGES, "tests", "benchmarks", "proto", ".ci")
TEXT_FOLDERS = (*CODE_FOLDERS, "docs")
TEXT_SUFFIXES = {".py", ".pyi", ".pyx", ".pxd", ".md", ".toml", ".proto", ".json", ".csv", ".html"}
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")

FORBIDDEN = {
    r"(?<![\w.])/(work|root)[/]": "a path of one machine",
    r"(?<![\w.])/home/\w": "a path of one machine",
    r"\bpypi[.](org|python)": "a package registry; say the package's name",
    r"\bpythonhosted[.]": "a package registry; say the package's name",
    r"\b(registry|registry-1)[.](npmjs|docker)[.]": "a package registry; say the package's name",
}
"""Patterns that no file contains, with the reason."""


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
    *(
        path.relative_to(ROOT)
        for path in sorted((ROOT / ".ci").iterdir())
        if path.is_file() and not path.suffix
    ),
    *(path.relative_to(ROOT) for path in sorted(ROOT.glob("*.*")) if path.suffix in TEXT_SUFFIXES),
    Path("Makefile"),
]


# --- the rules -----------------------------------------------------------------------------------


_EXEMPTION = re.compile(
    r"^[^\n]*#\s*(?:(?:ruff:\s*)?noqa|type:\s*ignore)(?:[^\w\n]*(?:[A-Z]+\d+|\[[\w, -]+\])[, ]*)*[^\w\n]*$",
    re.MULTILINE,
)


def unreasoned_exemptions(text: str, path: Path) -> list[str]:
    """Returns the exemptions from a lint or type rule without a reason; ruff wants the rule's name."""
    return [
        f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group().strip()}"
        for match in _EXEMPTION.finditer(text)
    ]


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
        ("noqa: S603", 1),
        ("noqa: S603, T201", 1),
        ("type: ignore[arg-type]", 1),
        ("ruff: noqa: S603", 1),
        ("noqa: S603  # a tool of ours", 0),
        ("noqa: S603, T201 - a tool of ours", 0),
        ("type: ignore[arg-type]  # the column's own type", 0),
        ("an ordinary comment", 0),
    ],
)
def test_an_exemption_without_reason_is_caught(comment: str, count: int) -> None:
    """The name of the rule is no reason."""
    assert len(unreasoned_exemptions(f"x = 1  # {comment}\n", Path("a.py"))) == count


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
