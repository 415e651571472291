"""The functions of the package: the commands of the same names, on data in memory or in files."""

from __future__ import annotations

import json
import os
import tempfile
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import _core, _options
from ._data import recognise, refuse
from ._estimator import StateAggregation, fit_result, typed_options
from ._progress import Listener
from ._result import Comparison, Difference, Result, Simulated, Verification, from_folder

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._types import Options


def fit(data: Any, *, labels: Any = None, weights: Any = None, **options: Unpack[Options]) -> Result:
    """Finds the meta-states; the options are the parameters of `StateAggregation`.

    Examples
    --------
    >>> import metastate as ms
    >>> ms.fit([0, 0, 1, 1] * 50 + [2, 2, 3, 3] * 50, lambda_ratio=0.5).rank
    2
    """
    return _fit(data, labels, weights, dict(options), False)


def path(data: Any, *, labels: Any = None, weights: Any = None, **options: Unpack[Options]) -> Result:
    """Solves for a whole path of lambdas, and chooses lambda and rank by held-out score.

    Examples
    --------
    >>> import metastate as ms
    >>> result = ms.path(ms.simulate("trajectory", states=30, rank=3, steps=20_000).trajectory, points=8, max_rank=6)
    >>> len(result.path["lambda"]) > 1
    True
    """
    return _fit(data, labels, weights, dict(options), True)


def estimate(data: Any, *, path: bool = False, labels: Any = None, weights: Any = None, **options: Unpack[Options]) -> dict[str, Any]:
    """What a fit of these data with these options would take, without making it: bytes and seconds of each stage and in all, the limit, and what that rests on.

    The same numbers as ``metastate fit --estimate``; `path` is for ``metastate path``. It measures for about a second.

    Examples
    --------
    >>> import metastate as ms
    >>> needs = ms.estimate([0, 0, 1, 1] * 50 + [2, 2, 3, 3] * 50, lambda_ratio=0.5)
    >>> needs["fits"], needs["bytes"] < needs["limit"], [s["stage"] for s in needs["stages"]][-1]
    (True, True, 'zones')
    """
    model = StateAggregation().set_params(**options)
    given = model._recognise(data, labels, weights)
    found: dict[str, Any] = json.loads(_core.estimate(given, typed_options(model._options(), given), path))
    return found


def _fit(data: Any, labels: Any, weights: Any, options: dict[str, Any], whole_path: bool) -> Result:
    model = StateAggregation().set_params(**options)
    called = f"metastate.{'path' if whole_path else 'fit'}(data{''.join(f', {k}={v!r}' for k, v in options.items())})"
    return fit_result(model._options(), model._recognise(data, labels, weights), model.progress, called, whole_path)[0]


def load(folder: str | PathLike[str]) -> Result:
    """Reads the folder of a result that this package or the command wrote. Files that were changed since are refused.

    Examples
    --------
    >>> import metastate as ms, pathlib, tempfile
    >>> place = pathlib.Path(tempfile.mkdtemp()) / "out"
    >>> _ = ms.fit([0, 0, 1, 1] * 50 + [2, 2, 3, 3] * 50, lambda_ratio=0.5).save(place)
    >>> ms.load(place).rank
    2
    """
    return from_folder(folder)


def verify(result: Result | StateAggregation | str | PathLike[str], data: Any = None, *, labels: Any = None, weights: Any = None) -> Verification:
    """Recomputes a result with code that the solver does not share; what is not computed again is named among its checks.

    A result that is still in memory is checked against its data there; a folder against the files that it names, or against `data`
    where it came from memory.

    Examples
    --------
    >>> import metastate as ms
    >>> bool(ms.verify(ms.fit([0, 0, 1, 1] * 50 + [2, 2, 3, 3] * 50, lambda_ratio=0.5)))
    True
    """
    if isinstance(result, StateAggregation):
        result._check_fitted()
        result = result.result_
    if isinstance(result, Result):
        with tempfile.TemporaryDirectory(prefix="metastate-") as parent:
            place = result.save(Path(parent) / "result")
            if data is None and result._live is None and result.summary["settings"]["input"].get("inputs") == ["(memory)"]:
                raise refuse("this result rests on data that were in memory when it was fitted", "give them again: metastate.verify(result, data)", "E-CLI-INPUTS-GONE")
            if data is None and result._live is not None:
                return Verification(json.loads(result._live.verify(place)))
            return verify(place, data, labels=labels, weights=weights)
    if data is None:
        here = os.getcwd()
        try:
            return Verification(json.loads(_core.verify(os.path.abspath(result))))
        finally:
            # The inputs may have been named from another folder, and are looked for from there.
            os.chdir(here)
    options = json.loads((Path(result) / "summary.json").read_text())["settings"]["input"]
    columns = {f"{n}_column" if n in ("from", "to") else n: v for n, v in options.items() if n not in ("inputs", "as", "labels", "weights")}
    given = recognise(data, options.get("as"), labels, weights, options=columns)
    return Verification(json.loads(_core.verify(result, given)))


def diff(
    first: Result | StateAggregation | str | PathLike[str],
    second: Result | StateAggregation | str | PathLike[str],
    *,
    out: str | PathLike[str] | None = None,
    force: bool = False,
) -> Difference:
    """What is different between two results: zones matched, states that moved, flows that changed, over the states that both have.

    `out` keeps the folder of ``metastate diff``: tables and the page ``diff.html``.

    Examples
    --------
    >>> import metastate as ms
    >>> walk = ms.simulate("trajectory", states=30, rank=3, steps=60_000).trajectory
    >>> one, other = ms.fit(walk, lambda_ratio=0.3), ms.fit(walk[:50_000], lambda_ratio=0.3)
    >>> found = ms.diff(one, other)
    >>> found.adjusted_rand, found.summary["moved"], found.summary["states"]["common"]
    (1.0, 0, 30)
    """
    with tempfile.TemporaryDirectory(prefix="metastate-") as parent:

        def place(result: Result | StateAggregation | str | PathLike[str], name: str) -> Path:
            if isinstance(result, StateAggregation):
                result._check_fitted()
                result = result.result_
            return result.save(Path(parent) / name) if isinstance(result, Result) else Path(result)

        found = _core.diff(place(first, "first"), place(second, "second"), None if out is None else Path(out), force)
        return Difference(json.loads(found))


def compare(data: Any, rank: int | None = None, *, labels: Any = None, out: str | PathLike[str] | None = None, progress: Any = False, **options: Any) -> Comparison:
    """This method and its rivals on the same held-out folds; it says when we lose.

    Without `rank`, the number of meta-states is the one that ``fit`` chooses. The options are those of ``metastate compare``, see ``metastate.options("compare")``; `out` keeps the folder with table and maps.

    Examples
    --------
    >>> import metastate as ms
    >>> walk = ms.simulate("trajectory", states=30, rank=3, steps=20_000).trajectory
    >>> found = ms.compare(walk, rank=3, methods=["refit-likelihood", "rank-one"])
    >>> [m["method"] for m in found]
    ['refit-likelihood', 'rank-one']
    """
    named = any(options.get(n) is not None for n in ("from_column", "from_lon", "state", "id", "time"))
    given = recognise(data, options.get("kind"), labels, None, named, options)
    kind = options.get("kind") or (given.kind if given.kind != "trajectories" else None)
    with tempfile.TemporaryDirectory(prefix="metastate-") as parent, Listener(progress) as listener:
        place = Path(parent) / "compare" if out is None else Path(out)
        values = _options.given({**options, "kind": kind, "rank": rank, "out": place})
        return Comparison(json.loads(_core.compare(given, values, listener)))


def simulate(what: Literal["planted", "trajectory", "city", "groups", "controlled"] = "planted", **options: Any) -> Simulated:
    """Data with a known answer: "planted" (the paper's chains), "trajectory", "city", "groups" (many states in planted groups) or "controlled" (a controlled chain with a log of it).

    Options: `states`, `rank`, `steps`, `seed`; for a city, `trips`; for groups, `states`, `groups`, `transitions`; for a controlled chain, `actions`, `noise`, and `each` or `episodes` and `length`.

    Examples
    --------
    >>> import metastate as ms
    >>> chain = ms.simulate("planted", states=20, rank=2, seed=1)
    >>> chain.P.shape, chain.U.shape
    ((20, 20), (20, 2))
    >>> ms.simulate("city", trips=100).trips["from_lon"].shape
    (100,)
    """
    names = {"planted": "planted", "trajectory": "walk.npy", "city": "trips.csv", "groups": "groups.npz", "controlled": "controlled"}
    if what not in names:
        raise refuse(f"{what!r} cannot be simulated", f"the words are {', '.join(names)}")
    with tempfile.TemporaryDirectory(prefix="metastate-") as parent:
        place = Path(parent) / names[what]
        _core.simulate(what, _options.given({**options, "out": place}))
        if what == "trajectory":
            return Simulated(what, trajectory=np.load(place))
        if what == "city":
            return Simulated(what, trips=_csv(place), zones=_csv(Path(f"{place}.zones.csv")))
        if what == "controlled":
            log = {n: v if n == "reward" else v.astype(np.int64) for n, v in _csv(place / "log.csv").items()}
            return Simulated(what, log=log, **{p.stem: np.load(p) for p in place.glob("*.npy")})
        if what == "groups":
            with np.load(place) as stored:
                origins = np.repeat(np.arange(len(stored["indptr"]) - 1), np.diff(stored["indptr"]))
                counts = {"from": origins, "to": stored["indices"].astype(np.int64), "count": stored["data"].astype(np.float64)}
            return Simulated(what, counts=counts, groups=_csv(Path(f"{place}.groups.csv"))["group"].astype(np.int64))
        found: dict[str, Any] = {p.stem: np.load(p) for p in place.glob("*.npy")}
        if (place / "counts.csv").exists():
            counts = _csv(place / "counts.csv")
            found["counts"] = {n: v if n == "count" else v.astype(np.int64) for n, v in counts.items()}
        return Simulated(what, **found)


def _csv(file: Path) -> dict[str, Any]:
    with open(file, encoding="utf-8") as lines:
        names = lines.readline().strip().split(",")
        values = np.loadtxt(lines, delimiter=",", ndmin=2)
    return {name: np.ascontiguousarray(values[:, k]) for k, name in enumerate(names)}


def options(command: str = "fit") -> list[dict[str, Any]]:
    """The options of a command, from the one place where they are defined: name, default, words allowed, help.

    Examples
    --------
    >>> import metastate as ms
    >>> [o["default"] for o in ms.options("fit") if o["name"] == "max-rank"]
    ['50']
    """
    return _core.options(command)


def explain(code: str | None = None) -> str:
    """What an error code means and what to do; all codes without one.

    Examples
    --------
    >>> import metastate as ms
    >>> "sum to one" in ms.explain("E-DATA-ROW-SUM")
    True
    """
    return _core.explain(code)


__all__ = ["compare", "explain", "fit", "load", "options", "path", "simulate", "verify"]
