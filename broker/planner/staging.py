"""The arrays of what kernels read of files and the network; `_instance.pxd` says what each holds.

Files from one task or one site with the same readers are one *bundle*: where one of them has been sent, all
have. Where links carry one transfer at a time, each file counts by itself instead, so that sums of sizes are those
of `broker.model.transfers` to the last digit.
"""

import math
from collections.abc import Sequence

import numpy as np

from broker.model.heft import mean_link
from broker.model.problem import Problem
from broker.model.transfers import Key, Staging
from broker.model.workflow import Alternative
from broker.planner.arrays import Arrays, Float, Rows, concatenated, floats, integers


def staging_arrays(
    problem: Problem, tasks: Rows, choices: Sequence[Alternative]
) -> tuple[dict[str, int], Arrays]:
    """Returns sizes and arrays; there are no sites where no task waits for files."""
    staging = Staging(problem)
    if not any(staging.sources((workflow.name, task.name)) for workflow, task in tasks):
        return _nothing(len(tasks))
    network = staging.network
    assert network is not None, "without a network no task waits for files"
    row = {(workflow.name, task.name): number for number, (workflow, task) in enumerate(tasks)}
    names = dict.fromkeys(network.site(each.primary) for each in choices)
    origins = (s.site for key in row for s in staging.sources(key) if s.site)
    fixed = (network.site(placement.resources[0]) for placement in problem.fixed)
    number = {name: place for place, name in enumerate(dict.fromkeys([*names, *origins, *fixed]))}
    links = [[network.link(source, target) for target in number] for source in number]
    priced = any(link.price > 0 for mine in links for link in mine)
    between: Arrays = {
        "site": integers(number[network.site(each.primary)] for each in choices),
        "latency": floats(link.latency for mine in links for link in mine),
        "bandwidth": floats(link.bandwidth for mine in links for link in mine),
        "byte_price": floats(link.price for mine in links for link in mine),
    }
    if staging.contended:
        sizes, arrays = _contended(problem, staging, tasks, number)
        return {**sizes, "transfers_priced": int(priced)}, {**arrays, **between}
    known = _Known(problem, staging, tuple(number))
    edges = [[s for s in staging.sources(key) if (key[0], s.maker) in row] for key in row]
    edge_begin, edge_source = concatenated(
        [[row[key[0], s.maker] for s in mine] for key, mine in zip(row, edges, strict=True)]
    )
    data_row = [known.row(key, row) for key in row]
    # Where transfers cost nothing, nobody asks what has been sent.
    bundles = _Bundles(problem, staging, tasks if priced else (), tuple(number))
    more: Arrays = {
        **between,
        "data_row": integers(data_row),
        "static_ready": known.rows(),
        "edge_begin": edge_begin,
        "edge_source": edge_source,
        "edge_size": floats(
            math.fsum(file.size for file in source.files) for mine in edges for source in mine
        ),
        **bundles.arrays(),
    }
    sizes, arrays = _nothing(len(tasks))
    sizes |= {"sites": len(number), "bundles": len(bundles.of), "transfers_priced": int(priced)}
    return sizes, arrays | more


def _nothing(tasks: int) -> tuple[dict[str, int], Arrays]:
    none = floats(())
    arrays: Arrays = dict.fromkeys(
        ("latency", "bandwidth", "byte_price", "static_ready", "edge_size", "bundle_size"), none
    )
    arrays |= dict.fromkeys(
        ("site", "data_row", "edge_source", "bundle", "bundle_source", "bundle_origin"),
        integers(()),
    )
    arrays |= dict.fromkeys(("edge_begin", "bundle_begin"), integers([0] * (tasks + 1)))
    arrays["there"] = np.zeros(1, np.uint8)
    arrays |= dict.fromkeys(
        ("parcel_since", "file_size", "file_there", "link_from", "link_until"), none
    )
    arrays |= dict.fromkeys(
        ("parcel_begin", "parcel_source", "parcel_origin", "file_begin", "file", "link_pair"),
        integers(()),
    )
    sizes = dict.fromkeys(
        ("sites", "bundles", "transfers_priced", "contended", "files", "links_taken"), 0
    )
    return sizes, arrays


def _contended(
    problem: Problem, staging: Staging, tasks: Rows, site: dict[str, int]
) -> tuple[dict[str, int], Arrays]:
    # What kernels read where a link carries one transfer at a time.
    placed = {placement.key: placement for placement in problem.fixed}
    row = {(workflow.name, task.name): number for number, (workflow, task) in enumerate(tasks)}
    file_row: dict[tuple[str, str], int] = {}
    size: list[float] = []
    there: list[Float] = []
    nowhere = np.full(len(site), math.inf)
    known = {(workflow, file) for workflow, file, _ in staging.known}
    parcels: list[list[tuple[int, int, float]]] = []
    files: list[list[int]] = []
    for key in row:
        mine = staging.sources(key)
        for source in mine:
            for file in source.files:
                at = key[0], file.name
                if file_row.setdefault(at, len(size)) == len(size):
                    size.append(file.size)
                    where = np.array([staging.there(*at, name) for name in site])
                    there.append(where if at in known else nowhere)
            files.append([file_row[key[0], file.name] for file in source.files])
        parcels.append([])
        for source in mine:
            if (key[0], source.maker) in row:
                parcels[-1].append((row[key[0], source.maker], -1, 0.0))
            else:
                origin, since = staging.origin(key[0], source, placed)
                parcels[-1].append((-1, site[origin], since))
    parcel_begin, _ = concatenated(parcels)
    file_begin, file_of = concatenated(files)
    flat = [parcel for mine in parcels for parcel in mine]
    taken = [each for each in problem.under_way if {each.source, each.target} <= site.keys()]
    sizes, arrays = _nothing(len(tasks))
    sizes |= {"sites": len(site), "contended": 1, "files": len(size), "links_taken": len(taken)}
    return sizes, arrays | {
        "data_row": integers([-1] * len(tasks)),
        "parcel_begin": parcel_begin,
        "parcel_source": integers(source for source, _, _ in flat),
        "parcel_origin": integers(origin for _, origin, _ in flat),
        "parcel_since": floats(since for _, _, since in flat),
        "file_begin": file_begin,
        "file": file_of,
        "file_size": floats(size),
        "file_there": np.concatenate([nowhere[:0], *there]),
        "link_pair": integers(site[e.source] * len(site) + site[e.target] for e in taken),
        "link_from": floats(each.begin for each in taken),
        "link_until": floats(each.end for each in taken),
    }


class _Known:
    """By task and site when the files are there that need no plan: inputs, and what fixed tasks make."""

    def __init__(self, problem: Problem, staging: Staging, sites: tuple[str, ...]) -> None:
        self._staging = staging
        self._sites = sites
        self._placed = {placement.key: placement for placement in problem.fixed}
        self._rows: dict[bytes, int] = {}

    def row(self, key: Key, planned: dict[Key, int]) -> int:
        """Returns the row of a task; −1 for none."""
        mine = [s for s in self._staging.sources(key) if (key[0], s.maker) not in planned]
        if not mine:
            return -1
        found = np.array(
            [
                max(self._staging.arrival(key[0], source, site, self._placed) for source in mine)
                for site in self._sites
            ]
        )
        return self._rows.setdefault(found.tobytes(), len(self._rows))

    def rows(self) -> Float:
        """Returns all rows, one after another."""
        return np.frombuffer(b"".join(self._rows) or bytes(8)).copy()


class _Bundles:
    """What is sent together; `of` has the number of a bundle by source, readers and where it is already."""

    def __init__(
        self, problem: Problem, staging: Staging, tasks: Rows, sites: Sequence[str]
    ) -> None:
        self.of: dict[tuple[object, ...], int] = {}
        self._mine: list[dict[int, None]] = [{} for _ in tasks]
        self._size: list[float] = []
        self._source: list[int] = []
        self._origin: list[int] = []
        self._there: list[tuple[bool, ...]] = []
        network = staging.network
        assert network is not None, "without a network nothing is sent"
        row = {(workflow.name, task.name): number for number, (workflow, task) in enumerate(tasks)}
        ended = {p.key: network.site(p.resources[0]) for p in problem.fixed}
        number = {site: place for place, site in enumerate(sites)}
        for workflow in problem.workflows:
            for file in workflow.files:
                readers = [
                    row[key] for name in file.readers if (key := (workflow.name, name)) in row
                ]
                if not readers:
                    continue
                maker = workflow.name, file.maker
                source = row.get(maker, -1) if file.maker else -1
                site = ended.get(maker, "") if file.maker else file.site or network.inputs
                there = tuple(staging.there(workflow.name, file.name, s) < math.inf for s in sites)
                what = source, site, tuple(readers), there
                bundle = self.of.setdefault(what, len(self.of))
                if bundle == len(self._size):
                    self._size.append(0.0)
                    self._source.append(source)
                    self._origin.append(number.get(site, -1))
                    self._there.append(there)
                self._size[bundle] += file.size
                for reader in readers:
                    self._mine[reader][bundle] = None

    def arrays(self) -> Arrays:
        """Returns what kernels read of bundles."""
        begin, flat = concatenated([list(each) for each in self._mine])
        return {
            "bundle_begin": begin,
            "bundle": flat,
            "bundle_size": floats(self._size),
            "bundle_source": integers(self._source),
            "bundle_origin": integers(self._origin),
            "there": np.array(self._there or [(False,)], np.uint8).reshape(-1),
        }


def mean_transfers(problem: Problem, tasks: Rows) -> dict[tuple[int, int], float]:
    """Returns by predecessor and task (rows) the mean seconds of the files between them."""
    if problem.network is None:
        return {}
    mean = mean_link(problem.network, problem.resources)
    row = {(workflow.name, task.name): number for number, (workflow, task) in enumerate(tasks)}
    sizes: dict[tuple[int, int], float] = {}
    for workflow in problem.workflows:
        for file in workflow.files:
            source = row.get((workflow.name, file.maker))
            for reader in file.readers if source is not None else ():
                target = row.get((workflow.name, reader))
                if source is not None and target is not None:
                    sizes[source, target] = sizes.get((source, target), 0.0) + file.size
    return {edge: mean.seconds(size) for edge, size in sizes.items()}
