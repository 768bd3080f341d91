from lrms_sim.util.file_errors import Mistake
from scenarios.util.errors import ScenarioError, SpecError


def test_a_spec_error_has_a_line_for_each_problem() -> None:
    """Every line begins with the file, so that each can stand alone."""
    error = SpecError("a.toml", [Mistake("", "no TOML"), Mistake("sites.X.name", "is missing")])
    assert str(error) == "a.toml: no TOML\na.toml: sites.X.name: is missing"
    assert isinstance(error, ScenarioError)
