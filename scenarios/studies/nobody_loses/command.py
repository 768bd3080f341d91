"""What `scenario study nobody-loses` does, apart from its command line."""

from scenarios.studies.common.frame import StudyCommand
from scenarios.studies.nobody_loses.page import page_of
from scenarios.studies.nobody_loses.study import run_study

run_command = StudyCommand(run_study, page_of)
