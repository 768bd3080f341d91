"""Findings of checks of a batch system."""

from grms.lrms.checks import Finding, FindingLevel


def told(finding: Finding, level: FindingLevel, *words: str) -> None:
    """Holds a finding to a level; who is told that something is not well is told a cure."""
    assert finding.level is level, finding
    assert bool(finding.cure) == (level is not FindingLevel.GOOD)
    for word in words:
        assert word in f"{finding.text} {finding.cure}"
