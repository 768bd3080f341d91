"""The answers to the criteria of OpenSSF: each criterion has one, and what they rest on is there."""

import ast
import re

import pytest

from tests.source_imports import ROOT

PAGE = ROOT / "docs" / "openssf.md"
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| (.+) \|$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#]+)[^)]*\)")
NAMED = re.compile(r"`((?:\.?[\w-]+/)+[\w.-]*)`")
ANSWERS = {"met", "not met", "N/A", "open"}

PASSING = """
description_good interact contribution contribution_requirements floss_license floss_license_osi license_location
documentation_basics documentation_interface sites_https discussion english maintained
repo_public repo_track repo_interim repo_distributed version_unique version_semver version_tags release_notes
release_notes_vulns
report_process report_tracker report_responses enhancement_responses report_archive vulnerability_report_process
vulnerability_report_private vulnerability_report_response
build build_common_tools build_floss_tools test test_invocation test_most test_continuous_integration test_policy
tests_are_added tests_documented_added warnings warnings_fixed warnings_strict
know_secure_design know_common_errors crypto_published crypto_call crypto_floss crypto_keylength crypto_working
crypto_weaknesses crypto_pfs crypto_password_storage crypto_random delivery_mitm delivery_unsigned
vulnerabilities_fixed_60_days vulnerabilities_critical_fixed no_leaked_credentials
static_analysis static_analysis_common_vulnerabilities static_analysis_fixed static_analysis_often dynamic_analysis
dynamic_analysis_unsafe dynamic_analysis_enable_assertions dynamic_analysis_fixed
"""
"""The criteria of the passing level, in their order."""

WEAK = re.compile(r"\b(md5|sha1|arc4|rc4|tripledes|blowfish|3des)\b", re.IGNORECASE)


def missing(text: str) -> list[str]:
    """Returns the files that a text names and that are not there."""
    named = [(PAGE.parent / path).resolve() for path in LINK.findall(text)]
    named += [ROOT / path for path in NAMED.findall(text)]
    return [str(path.relative_to(ROOT)) for path in named if not path.exists()]


def test_each_criterion_has_an_answer() -> None:
    """In the order of the badge; what is met names a file or a command."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert [name for name, _, _ in rows] == PASSING.split()
    assert {answer for _, answer, _ in rows} <= ANSWERS
    silent = [
        name
        for name, answer, why in rows
        if answer == "met"
        and not (LINK.search(why) or NAMED.search(why) or why in {"git", "OpenSSL"})
    ]
    assert silent == []


def test_what_answers_rest_on_is_there() -> None:
    """Files and folders."""
    assert missing(PAGE.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("text", ["[x](nowhere.md)", "`tests/nowhere.py`", "`.ci/nowhere.py`"])
def test_what_has_gone_is_found(text: str) -> None:
    """By a link and by a path."""
    assert missing(text)


def test_nothing_weak_is_used() -> None:
    """No module of the product names a broken hash or cipher."""
    found = [
        f"{path.relative_to(ROOT)}: {node.attr if isinstance(node, ast.Attribute) else node.id}"
        for package in ("lrms_sim", "grms", "broker", "scenarios")
        for path in sorted((ROOT / package).rglob("*.py"))
        if "hashlib" in (text := path.read_text(encoding="utf-8")) or "cryptography" in text
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Attribute) and WEAK.fullmatch(node.attr))
        or (isinstance(node, ast.Name) and WEAK.fullmatch(node.id))
    ]
    assert found == []
