"""The table of the controlled chains: the share of the optimal value that is lost, by transitions a pair of state and action. The rank is not given, rewards are estimated from the log.

    METASTATE=target/release/metastate python benches/plan/planted.py --seeds 5
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

import rivals


def simulated(states, actions, rank, each, noise, seed):
    with tempfile.TemporaryDirectory() as place:
        rivals.run(["--seed", str(seed), "simulate", "controlled", "--states", str(states), "--actions", str(actions), "--rank", str(rank), "--each", str(each), "--noise", str(noise), "--out", "chain"], place)
        chain = Path(place) / "chain"
        u, v, paid = (np.load(chain / f"{n}.npy") for n in ("U", "V", "rewards"))
        table = np.loadtxt(chain / "log.csv", delimiter=",", skiprows=1)
        return u, v, paid, {"state": table[:, 0].astype(int), "action": table[:, 1].astype(int), "reward": table[:, 2], "next": table[:, 3].astype(int)}


def sharp(states, actions, rank, each, noise, seed, leak=0.05):
    """The same with destinations of their own: a state is reached through its own meta-state, and through the others a twentieth as much; what is paid goes by meta-state."""
    rng = np.random.default_rng(seed)
    u = rng.exponential(size=(states * actions, rank)) ** 3
    u /= u.sum(1, keepdims=True)
    home = np.arange(states) % rank
    v = rng.exponential(size=(states, rank)) * np.where(home[:, None] == np.arange(rank), 1.0, leak)
    v /= v.sum(0)
    paid = 0.8 * (home + 0.5) / rank + 0.2 * rng.random(states)
    pair = np.repeat(np.arange(states * actions), each)
    through = (u.cumsum(1)[pair] < rng.random((len(pair), 1))).sum(1).clip(max=rank - 1)
    following = np.zeros(len(pair), int)
    for k in range(rank):
        of = through == k
        following[of] = rng.choice(states, of.sum(), p=v[:, k])
    reward = paid[following] + noise * rng.normal(size=len(pair))
    return u, v, u @ (v.T @ paid), {"state": pair // actions, "action": pair % actions, "reward": reward.round(6), "next": following}


def worth(policy, u, v, paid, states, actions, discount):
    """Mean value of a policy in the true process, by one system of equations."""
    rows = np.arange(states) * actions + policy
    p = u[rows] @ v.T
    return np.linalg.solve(np.eye(states) - discount * p, paid[rows]).mean()


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("--seeds", type=int, default=5)
    ask.add_argument("--states", type=int, default=500)
    ask.add_argument("--actions", type=int, default=4)
    ask.add_argument("--rank", type=int, default=6)
    ask.add_argument("--discount", type=float, default=0.95)
    ask.add_argument("--noise", type=float, default=0.1)
    ask.add_argument("--family", choices=["simulated", "sharp"], default="simulated")
    ask.add_argument("--each", type=int, nargs="+", default=[5, 20, 80])
    ask = ask.parse_args()
    n, a, g = ask.states, ask.actions, ask.discount
    for each in ask.each:
        for seed in range(1, ask.seeds + 1):
            u, v, paid, log = {"simulated": simulated, "sharp": sharp}[ask.family](n, a, ask.rank, each, ask.noise, seed)
            best, _ = rivals.value_iteration(lambda x: u @ (v.T @ x), paid, np.ones(n * a, bool), n, a, g)
            value = lambda policy: worth(policy, u, v, paid, n, a, g)
            top = value(best)
            lost = lambda policy: 1 - value(policy) / top
            policy, rank, plan, seconds = rivals.ours(log, n, a, g)
            row = {
                "family": ask.family,
                "each": each,
                "seed": seed,
                "rank": rank,
                "ours": lost(policy),
                "empirical": lost(rivals.empirical(log, n, a, g)),
                "q-learning": lost(rivals.q_learning(log, n, a, g, seed=seed)),
                "svd": lost(rivals.svd(log, n, a, g, rank)),
                "random": 1 - np.linalg.solve(np.eye(n) - g * u.reshape(n, a, -1).mean(1) @ v.T, paid.reshape(n, a).mean(1)).mean() / top,
                "optimum": top,
                "held out": plan["check"]["value"],
                "low": plan["check"]["low"],
                "high": plan["check"]["high"],
                "claimed": plan["mean_value"],
                "ours earns": value(policy),
                "bound says something": plan["bound"]["says_something"],
                "seconds": [round(x, 1) for x in seconds],
            }
            print(json.dumps(row), flush=True)


main()
