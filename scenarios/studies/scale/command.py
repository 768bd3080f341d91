"""What `scenario study scale` does, apart from its command line."""

from scenarios.studies.common.frame import StudyCommand
from scenarios.studies.common.verdicts import statements_markdown
from scenarios.studies.scale.page import page_of
from scenarios.studies.scale.statements import statements
from scenarios.studies.scale.study import Study, run_study


def statements_table(study: Study) -> str:
    """Returns the statements with what was measured, as a table in Markdown."""
    return statements_markdown("statement", statements(study))


run_command = StudyCommand(run_study, page_of, table=statements_table)
