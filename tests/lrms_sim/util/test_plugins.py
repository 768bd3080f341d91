"""Plugins: found by their names and only when they are named; errors say what, where and what to do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lrms_sim.cli.main
import scenarios.cli.main
from grms.learning.transfer.fitness import load_source
from grms.site.config.load import load_config, parse_config
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.util import plugins
from lrms_sim.util.plugins import PluginError, is_plugin, load_plugin, plugin_names
from lrms_sim.workload.accounting.importing import import_lines
from lrms_sim.workload.accounting.records import AccountingError
from tests.plugins import install

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
SITE = """
name = "home"
processors = 4
listen.users = "home.sock"
journal.path = "home.journal"
lrms.kind = "{}"
"""


def as_site(name: str) -> None:
    """Uses a plugin as the batch system of a site."""
    parse_config(SITE.format(name).encode(), folder=Path("/x"), shown="home.toml")


def as_study(name: str) -> None:
    """Uses a plugin as a study."""
    scenarios.cli.main.cli.main(["study", name], standalone_mode=False)


def as_importer(name: str) -> None:
    """Uses a plugin as an importer, of a file that is there."""
    words = ["import", name, __file__, "-o", "/dev/null"]
    lrms_sim.cli.main.cli.main(words, standalone_mode=False)


USES = {
    "hanse.disciplines": discipline_by_name,
    "hanse.importers": as_importer,
    "hanse.lrms": as_site,
    "hanse.studies": as_study,
}
"""What needs a plugin of each group, by its name."""

each_group = pytest.mark.parametrize(("group", "use"), USES.items())


@each_group
def test_a_name_that_is_misspelt_is_told_with_those_that_there_are(
    group: str, use: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of plugins too, where a command takes nothing else; none of them is loaded."""
    install(tmp_path, monkeypatch, {group: {"my-own": "not_there:x"}}, {})
    with pytest.raises(Exception, match="'my-onw'") as error:
        use("my-onw")
    if group != "hanse.disciplines":
        assert "did you mean 'my-own'?" in str(error.value)


@each_group
def test_one_that_fails_to_import_is_told_with_its_distribution(
    group: str, use: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has raised, where it is, and what to do."""
    install(tmp_path, monkeypatch, {group: {"mine": "broken:x"}}, {"broken": "1 / 0\n"})
    with pytest.raises(Exception, match="'mine' cannot be loaded: ZeroDivisionError") as error:
        use("mine")
    where = f"it is the entry point of the group {group} in my-plugins 1.0 (broken:x)"
    assert f"{where}: mend or reinstall that distribution" in str(error.value)


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("hanse.disciplines", "a queue discipline is one of those"),
        ("hanse.importers", "is of type int, not a function of lines and a Reading; it is the "),
        ("hanse.lrms", "is of type int, not a grms.lrms.adapter.Adapter of LrmsSettings"),
        ("hanse.studies", "is of type int, not a click.Command; it is the entry point of the"),
    ],
)
def test_one_of_the_wrong_type_is_told_with_the_right_one(
    group: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each group."""
    install(tmp_path, monkeypatch, {group: {"mine": "wrong:x"}}, {"wrong": "x = 3\n"})
    with pytest.raises(Exception, match=expected):
        USES[group]("mine")


def test_an_importer_that_yields_no_records_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it should."""
    code = "def read(lines, reading):\n    yield from lines\n"
    install(tmp_path, monkeypatch, {"hanse.importers": {"mine": "texts:read"}}, {"texts": code})
    with pytest.raises(Exception, match="importer 'mine' yields str; it must yield Record of"):
        as_importer("mine")


RECORDS = """from lrms_sim.workload.accounting.records import Record
def read(lines, reading):
    return [Record(0, 1, 11, 2, 20, 1, "u", "g", "q"), Record({0})]
def nothing(lines, reading):
    pass
"""


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ('"0", 1, 11, 2, 20, 1, "u", "g", "q"', "submit is '0'; it must be a number"),
        ('0, 1, 11, 2.5, 20, 1, "u", "g", "q"', "processors is 2.5; it must be a whole number"),
        ('0, 1, 11, 2, "1h", 1, "u", "g", "q"', "requested_time is '1h'; it must be a number or"),
        ('0, 1, 11, 2, 20, "ok", "u", "g", "q"', "status is 'ok'; it must be a whole number"),
        ('0, 1, 11, 2, 20, 1, 7, "g", "q"', "user is 7; it must be a text"),
    ],
)
def test_an_importer_with_fields_of_other_types_is_told(
    record: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the field, its value, and what it should be."""
    points = {"hanse.importers": {"mine": "fields:read"}}
    install(tmp_path, monkeypatch, points, {"fields": RECORDS.replace("{0}", record)})
    with pytest.raises(PluginError) as error:
        import_lines("mine", ["x"], name="cards.txt")
    assert f"importer 'mine' yields a Record whose {told}" in str(error.value)


def test_an_importer_that_returns_nothing_and_a_job_without_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is told; the second is counted and left out, as in any other format."""
    points = {"hanse.importers": {"mine": "fields:read", "none": "fields:nothing"}}
    code = RECORDS.replace("{0}", '0, 1, 11, 0, 20, 1, "u", "g", "q"')
    install(tmp_path, monkeypatch, points, {"fields": code})
    with pytest.raises(PluginError, match="importer 'none' returns NoneType; it must yield Record"):
        import_lines("none", ["x"], name="cards.txt")
    found = import_lines("mine", ["x"], name="cards.txt")
    assert (found.counts, found.log.processors_allocated.tolist()) == ({"width": 1}, [2])
    with pytest.raises(AccountingError, match="0 processors"):
        import_lines("mine", ["x"], name="cards.txt", unreadable="error")


def test_a_study_with_a_name_of_the_program_is_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the program's own, which it cannot replace."""
    install(tmp_path, monkeypatch, {"hanse.studies": {"scale": "gone:x", "zz": "gone:x"}}, {})
    assert scenarios.cli.main.run_command(["study", "--help"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:3] == "  s"]
    assert listed.count("scale") == 1


def test_a_broken_study_leaves_the_help_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is listed; options make no difference to what it says."""
    install(tmp_path, monkeypatch, {"hanse.studies": {"mine": "gone:x"}}, {})
    assert scenarios.cli.main.run_command(["study", "--help"]) == 0
    assert "mine                  Cannot be loaded; run it to see why." in capsys.readouterr().out
    assert scenarios.cli.main.run_command(["study", "mine", "--jobs", "3"]) == 2
    assert "No module named 'gone'" in capsys.readouterr().err


def test_a_name_in_two_distributions_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chance does not decide; the program's own names cannot be taken at all."""
    points = {"hanse.lrms": {"mine": "one:x", "slurm": "one:x"}}
    install(tmp_path / "1", monkeypatch, points, {"one": "1 / 0\n"})
    points = {"hanse.lrms": {"mine": "two:x"}}
    install(tmp_path / "2", monkeypatch, points, {"two": "x = 1\n"}, name="others")
    with pytest.raises(
        Exception, match=r"in several distributions: my-plugins 1\.0 \(one:x\), oth"
    ):
        as_site("mine")
    as_site("slurm")


def test_names_of_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are sorted, and nothing is loaded for them; of a name that is not there nothing can be."""
    install(tmp_path, monkeypatch, {"g": {"b": "gone:x", "a": "gone:x"}}, {})
    assert plugin_names("g") == ("a", "b")
    assert (is_plugin("g", "a"), is_plugin("g", "c"), is_plugin("h", "a")) == (True, False, False)
    with pytest.raises(KeyError):
        load_plugin("g", "c", "thing")
    assert issubclass(PluginError, ValueError)


def test_nothing_looks_for_plugins_that_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run, an import, a study's help, a site's file with what the program brings itself."""

    def looked(*_: Any) -> Any:
        pytest.fail("somebody has looked for plugins")

    monkeypatch.setattr(plugins, "_installed", looked)
    monkeypatch.chdir(tmp_path)
    rows = "; MaxProcs: 4\n1 0 -1 10 2 -1 -1 2 20 -1 1 1 1 -1 1 -1 -1 -1\n"
    Path("two.swf").write_text(rows)
    for words in (["run", "two.swf"], ["disciplines"], ["import", "--help"]):
        assert lrms_sim.cli.main.run_command(words) == 0
    assert scenarios.cli.main.run_command(["study", "nobody-loses", "--help"]) == 0
    assert scenarios.cli.main.run_command(["show", "synthetic-three-sites"]) == 0
    load_config(EXAMPLES / "site.toml")


def test_this_project_finds_its_own_parts_alike() -> None:
    """Grid Engine, and what reads scenarios."""
    assert plugin_names("hanse.lrms") == ("gridengine",)
    as_site("gridengine")
    assert load_source("synthetic-three-sites").name == "synthetic-three-sites"
