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
