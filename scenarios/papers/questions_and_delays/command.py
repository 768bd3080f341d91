"""What `scenario study questions-and-delays` does, apart from its command line."""

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from scenarios.papers.frame import carry_out, text_table
from scenarios.papers.questions_and_delays.options import StudyOptions
from scenarios.papers.questions_and_delays.page import render
from scenarios.papers.questions_and_delays.replays import ALL, WINDOWS
from scenarios.papers.questions_and_delays.statements import (
    Line,
    clock_lines,
    delay_lines,
    family_words,
    lateness_words,
    question_lines,
    statements,
    verdict,
)
from scenarios.papers.questions_and_delays.study import Study, run_study
from scenarios.papers.samples import Spread
from scenarios.papers.verdicts import Margin, markdown, word


def run_command(options: StudyOptions, console: Console, progress: Console) -> Path:
    """Runs the study, prints its outcome and writes its files, see `carry_out`; returns the page."""
    return carry_out(
        options.folder,
        lambda: run_study(options, progress),
        console,
        render=render,
        show=print_study,
        table=statements_table,
    )


def print_study(console: Console, study: Study) -> None:
    """Prints the tables, the statements and the verdict, 80 columns wide."""
    for window, words in WINDOWS.items():
        by_questions = [each for lines in question_lines(study, window) for each in lines]
        by_delay = [each for lines in delay_lines(study, window) for each in lines]
        late = clock_lines(study, window)
        _print_lines(
            console,
            f"{words}: by partners asked",
            ("asked",),
            by_questions,
            lambda line: (_asked(line),),
        )
        _print_lines(
            console,
            f"{words}: by delay",
            ("asked", "delay"),
            by_delay,
            lambda line: (_asked(line), f"{line.case.delay:g} s"),
        )
        _print_lines(
            console,
            f"{words}: late answers, clocks apart",
            ("late",),
            late,
            lambda line: (lateness_words(line.case),),
        )
    _print_statements(console, study)
    console.print(verdict(study), highlight=False)


def _number(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}"  # no minus before nothing


def _spread(value: Spread) -> str:
    return f"{_number(value.median)} ({_number(value.low)}…{_number(value.high)})"


def _asked(line: Line) -> str:
    return "all" if line.case.asked == ALL else str(line.case.asked)


def _print_lines(
    console: Console,
    title: str,
    more: tuple[str, ...],
    lines: Sequence[Line],
    place: Callable[[Line], tuple[str, ...]],
) -> None:
    figures = ("mean", "worst site", "offers")
    table = text_table(title, ("exchange", *more), figures, narrow=True)
    for line in lines:
        table.add_row(
            family_words(line.case),
            *place(line),
            _spread(line.mean),
            _spread(line.worst),
            f"{line.offers.median:.0f}",
        )
    if lines:
        console.print(table)


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


def _print_statements(console: Console, study: Study) -> None:
    for window, words in WINDOWS.items():
        table = text_table(
            f"{words}: points missing", ("statement",), ("points", "verdict"), narrow=True
        )
        said = ""
        for each in statements(study):
            if each.window != window:
                continue
            if each.about != said:
                said = each.about
                table.add_row(said)
            table.add_row(f"  {each.of}", _spread(each.points), word(each.holds))
        if table.row_count:
            console.print(table)
