"""A transition matrix between the nearest neighbours of points on a branching tree, as single-cell tools make them: rank given, fates, seconds and memory of `metastate fit` and `metastate forecast`, beside pyGPCCA.

    pip install numpy scipy pygpcca
    python benches/peers/knn.py path/to/metastate FOLDER [states ...]

Points run along a trunk that splits into three branches; each goes to its 30 nearest neighbours with Gaussian weights, five times as often forward as back. The last 1 % of every branch is never left.
The true fate of a point is the probability of ending in each branch, by a sparse linear system. pyGPCCA is run where its dense Schur decomposition fits (its Krylov method needs PETSc and SLEPc).
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve
from scipy.spatial import cKDTree

NEIGHBOURS, BRANCHES, DENSE = 30, 3, 2000


def tree(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points in ten dimensions, how far along each is (0 to 2), and its branch (-1 on the trunk)."""
    rng = np.random.default_rng(seed)
    along = 2 * rng.random(n)
    branch = np.where(along < 1, -1, rng.integers(BRANCHES, size=n))
    x = np.zeros((n, 10))
    x[:, 0] = np.minimum(along, 1)
    for b in range(BRANCHES):
        x[branch == b, 1 + b] = 2 * (along[branch == b] - 1)
    return x + 0.03 * rng.standard_normal(x.shape), along, branch


def matrix(n: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """P, and for each state the branch whose absorbing end it is in (-1: none)."""
    x, along, branch = tree(n)
    distance, at = cKDTree(x).query(x, NEIGHBOURS + 1)
    rows, cols = np.repeat(np.arange(n), NEIGHBOURS), at[:, 1:].ravel()
    weight = np.exp(-((distance[:, 1:] / distance[:, -1:]) ** 2)).ravel() * np.where(along[cols] > along[rows], 5.0, 1.0)
    end = np.where((branch >= 0) & (along > 1.98), branch, -1)
    # Whoever has come to an end stays in it.
    keep = (end[rows] < 0) | (end[rows] == end[cols])
    p = sparse.csr_matrix((weight[keep], (rows[keep], cols[keep])), shape=(n, n))
    p += sparse.diags((end >= 0).astype(float) * 1e-3)
    return sparse.diags(1 / np.asarray(p.sum(axis=1)).ravel()) @ p, end


def true_fates(p: sparse.csr_matrix, end: np.ndarray) -> np.ndarray:
    inside = end < 0
    a = sparse.eye(inside.sum(), format="csc") - p[inside][:, inside].tocsc()
    fates = np.zeros((p.shape[0], BRANCHES))
    for b in range(BRANCHES):
        fates[inside, b] = spsolve(a, np.asarray(p[inside][:, end == b].sum(axis=1)).ravel())
        fates[end == b, b] = 1
    return fates


def run(*words: str) -> tuple[float, float]:
    """Processor seconds and peak memory in MB of one command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, after.ru_maxrss / 1024


def main() -> None:
    program, folder = sys.argv[1], Path(sys.argv[2])
    rank = BRANCHES + 1
    for n in map(int, sys.argv[3:] or ["2000", "20000"]):
        p, end = matrix(n)
        folder.mkdir(parents=True, exist_ok=True)
        file, out = str(folder / f"knn-{n}.npz"), str(folder / f"fit-{n}")
        sparse.save_npz(file, p.astype(np.float64), compressed=False)
        seconds, memory = run(program, "fit", file, "--as", "matrix", "--rank", str(rank), "--out", out, "--force", "--quiet")
        summary = json.loads((Path(out) / "summary.json").read_text())
        print(f"{n} states, {p.nnz} entries: metastate fit --rank {rank}: {seconds:.1f} processor seconds, {memory:.0f} MB, status {summary['status']}, gap {summary['errors']['certified_gap']}", flush=True)
        seconds, memory = run(program, "forecast", out, "--out", out + "-forecast", "--force", "--quiet")
        told = json.loads((Path(out + "-forecast") / "forecast.json").read_text())
        print(f"  forecast: {seconds:.1f} processor seconds, {memory:.0f} MB; fates {[(f['metastate'], f['class'], round(f['probability'], 3)) for f in told.get('fates', [])]}", flush=True)
        truth = true_fates(p, end)
        hard = np.array([int(line.split(",")[2]) for line in (Path(out) / "states.csv").read_text().splitlines()[1:]])
        for k in range(1, rank + 1):
            print(f"  meta-state {k}: {np.sum(hard == k)} states, true fates {truth[hard == k].mean(axis=0).round(3).tolist()}", flush=True)
        if n <= DENSE:
            from pygpcca import GPCCA

            begun = time.process_time()
            try:
                theirs = GPCCA(p.toarray(), method="brandts").optimize(rank)
                group = theirs.macrostate_assignment
                print(f"  pyGPCCA (dense): {time.process_time() - begun:.1f} processor seconds, sizes {np.bincount(group).tolist()}, true fates {[truth[group == k].mean(axis=0).round(3).tolist() for k in range(rank)]}")
            except Exception as error:  # noqa: BLE001
                print(f"  pyGPCCA (dense): {time.process_time() - begun:.1f} processor seconds, then {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
