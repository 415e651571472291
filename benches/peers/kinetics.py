"""Timescales and passage times of planted metastable chains whose truth is known: the factors alone (what this package published before), the kinetic chain, and deeptime's Markov state model
on the microstates, its coarse-graining by PCCA+ and its hidden Markov model.

    pip install metastate deeptime numpy
    python benches/peers/kinetics.py [seeds [steps ...]]

For each chain, number of frames and method: the median over the seeds of ln(estimate / truth) and its spread (half the distance between the 16 % and 84 % quantiles), for the slowest timescale and
for one passage time between meta-states; for ours also how often the 90 % interval holds the truth.
"""

import sys
import warnings

import numpy as np

import metastate as ms

warnings.filterwarnings("ignore")
LAG, RANK = 5, 4


def wells(d: int = 60) -> np.ndarray:
    """Reversible: a walker by Metropolis' rule in four wells."""
    x = np.linspace(0, 1, d)
    energy = 2.6 * np.cos(8 * np.pi * x) + np.cos(2 * np.pi * x) + 1.5 * x
    p = np.zeros((d, d))
    for i in range(d):
        for j in (i - 3, i - 2, i - 1, i + 1, i + 2, i + 3):
            if 0 <= j < d:
                p[i, j] = min(1, np.exp(energy[i] - energy[j])) / 6
        p[i, i] = 1 - p[i].sum()
    return p


def rings(d: int = 60) -> np.ndarray:
    """Not reversible: four rings with a drift, left one way round."""
    rng, s = np.random.default_rng(1), 4
    b, p = d // s, np.zeros((d, d))
    for k in range(s):
        inside = np.arange(k * b, (k + 1) * b)
        for at, i in enumerate(inside):
            p[i, inside[(at + 1) % b]] += 0.5
            p[i, inside[(at + 2) % b]] += 0.2
            p[i, inside] += 0.3 * rng.dirichlet(np.ones(b))
    for k, leave in enumerate((0.004, 0.002, 0.01, 0.006)):
        inside = np.arange(k * b, (k + 1) * b)
        after, later = (np.arange(((k + n) % s) * b, ((k + n) % s) * b + 5) for n in (1, 2))
        for i in inside[:4]:
            e = leave * b / 4
            p[i] *= 1 - e
            p[i, after] += 0.9 * e / 5
            p[i, later] += 0.1 * e / 5
    return p


def walk(p: np.ndarray, frames: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    total, u, out, now = np.cumsum(p, axis=1), rng.random(frames), np.empty(frames, dtype=np.int64), int(rng.integers(len(p)))
    for t in range(frames):
        out[t] = now
        now = min(int(np.searchsorted(total[now], u[t], side="right")), len(p) - 1)
    return out


def law(p: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eig(p.T)
    pi = np.abs(vectors[:, np.argmax(values.real)].real)
    return pi / pi.sum()


def slowest(p: np.ndarray, lag: int = 1) -> float:
    moduli = np.sort(np.abs(np.linalg.eigvals(p)))[::-1]
    return float(-lag / np.log(moduli[1])) if len(moduli) > 1 else np.nan


def passage(p: np.ndarray, pi: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    rest = np.setdiff1d(np.arange(len(p)), b)
    steps = np.zeros(len(p))
    steps[rest] = np.linalg.solve(np.eye(len(rest)) - p[np.ix_(rest, rest)], np.ones(len(rest)))
    return float((pi[a] * steps[a]).sum() / pi[a].sum())


def by_set(members: np.ndarray, k: int, sets: list[np.ndarray]) -> int:
    """The meta-state that most of a set belongs to."""
    return int(np.bincount(members[sets[k]], minlength=members.max() + 1).argmax())


def methods(x: np.ndarray, sets: list[np.ndarray], d: int) -> dict[str, tuple[float, float]]:
    """Slowest timescale and passage time from the first to the third set, in frames; NaN where a method fails."""
    from deeptime.markov import TransitionCountEstimator
    from deeptime.markov.hmm import MaximumLikelihoodHMM
    from deeptime.markov.hmm import init as hmm_init
    from deeptime.markov.msm import MaximumLikelihoodMSM

    out: dict[str, tuple[float, float]] = {}

    def attempt(name: str, work):  # type: ignore[no-untyped-def]
        try:
            out[name] = work()
        except Exception:  # a rival that fails on scarce data has failed
            out[name] = (np.nan, np.nan)

    result = ms.fit(x, rank=RANK, lag=LAG, weight_power=0.5, bootstrap=50, connected="largest", kind="trajectories")
    home = np.zeros(d, dtype=np.int64)
    home[np.asarray(result.states)] = result.metastates
    a, b = by_set(home, 0, sets), by_set(home, 2, sets)

    def before() -> tuple[float, float]:
        k = result.latent_chain / result.latent_chain.sum(axis=1, keepdims=True)
        return slowest(k, LAG), LAG * passage(k, np.ones(len(k)), np.array([a]), np.array([b]))

    def now() -> tuple[float, float]:
        return float(result.timescales().value[0]), float(result.mfpt(a, b).value)

    attempt("ours before", before)
    attempt("ours now", now)
    out["interval"] = tuple(  # type: ignore[assignment]
        (float(np.ravel(e.interval.low)[0]), float(np.ravel(e.interval.high)[0])) for e in (result.timescales(), result.mfpt(a, b))
    )
    counts = TransitionCountEstimator(LAG, "sliding").fit_fetch(x).submodel_largest()
    msm = MaximumLikelihoodMSM(reversible=True).fit_fetch(counts)
    place = {int(s): k for k, s in enumerate(counts.state_symbols)}
    inside = [[place[s] for s in group if s in place] for group in sets]
    attempt("deeptime MSM", lambda: (float(msm.timescales(1)[0]), float(msm.mfpt(inside[0], inside[2]))))

    def pcca() -> tuple[float, float]:
        found = msm.pcca(RANK)
        k, assigned = found.coarse_grained_transition_matrix, found.assignments
        own = [int(np.bincount(assigned[group], minlength=RANK).argmax()) for group in (inside[0], inside[2])]
        return slowest(k, LAG), LAG * passage(k, np.ones(RANK), np.array(own[:1]), np.array(own[1:]))

    attempt("deeptime PCCA+", pcca)

    def hmm() -> tuple[float, float]:
        start = hmm_init.discrete.metastable_from_msm(msm, RANK)
        found = MaximumLikelihoodHMM(start, lagtime=LAG, maxit=200).fit_fetch(np.array([place.get(int(s), -1) for s in x if int(s) in place], dtype=np.int32))
        hard = found.output_model.output_probabilities.argmax(axis=0)
        own = [int(np.bincount(hard[group], minlength=RANK).argmax()) for group in (inside[0], inside[2])]
        k = found.transition_model.transition_matrix
        return slowest(k, LAG), LAG * passage(k, np.ones(RANK), np.array(own[:1]), np.array(own[1:]))

    attempt("deeptime HMM", hmm)
    return out


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    sizes = [int(n) for n in sys.argv[2:]] or [10_000, 50_000, 200_000]
    print("| chain | frames | method | ln(t / truth): median | spread | ln(passage / truth): median | spread | 90 % intervals hold: t, passage |")
    print("|---|---|---|---|---|---|---|---|")
    for make in (wells, rings):
        p = make()
        pi = law(p)
        if make is wells:
            edges = [0, *(15 * k for k in (1, 2, 3)), 60]
            x = np.linspace(0, 1, 60)
            edges = [0, *(int(np.searchsorted(x, v)) for v in (0.25, 0.5, 0.75)), 60]
        else:
            edges = [0, 15, 30, 45, 60]
        sets = [np.arange(a, b) for a, b in zip(edges, edges[1:])]
        truth = (slowest(p), passage(p, pi, sets[0], sets[2]))
        for frames in sizes:
            rows: dict[str, list[tuple[float, float]]] = {}
            held = []
            for seed in range(seeds):
                found = methods(walk(p, frames, seed), sets, len(p))
                intervals = found.pop("interval")
                held.append([low <= t <= high for (low, high), t in zip(intervals, truth)])
                for name, value in found.items():
                    rows.setdefault(name, []).append(value)
            for name, values in rows.items():
                logs = np.log(np.asarray(values) / truth)
                logs[~np.isfinite(logs)] = np.nan
                middle = np.nanmedian(logs, axis=0)
                spread = (np.nanquantile(logs, 0.84, axis=0) - np.nanquantile(logs, 0.16, axis=0)) / 2
                coverage = "{:.0%}, {:.0%}".format(*np.mean(held, axis=0)) if name == "ours now" else ""
                cells = f"{middle[0]:+.2f} | {spread[0]:.2f} | {middle[1]:+.2f} | {spread[1]:.2f}"
                print(f"| {make.__name__} | {frames:,} | {name} | {cells} | {coverage} |", flush=True)


if __name__ == "__main__":
    main()
