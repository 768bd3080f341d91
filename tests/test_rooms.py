"""The rooms of the house: folders whose imports go one way, and which are not crowded."""

import ast
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.source_imports import ROOT, imports, module_name, parsed

PACKAGES = ("lrms_sim", "grms", "broker", "scenarios")

MODULES_MAX = 20
"""Most modules of one folder; a folder with more wants to be two rooms."""

ARCHITECTURE = ROOT / "docs/architecture.md"

NO_MODULES = frozenset({"gorba", "scenario", *PACKAGES})
"""Commands and packages, which the page names as it names modules."""

KERNEL_SIDE = "a kernel's side of the same thing"
TWO_MACHINES = "of each of the two machines; no module uses both"
SAME_NAME = {
    ("broker", "Goals"): KERNEL_SIDE,
    ("broker", "Worth"): KERNEL_SIDE,
    ("grms", "Federation"): KERNEL_SIDE,
    ("grms", "TransferPolicy"): KERNEL_SIDE,
    ("lrms_sim", "Criterion"): KERNEL_SIDE,
    ("lrms_sim", "Scales"): KERNEL_SIDE,
    ("lrms_sim", "Speedup"): KERNEL_SIDE,
    ("lrms_sim", "Allocation"): "a row of the log, and what the log is written of",
    ("lrms_sim", "Choice"): TWO_MACHINES,
    ("lrms_sim", "Notes"): TWO_MACHINES,
    ("lrms_sim", "Release"): TWO_MACHINES,
    ("lrms_sim", "Running"): "of the machine, and of the rows of a file",
    ("lrms_sim", "View"): TWO_MACHINES,
    (
        "grms",
        "Clock",
    ): "what tells a site the time, and a payload whose published schema has its name",
    ("grms", "JobState"): "as users see it, and as the state has it; the wire is between them",
    ("grms", "Outcome"): "same",
    ("grms", "Limits"): "of a training run, and of a site",
}
"""Names that two classes of a package have, and why; nothing else has one twice."""

CROWDED = {"grms.kit": 21, "grms.lrms": 21, "grms.lrms.batch": 21, "lrms_sim": 44}
"""Folders that may have more, and why is in the page on architecture."""


def modules(root: Path) -> dict[str, Path]:
    """Returns all modules by dotted name, without generated ones and without `__init__`."""
    return {
        module_name(path.relative_to(root)): path
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
        if path.name != "__init__.py" and "_pb2" not in path.name
    }


def room(module: str) -> str:
    """Returns the folder of a module."""
    return module.rpartition(".")[0]


def arrows(known: dict[str, Path], root: Path) -> dict[tuple[str, str], list[str]]:
    """Returns which modules import which, by the rooms of both.

    What lies at the top of a package (commands, clients, names) puts rooms together or is used by all
    of them, and is no room.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for name, path in known.items():
        for one in imports(path.read_text(encoding="utf-8"), path.relative_to(root)):
            named = [f"{one.module}.{item}" for item in one.names]
            targets = [target for target in (one.module, *named) if target in known]
            for target in targets:
                edge = room(name), room(target)
                if edge[0] != edge[1] and all("." in end for end in edge):
                    found.setdefault(edge, []).append(f"{name} imports {target}")
    return found


def circles(edges: Iterable[tuple[str, str]]) -> list[str]:
    """Returns the rooms from which imports lead back to themselves."""
    after: dict[str, set[str]] = {}
    for begin, end in edges:
        after.setdefault(begin, set()).add(end)

    def reached(begin: str) -> set[str]:
        seen: set[str] = set()
        left = [begin]
        while left:
            new = after.get(left.pop(), set()) - seen
            seen |= new
            left += sorted(new)
        return seen

    return sorted(name for name in after if name in reached(name))


def test_no_imports_go_round_between_rooms() -> None:
    """Of two rooms one is above the other; the message names the imports."""
    edges = arrows(modules(ROOT), ROOT)
    bad = set(circles(edges))
    assert [text for edge, texts in edges.items() if bad.issuperset(edge) for text in texts] == []


def test_a_circle_is_caught() -> None:
    """Over any number of rooms; a room beside it is none of it."""
    assert circles([("a", "b"), ("b", "c"), ("d", "a")]) == []
    assert circles([("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]) == ["a", "b", "c"]


def test_an_arrow_is_seen(tmp_path: Path) -> None:
    """Imports of modules and of names in them; what lies at the top of a package is no room."""
    files = {
        "grms/x/one.py": "from grms.y.two import thing",
        "grms/y/two.py": "from grms.x import one\nfrom grms import top",
        "grms/top.py": "import grms.y.two",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert arrows(modules(tmp_path), tmp_path) == {
        ("grms.x", "grms.y"): ["grms.x.one imports grms.y.two"],
        ("grms.y", "grms.x"): ["grms.y.two imports grms.x.one"],
    }


def test_no_room_is_crowded() -> None:
    """A folder is what one can take in at a look."""
    count = Counter(map(room, modules(ROOT)))
    assert {
        name: number for name, number in count.items() if number > CROWDED.get(name, MODULES_MAX)
    } == {}
    assert all(count[name] > MODULES_MAX for name in CROWDED)


def described(page: str) -> dict[str, set[str]]:
    """Returns the rooms that the architecture page has a paragraph on, each with the modules named.

    A paragraph, or an item of a list, begins with the room in bold; lists below it go on with it.
    """
    section = page.partition("\n## The rooms\n")[2].partition("\n## ")[0].strip()
    found: dict[str, set[str]] = {}
    room = ""
    for block in re.split(r"\n\n|\n(?=- )", section):
        begin = re.match(r"(?:- )?\*\*`([\w.]+)`\*\*", block)
        room = begin.group(1) if begin else ("" if block.startswith("#") else room)
        if room:
            named = re.findall(r"`(\w+)`", block[begin.end() if begin else 0 :])
            found.setdefault(room, set()).update(named)
    return found


def untrue(page: str, root: Path) -> list[str]:
    """Returns what the architecture page says of rooms that is not so, or leaves out."""
    suffixes = {".py", ".pyx", ".pxd"}
    tree = {
        ".".join(folder.relative_to(root).parts): {
            each.stem for each in folder.iterdir() if each.suffix in suffixes
        }
        for package in PACKAGES
        for folder in ((root / package), *(root / package).rglob("*"))
        if folder.is_dir() and (folder / "__init__.py").exists()
    }
    rooms = described(page)
    return [
        *(f"there is no room {name}" for name in sorted(rooms.keys() - tree.keys())),
        *(f"{name} has no sentence" for name in sorted(tree.keys() - rooms.keys())),
        *(
            f"{name} has no module {module}"
            for name in sorted(rooms.keys() & tree.keys())
            for module in sorted(rooms[name] - tree[name] - NO_MODULES)
        ),
    ]


def test_the_architecture_page_knows_every_room() -> None:
    """Each room has its sentence, and names no module that it has not."""
    assert untrue(ARCHITECTURE.read_text(encoding="utf-8"), ROOT) == []


def test_an_untrue_page_is_caught(tmp_path: Path) -> None:
    """A room that is missing, one that is gone, and a module that is gone."""
    for name in ("grms/x/__init__.py", "grms/x/one.py", "grms/y/__init__.py", "grms/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    page = (
        "# A\n\n## The rooms\n\n**`grms`** is all.\n\n**`grms.x`** has:\n\n- `one`, which\n"
        "  waits,\n- `two`.\n\n**`grms.z`** went.\n\n## Others\n\n**`grms.q`**\n"
    )
    assert untrue(page, tmp_path) == [
        "there is no room grms.z",
        "grms.y has no sentence",
        "grms.x has no module two",
    ]


def class_names(text: str, suffix: str) -> list[str]:
    """Returns the public classes, and in Cython the structs and enums, that a file defines."""
    if suffix == ".py":
        found = [node.name for node in parsed(text).body if isinstance(node, ast.ClassDef)]
    else:
        found = re.findall(r"^(?:cdef |ctypedef )?(?:class|struct|enum) (\w+)", text, re.MULTILINE)
    return [name for name in found if not name.startswith("_")]


def same_names(root: Path) -> list[tuple[str, str]]:
    """Returns the names, by package, that classes of two modules have."""
    found: dict[tuple[str, str], set[str]] = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            if path.suffix not in {".py", ".pyx", ".pxd"} or "_pb2" in path.name:
                continue
            # Each study of a paper is by itself, as a package is: no study uses another.
            is_study = path.parent.parent == root / "scenarios/papers"
            own = path.parent.name if is_study else package
            for name in class_names(path.read_text(encoding="utf-8"), path.suffix):
                # A kernel's header and its source are one module.
                found.setdefault((own, name), set()).add(str(path.with_suffix("")))
    return sorted(key for key, places in found.items() if len(places) > 1)


def test_no_two_classes_of_a_package_have_one_name() -> None:
    """Whoever reads a name knows which class is meant; each exception has its reason."""
    assert set(same_names(ROOT)) == set(SAME_NAME)


def test_a_name_given_twice_is_caught(tmp_path: Path) -> None:
    """In Python and in Cython; a header and its source are one, and so is a study."""
    files = {
        "grms/one.py": "class Same: ...\nclass _Own: ...\nclass Kept: ...",
        "grms/x/_two.pyx": "cdef struct Same:\n    int a\ncdef class Both:\n    pass",
        "grms/x/_two.pxd": "cdef class Both:\n    cdef int a",
        "broker/one.py": "class Kept: ...\nclass _Own: ...",
        "scenarios/papers/a/study.py": "class Study: ...",
        "scenarios/papers/b/study.py": "class Study: ...",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert same_names(tmp_path) == [("grms", "Same")]
