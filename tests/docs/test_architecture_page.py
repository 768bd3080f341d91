"""The page on the architecture is short, and names modules that are there; the table of modules has them all."""

import re
import runpy
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = ("lrms_sim", "grms", "broker", "scenarios")
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in PACKAGES
    for suffix in ("py", "pyx")
    for path in (ROOT / package).rglob(f"*.{suffix}")
]


def test_it_is_short() -> None:
    """Whoever needs more finds it in the modules."""
    assert len(PAGE.split()) <= 1500


def test_the_ways_lead_through_modules_that_are_there() -> None:
    """Each name between arrows is the end of a module's name."""
    named = {
        name
        for row in PAGE.splitlines()
        if row.startswith("|") or "→" in row
        for name in re.findall(r"`([a-z_.0-9]+)`", row.split(" | ")[0])
    }
    known = "\n".join(f".{module.removesuffix('.__init__')}" for module in MODULES) + "\n"
    assert len(named) > 50
    assert sorted(name for name in named if f".{name}\n" not in known) == []


def test_each_folder_imports_only_those_before_it_in_the_table() -> None:
    """And no folder with modules is left out."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| ([`a-z0-9_ ]+) \|$", PAGE, re.MULTILINE))
    assert set(rows) == {*PACKAGES, "grms.site"}
    for package, row in rows.items():
        listed = [f"{package}.{name}" for name in re.findall(r"`(\w+)`", row)]
        folders = {each for each in graph.find_children(package) if graph.find_children(each)}
        assert folders <= set(listed)
        for place, folder in enumerate(listed):
            modules = {folder, *graph.find_descendants(folder)} & graph.modules
            imported = {
                name for each in modules for name in graph.find_modules_directly_imported_by(each)
            }
            later = [
                other
                for other in listed[place + 1 :]
                if any(name == other or name.startswith(f"{other}.") for name in imported)
            ]
            assert (folder, later) == (folder, [])


def test_the_table_of_modules_has_every_module() -> None:
    """Each with a first line, and each folder with one."""
    page = runpy.run_path(str(ROOT / "docs" / "site" / "modules.py"))["page"]()
    assert "|  |" not in page
    assert re.search(r"^## .*\n\n\n", page, re.MULTILINE) is None
    for module in MODULES:
        folder, _, name = module.rpartition(".")
        if name == "__init__":
            assert f"\n## `{folder}`\n" in page
        elif "_pb2" not in name and name != "__main__":
            assert f"\n| `{name}` | " in page
