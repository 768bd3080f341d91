"""The glossary: one concept, one word."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"


def test_no_word_is_defined_twice() -> None:
    """Whatever is set in bold is a definition; small and capital letters are the same word."""
    words = re.findall(r"\*\*([^*]+)\*\*", GLOSSARY.read_text(encoding="utf-8"))
    counts = Counter(word.lower().strip("`") for word in words)
    assert len(counts) > 150
    assert [word for word, count in counts.items() if count > 1] == []


def test_the_classes_it_names_are_there() -> None:
    """A word of the code that is renamed is renamed here too."""
    named = set(re.findall(r"`([A-Z]\w*[a-z]\w*)`", GLOSSARY.read_text(encoding="utf-8")))
    assert len(named) > 12
    classes = {
        name
        for package in ("lrms_sim", "grms", "broker", "scenarios")
        for path in (ROOT / package).rglob("*.py")
        for name in re.findall(
            r"^(?:class )?(\w+)(?=[(:]| =)", path.read_text("utf-8"), re.MULTILINE
        )
    }
    assert sorted(named - classes) == []


REPLACED = {
    "conductor": "coordinator",
    "desk": "handler",
    "door": "admission",
    "guard": "circuit breaker",
    "ledger": "tracker, dashboard state",
    "mover": "adoption",
    "overruns": "walltime extension",
    "rails": "exchange constraints",
    "rogue": "Byzantine partner",
    "shown": "output",
    "situation": "planning input",
    "slips": "anomalies",
    "turn": "transaction",
}
"""What a concept must not be called as well, and the one word that it has."""

OTHERWISE = {
    "lrms_sim/scheduling": {"situation", "situations"},
    "lrms_sim/util/process_guard": {"guard"},
}
"""Where such a word has a meaning of its own: the situations of a machine, what guards a process."""


def test_no_class_and_no_module_has_a_second_word() -> None:
    """One concept has one word: none of those that were replaced comes back as a name."""
    found = []
    for package in ("lrms_sim", "grms", "broker", "scenarios"):
        for path in sorted((ROOT / package).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            meant = {
                word
                for folder, words in OTHERWISE.items()
                if place.startswith(folder)
                for word in words
            }
            names = [path.stem, *re.findall(r"^class (\w+)", path.read_text("utf-8"), re.MULTILINE)]
            for name in names:
                parts = {part.lower() for part in re.findall(r"[A-Z]?[a-z]+", name)}
                found += [f"{place}: {name}" for _ in parts & (REPLACED.keys() - meant)]
    assert found == []


def test_no_page_has_a_second_word() -> None:
    """Nor does the documentation's prose, where the word has no everyday meaning; keys keep theirs."""
    words = re.compile(r"\b(?:conductor|rails|rogues?|slips|desk|the guard)\b", re.IGNORECASE)
    code = re.compile(r"^```.*?^```|^    .*$|`[^`]*`", re.DOTALL | re.MULTILINE)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    assert [
        f"{page.relative_to(ROOT)}: {match.group()}"
        for page in pages
        for match in words.finditer(code.sub("", page.read_text(encoding="utf-8")))
    ] == []
