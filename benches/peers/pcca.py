"""deeptime's reversible PCCA+ on a discretised trajectory, beside the experts' lumping: to be read with the `protein` example.

    python benches/peers/pcca.py micro.npy macro.npy [lag [rank]]

Prints the adjusted Rand index over frames, and the log-likelihood a transition of the lumped model on the counts it was made from.
Needs numpy, scipy, scikit-learn and deeptime.
"""
import sys
import time

import numpy as np
from deeptime.markov import TransitionCountEstimator
from deeptime.markov.msm import MaximumLikelihoodMSM
from sklearn.metrics import adjusted_rand_score

micro, macro = np.load(sys.argv[1]), np.load(sys.argv[2])
lag = int(sys.argv[3]) if len(sys.argv) > 3 else 50
rank = int(sys.argv[4]) if len(sys.argv) > 4 else 12
names, frames = np.unique(micro, return_inverse=True)

start = time.perf_counter()
counts = TransitionCountEstimator(lag, "sliding").fit_fetch(frames.astype(np.int32))
connected = counts.submodel_largest()
msm = MaximumLikelihoodMSM(reversible=True).fit_fetch(connected)
pcca = msm.pcca(rank)
seconds = time.perf_counter() - start

# Frames in states outside the largest connected set have no membership: they count as one further group.
group = np.full(len(names), rank)
group[connected.state_symbols] = pcca.assignments
memberships = pcca.memberships

# The lumped model as a transition law of the micro-states: memberships, coarse chain, and each set's share of arrivals.
n = connected.count_matrix
n = n.toarray() if hasattr(n, "toarray") else np.asarray(n)
through = memberships.T @ n
emission = through / through.sum(axis=1, keepdims=True)
p = np.maximum(memberships, 0) @ np.maximum(emission, 0)
p /= p.sum(axis=1, keepdims=True)
seen = n > 0
print(
    f"deeptime PCCA+ rank {rank}, lag {lag}: {len(names)} states, {connected.n_states} connected, {n.sum():.0f} transitions, "
    f"ARI {adjusted_rand_score(macro, group[frames]):.4f}, log-likelihood on its own counts {(n[seen] * np.log(p[seen])).sum() / n.sum():.4f}, "
    f"second eigenvalue {np.sort(np.abs(msm.eigenvalues(3)))[-2]:.4f}, {seconds:.1f} s"
)
