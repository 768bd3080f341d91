import pytest

from broker.util.errors import BrokerError, FileError, InputError, OutputError
from lrms_sim.util.file_errors import Mistake


def test_each_mistake_has_a_line() -> None:
    """File and key stand before what is wrong; without a key the file alone."""
    error = FileError("pool.toml", [Mistake("a.b", "is 1"), Mistake("", "is empty")])
    assert str(error) == "pool.toml: a.b: is 1\npool.toml: is empty"
    assert error.file == "pool.toml"


def test_a_mistake_is_one_line_whatever_the_names_in_its_path() -> None:
    """A task may be called after a line end; the line says it as text of Python does."""
    error = FileError("pool.toml", [Mistake("tasks.a\nb", "is 1")])
    assert str(error) == "pool.toml: tasks.a\\nb: is 1"


@pytest.mark.parametrize("kind", [InputError, OutputError])
def test_all_errors_for_users_have_one_base(kind: type[Exception]) -> None:
    """A command catches one type."""
    assert issubclass(kind, BrokerError)
    assert issubclass(FileError, BrokerError)
