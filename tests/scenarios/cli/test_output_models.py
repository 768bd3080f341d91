"""What `scenario` shows as JSON: a run with everything that one can have."""

from scenarios.cli.output_models import ResultOutput
from tests.scenarios.towns import random_towns, two_towns


def test_every_result_is_as_the_model_says() -> None:
    """Also one whose figures have no meaning, which are null."""
    for result in (two_towns(), random_towns(["a", "b"], 0), random_towns(["a", "b", "c"], 30)):
        shown = ResultOutput.model_validate_json(result.to_json())
        assert shown.jobs == len(result.schedule)
