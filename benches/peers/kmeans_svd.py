"""k-means beside scikit-learn and the truncated SVD beside SciPy, on the same arrays in the same run.

    cargo build --release -p metastate-lab --example peers
    python benches/peers/kmeans_svd.py target/release/examples/peers [kmeans|svd-small|svd-large ...]

Both sides get one thread (threads of OpenMP that wait for each other on a busy machine make scikit-learn look many times slower
than it is); THREADS=2 in the environment gives both two.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

THREADS = os.environ.get("THREADS", "1")
for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"]:
    os.environ[name] = THREADS

import numpy as np
import scipy.sparse as sp


def ours(*arguments):
    return json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


def memberships(states=2018, rank=9, seed=0):
    """Rows as memberships are: most states lean to one meta-state, some lie between."""
    rng = np.random.default_rng(seed)
    alpha = np.full((states, rank), 0.3)
    alpha[np.arange(states), rng.integers(rank, size=states)] += 2.0
    return np.array([rng.dirichlet(a) for a in alpha])


def compare_kmeans(program, folder):
    from sklearn.cluster import KMeans

    points = memberships()
    path = os.path.join(folder, "points.npy")
    np.save(path, points)
    for round_ in range(2):
        mine = ours(program, "kmeans", path, "9", "500")
        clock = time.perf_counter()
        peer = KMeans(n_clusters=9, n_init=500, random_state=round_).fit(points)
        seconds = time.perf_counter() - clock
        print(
            f"kmeans 2018 x 9, k = 9, 500 replicates: ours {mine['seconds']:.3f} s, scikit-learn {seconds:.3f} s,"
            f" ratio {seconds / mine['seconds']:.2f}; inertia {mine['inertia']:.12f} and {peer.inertia_:.12f}"
        )


def grouped(states, entries, groups, seed):
    """Rows that lean to one of a few groups of columns: the chains that the method is for."""
    rng = np.random.default_rng(seed)
    mine = rng.integers(groups, size=states)
    flows = rng.dirichlet(np.full(groups, 0.2), size=groups)
    members = [np.flatnonzero(mine == g) for g in range(groups)]
    per_row = entries // states
    columns = np.empty(states * per_row, dtype=np.int64)
    for g in range(groups):
        rows = members[g]
        to = rng.choice(groups, p=flows[g], size=(len(rows), per_row))
        drawn = np.empty_like(to)
        for h in range(groups):
            at = to == h
            drawn[at] = members[h][rng.integers(len(members[h]), size=at.sum())]
        for i, row in zip(rows, drawn):
            columns[i * per_row : (i + 1) * per_row] = row
    rows = np.repeat(np.arange(states), per_row)
    a = sp.csr_matrix((np.full(len(rows), 1.0 / per_row), (rows, columns)), shape=(states, states))
    a.sum_duplicates()
    return a


def compare_svd(program, folder, states, entries, rounds):
    from scipy.sparse.linalg import svds

    a = grouped(states, entries, 20, 1)
    for name, values in [("data", a.data), ("indices", a.indices.astype(np.int32)), ("indptr", a.indptr.astype(np.int64))]:
        np.save(os.path.join(folder, name + ".npy"), values)
    for _ in range(rounds):
        mine = ours(program, "svd", folder, "20")
        clock = time.perf_counter()
        peer = np.sort(svds(a, k=20, return_singular_vectors=True, random_state=0)[1])[::-1]
        seconds = time.perf_counter() - clock
        error = np.max(np.abs(np.array(mine["values"]) - peer)) / peer[0]
        print(
            f"svd {states} x {states}, {a.nnz} entries, k = 20: ours {mine['seconds']:.3f} s, SciPy {seconds:.3f} s,"
            f" ratio {seconds / mine['seconds']:.2f}; largest difference of singular values {error:.1e} of the first"
            f" (converged: {mine['converged']})"
        )


def main():
    program = sys.argv[1]
    what = sys.argv[2:] or ["kmeans", "svd-small", "svd-large"]
    with tempfile.TemporaryDirectory() as folder:
        if "kmeans" in what:
            compare_kmeans(program, folder)
        if "svd-small" in what:
            compare_svd(program, folder, 2018, 100_000, 3)
        if "svd-large" in what:
            compare_svd(program, folder, 100_000, 10_000_000, 2)


if __name__ == "__main__":
    main()
