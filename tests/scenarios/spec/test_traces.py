import os
from pathlib import Path

import pytest

from scenarios.spec.traces import (
    TRACES,
    cache_folder,
    file_sha256,
    find_trace,
    require_trace,
    trace_folders,
)
from scenarios.util.errors import TraceMissingError


def test_addresses_follow_the_archive() -> None:
    """Every log has its own folder in the archive, and a mirror keeps the folders."""
    assert TRACES["kth"].url() == (
        "https://www.cs.huji.ac.il/labs/parallel/workload/l_kth_sp2/KTH-SP2-1996-2.swf.gz"
    )
    assert TRACES["sdsc05"].url("http://mirror/logs/") == (
        "http://mirror/logs/l_sdsc_ds/SDSC-DS-2004-2.1-cln.swf.gz"
    )
    assert len({trace.file for trace in TRACES.values()}) == len(TRACES)


@pytest.mark.parametrize("named", ["", "relative/cache"])
def test_the_cache_is_below_home_where_xdg_names_no_absolute_folder(
    named: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The XDG specification has relative paths ignored."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder({"XDG_CACHE_HOME": named}) == tmp_path / ".cache" / "hanse" / "traces"


def test_the_cache_follows_xdg() -> None:
    """An absolute XDG_CACHE_HOME is used."""
    assert cache_folder({"XDG_CACHE_HOME": "/var/c"}) == Path("/var/c/hanse/traces")


def test_the_named_folder_comes_before_the_cache(tmp_path: Path) -> None:
    """HANSE_TRACES wins where both have the log; the cache serves where it has not."""
    mine = tmp_path / "mine"
    environment = {"HANSE_TRACES": str(mine), "XDG_CACHE_HOME": str(tmp_path)}
    cache = cache_folder(environment)
    assert trace_folders(environment) == (mine, cache)
    assert find_trace("kth", environment) is None
    cache.mkdir(parents=True)
    (cache / TRACES["kth"].file).write_bytes(b"cache")
    assert find_trace("kth", environment) == cache / TRACES["kth"].file
    mine.mkdir()
    (mine / TRACES["kth"].file).write_bytes(b"mine")
    assert require_trace("kth", environment) == mine / TRACES["kth"].file


def test_a_missing_log_says_how_to_get_it(tmp_path: Path) -> None:
    """The error names the file, the folders, the command and the variable."""
    environment = {"HANSE_TRACES": str(tmp_path / "a"), "XDG_CACHE_HOME": str(tmp_path)}
    with pytest.raises(TraceMissingError) as caught:
        require_trace("ctc", environment)
    text = str(caught.value)
    assert TRACES["ctc"].file in text
    assert str(tmp_path / "a") in text
    assert str(tmp_path / "hanse" / "traces") in text
    assert "`scenario fetch ctc`" in text
    assert "HANSE_TRACES" in text


@pytest.mark.traces
@pytest.mark.skipif(not os.environ.get("HANSE_TRACES"), reason="HANSE_TRACES is not set")
@pytest.mark.parametrize("key", sorted(TRACES))
def test_the_recorded_logs_are_those_in_the_table(key: str) -> None:
    """Size and checksum are those of the files the published figures come from."""
    path = require_trace(key)
    assert path.stat().st_size == TRACES[key].size_bytes
    assert file_sha256(path) == TRACES[key].sha256
