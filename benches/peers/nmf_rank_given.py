"""scikit-learn's NMF with the rank given beside `metastate fit` with nothing given, on a planted chain.

    metastate simulate planted --states 1000 --rank 10 --steps 10000000 --seed 1 --out planted
    python benches/peers/nmf_rank_given.py planted 10

Prints seconds (the whole command with reading and writing; of scikit-learn the factorisation alone), processor seconds and relRE, the paper's
relative recovery error. Needs numpy, scikit-learn and the command `metastate` (METASTATE names another).
"""
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
from sklearn.decomposition import NMF

folder, rank = sys.argv[1], int(sys.argv[2])
truth = np.load(f"{folder}/U.npy") @ np.load(f"{folder}/V.npy").T
d = len(truth)
counts = np.zeros((d, d))
rows = np.loadtxt(f"{folder}/counts.csv", delimiter=",", skiprows=1)
counts[rows[:, 0].astype(int), rows[:, 1].astype(int)] = rows[:, 2]
xi = counts.sum(axis=0)[:, None] / counts.sum()


def error(x):
    return np.sum((xi * (x - truth)) ** 2) / np.sum((xi * truth) ** 2)


def report(name, clock, processor, x):
    print(f"{name}: {clock:.1f} s, {processor:.1f} processor s, relRE {error(x):.3e}", flush=True)


warnings.filterwarnings("ignore")
KL = {"solver": "mu", "beta_loss": "kullback-leibler"}
p = counts / counts.sum(axis=1, keepdims=True)
for name, data, options in [
    ("NMF, least squares, rank given", p, {}),
    ("NMF, KL, rank given, default tolerance", counts, KL),
    ("NMF, KL, rank given, 2,000 updates", counts, {**KL, "tol": 0, "max_iter": 2000}),
]:
    clock, processor = time.perf_counter(), time.process_time()
    model = NMF(rank, init="nndsvda", random_state=0, **{"max_iter": 500, **options})
    x = model.fit_transform(data) @ model.components_
    x = x / x.sum(axis=1, keepdims=True)
    report(f"{name} ({model.n_iter_} iterations)", time.perf_counter() - clock, time.process_time() - processor, x)

with tempfile.TemporaryDirectory() as place:
    command = [os.environ.get("METASTATE", "metastate"), "fit", f"{folder}/counts.csv", "--from", "from", "--to", "to", "--weight", "count"]
    clock, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, "--refit", "likelihood", "--out", f"{place}/out", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    clock, after = time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
    with np.load(f"{place}/out/refit.npz") as refit:
        x = refit["U"] @ refit["V"].T
        report(f"metastate fit, nothing given (rank {refit['U'].shape[1]})", clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, x)
