"""What docs/experiments.md says of paper 004 is what the command has measured."""

import gzip
import json
from pathlib import Path

from scenarios.studies.gorba_rescheduling.command import statements_table
from scenarios.studies.gorba_rescheduling.options import StudyOptions
from scenarios.studies.gorba_rescheduling.records import Record
from scenarios.studies.gorba_rescheduling.study import GLEAM, HEURISTICS, Study, cases, run_case

RECORDED = Path(__file__).with_name("study.json.gz")
"""`study.json` of `scenario paper gorba-rescheduling --sizes 200,400,1000`."""

EXPERIMENTS = Path(__file__).parents[4] / "docs" / "experiments.md"


def recorded() -> Study:
    """Returns the study that is kept."""
    document = json.loads(gzip.decompress(RECORDED.read_bytes()))
    records = tuple(Record(**each) for each in document["runs"])
    return Study(document["options"], records, document["version"])


def test_the_table_of_the_documentation_is_made_by_the_command() -> None:
    """Line by line; whoever measures anew keeps both."""
    assert statements_table(recorded()) in EXPERIMENTS.read_text(encoding="utf-8")


def test_the_runs_that_are_kept_are_those_of_this_program(tmp_path: Path) -> None:
    """The heuristics and the first search of an event come to the same again, schedule by schedule."""
    options = StudyOptions(tmp_path, parts=("settings",), workers=1)
    first = [each for each in cases(options) if each.setting.new == 0.1][:2]
    assert [each.method for each in first] == [HEURISTICS, GLEAM]
    for case in first:
        (kept,) = [
            each
            for each in recorded().of("settings", case.method, event=case.setting.name)
            if each.seed == case.seed
        ]
        found = run_case(case, options)
        assert (found.fitness, found.evaluations, found.each) == (
            kept.fitness,
            kept.evaluations,
            kept.each,
        )
