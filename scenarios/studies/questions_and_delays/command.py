"""What `scenario study questions-and-delays` does, apart from its command line."""

from lrms_sim.report.text_tables import markdown
from scenarios.studies.common.frame import StudyCommand
from scenarios.studies.common.verdicts import Margin, word
from scenarios.studies.questions_and_delays.page import page_of
from scenarios.studies.questions_and_delays.replays import WINDOWS
from scenarios.studies.questions_and_delays.statements import statements
from scenarios.studies.questions_and_delays.study import Study, run_study


def statements_table(study: Study) -> str:
    """Returns the statements with what was measured, as a table in Markdown."""
    return markdown(
        ("window", "statement", "exchange", "points missing", "holds"),
        [
            (
                WINDOWS[each.window],
                each.about,
                each.of,
                Margin.of(each.missing).words(),
                word(each.holds),
            )
            for each in statements(study)
        ],
    )


run_command = StudyCommand(run_study, page_of, table=statements_table)
