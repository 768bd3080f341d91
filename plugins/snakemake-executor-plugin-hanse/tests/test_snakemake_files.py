"""The files that travel with a job."""

import tarfile
from pathlib import Path

import pytest

from snakemake_executor_plugin_hanse.job_files import (
    declared,
    inputs_of,
    name_of,
    outputs_of,
    pack,
)
from snakemake_scene import RuleJob, file


def test_of_a_folder_all_files_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in a storage, and a pipe, does not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/deep").mkdir(parents=True)
    for name in ("data/a", "data/deep/b", "c"):
        (tmp_path / name).touch()
    stored = file(".snakemake/storage/s3/x", is_storage=True)
    found = inputs_of(RuleJob("r", input=["data", "./c", stored, file("p", pipe=True)]))
    assert sorted(found) == ["c", "data/a", "data/deep/b"]


@pytest.mark.parametrize("path", ["/etc/hosts", "../other/x", "a/../../x"])
def test_a_file_elsewhere_cannot_travel(path: str) -> None:
    with pytest.raises(ValueError, match="is not below the working directory"):
        name_of(path)


def test_outputs_logs_and_benchmarks_come_home() -> None:
    """Only outputs that Snakemake does not delete have to be there; of a group, those of all its jobs."""
    first = RuleJob(
        "a", output=["x", file("t", temp=True), file("d", directory=True)], log=["l"], benchmark="b"
    )
    alone = {"x": True, "t": False, "d/": True, "l": False, "b": False}
    assert outputs_of(first) == alone
    group = RuleJob("g", output=["y"], jobs=[first, RuleJob("c", output=["y"])])
    assert outputs_of(group) == alone | {"y": True}


def test_many_names_are_declared_by_their_folders() -> None:
    assert declared(["b", "a/c"]) == ["b", "a/c"]
    names = [f"out/{n % 2}/{n}" for n in range(300)]
    assert declared(names) == ["out/0/", "out/1/"]
    assert declared([*names, "z"]) == ["./"]
    assert declared([f"{n}/x" for n in range(300)]) == ["./"]


def test_sources_are_packed_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules").mkdir()
    (tmp_path / "Snakefile").write_text("rule all")
    (tmp_path / "rules/more.smk").write_text("rule more")
    pack(["Snakefile", "rules/more.smk", "./Snakefile"], tmp_path / "s.tar.gz")
    with tarfile.open(tmp_path / "s.tar.gz") as packed:
        assert packed.getnames() == ["Snakefile", "rules/more.smk"]
    with pytest.raises(ValueError, match="not below"):
        pack(["../Snakefile"], tmp_path / "t.tar.gz")
