import re
from dataclasses import replace

import pytest

from lrms_sim.report.parts import Words
from scenarios.report import tables, wording
from scenarios.run.results import WorkloadNote
from scenarios.run.user_groups import GroupResult
from tests.scenarios.towns import random_towns, two_towns


def rows(section: Words) -> list[list[str]]:
    """Returns the texts of the cells of every row in table bodies."""
    bodies = re.findall(r"<tbody>(.*?)</tbody>", str(section), re.DOTALL)
    return [
        [
            re.sub(r"<[^>]*>", "", cell.replace('<span class="of">', "|"))
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        ]
        for row in re.findall(r"<tr>(.*?)</tr>", "".join(bodies), re.DOTALL)
    ]


def test_summary_has_a_row_for_users_and_one_for_the_machine_of_each_site() -> None:
    """The two tables hold AWRT, ΔAWRT, U, ΔSA, makespan, and jobs kept, given and taken."""
    assert rows(tables.summary(two_towns())) == [
        ["Lübeck", "2", "150.00", "100.00", "+33.3%", "1", "1"],
        ["Wismar", "2", "55.00", "136.67", "−148.5%", "1", "1"],
        ["Lübeck", "1", "100.0%", "85.7%", "−40.0%", "200", "140"],
        ["Wismar", "1", "66.7%", "66.7%", "+66.7%", "100", "150"],
    ]


def test_user_groups_have_a_table_where_a_queue_looks_at_them() -> None:
    """A row for each group of each site, with the colour of its improvement."""
    groups = (
        GroupResult("Lübeck", 1, 2, 150.0, 100.0, 1 / 3),
        GroupResult("Wismar", 5, 1, 55.0, 66.0, -0.2),
    )
    section = tables.summary(replace(two_towns(), user_groups=groups))
    assert rows(section)[4:] == [
        ["Lübeck", "1", "2", "150.00", "100.00", "+33.3%"],
        ["Wismar", "5", "1", "55.00", "66.00", "−20.0%"],
    ]
    assert '<strong class="loss">−20.0%' in str(section)
    assert "User groups" not in str(tables.summary(two_towns()))


def test_every_row_is_as_wide_as_the_head() -> None:
    """Groups of columns span exactly the columns below them."""
    section = str(tables.summary(two_towns())) + str(tables.waits(two_towns()))
    for head, body in re.findall(r"<thead>(.*?)</thead><tbody>(.*?)</tbody>", section, re.DOTALL):
        groups, columns = re.findall(r"<tr>(.*?)</tr>", head, re.DOTALL)
        spans = sum(int(n) for n in re.findall(r'colspan="(\d+)"', groups)) + 1
        assert spans == columns.count("<th")
        assert {row.count("<t") for row in re.findall(r"<tr>(.*?)</tr>", body)} == {spans}


def test_gains_and_losses_have_their_colour_and_nothing_has_none() -> None:
    """The class of a figure follows the sign of ΔAWRT, beyond what rounds to nothing."""
    tones = [wording.tone(site.awrt_improvement) for site in two_towns().sites]
    assert tones == ["gain", "loss"]
    assert wording.tone(0.0004) == ""
    assert wording.tone(float("nan")) == ""


def test_matrix_shows_jobs_and_processor_hours() -> None:
    """Rows gave, columns took; a pair without exchange has a dash."""
    result = two_towns()
    assert rows(tables.matrix(result)) == [
        ["Lübeck", "1|0", "1|0"],
        ["Wismar", "1|0", "1|0"],
    ]
    unmoved = random_towns(["a", "b"], 40, away=0.0)
    assert [row[2 - k] for k, row in enumerate(rows(tables.matrix(unmoved)))] == ["–", "–"]


def test_matrix_shades_by_the_largest_exchange() -> None:
    """The most jobs given have the full shade, whatever stayed at home."""
    result = random_towns(["a", "b", "c"], 300, away=0.3)
    shades = [float(shade) for shade in re.findall(r"--w:([\d.]+)", str(tables.matrix(result)))]
    assert len(shades) == 6
    assert max(shades) == 1.0
    assert min(shades) > 0


@pytest.mark.parametrize(("sites", "compact"), [(3, False), (9, True)])
def test_large_matrices_are_set_small(sites: int, compact: bool) -> None:
    """Many columns need a smaller size to fit on a page."""
    matrix = str(tables.matrix(random_towns([f"s{k}" for k in range(sites)], 200)))
    assert ("compact" in matrix) is compact


def test_waits_are_durations_and_slowdowns_ratios() -> None:
    """Every figure stands twice: alone and federated."""
    assert rows(tables.waits(two_towns())) == [
        ["Lübeck", "50 s", "0 s", "1.50", "1.00", "1.50", "1.00"],
        ["Wismar", "20 s", "1 min 25 s", "1.50", "2.90", "1.50", "2.90"],
    ]


def test_workloads_name_every_reason() -> None:
    """Dropped and altered records are listed by site and reason, escaped."""
    notes = ((WorkloadNote("wider than <64>", 1234, "dropped"),), ())
    section = tables.workloads(replace(two_towns(), workload_notes=notes))
    assert rows(section) == [["Lübeck", "wider than &lt;64&gt;", "1,234", "dropped"]]


def test_clean_workloads_need_no_section() -> None:
    """Nothing dropped or altered is nothing to show."""
    assert tables.workloads(replace(two_towns(), workload_notes=((), ()))) == ""
