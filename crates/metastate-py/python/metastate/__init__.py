"""Finds the few hidden meta-states behind a Markov chain with many states, and proves how good its answer is.

>>> import metastate as ms
>>> walk = ms.simulate("trajectory", states=40, rank=3, steps=50_000).trajectory
>>> model = ms.StateAggregation(lam="auto").fit(walk)
>>> model.memberships_.shape[0], model.latent_chain_.shape == (model.n_metastates_, model.n_metastates_)
(40, True)
"""

from ._api import compare, diff, estimate, explain, fit, load, options, path, simulate, verify
from ._core import FileError, InputError, __version__
from ._estimator import StateAggregation
from ._kinetics import ChapmanKolmogorov, Estimate, Flux, ImpliedTimescales, Interval
from ._plan import Plan, plan
from ._result import Comparison, Difference, Result, Simulated, Verification

__all__ = [
    "ChapmanKolmogorov",
    "Comparison",
    "Difference",
    "Estimate",
    "FileError",
    "Flux",
    "ImpliedTimescales",
    "InputError",
    "Interval",
    "Plan",
    "Result",
    "Simulated",
    "StateAggregation",
    "Verification",
    "__version__",
    "compare",
    "diff",
    "estimate",
    "explain",
    "fit",
    "load",
    "options",
    "path",
    "plan",
    "simulate",
    "verify",
]
