"""The glossary: one concept, one word."""

import re
from collections import Counter
from pathlib import Path

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_no_word_is_defined_twice() -> None:
    """Whatever is set in bold is a definition; small and capital letters are the same word."""
    words = re.findall(r"\*\*([^*]+)\*\*", GLOSSARY.read_text(encoding="utf-8"))
    counts = Counter(word.lower().strip("`") for word in words)
    assert len(counts) > 150
    assert [word for word, count in counts.items() if count > 1] == []
