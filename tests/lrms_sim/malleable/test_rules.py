import tomllib
from pathlib import Path

import numpy as np
import pytest

from lrms_sim.malleable.rules import (
    LENIENT,
    PRESETS,
    TIGHT,
    Malleability,
    UtilityRulesError,
    load_rules,
    rules_from_document,
    utilities,
)
from lrms_sim.workload.swf_log import SwfLog

LOG = SwfLog.from_columns(
    {
        "job_id": [1, 2, 2, 4, 5],
        "submit_time": [0, 10, 20, 30, 40],
        "run_time": [3600, 1800, 60, -1, 7200],
        "processors_allocated": [4, 8, 2, 1, 16],
        "requested_time": [7200, 3600, 60, 60, 7200],
        "user": [7, 8, 7, 7, 9],
        "queue": [1, 2, 2, 1, 3],
        "partition": [1, 1, 2, 2, 2],
        "group": [5, 5, 6, 6, 6],
    }
)
TEXT = """
qos_field = "partition"

[default]
weight = 0.5
plateau = { requests = 1, hours = 2 }
zero = { requests = 3, hours = 2 }

[[rule]]
queue = [2, 3]
user = 8
weight = 4
zero = { requests = 1.5, hours = 4 }

[[rule]]
qos = 2
weight = 2
floor = 0.25
shape = "convex"

[malleable]
share = 0.5
least = 0.25
seed = 3
"""


def test_the_first_rule_that_fits_says_it() -> None:
    """Records that are dropped or renumbered do not move others; users stay who they are."""
    rules = rules_from_document(tomllib.loads(TEXT), source="u.toml")
    jobs, report = utilities(LOG, 32, rules)
    assert report.records_dropped == 1
    assert jobs.jobs.user.tolist() == [7, 8, 7, 9]
    assert jobs.weight.tolist() == [0.5, 4.0, 2.0, 2.0]
    assert jobs.floor.tolist() == [0.0, 0.0, 0.25, 0.25]
    assert jobs.shape.tolist() == [0, 0, 1, 1]
    # Hours over the request: 2 h of 2 h, 4 h of 1 h, 2 h of 1 min.
    assert jobs.plateau.tolist() == [1 + 1, 1 + 2, 1 + 120, 1 + 1]
    assert jobs.zero.tolist() == [3 + 1, 1.5 + 4, 3 + 120, 3 + 1]


def test_user_groups_are_those_of_the_jobs() -> None:
    """A rule may ask for the heaviest users."""
    document = {"rule": [{"user_group": 1, "weight": 3.0}]}
    jobs, _ = utilities(LOG, 32, rules_from_document(document, source="u"))
    assert jobs.weight.tolist() == [3.0, 3.0, 3.0, 3.0]


def test_presets_are_the_papers_and_a_day() -> None:
    """Tight is the paper's utility; lenient gives an hour and a day."""
    tight, _ = utilities(LOG, 32, TIGHT)
    assert (tight.plateau.tolist(), tight.zero.tolist()) == ([1.0] * 4, [2.0] * 4)
    lenient, _ = utilities(LOG, 32, LENIENT)
    assert lenient.zero[0] * 7200 == pytest.approx(2 * 7200 + 86400)
    assert set(PRESETS) == {"tight", "lenient"}


def test_some_jobs_are_malleable() -> None:
    """A share of them, down to a share of their width, by seed."""
    jobs = utilities(LOG, 32, TIGHT)[0].jobs
    big = utilities(
        SwfLog.from_columns(
            {
                "submit_time": np.arange(4000),
                "run_time": np.full(4000, 10.0),
                "processors_allocated": np.full(4000, 8),
                "requested_time": np.full(4000, 10.0),
            }
        ),
        8,
        TIGHT,
    )[0].jobs
    least = Malleability(0.3, 0.3, 1).processors_min(big)
    assert set(least.tolist()) == {3, 8}
    assert np.mean(least == 3) == pytest.approx(0.3, abs=0.03)
    assert Malleability(0.0).processors_min(jobs).tolist() == jobs.processors.tolist()
    assert Malleability().processors_min(jobs).tolist() == [1] * 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("weight = 1", "'weight' is no key"),
        ("qos_field = 'user'", "'user' is no field of QOS"),
        ("[default]\nqueue = 1", "default: 'queue' is no key"),
        ("[default]\nweight = -1", "default, weight is -1.*would rise with time"),
        ("[default]\nweight = nan", "default, weight is nan; a finite number"),
        ("[default]\nweight = true", "default, weight is True"),
        ("[default]\nfloor = 2", "default, floor is 2"),
        ("[default]\nshape = 'wavy'", "'wavy' is no shape"),
        ("[default]\nplateau = 3", "default, plateau is 3; a table"),
        ("[default]\nplateau = {requests = 3}", "zero is 2 requests and 0 hours, before the"),
        ("[default]\nzero = {requests = 9, hours = 0}\nplateau = {hours = 1}", "for some requests"),
        ("[default]\nzero = {requests = 3, days = 1}", "'days' is no key"),
        ("[default]\nplateau = {requests = -1}", "at least 0 of both"),
        ("rule = 3", "rule must be at most"),
        ("[[rule]]\nweight = 2", "rule 1 asks nothing of a job"),
        ("[[rule]]\nqueue = 1\n[[rule]]\nquue = 2", "rule 2"),
        ("[[rule]]\nqueue = 'big'", "rule 1, queue is 'big'; whole numbers"),
        ("[[rule]]\nqueue = 1\nzero = {requests = 0.5}", "rule 1: zero is 0.5 requests"),
        ("[malleable]\nshare = 1.5", "share is 1.5; it must be from 0 to 1"),
        ("[malleable]\nseed = 1.5", "seed is 1.5"),
        ("[malleable]\nmost = 1", "malleable: 'most' is no key"),
    ],
)
def test_rules_that_cannot_be_are_refused(text: str, words: str) -> None:
    """File, place and bound are named."""
    with pytest.raises(UtilityRulesError, match=words) as caught:
        rules_from_document(tomllib.loads(text), source="u.toml")
    assert str(caught.value).startswith("u.toml: ")


def test_files_are_read_and_refused(tmp_path: Path) -> None:
    """A file comes as its document; one that is none is named with its line."""
    path = tmp_path / "u.toml"
    path.write_text(TEXT)
    assert load_rules(path) == rules_from_document(tomllib.loads(TEXT), source="x")
    path.write_text("[default\n")
    with pytest.raises(UtilityRulesError, match=r"u.toml: no TOML: .*line 1"):
        load_rules(path)
    path.write_bytes(b"\xff")
    with pytest.raises(UtilityRulesError, match="not UTF-8"):
        load_rules(path)
    with pytest.raises(UtilityRulesError, match="cannot be read: No such file"):
        load_rules(tmp_path / "none.toml")
