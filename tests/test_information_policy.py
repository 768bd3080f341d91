"""What a decision may look at: docs/information-policy.md, held against the compiled code.

The federation kernel has every site's state in one memory. That each party uses its own alone is
a promise of the source, so the source is read here.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KERNEL = Path("grms/federation/_kernel.pyx")
HEADER = Path("grms/policy/_decisions.pxd")
POLICY = Path("docs/information-policy.md")

# --- the data ------------------------------------------------------------------------------------

OWN_LOAD = {"processors", "processors_free", "processors_waiting"}
"""What a site knows of itself when it decides; the table in the document lists the same."""

READ_OF_HOME = {
    "home.by_awrt",
    "home.history_changed",
    "home.partners",
    "home.partner_count",
    "home.transfer",
    "home.consumption",  # of own users' jobs that a partner has run and reported
    "home.weighted_response",  # same
}
READ_OF_PARTNER = {
    "partner.core.view.processors",  # its size, which is public
    "partner.transfer",  # its own policy, applied to its own load: the question and the answer
}
READ_OF_ALL = {"federation.sites", "federation.count"}

# --- the rules -----------------------------------------------------------------------------------


def function(text: str, name: str) -> str:
    """Returns the body of a Cython function, without comments."""
    begin = rf"^cdef [\w* ]*\b{name}\([^\n]*\n"
    found = re.search(begin + r".*?(?=^[^\s)]|\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"{name} is not there"
    return re.sub(r"#[^\n]*", "", found.group())


def reads(body: str) -> set[str]:
    """Returns every member that a decision takes from anything."""
    return set(re.findall(r"\b[A-Za-z_]\w*(?:\.\w+)+", re.sub(r"\[[^\[\]]*\]", "", body)))


def foreign_loads(body: str) -> list[str]:
    """Returns where a load is used for anything but the decision of the site it belongs to."""
    rest = re.sub(
        r"accept_fast\(\s*(\w+)\.transfer\[\w+\],\s*job_processors,\s*load_of\(\1\),\s*\w+\s*\)",
        "",
        body,
    )
    return re.findall(r"\baccept_fast\b|\bload_of\b|\bSiteLoad\b", rest)


def members(text: str, struct: str) -> set[str]:
    """Returns the member names of a struct in a Cython header."""
    found = re.search(rf"^cdef struct {struct}:\n((?:[ ]{{4}}.*\n|\n)+)", text, re.MULTILINE)
    assert found is not None, f"{struct} is not there"
    return set(
        re.findall(r"^ +[\w* ]+?(\w+)\s*$", re.sub(r"#.*", "", found.group(1)), re.MULTILINE)
    )


# --- the tree ------------------------------------------------------------------------------------


def decision() -> str:
    """Returns the function of the federation kernel that decides where a job runs."""
    return function((ROOT / KERNEL).read_text(encoding="utf-8"), "decide")


def test_a_decision_reads_what_the_policy_lists_and_no_more() -> None:
    """Of home: its order and the history of its own jobs; of a partner: its size, its answer."""
    assert reads(decision()) == READ_OF_HOME | READ_OF_PARTNER | READ_OF_ALL


def test_a_load_is_seen_by_its_own_site_alone() -> None:
    """A site's load goes into that site's own transfer policy and nowhere else."""
    body = decision()
    assert body.count("load_of(home)") == 1
    assert body.count("load_of(partner)") == 1
    assert foreign_loads(body) == []


@pytest.mark.parametrize(
    "line",
    [
        "if accept_fast(home.transfer[index], job_processors, load_of(partner), True):",
        "load = load_of(partner)",
        "cdef SiteLoad load",
        "accept_fast(partner.transfer[home_index], job_processors + 1, load_of(partner), False)",
    ],
)
def test_a_look_at_a_foreign_load_is_caught(line: str) -> None:
    """A load that goes anywhere but into its own site's policy is a violation."""
    assert foreign_loads(line)


@pytest.mark.parametrize(
    "line",
    [
        "partner.core.view.processors_free",
        "partner.core.view.queue.count",
        "federation.jobs.run_time[job]",
        "federation.sites[index].core.view.processors",
        "other.next_time",
    ],
)
def test_a_forbidden_read_is_caught(line: str) -> None:
    """A partner's state and any job's true times are not on the list."""
    assert reads(f"    if {line} > 0:") - READ_OF_HOME - READ_OF_PARTNER - READ_OF_ALL


def test_a_decision_is_given_a_sites_own_load_only() -> None:
    """What a transfer policy is handed consists of three numbers of the deciding site."""
    assert members((ROOT / HEADER).read_text(encoding="utf-8"), "SiteLoad") == OWN_LOAD


def test_another_member_of_the_load_is_caught() -> None:
    """A fourth number would be seen."""
    text = "cdef struct SiteLoad:\n    # Own.\n    int processors\n    double awrt  # average\n\n"
    assert members(text, "SiteLoad") == {"processors", "awrt"}


def test_the_document_lists_what_the_code_reads() -> None:
    """docs/information-policy.md names every number that a decision uses."""
    document = (ROOT / POLICY).read_text(encoding="utf-8")
    assert {name for name in OWN_LOAD if f"`{name}`" not in document} == set()
