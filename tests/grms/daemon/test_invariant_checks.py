import pytest

from grms.daemon.invariant_checks import CHECK, checks_wanted


@pytest.mark.parametrize(
    ("value", "wanted"), [(None, False), ("", False), ("0", False), ("1", True)]
)
def test_the_switch_is_a_variable(
    monkeypatch: pytest.MonkeyPatch, value: str | None, wanted: bool
) -> None:
    """It is off unless somebody sets it."""
    monkeypatch.delenv(CHECK, raising=False)
    if value is not None:
        monkeypatch.setenv(CHECK, value)
    assert checks_wanted() is wanted
