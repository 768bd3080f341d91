from pathlib import Path

import pytest

from lrms_sim.util.trace_folders import LOG_FILES, located


def test_a_key_finds_the_log_that_was_fetched(tmp_path: Path) -> None:
    """In the folder that is named first, then in the cache of `scenario fetch`."""
    named, cache = tmp_path / "named", tmp_path / "cache" / "hanse" / "traces"
    for folder in (named, cache):
        folder.mkdir(parents=True)
    environment = {"HANSE_TRACES": str(named), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    (cache / LOG_FILES["kth"]).write_text("")
    assert located(Path("kth"), environment) == cache / LOG_FILES["kth"]
    (named / LOG_FILES["kth"]).write_text("")
    assert located(Path("kth"), environment) == named / LOG_FILES["kth"]


def test_a_log_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    """The command that downloads it, and the variable."""
    with pytest.raises(FileNotFoundError, match=r"'ctc' .*`scenario fetch ctc`.*HANSE_TRACES"):
        located(Path("ctc"), {"XDG_CACHE_HOME": str(tmp_path)})


def test_a_file_goes_before_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has a file called kth means it; any other path stays as it is."""
    monkeypatch.chdir(tmp_path)
    Path("kth").write_text("")
    assert located(Path("kth"), {}) == Path("kth")
    assert located(Path("my.swf"), {}) == Path("my.swf")
