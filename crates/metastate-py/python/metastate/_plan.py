"""Plans: what to do in each state, from the log of a controlled chain."""

from __future__ import annotations

import json
import os
import tempfile
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Hashable, Mapping

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._data import label_of, recognise, refuse
from ._progress import Listener

if TYPE_CHECKING:
    from ._result import Result


class Plan:
    """What to do in each state, with its values.

    Attributes
    ----------
    states : tuple
        All states, left or reached.
    actions : tuple
        What to do in each; None where nothing was ever tried: the state is taken for an end.
    values : array
        Value of each state in the fitted model: an estimate.
    records : array
        Records of the pair that is taken; 0 where it was never tried and is a guess (`untried=True`).
    untried : array of int
        Actions that were never tried in each state: nothing is known of them, and the policy leaves them out.
    q : dict
        ``state``, ``action``, ``value``, ``reward`` and ``records`` of every pair.
    summary : dict
        All that stands in ``plan.json``.

    Examples
    --------
    >>> import metastate as ms
    >>> log = ms.simulate("controlled", states=30, actions=2, rank=2, each=30, noise=0.0).log
    >>> result = ms.fit(log, from_column="state", to_column="next", action="action", reward="reward", rank=2)
    >>> plan = result.plan(discount=0.9)
    >>> len(plan.actions), plan(3) in (0, 1), plan.check["low"] < plan.check["high"]
    (30, True, True)
    """

    def __init__(self, summary: Mapping[str, Any], policy: list[Any], q: list[Any]) -> None:
        self.summary = dict(summary)
        self.states: tuple[int | str, ...] = tuple(policy[0])
        self.actions: tuple[int | str | None, ...] = tuple(None if a == "" else a for a in policy[1])
        self.values: NDArray[np.float64] = policy[2]
        self.records: NDArray[np.float64] = policy[3]
        self.untried: NDArray[np.int64] = np.asarray(policy[4], dtype=np.int64)
        self.q: dict[str, Any] = dict(zip(("state", "action", "value", "reward", "records"), q))
        self._place = {state: k for k, state in enumerate(self.states)}

    def _at(self, state: Hashable) -> int:
        label = label_of(state)
        if label not in self._place:
            raise refuse(f"the log does not know the state {state!r}", "a policy speaks of the states of its log")
        return self._place[label]

    def __call__(self, state: Hashable) -> int | str | None:
        """What to do in a state; None where nothing was ever tried there."""
        return self.actions[self._at(state)]

    def __contains__(self, state: Hashable) -> bool:
        return label_of(state) in self._place

    def value(self, state: Hashable) -> float:
        """Value of a state."""
        return float(self.values[self._at(state)])

    @property
    def discount(self) -> float:
        """What a reward one step later is worth."""
        return float(self.summary["discount"])

    @property
    def check(self) -> dict[str, Any] | None:
        """What policies learnt on the other folds earn on held-out records, with an interval; None where that was not asked, ``summary["not_checked"]`` says why."""
        return self.summary.get("check")

    @property
    def bound(self) -> dict[str, Any] | None:
        """What the policy can lose at most in the process as it was counted; of another process it proves nothing."""
        return self.summary.get("bound")

    @property
    def hints(self) -> list[str]:
        """What a user must know, in sentences."""
        return list(self.summary["hints"])

    def __repr__(self) -> str:
        held = f", held out {self.check['value']:.4g} ({self.check['low']:.4g} to {self.check['high']:.4g})" if self.check else ", not checked"
        return f"Plan({len(self.states)} states, discount {self.discount}, mean value {self.summary['mean_value']:.4g}{held})"


def plan(
    result: Result | str | PathLike[str],
    discount: float,
    *,
    reward: str | PathLike[str] | None = None,
    untried: bool = False,
    check: bool = True,
    folds: int = 5,
    data: Any = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Any = False,
) -> Plan:
    """What to do in each state, from a result or its folder; the parameters are those of `Result.plan`.

    Examples
    --------
    >>> import metastate as ms
    >>> log = ms.simulate("controlled", states=20, actions=2, rank=2, each=30).log
    >>> result = ms.fit(log, from_column="state", to_column="next", action="action", reward="reward", rank=2)
    >>> ms.plan(result, discount=0.9, check=False).discount
    0.9
    """
    if isinstance(result, (str, os.PathLike)):
        return _plan(os.path.abspath(result), None, discount, reward, untried, check, folds, data, seed, threads, progress)
    with tempfile.TemporaryDirectory(prefix="metastate-") as parent:
        place = result.save(Path(parent) / "result")
        return _plan(place, result._live, discount, reward, untried, check, folds, data, seed, threads, progress)


def _plan(place: Any, live: Any, discount: float, reward: Any, untried: bool, check: bool, folds: int, data: Any, seed: int, threads: int | None, progress: Any) -> Plan:
    values: dict[str, Any] = {"result": os.fspath(place), "discount": float(discount), "folds": folds, "seed": seed}
    values.update({name: True for name, given in (("untried", untried), ("no_check", not check)) if given})
    if reward is not None:
        values["reward"] = os.path.abspath(reward)
    if threads is not None:
        values["threads"] = threads
    given = None if data is None else recognise(data, "trips", named_columns=True)
    here = os.getcwd()
    try:
        with Listener(progress) as listener:
            told, policy, q = _core.plan(values, given, live, listener)
    finally:
        # The inputs may have been named from another folder, and are looked for from there.
        os.chdir(here)
    return Plan(json.loads(told), policy, q)


__all__ = ["Plan", "plan"]
