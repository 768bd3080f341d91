"""What `scenario study kinds-of-nodes` does, apart from its command line."""

from scenarios.papers.frame import StudyCommand
from scenarios.papers.kinds_of_nodes.page import page_of
from scenarios.papers.kinds_of_nodes.statements import statements
from scenarios.papers.kinds_of_nodes.study import Study, run_study
from scenarios.papers.verdicts import statements_markdown


def statements_table(study: Study) -> str:
    """Returns the statements with what was measured, as a table in Markdown."""
    return statements_markdown("statement", statements(study))


run_command = StudyCommand(run_study, page_of, table=statements_table)
