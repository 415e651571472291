"""scikit-learn's NMF (Kullback-Leibler, multiplicative updates) from the start that `refit_large` wrote, for as many seconds as given.

    cargo run --release -p metastate-lab --example refit_large 1e5 20 100 40 /tmp/large
    python benches/peers/nmf_kl.py /tmp/large 20 SECONDS

Prints the log-likelihood a transition of the row-stochastic model after each batch of updates, to be read beside refit_large's.
Needs numpy, scipy and scikit-learn.
"""
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import non_negative_factorization

folder, rank, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
indptr = np.fromfile(f"{folder}/indptr.u64", dtype=np.uint64).astype(np.int64)
indices = np.fromfile(f"{folder}/indices.u32", dtype=np.uint32).astype(np.int32)
data = np.fromfile(f"{folder}/data.f64")
d = len(indptr) - 1
counts = sp.csr_matrix((data, indices, indptr), shape=(d, d))
u = np.fromfile(f"{folder}/U.f64").reshape(d, rank)
v = np.fromfile(f"{folder}/V.f64").reshape(d, rank)
n = np.asarray(counts.sum(axis=1)).ravel()
total = n.sum()
marginal = (np.asarray(counts.sum(axis=0)).ravel() + 1) / (total + d)
mass = np.maximum((n[:, None] * u).sum(axis=0) / total, 1e-3 / rank)
mass /= mass.sum()
# The same lift of zeros as the refit's: (1 - 1e-3) of the start, 1e-3 of the marginal model.
u = 0.999 * u + 0.001 * mass
v = 0.999 * v / v.sum(axis=0) + 0.001 * marginal[:, None]
w, h = n[:, None] * u, np.ascontiguousarray(v.T)


def log_likelihood(w, h):
    rows = np.repeat(np.arange(d), np.diff(indptr))
    value = 0.0
    for start in range(0, len(data), 1 << 20):
        part = slice(start, start + (1 << 20))
        p = np.einsum("ij,ji->i", w[rows[part]], h[:, indices[part]])
        value += data[part] @ np.log(np.maximum(p, 1e-300))
    # Rows of the model made stochastic, as a transition matrix must be.
    norm = w @ h.sum(axis=1)
    return (value - n @ np.log(norm)) / total


warnings.filterwarnings("ignore")
print(f"start: {log_likelihood(w, h):.6f}")
used, steps = 0.0, 0
while used < seconds:
    clock = time.perf_counter()
    w, h, _ = non_negative_factorization(
        counts, W=w, H=h, n_components=rank, init="custom", solver="mu", beta_loss="kullback-leibler", max_iter=5, tol=0
    )
    used += time.perf_counter() - clock
    steps += 5
    print(f"{steps} updates, {used:.1f} s: {log_likelihood(w, h):.6f}", flush=True)
