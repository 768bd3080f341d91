"""Networks in files, and the files of workflows that count where there is one."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker.io.importing import files_of
from broker.io.loading import make_problem, read_inputs
from broker.io.wfformat import parse_wfformat
from broker.io.writing import document_of, write_document
from broker.model.network import DataFile, Link, Network
from broker.model.problem import Problem
from broker.util.errors import FileError, InputError
from tests.broker.io.test_wfformat import diamond

POOL = """
[[resources]]
name = "a"
[[resources]]
name = "b"
[[resources]]
name = "c"
"""
FLOW = """
[[workflows]]
name = "own"
tasks = [{ name = "one", work = 5 }, { name = "two", work = 5 }]
files = [
  { name = "given", size = 10, readers = ["one", "two"], site = "store" },
  { name = "made", size = 2e9, readers = ["two"], task = "one" },
]
"""
NETWORK = """
[network]
bandwidth = 1e6
latency_s = 0.5
price_per_gb = 2
inputs = "store"
[network.sites]
here = ["a", "b"]
store = []
[[network.links]]
between = ["here", "c"]
bandwidth = 1e9
[[network.links]]
source = "store"
target = "c"
bandwidth = 5
latency_s = 1
"""


def planned(folder: Path, flow: str = FLOW, network: str = NETWORK) -> Problem:
    """Returns the problem of a pool, a workflow and a network in files of their own."""
    for name, text in (("pool", POOL), ("flow", flow), ("net", network)):
        (folder / f"{name}.toml").write_text(text)
    inputs = read_inputs([folder / "pool.toml", folder / "flow.toml"], folder / "net.toml")
    return make_problem(inputs, now=0.0)


def with_files() -> dict[str, Any]:
    """Returns a recorded diamond whose tasks read and leave files."""
    document = diamond()
    specification = document["workflow"]["specification"]
    used = {
        "a": (["in"], ["x", "log"]),
        "b": (["x"], ["y"]),
        "c": (["x"], []),
        "d": (["y", "x"], []),
    }
    for task in specification["tasks"]:
        task["inputFiles"], task["outputFiles"] = used[task["id"]]
    sizes = {"in": 7, "x": 100, "y": 0, "log": 3}
    specification["files"] = [{"id": name, "sizeInBytes": size} for name, size in sizes.items()]
    return document


def test_a_network_is_read(tmp_path: Path) -> None:
    """Prices are for 10⁹ bytes there, and for a byte inside; a link goes both ways or one."""
    problem = planned(tmp_path)
    fast, slow = Link(1e9), Link(5.0, 1.0)
    assert problem.network == Network(
        Link(1e6, 0.5, 2e-9),
        {"a": "here", "b": "here"},
        {("here", "c"): fast, ("c", "here"): fast, ("store", "c"): slow},
        "store",
    )
    assert problem.network.link("c", "store") == problem.network.default
    assert problem.network.link("c", "c").seconds(1e12) == 0.0


def test_links_carry_one_transfer_at_a_time_if_the_file_says_so(tmp_path: Path) -> None:
    """Without contention by default, or by its word."""

    def contended(said: str) -> bool:
        network = planned(
            tmp_path, network=NETWORK.replace("price_per_gb", f"{said}\nprice_per_gb")
        ).network
        assert network is not None
        return network.contended

    assert [contended(f'contention = "{how}"') for how in ("link", "none")] == [True, False]
    assert not contended("")


def test_files_of_workflows_are_read_and_written(tmp_path: Path) -> None:
    """Who reads what a task makes waits for it."""
    problem = planned(tmp_path)
    (workflow,) = problem.workflows
    assert workflow.files == (
        DataFile("given", 10.0, ("one", "two"), site="store"),
        DataFile("made", 2e9, ("two",), "one"),
    )
    assert workflow.tasks[1].predecessors == ("one",)
    write_document(tmp_path / "again.json", document_of(problem.resources, problem.workflows))
    again = make_problem(read_inputs([tmp_path / "again.json"], tmp_path / "net.toml"), now=0.0)
    assert again.workflows == problem.workflows


def test_a_network_beside_workflows_counts_as_well(tmp_path: Path) -> None:
    (tmp_path / "all.toml").write_text(POOL + FLOW + NETWORK)
    (tmp_path / "net.toml").write_text(NETWORK)
    inputs = read_inputs([tmp_path / "all.toml"])
    assert make_problem(inputs, now=0.0).network == planned(tmp_path).network
    with pytest.raises(InputError, match="each have a network"):
        read_inputs([tmp_path / "all.toml"], tmp_path / "net.toml")


def test_files_of_recordings_count_with_a_network(tmp_path: Path) -> None:
    """With one, d waits for a as well, whose file it reads; without one all is as it was."""
    (tmp_path / "diamond.json").write_text(json.dumps(with_files()))
    (tmp_path / "pool.toml").write_text(POOL.replace('"a"', '"a"\ncapacity = 8'))
    (tmp_path / "net.toml").write_text("[network]\nbandwidth = 10\n")
    paths = [tmp_path / "diamond.json", tmp_path / "pool.toml"]
    plain = make_problem(read_inputs(paths), now=0.0).workflows[0]
    assert plain.files == ()
    assert plain.tasks[3].predecessors == ("b", "c")
    data = make_problem(read_inputs(paths, tmp_path / "net.toml"), now=0.0).workflows[0]
    assert data.files == (
        DataFile("in", 7.0, ("a",)),
        DataFile("x", 100.0, ("b", "c", "d"), "a"),
        DataFile("y", 0.0, ("d",), "b"),
    )
    assert data.tasks[3].predecessors == ("b", "c", "a")


def test_a_recorded_file_needs_a_size_and_one_maker() -> None:
    document = with_files()
    document["workflow"]["specification"]["files"][1] = {"id": "x"}
    with pytest.raises(InputError, match=r"'d': no size is known of 'x'; .* sizeInBytes"):
        files_of(parse_wfformat(document, file="f"), "d")
    document["workflow"]["specification"]["tasks"][2]["outputFiles"] = ["y"]
    with pytest.raises(InputError, match="file 'y' is an output of 'b' and 'c'"):
        files_of(parse_wfformat(document, file="f"), "d")


def test_what_only_its_maker_reads_is_no_data() -> None:
    document = with_files()
    document["workflow"]["specification"]["tasks"][0]["inputFiles"] = ["log"]
    assert "log" not in [f.name for f in files_of(parse_wfformat(document, file="f"), "d")]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (
            "bandwidth = 1e6",
            "bandwidth = -1",
            "net.toml: network.bandwidth: is -1; .* at least 1e-06",
        ),
        ("bandwidth = 1e6", "bandwidth = 0", "network.bandwidth: is 0; .* at least 1e-06"),
        ("bandwidth = 1e6\n", "", "network.bandwidth: is missing"),
        ("latency_s = 0.5", "latency_s = -1", "network.latency_s: is -1"),
        ("latency_s = 0.5", 'contention = "port"', "network.contention: is 'port'"),
        ("price_per_gb = 2", "price_per_gb = inf", "network.price_per_gb"),
        (
            '["here", "c"]',
            '["here", "d"]',
            "network: the link between 'here' and 'd': .* no site 'd'",
        ),
        ('["here", "c"]', '["here"]', "network.links.0..between"),
        ('["here", "c"]', '["here", "here"]', "from 'here' to itself"),
        ('between = ["here", "c"]', 'source = "here"', "needs between"),
        ('["here", "c"]', '["store", "c"]', "links: there are two from 'store' to 'c'"),
        ('["a", "b"]', '["a", "z"]', "network: there is no resource 'z'"),
        ("store = []", 'store = ["a"]', "sites: 'a' is at 'here' and 'store'"),
        ('inputs = "store"', 'inputs = "stove"', "network: inputs: there is no site 'stove'"),
        ("[network]", "[networks]", "network: is missing: a table"),
    ],
)
def test_mistakes_in_networks_are_named(tmp_path: Path, old: str, new: str, error: str) -> None:
    text = NETWORK.replace(old, new, 1)
    if old == "[network]":
        text = f"{new}\n"
    with pytest.raises((FileError, InputError), match=error):
        planned(tmp_path, network=text)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("size = 10, ", "", "files.given.size: is missing"),
        ("size = 10,", "size = -10,", "size: is -10; it must be at least 0"),
        ("size = 10,", "size = nan,", "size"),
        ('["one", "two"]', "[]", "files.given.readers"),
        ('["one", "two"]', '["three"]', "file 'given': there is no task 'three'"),
        (
            'task = "one"',
            'task = "three"',
            "file 'made': there is no task 'three'|waits for 'three'",
        ),
        ('task = "one"', 'task = "two"', "makes and reads it"),
        ('"made"', '"given"', "files of the same name: given"),
        ('site = "store"', 'site = "stove"', "file 'given': .*'stove'.*store"),
        ('site = "store"', 'site = "c", task = "one"', "has a task and a site"),
    ],
)
def test_mistakes_in_files_are_named(tmp_path: Path, old: str, new: str, error: str) -> None:
    with pytest.raises((FileError, InputError), match=error):
        planned(tmp_path, flow=FLOW.replace(old, new, 1))
