from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.spec import files as spec_files
from scenarios.spec.files import load_spec, parse_spec
from scenarios.spec.workloads import LublinWorkload
from scenarios.util.errors import SpecError

GOOD = """
name = "two"
[[sites]]
name = "A"
processors = 8
workload = { model = "lublin", jobs = 3 }
"""


def test_a_file_becomes_a_scenario(tmp_path: Path) -> None:
    """TOML is read as UTF-8, paths count from the file."""
    path = tmp_path / "two.toml"
    text = GOOD.replace("jobs = 3 }", 'jobs = 3 }\ntransfer = { default = "r.json" }')
    path.write_text(f"{text}# Größe\n", encoding="utf-8")
    made = load_spec(path)
    assert made.name == "two"
    assert isinstance(made.sites[0].workload, LublinWorkload)
    assert made.sites[0].transfer.default == str(tmp_path / "r.json")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"name = ", r"no TOML: .*line 1|no TOML: .*end of document"),
        (b"name = 'a'\nname = 'b'\nseed = 1", r"no TOML: .*line 2"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"\x1f\x8b\x08\x00", r"no TOML|not UTF-8"),
        (b"a = " + b"[" * 100_000, r"nested too deeply|no TOML"),
    ],
)
def test_what_is_no_toml_is_said(tmp_path: Path, content: bytes, text: str) -> None:
    """The text names file and place."""
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=text) as caught:
        load_spec(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_files_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    """Missing files and folders give the system's reason."""
    with pytest.raises(SpecError, match=r"none.toml: cannot be read: No such file"):
        load_spec(tmp_path / "none.toml")
    with pytest.raises(SpecError, match="cannot be read: Is a directory"):
        load_spec(tmp_path)


def test_a_huge_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than the limit is read."""
    monkeypatch.setattr(spec_files, "FILE_BYTES_MAX", 10)
    path = tmp_path / "huge.toml"
    path.write_text(GOOD)
    with pytest.raises(SpecError, match="is larger than 10 bytes"):
        load_spec(path)


def test_errors_use_the_name_they_are_given(tmp_path: Path) -> None:
    """A bundled scenario is called by its name."""
    with pytest.raises(SpecError, match=r"^mine: cannot"):
        load_spec(tmp_path / "x", shown="mine")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_scenario_or_a_spec_error(content: bytes) -> None:
    """Binary rubbish never gets further than an explanation."""
    with pytest.raises(SpecError):
        parse_spec(content, folder=Path("/"), shown="f")


def test_the_example_of_the_documentation_is_a_scenario() -> None:
    """What the page shows first can be copied."""
    page = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    made = parse_spec(example.encode(), folder=Path("/towns"), shown="page")
    assert [site.name for site in made.sites] == ["Wismar", "Luebeck"]
    assert made.sites[1].transfer.partners["Wismar"] == "/towns/rules/luebeck-for-wismar.json"
