"""What is published as proven, against an independent convex solver: see `benches/proof/convex.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import metastate as ms

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benches" / "proof"))
import convex  # noqa: E402


def star(leaves):
    counts = np.zeros((leaves + 1, leaves + 1))
    counts[0, 1:] = counts[1:, 0] = 1
    return counts


def bipartite(a, b):
    counts = np.zeros((a + b, a + b))
    counts[:a, a:] = 1
    return counts + counts.T


def ring(d):
    counts = np.roll(np.eye(d), 1, axis=1)
    return counts + counts.T


def blocks(*sizes):
    """Complete within, one count between the first states of neighbours."""
    counts = np.zeros((sum(sizes), sum(sizes)))
    starts = np.cumsum([0, *sizes[:-1]])
    for first, n in zip(starts, sizes):
        counts[first : first + n, first : first + n] += 5
    for a, b in zip(starts, np.roll(starts, -1)):
        counts[a, b] += 1
        counts[b, a] += 1
    return counts


def squared_distances(d):
    """Rank three, and a nonnegative rank that grows with d: nuclear norm and penalty differ."""
    place = np.arange(d)
    return (place[:, None] - place[None, :]) ** 2.0


def poisson(d, rank, seed):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.integers(0, 3, (d, rank)) @ rng.integers(0, 3, (rank, d))) + np.eye(d)


PROBLEMS = [
    ("star of 7", star(7), 0.9),
    ("star of 7", star(7), 0.2),
    ("star of 11", star(11), 0.5),
    ("bipartite", bipartite(3, 5), 0.5),
    ("bipartite", bipartite(2, 8), 0.05),
    ("ring of 6", ring(6), 0.5),
    ("ring of 9", ring(9), 0.1),
    ("blocks", blocks(3, 3, 4), 0.5),
    ("uneven blocks", blocks(2, 7), 0.05),
    ("squared distances", squared_distances(6), 0.5),
    ("squared distances", squared_distances(9), 0.01),
    ("square", ring(4) + np.roll(np.eye(4), 2, axis=1), 0.3),
    ("noise", poisson(8, 2, 1), 0.3),
    ("noise", poisson(10, 3, 2), 0.05),
    ("hardly shrunk", poisson(5, 2, 3), 1e-3),
]


def published(counts, ratio):
    """A problem of the campaign: P and weights by plain division, and what the fit says of it."""
    result = ms.fit(counts, kind="counts", lambda_ratio=ratio, refit="none")
    claims = result.certificate
    departures = counts.sum(axis=1)
    fit = {"mode": "fit", "objective": claims["objective"], "lower_bound": claims["lower_bound"], "checker_bound": None}
    problem = {
        "p": counts / departures[:, None],
        "weights": departures / departures.sum(),
        "lambda": result.lam,
        "best": claims["objective"],
        "slack": 0.0,
        "fits": [fit],
    }
    return result, problem


@pytest.mark.parametrize(("name", "counts", "ratio"), PROBLEMS, ids=[f"{p[0]} at {p[2]}" for p in PROBLEMS])
def test_bounds_lie_between_the_relaxations(name, counts, ratio):
    result, problem = published(counts, ratio)
    verdict = convex.judge(problem)
    assert verdict.solved, verdict
    assert not verdict.false and not verdict.crossed, (verdict, result.certificate)
    found = ms.verify(result)
    assert found, found


def test_a_bound_that_is_too_large_is_found():
    _, problem = published(blocks(3, 3, 4), 0.5)
    verdict = convex.judge(problem)
    problem["fits"][0]["lower_bound"] = verdict.nuclear.upper * (1 + 1e-7)
    assert convex.judge(problem).false
    problem["fits"][0]["objective"] = verdict.doubly.dual * (1 - 1e-4)
    assert convex.judge(problem).crossed
