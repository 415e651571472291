"""A large fit from SciPy's memory, beside the command on the same counts: peak memory over the input's own, time, the same factors.

    METASTATE=target/release/metastate python benches/peers/python_large.py [states] [entries a row]

The package must be a release build (`pip install .`). 20 groups; nine of ten transitions stay within the group.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import metastate as ms

OPTIONS = {"lambda_ratio": 0.5, "gap": 1e-2, "tolerance": 1e-2, "max_rank": 20, "clusters": "membership"}


def chain(states, row):
    rng = np.random.default_rng(0)
    group = np.arange(states) % 20
    inside = rng.random((states, row)) < 0.9
    target = np.where(inside, group[:, None], rng.integers(0, 20, (states, row))) + 20 * rng.integers(0, states // 20, (states, row))
    c = sp.csr_array((np.ones(states * row), target.ravel().astype(np.int32), np.arange(0, states * row + 1, row, dtype=np.int32)), shape=(states, states))
    c.sum_duplicates()
    return c


def mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    states, row = (int(x) for x in (*sys.argv[1:], 100_000, 100)[:2])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "counts.npz"
        # Made in another process, so that this one's peak is its own.
        if os.fork() == 0:
            sp.save_npz(file, chain(states, row), compressed=False)
            os._exit(0)
        os.wait()
        c = sp.load_npz(file)
        own = (c.data.nbytes + c.indices.nbytes + c.indptr.nbytes) / 2**20
        before = resident()
        begun = time.perf_counter()
        result = ms.fit(c, **OPTIONS)
        seconds = time.perf_counter() - begun
        print(f"{states} states, {c.nnz} entries, {own:.0f} MiB of them; rank {result.rank}, {result.certificate['status']}")
        print(f"Python : {seconds:.1f} s, peak {mib() - before:.0f} MiB over the {before:.0f} MiB that were there")
        words = [f"--{k.replace('_', '-')}={v}" for k, v in OPTIONS.items()]
        begun = time.perf_counter()
        command = [os.environ["METASTATE"], "fit", str(file), "--as", "counts", *words, "--out", f"{folder}/out", "--quiet"]
        child = subprocess.Popen(command)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begun
        summary = json.loads(Path(f"{folder}/out/summary.json").read_text())
        parts = ", ".join(f"{k} {v:.1f}" for k, v in summary["seconds"].items())
        print(f"command: {seconds:.1f} s ({parts}), peak {usage.ru_maxrss / 1024:.0f} MiB")
        print(f"Python : {', '.join(f'{k} {v:.1f}' for k, v in result.summary['seconds'].items())}")
        print("the same factors:", np.array_equal(ms.load(f"{folder}/out").factors[0], result.factors[0]))
