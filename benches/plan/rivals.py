"""What somebody would do with a log otherwise: the counted model with value iteration, tabular Q-learning, a truncated SVD of the stacked matrix. And our own way, by the command.

Every method gets the same log, (state, action, reward, next) in arrays, and hands back an action for every state. States where nothing was ever tried get action 0 from everybody."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

METASTATE = os.environ.get("METASTATE", "metastate")


def counted(log, states, actions):
    """Counts of each pair, as sparse rows, with the mean of what was paid and the number of records."""
    s, a, r, t = (log[k] for k in ("state", "action", "reward", "next"))
    pair = s * actions + a
    counts = sparse.coo_array((np.ones(len(s)), (pair, t)), shape=(states * actions, states)).tocsr()
    n = np.bincount(pair, minlength=states * actions).astype(float)
    paid = np.bincount(pair, weights=r, minlength=states * actions) / np.maximum(n, 1)
    return counts, n, paid


def value_iteration(next_values, paid, tried, states, actions, discount, tolerance=1e-9, sweeps=20_000):
    """`next_values(v)`: the mean value after each pair. Pairs that were not tried are left out, states without any are worth 0."""
    v = np.zeros(states)
    allowed = np.where(tried, 0.0, -np.inf)
    for _ in range(sweeps):
        q = (paid + discount * next_values(v) + allowed).reshape(states, actions)
        new = q.max(axis=1)
        new[~np.isfinite(new)] = 0.0
        done = np.abs(new - v).max() < tolerance
        v = new
        if done:
            break
    q[~np.isfinite(q).any(axis=1)] = 0.0
    return q.argmax(axis=1), v


def empirical(log, states, actions, discount):
    counts, n, paid = counted(log, states, actions)
    p = sparse.diags_array(1 / np.maximum(n, 1)) @ counts
    return value_iteration(lambda v: p @ v, paid, n > 0, states, actions, discount)[0]


def svd(log, states, actions, discount, rank):
    """The counted matrix of all actions, cut to this rank with rows weighed by the root of their records, negative entries set to zero, rows made to sum to one."""
    counts, n, paid = counted(log, states, actions)
    keep = np.flatnonzero(n > 0)
    weight = np.sqrt(n[keep])
    p = sparse.diags_array(1 / n[keep]) @ counts[keep]
    k = min(rank, min(p.shape) - 1)
    u, sigma, vt = svds((sparse.diags_array(weight) @ p).tocsc(), k=k, random_state=0)
    left = (u * sigma) / weight[:, None]

    def rows(block):
        x = np.maximum(left[block] @ vt, 0)
        return x / np.maximum(x.sum(axis=1, keepdims=True), 1e-300)

    blocks = np.array_split(np.arange(len(keep)), max(1, len(keep) * states // 20_000_000))
    dense = np.vstack([rows(b) for b in blocks])

    def ahead(v):
        out = np.zeros(states * actions)
        out[keep] = dense @ v
        return out

    return value_iteration(ahead, paid, n > 0, states, actions, discount)[0]


def q_learning(log, states, actions, discount, passes=60, seed=0):
    """Over the records again and again in an order by chance; the step falls as 1 / (1 + visits / 10)."""
    rng = np.random.default_rng(seed)
    s, a, r, t = (np.asarray(log[k]).tolist() for k in ("state", "action", "reward", "next"))
    q = [[0.0] * actions for _ in range(states)]
    visits = [[0] * actions for _ in range(states)]
    left = np.zeros(states, bool)
    left[log["state"]] = True
    best = [0.0] * states
    tried = np.zeros((states, actions), bool)
    tried[log["state"], log["action"]] = True
    options = [np.flatnonzero(row).tolist() for row in tried]
    for _ in range(passes):
        for i in rng.permutation(len(s)).tolist():
            x, y = s[i], a[i]
            visits[x][y] += 1
            step = 1 / (1 + visits[x][y] / 10)
            q[x][y] += step * (r[i] + discount * best[t[i]] - q[x][y])
            best[x] = max(q[x][k] for k in options[x])
    table = np.where(tried, np.array(q), -np.inf)
    table[~left] = 0.0
    return table.argmax(axis=1)


def ours(log, states, actions, discount, keep=None, options=()):
    """`metastate fit --action` with the rank not given, then `metastate plan`. Hands back the policy, the rank, and what the plan says of itself."""
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        names = [k for k in ("episode", "step", "state", "action", "reward", "next") if k in log]
        with open(place / "log.csv", "w") as out:
            out.write(",".join(names) + "\n")
            for row in zip(*(np.asarray(log[k]).tolist() for k in names)):
                out.write(",".join(map(str, row)) + "\n")
        episodes = ["--id", "episode", "--time", "step"] if "episode" in log else []
        begin = time.perf_counter()
        run(["fit", "log.csv", "--from", "state", "--action", "action", "--to", "next", "--reward", "reward", *episodes, *options, "--out", "out"], place)
        middle = time.perf_counter()
        run(["plan", "out", "--discount", str(discount)], place)
        seconds = (middle - begin, time.perf_counter() - middle)
        summary = json.loads((place / "out/summary.json").read_text())
        plan = json.loads((place / "out/plan.json").read_text())
        policy = np.zeros(states, int)
        with open(place / "out/policy.csv") as rows:
            for row in csv.DictReader(rows):
                if row["action"] and row["state"].isdigit():
                    policy[int(row["state"])] = int(row["action"])
        rank = (summary.get("refit") or summary)["rank"]
        return policy, rank, plan, seconds


def run(words, place):
    done = subprocess.run([METASTATE, "--quiet", *words], cwd=place, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"metastate {' '.join(words)}: {done.stderr}")
