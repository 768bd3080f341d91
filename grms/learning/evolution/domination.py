"""Comparison of vectors of objectives, all minimized.

One vector dominates another if it is as small in all and smaller in one. Ranks and crowding
distances are those of Deb, Pratap, Agarwal, Meyarivan: "A Fast and Elitist Multiobjective Genetic
Algorithm: NSGA-II" (2002), sections III-A and III-B. Values have shape (n, m) and no nan.
"""

import numpy as np

from grms.learning.evolution.genes import BoolArray, FloatArray, IntegerArray


def not_dominated(values: FloatArray) -> BoolArray:
    """Returns which rows no other row dominates; equal rows do not dominate each other."""
    found = np.zeros(len(values), np.bool_)
    for row, one in enumerate(values):
        no_worse = (values <= one).all(axis=1)
        found[row] = not (values[no_worse] < one).any()
    return found


def front_ranks(values: FloatArray) -> IntegerArray:
    """Returns the front of each row: 0 if not dominated, then ignoring the fronts before, and so on."""
    ranks = np.full(len(values), -1, np.int64)
    rank = 0
    while (left := np.flatnonzero(ranks < 0)).size:
        ranks[left[not_dominated(values[left])]] = rank
        rank += 1
    return ranks


def crowding_distances(values: FloatArray) -> FloatArray:
    """Returns how isolated each row of one front is, shape (n,): larger is lonelier.

    For each objective the distance between the next smaller and the next larger row, relative to
    the whole range, summed over the objectives; infinite for the first and the last of an
    objective. Equal rows keep their order. An objective that is constant, or infinite somewhere,
    counts for nothing.
    """
    distances = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        sorted_column = column[order]
        if not len(order) or not np.isfinite(sorted_column[[0, -1]]).all():
            continue
        span = sorted_column[-1] - sorted_column[0]
        if span <= 0:
            continue
        distances[order[[0, -1]]] = np.inf
        distances[order[1:-1]] += (sorted_column[2:] - sorted_column[:-2]) / span
    return distances


def crowded_order(values: FloatArray) -> IntegerArray:
    """Returns the rows, the best first: by front, then the lonelier, then the earlier."""
    ranks = front_ranks(values)
    lonely = np.zeros(len(values))
    for rank in range(int(ranks.max(initial=-1)) + 1):
        front = np.flatnonzero(ranks == rank)
        lonely[front] = crowding_distances(values[front])
    return np.lexsort((np.arange(len(values)), -lonely, ranks))
