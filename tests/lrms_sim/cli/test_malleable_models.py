"""What `lrms-sim utility` shows as JSON; the commands' own tests hold what they print against the schemas."""

from dataclasses import fields

from lrms_sim.cli.malleable_models import UtilityComparisonOutput, UtilityFiguresOutput
from lrms_sim.report.malleable_report import Figures


def test_every_figure_is_shown() -> None:
    """Those of a run are those of the table."""
    assert list(UtilityFiguresOutput.model_fields) == [field.name for field in fields(Figures)]
    assert list(UtilityComparisonOutput.model_fields)[-1] == "runs"
