"""The scenarios that come with the program: every setup of the papers, and synthetic ones."""

from difflib import get_close_matches
from importlib import resources
from pathlib import Path

from scenarios.util.errors import UnknownScenarioError


def bundled_names() -> list[str]:
    """Returns the names of all bundled scenarios, sorted."""
    return sorted(path.stem for path in _folder().glob("*.toml"))


def scenario_path(reference: str) -> Path:
    """Returns the file of a scenario.

    A reference that ends in `.toml` or contains a folder is a path; anything else is first tried as
    the name of a bundled scenario.

    Raises:
        UnknownScenarioError: there is neither; the text suggests the nearest name.
    """
    path = Path(reference)
    names = bundled_names()
    if path.suffix != ".toml" and path.name == reference and reference in names:
        return _folder() / f"{reference}.toml"
    if path.is_file():
        return path
    if path.is_dir() and (path / "scenario.toml").is_file():
        return path / "scenario.toml"
    close = get_close_matches(reference.casefold(), names, n=1)
    meant = f", did you mean {close[0]!r}?" if close else ";"
    raise UnknownScenarioError(
        f"{reference!r} is neither a file nor a bundled scenario{meant} `scenario list` shows them"
    )


def rule_base_folder(regime: str) -> Path:
    """Returns the folder of the rule bases learned in a regime, such as `fcfs-egoistic`.

    docs/training.md says how they were learned.
    """
    return _folder() / "rule-bases" / regime


def _folder() -> Path:
    # An extension module cannot be imported from an archive, so the package is always a folder.
    return Path(str(resources.files("scenarios.library")))
