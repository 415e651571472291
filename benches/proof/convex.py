"""An independent convex solver against the certified lower bounds, on formulations of its own.

    pip install clarabel numpy scipy
    python benches/proof/convex.py campaign.jsonl [--states 16] [--most 400] [--seconds 900]

Reads what `proof_campaign` wrote and solves two relaxations of each problem by interior points (Clarabel):

    N:  min 1/2 ||Xi (P - X)||^2 + lambda/2 (tr A + tr B),  [[A, X], [X^T, B]] positive semidefinite, X >= 0, X 1 = 1
    D:  the same with A >= 0 and B >= 0, entry by entry

Every solution U, V of the stated problem is a point of D (A = sum_j |V_j|/|U_j| U_j U_j^T, B likewise), and every point of D one of N. So

    published lower bound <= N <= D <= published objective,

the first because the bounds of this program are of N or of something weaker. Clarabel's points miss their constraints a little, so nothing is
concluded from its own objective where a bound is called false: its X is made nonnegative with rows that sum to one, and the value there,
by singular values, is a true upper bound of N; its A and B are lifted until they are feasible, for one of D.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse

# How far apart two numbers may be that both come from the interior point method, relative to the objective.
SOLVER = 1e-6


@dataclass
class Relaxed:
    """A relaxation, solved."""

    status: str
    # Value at a point that is feasible beyond doubt: no less than the optimum.
    upper: float
    # The solver's dual value: no more than the optimum, up to its own residuals.
    dual: float
    seconds: float


def solve(p: np.ndarray, xi: np.ndarray, lam: float, scale: float, doubly: bool) -> Relaxed:
    """Solves N or D. `scale` is the size of the objective: what Clarabel sees is near 1."""
    d = len(xi)
    n = 2 * d
    # The upper triangle of Z, column by column, off-diagonal entries times sqrt(2): Clarabel's cone of matrices.
    rows, cols = np.array([(i, j) for j in range(n) for i in range(j + 1)]).T
    size = len(rows)
    at = {(i, j): k for k, (i, j) in enumerate(zip(rows.tolist(), cols.tolist()))}
    unit = np.where(rows == cols, 1.0, np.sqrt(2.0))
    inside = np.array([[at[i, d + j] for j in range(d)] for i in range(d)])

    # Where lambda is small, X is P but for a little: the variable is Y, X = P + step Y, so that nothing large cancels.
    step = np.minimum(1.0, np.sqrt(scale) / xi)[:, None] * np.ones((d, d))
    quadratic, linear = np.zeros(size), np.zeros(size)
    quadratic[inside] = (xi[:, None] * step) ** 2 / scale
    linear[rows == cols] = lam / 2.0 / scale
    # Entries of Z: `offset + stretch * variable`.
    offset, stretch = np.zeros(size), np.ones(size)
    offset[inside], stretch[inside] = p, step
    entry = sparse.diags(stretch, format="csc")
    sums = sparse.csc_matrix((np.ones(d * d), (np.repeat(np.arange(d), d), inside.ravel())), shape=(d, size))
    positive = np.ones(size, bool) if doubly else np.isin(np.arange(size), inside)
    # A diagonal that is nonnegative because Z is semidefinite needs no second reason.
    positive &= rows != cols
    a = sparse.vstack([sums, -entry[positive], -sparse.diags(unit) @ entry], format="csc")
    b = np.concatenate([(1.0 - p.sum(axis=1)) / step[:, 0], offset[positive], unit * offset])
    cones = [clarabel.ZeroConeT(d), clarabel.NonnegativeConeT(int(positive.sum())), clarabel.PSDTriangleConeT(n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    settings.max_iter = 100
    clock = time.perf_counter()
    found = clarabel.DefaultSolver(sparse.diags(quadratic, format="csc"), linear, a, b, cones, settings).solve()
    seconds = time.perf_counter() - clock
    entries = offset + stretch * np.array(found.x)
    if not np.all(np.isfinite(entries)):
        return Relaxed(str(found.status), np.inf, -np.inf, seconds)
    z = np.zeros((n, n))
    z[rows, cols] = z[cols, rows] = entries
    return Relaxed(str(found.status), feasible_value(p, xi, lam, z, doubly), scale * found.obj_val_dual, seconds)


def feasible_value(p: np.ndarray, xi: np.ndarray, lam: float, z: np.ndarray, doubly: bool) -> float:
    """The objective at the nearest point that meets every constraint."""
    d = len(xi)
    x = np.maximum(z[:d, d:], 0.0)
    x /= x.sum(axis=1, keepdims=True)
    fit = 0.5 * float(np.sum((xi[:, None] * (p - x)) ** 2))
    if not doubly:
        return fit + lam * float(np.linalg.svd(x, compute_uv=False).sum())
    lifted = np.maximum(z, 0.0)
    lifted[:d, d:], lifted[d:, :d] = x, x.T
    # Rounding of the eigenvalues, and a little more.
    short = max(0.0, -float(np.linalg.eigvalsh(lifted)[0])) + 1e-14 * float(np.trace(lifted))
    return fit + 0.5 * lam * (float(np.trace(lifted)) + 2 * d * short)


@dataclass
class Verdict:
    """One problem, both relaxations, and what they say of the bounds."""

    solved: bool
    false: list[str]
    crossed: list[str]
    nuclear: Relaxed
    doubly: Relaxed


def judge(problem: dict) -> Verdict:
    """Solves both relaxations of a line of the campaign and compares."""
    p, xi, lam = np.array(problem["p"]), np.array(problem["weights"]), problem["lambda"]
    best, slack = problem["best"], problem["slack"]
    nuclear = solve(p, xi, lam, best, False)
    doubly = solve(p, xi, lam, best, True)
    solved = all(r.status in ("Solved", "AlmostSolved") and r.upper - r.dual <= 1e-4 * best for r in (nuclear, doubly))
    false, crossed = [], []
    for fit in problem["fits"]:
        for name in ("lower_bound", "checker_bound"):
            bound = fit[name]
            # A true upper bound of N, whether the solver met its tolerance or not.
            if bound is not None and bound > nuclear.upper * (1 + 1e-12) + slack:
                false.append(f"{fit['mode']}, {name} {bound:.12e} > {nuclear.upper:.12e}")
        if solved and doubly.dual > fit["objective"] * (1 + SOLVER):
            crossed.append(f"{fit['mode']}: objective {fit['objective']:.9e} < D {doubly.dual:.9e}")
    if solved and nuclear.dual > doubly.upper + SOLVER * best:
        crossed.append(f"N {nuclear.dual:.9e} > D {doubly.upper:.9e}")
    return Verdict(solved, false, crossed, nuclear, doubly)


def chosen(lines: list[dict], most: int) -> list[dict]:
    """At most so many problems, taken from all families in turn."""
    families: dict[str, list[dict]] = {}
    for line in lines:
        families.setdefault(line["family"], []).append(line)
    # A stride that is prime to the number of lambdas visits all of them.
    spread = [[f[(7 * k) % len(f)] for k in range(len(f))] if len(f) % 7 else f for f in families.values()]
    turns = [f[k] for k in range(max(map(len, spread), default=0)) for f in spread if k < len(f)]
    return turns[:most]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign")
    parser.add_argument("--states", type=int, default=16, help="problems with more states than this are left out (30 at most)")
    parser.add_argument("--most", type=int, default=400, help="problems, at most")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further problem after this time")
    options = parser.parse_args()
    with open(options.campaign, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    lines = chosen([line for line in lines if "p" in line and line["states"] <= options.states], options.most)

    clock = time.perf_counter()
    rows: dict[str, list] = {}
    unsolved: dict[str, int] = {}
    for line in lines:
        if time.perf_counter() - clock > options.seconds:
            break
        verdict = judge(line)
        rows.setdefault(line["family"], []).append((line, verdict))
        where = f"{line['name']} at {line['share']} (lambda {line['lambda']:e})"
        for text in verdict.false:
            print(f"FALSE {where}: {text}")
        for text in verdict.crossed:
            print(f"CROSSED {where}: {text}")
        if not verdict.solved:
            key = f"{verdict.nuclear.status}/{verdict.doubly.status} at {line['share']}"
            unsolved[key] = unsolved.get(key, 0) + 1

    print(f"{'family':<18} {'problems':>8} {'solved':>6} {'false':>5} {'crossed':>7} | below N: {'50%':>8} {'90%':>8} {'most':>8} | D - N: {'90%':>8} | F - D: {'90%':>8} {'most':>8} | {'s':>6}")
    everything = [pair for pairs in rows.values() for pair in pairs]
    for family, pairs in [*rows.items(), ("all", everything)]:
        solved = [(line, v) for line, v in pairs if v.solved]
        bounds = [(line, v, line["fits"][0]["lower_bound"]) for line, v in solved]
        below = [(v.nuclear.upper - b) / line["best"] for line, v, b in bounds if b is not None]
        between = [(v.doubly.upper - v.nuclear.upper) / line["best"] for line, v in solved]
        above = [(line["best"] - v.doubly.upper) / line["best"] for line, v in solved]
        q = lambda list, share: np.quantile(list, share) if list else np.nan
        print(
            f"{family:<18} {len(pairs):>8} {len(solved):>6} {sum(len(v.false) for _, v in pairs):>5} {sum(len(v.crossed) for _, v in pairs):>7} |"
            f"          {q(below, .5):>8.1e} {q(below, .9):>8.1e} {q(below, 1):>8.1e} |        {q(between, .9):>8.1e} |"
            f"        {q(above, .9):>8.1e} {q(above, 1):>8.1e} | {sum(v.nuclear.seconds + v.doubly.seconds for _, v in pairs):>6.1f}"
        )
    print(f"not solved to 1e-4: {unsolved}")
    print(f"{len(everything)} problems of {len(lines)}, {time.perf_counter() - clock:.0f} s")
    return int(any(v.false or v.crossed for _, v in everything))


if __name__ == "__main__":
    raise SystemExit(main())
