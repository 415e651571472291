"""Results: frozen objects that know their arrays, their pictures and their folder."""

from __future__ import annotations

import csv
import html
import io
import json
import tempfile
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Literal, Mapping, Sequence, overload

import numpy as np
from numpy.typing import NDArray

from . import _core, _kinetics
from ._data import MissingFileError, refuse
from ._kinetics import ChapmanKolmogorov, Estimate, Flux, ImpliedTimescales

if TYPE_CHECKING:
    import pandas
    from deeptime.markov.msm import MarkovStateModel
    from matplotlib.axes import Axes

    from ._plan import Plan

Array = NDArray[np.float64]


def largest_memberships(u: Array) -> NDArray[np.int64]:
    """For each row the meta-state with the largest membership, the first of equals; -1 where memberships are not known."""
    known = ~np.isnan(u).any(axis=1)
    out = np.full(len(u), -1, dtype=np.int64)
    out[known] = u[known].argmax(axis=1)
    return out


class Frozen:
    """Attributes are set once, by the constructor."""

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"results are frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"results are frozen: {name} cannot be deleted")


class FrozenDict(dict[str, Any]):
    """A dict, so that ``json.dumps`` takes it, whose entries are not to be set."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("results are frozen: their summary cannot be changed")

    __setitem__ = __delitem__ = update = pop = popitem = clear = setdefault = _refuse


def _gap_in_words(certificate: Mapping[str, Any]) -> str:
    """What is shown first; a proof is told with its own rank and lambda, as what it is."""
    gap = certificate["certified_gap"]
    proven = "gap not proven" if gap is None else f"certified gap {gap:.1e}"
    if certificate["status"] != "refit":
        return f"{certificate['status']}, {proven}"
    return (
        f"{certificate['shown']}, not certified (penalised solution with {certificate['proof_rank']} at lambda {certificate['proof_lambda']:.3g}: "
        f"{certificate['proof_status']}, {proven})"
    )


class Result(Frozen):
    """The meta-states behind a chain, with the certificate of how good they are.

    Attributes
    ----------
    memberships : array, states x meta-states
        Soft memberships U: each row sums to one. Those of the refit, where one was asked for.
    profiles : array, states x meta-states
        Where each meta-state leads, V: each column sums to one.
    labels : array of int
        The zone of each state, from 0: ``zone`` of ``states.csv``, which counts from 1.
    metastates : array of int
        The meta-state of each state's largest membership, from 0: ``metastate`` of ``states.csv``, which counts from 1. Zones are the same where
        the largest membership makes them; k-means and a given number of clusters make others.
    weights : array
        Share of each state, xi.
    states : tuple
        The labels of the states, in the order of all arrays.
    destinations : tuple, optional
        Labels of the rows of `profiles` where origins and destinations are two sets; then there is no latent chain.
    slices : tuple, optional
        Labels of the slices, where trips were told apart by ``slice``. `profiles`, `latent_chain` and all times then speak of all slices together; `flows` and
        `profiles_in` of each of them.
    latent_chain : array, meta-states x meta-states, optional
        ``profiles.T @ memberships``: a small Markov chain. A prior or a penalty makes it forget too fast; see `kinetic_chain`.
    kinetic_chain : array, meta-states x meta-states
        The chain of the meta-states as the data have it: timescales, passage times, committors, fluxes and forecasts are its own.
    factors : tuple of two arrays
        U and V of the stated problem, which the certificate speaks of.
    refit : tuple of two arrays, or None
        U and V of the refit.
    certificate : dict
        ``status`` of what is shown ("refit" where that is a refit, of which nothing is proven), and the proof of the penalised solution beside it:
        ``proof_status``, ``proof_rank``, ``proof_lambda``, ``objective``, ``lower_bound``, ``certified_gap``, and ``explained_gap``: the same distance to the bound as a
        share of what the meta-states explain over a single one.
    summary : dict
        All that stands in ``summary.json``.
    coordinates : array, states x 2, or None
        Longitude and latitude.
    lagtime : int
        Time steps in one transition.

    Examples
    --------
    >>> import metastate as ms
    >>> walk = ms.simulate("trajectory", states=30, rank=3, steps=20_000).trajectory
    >>> result = ms.fit(walk, lambda_ratio=0.3)
    >>> result.memberships.shape == (30, result.rank)
    True
    >>> result.certificate["status"]
    'certified'
    """

    memberships: Array
    profiles: Array
    labels: NDArray[np.int64]
    metastates: NDArray[np.int64]
    weights: Array
    states: tuple[int | str, ...]
    destinations: tuple[int | str, ...] | None
    slices: tuple[int | str, ...] | None
    latent_chain: Array | None
    factors: tuple[Array, Array]
    refit: tuple[Array, Array] | None
    certificate: Mapping[str, Any]
    summary: Mapping[str, Any]
    coordinates: Array | None
    lagtime: int
    cell: float | None
    kinetic_chain: Array | None
    _projected: Array
    _passage_states: Array | None
    _part_chains: Array | None
    _part_passage: Array | None
    _part_timescales: Array | None
    _arrivals: Array
    _rows: tuple[Array, NDArray[np.int64], NDArray[np.int64]] | None
    _live: _core.Fitted | None
    _files: dict[str, bytes] | Path | None

    def __init__(
        self,
        summary: dict[str, Any],
        arrays: Mapping[str, Any],
        live: _core.Fitted | None = None,
        files: dict[str, bytes] | Path | None = None,
        lagtime: int | None = None,
    ) -> None:
        factors = (arrays["U"], arrays["V"])
        refit = (arrays["refit_U"], arrays["refit_V"]) if "refit_U" in arrays else None
        u, v = refit or factors
        rows = None
        if "slices" in arrays:
            rows = (v, arrays["slice_of_row"], arrays["state_of_row"])
            whole = np.zeros((len(arrays["xi"]), v.shape[1]))
            np.add.at(whole, rows[2], v)
            v = whole
        places = np.column_stack([arrays["lon"], arrays["lat"]]) if "lon" in arrays else None
        errors = summary["errors"]
        shown = "the penalised solution" if refit is None else f"refit by {summary['refit']['kind'].replace('least-squares', 'least squares')}"
        certificate = {
            "status": summary["status"] if refit is None else "refit",
            "shown": shown,
            "shown_rank": int(u.shape[1]),
            "proof_status": summary["status"],
            "proof_rank": summary["rank"],
            "proof_lambda": summary["lambda"],
            "objective": summary["objective"],
            "lower_bound": summary["lower_bound"],
            "certified_gap": errors["certified_gap"],
            "explained_gap": errors.get("explained_gap"),
            "proof": summary["bound_proof"],
            "heuristic_gap": errors["rel_dg"],
            "kkt": max(errors["rel_le1"], errors["rel_le2"]),
        }
        # Only a fit that is still there knows the arrivals of its data; the model's own stand in for them elsewhere.
        arrivals = arrays.get("arrivals")
        if arrivals is None:
            arrivals = max(summary["transitions"], 1.0) * (v @ (u.T @ arrays["xi"]))
        self._set(
            memberships=u, profiles=v, labels=arrays["zone"], metastates=largest_memberships(u), weights=arrays["xi"], states=tuple(arrays["labels"]),
            kinetic_chain=arrays.get("kinetic_chain"), _projected=arrays.get("projected"), _passage_states=arrays.get("passage_states"),
            _part_chains=arrays.get("part_chains"), _part_passage=arrays.get("part_passage"), _part_timescales=arrays.get("part_timescales"),
            destinations=tuple(arrays["destinations"]) if "destinations" in arrays else None,
            slices=tuple(arrays["slices"]) if "slices" in arrays else None, _rows=rows,
            latent_chain=None if "destinations" in arrays else v.T @ u, factors=factors, refit=refit, certificate=MappingProxyType(certificate),
            summary=FrozenDict(summary), coordinates=places, cell=arrays.get("cell"),
            lagtime=lagtime or int(summary["settings"]["input"].get("lag") or 1), _arrivals=arrivals, _live=live, _files=files,
        )  # fmt: skip
        for array in (u, v, *factors, self.labels, self.metastates, self.weights, self.latent_chain, self.kinetic_chain, places):
            if array is not None:
                array.flags.writeable = False

    # What most people ask first.

    @property
    def rank(self) -> int:
        """Number of meta-states."""
        return int(self.memberships.shape[1])

    @property
    def lam(self) -> float:
        """lambda, as given or chosen: how much each further meta-state costs in the objective."""
        return float(self.summary["lambda"])

    def _slice(self, label: int | str) -> int:
        if self.slices is None:
            raise refuse("this result has no slices", "fit with slice=, such as slice='hour(pickup)'")
        if label not in self.slices:
            raise refuse(f"there is no slice {label!r}", "the slices are " + ", ".join(map(str, self.slices[:40])))
        return self.slices.index(label)

    def profiles_in(self, slice: int | str) -> Array:
        """Where each meta-state leads in a slice, states x meta-states: shares of all its transitions of all slices, so that a column sums to how many of them fall into this one."""
        h = self._slice(slice)
        assert self._rows is not None
        v, slices, states = self._rows
        out = np.zeros((len(self.states), v.shape[1]))
        out[states[slices == h]] = v[slices == h]
        return out

    def flows(self, slice: int | str) -> Array:
        """From the meta-state of a row to that of a column in a slice, as shares of all transitions of all slices: ``slices.csv``."""
        flows: Array = (self.weights @ self.memberships)[:, None] * (self.profiles_in(slice).T @ self.memberships)
        return flows

    @property
    def path(self) -> dict[str, list[Any]] | None:
        """The columns of ``path.csv``, where lambda was chosen or the whole path solved."""
        return self.table("path.csv")

    def table(self, name: str) -> dict[str, list[Any]] | None:
        """A table of the result folder, such as ``ranks.csv`` or ``uncertainty.csv``, by columns; None where there is none."""
        content = self._file(name)
        if content is None:
            return None
        rows = list(csv.reader(io.StringIO(content.decode())))
        return {name: [_value(row[k]) for row in rows[1:]] for k, name in enumerate(rows[0])}

    def _file(self, name: str) -> bytes | None:
        if self._live is not None and name in (files := self._live.files()):
            return files[name]
        if isinstance(self._files, dict):
            return self._files.get(name)
        if isinstance(self._files, Path) and (self._files / name).is_file():
            return (self._files / name).read_bytes()
        return None

    def top_states(self, metastate: int, count: int = 5) -> list[int | str]:
        """The states that belong to a meta-state most."""
        order = np.lexsort((-self.weights, -self.memberships[:, metastate]))
        return [self.states[i] for i in order[:count]]

    # On disk.

    def save(self, folder: str | PathLike[str], force: bool = False) -> Path:
        """Writes the result folder of the command: whole, or not at all.

        Examples
        --------
        >>> import metastate as ms, pathlib, tempfile
        >>> result = ms.fit([0, 0, 1, 1] * 50 + [2, 2, 3, 3] * 50, lambda_ratio=0.5)
        >>> place = result.save(pathlib.Path(tempfile.mkdtemp()) / "out")
        >>> (place / "report.html").exists()
        True
        >>> bool((ms.load(place).memberships == result.memberships).all())
        True
        """
        place = Path(folder)
        if self._live is not None:
            self._live.save(place, force)
        else:
            _core.write_files(place, list(self._all_files().items()), force)
        return place

    def _all_files(self) -> dict[str, bytes]:
        if isinstance(self._files, dict):
            return self._files
        if isinstance(self._files, Path):
            return _read_folder(self._files)
        with tempfile.TemporaryDirectory(prefix="metastate-") as parent:
            return _read_folder(self.save(Path(parent) / "result"))

    def __reduce__(self) -> tuple[Any, ...]:
        # A result is its folder, on disk as in a pickle.
        return _from_files, (self._all_files(), self._arrivals, self.lagtime)

    # For other packages.

    def to_pandas(self) -> pandas.DataFrame:
        """One row a state, as in ``states.csv``: weight, meta-state and zone (both from 1), memberships, coordinates where known."""
        import pandas

        columns = {"weight": self.weights, "metastate": self.metastates + 1, "zone": self.labels + 1}
        frame = pandas.DataFrame(columns, index=pandas.Index(self.states, name="label"))
        for k in range(self.rank):
            frame[f"membership_{k + 1}"] = self.memberships[:, k]
        if self.coordinates is not None:
            frame["lon"], frame["lat"] = self.coordinates.T
        return frame

    def to_deeptime(self, lagtime: int | None = None) -> MarkovStateModel:
        """The kinetic chain as deeptime's MarkovStateModel, reversible where detailed balance was asked for; its count model holds the lag and the counts the chain stands for."""
        from deeptime.markov import TransitionCountModel
        from deeptime.markov.msm import MarkovStateModel

        if self.latent_chain is None:
            raise _kinetics.two_sided()
        own = self.latent_chain if self.kinetic_chain is None else self.kinetic_chain
        mass = self.weights @ self.memberships
        counts = max(self.summary["transitions"], 1.0) * mass[:, None] * own
        # Row sums are one up to rounding; deeptime asks for less than that.
        chain = own / own.sum(axis=1, keepdims=True)
        reversible = bool((self.summary.get("kinetics") or {}).get("reversible"))
        return MarkovStateModel(chain, reversible=reversible, count_model=TransitionCountModel(counts, lagtime=lagtime or self.lagtime))

    # Kinetics: in frames, meta-states from 0, with intervals where the data have parts.

    def timescales(self) -> Estimate:
        """Implied timescales, ``-lag / ln |lambda_k|`` in frames, the slowest first; infinite between classes that the data never join.

        Examples
        --------
        >>> import metastate as ms
        >>> walk = ms.simulate("trajectory", states=30, rank=3, steps=20_000).trajectory
        >>> ms.fit(walk, rank=3, prior=0.1).timescales().value.shape
        (2,)
        """
        return _kinetics.timescales(self)

    def eigenvalues(self) -> NDArray[np.complex128]:
        """Eigenvalues of the kinetic chain, largest modulus first."""
        return _kinetics.eigenvalues(self)

    @property
    def stationary_distribution(self) -> Estimate:
        """a with ``a^T K = a^T``: the share of time in each meta-state. Where there are several closed classes, the limit from the law of the data; see `closed_classes`."""
        return _kinetics.stationary(self)

    @property
    def closed_classes(self) -> list[tuple[list[int], Array]]:
        """Meta-states that are never left again together, each with its stationary law; one for an ordinary chain."""
        return _kinetics.closed_classes(self)

    @overload
    def mfpt(self, source: int | None = None, target: int | None = None, *, states: Literal[False] = False) -> Estimate: ...
    @overload
    def mfpt(self, source: Iterable[int | str] | None, target: Iterable[int | str] | int | str, *, states: Literal[True]) -> Estimate: ...
    def mfpt(self, source: Any = None, target: Any = None, *, states: bool = False) -> Estimate:
        """Mean first passage times in frames: all pairs of meta-states, one row, one column or one number; return times on the diagonal. From the states whose largest membership is `source`, as
        the data visit them, to those of `target`, by the states' own chain: ``h_i = lag + sum_j P_ij h_j`` over j outside the target (above 3000 states ``m_j = lag + sum_k K_jk m_k`` of the kinetic
        chain). Seen every lag frames: a shorter visit to the target is missed. With ``states=True`` both are labels of states (`source` None: from every state)."""
        return _kinetics.mfpt(self, source, target, states)

    def committor(self, source: Any, target: Any, *, states: bool = False) -> Estimate:
        """The probability q of reaching `target` before `source`: ``q_j = sum_k K_jk q_k``, 0 at the source and 1 at the target. With ``states=True`` for every state, between sets of labels."""
        return _kinetics.committor(self, source, target, states)

    def reactive_flux(self, source: Any, target: Any, *, states: bool = False, share: float = 0.9) -> Flux:
        """Transition path theory between two meta-states (or sets of them): flux, rate and the strongest ways until `share` of the flux. With ``states=True`` between sets of labels, added up
        between meta-states."""
        return _kinetics.reactive_flux(self, source, target, states, share)

    def fates(self, sets: Sequence[Iterable[int | str]] | None = None) -> tuple[list[list[Any]], Array]:
        """Where every state ends: the closed classes (or the sets of labels given) and the probability of ending in each, states x classes."""
        return _kinetics.fates(self, sets)

    def plan(
        self,
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
        """What to do in each state, for the result of a log of a controlled chain (`action`, or a list of episodes).

        Parameters
        ----------
        discount : float
            What a reward one step later is worth: at least 0, below 1.
        reward : path, optional
            Table of rewards in place of those of the log, with the columns ``state, action, reward``, ``state, reward`` or ``to, reward`` (paid on arrival).
        untried : bool
            Let the policy take actions that were never tried in a state, at a guess from states that are reached alike.
        check : bool
            Say what policies learnt on parts of the log earn on the rest, with an interval; and bound the loss in the process as it was counted.
        folds : int
            Parts of the log, whole episodes where it has them.
        data : optional
            The log of the fit, where the result does not know it: one that was loaded from a folder and fitted from memory.
        """
        from . import _plan

        return _plan.plan(
            self, discount, reward=reward, untried=untried, check=check, folds=folds, data=data, seed=seed, threads=threads, progress=progress
        )

    def forecast(self, start: Any = None, steps: int = 1) -> Array:
        """The law over states after `steps` lags: ``start^T U K^(steps - 1) V^T``. `start` is a label, several, or a law over states; the data's own without."""
        return _kinetics.forecast(self, start, steps)

    def implied_timescales(self, data: Any, lags: Sequence[int] | None = None, *, bands: bool = True) -> ImpliedTimescales:
        """Timescales of `data` (trajectories) counted at several lags in frames, at the memberships of this result, with bands and one sentence of advice on the lag."""
        return _kinetics.implied_timescales(self, data, lags, bands)

    def ck_test(self, data: Any, steps: Sequence[int] | None = None) -> ChapmanKolmogorov:
        """Chapman-Kolmogorov: ``K^n`` beside the chain estimated from `data` at n lags."""
        return _kinetics.ck_test(self, data, steps)

    def plot_timescales(self, ax: Axes | None = None) -> Axes:
        """Timescales with their intervals; grey is shorter than the lag."""
        return _kinetics.plot_timescales(self, ax)

    def plot_implied_timescales(self, data: Any, lags: Sequence[int] | None = None, ax: Axes | None = None, *, most: int = 6) -> Axes:
        """Timescales against the lag, with bands; grey is shorter than the lag."""
        return _kinetics.plot_implied(self.implied_timescales(data, lags), ax, most)

    def plot_ck_test(self, data: Any, steps: Sequence[int] | None = None, ax: Axes | None = None) -> Axes:
        """The probability of being in a meta-state again: predicted and estimated."""
        return _kinetics.plot_ck(self.ck_test(data, steps), ax)

    def plot_flux(self, source: Any, target: Any, ax: Axes | None = None) -> Axes:
        """The net reactive flux along the committor."""
        return _kinetics.plot_flux(self, self.reactive_flux(source, target), ax)

    def plot_mfpt(self, ax: Axes | None = None) -> Axes:
        """Mean first passage times between meta-states."""
        return _kinetics.plot_mfpt(self, ax)

    def plot_states(self, xy: Any, ax: Axes | None = None, *, labels: Sequence[int | str] | None = None) -> Axes:
        """Points of any plane, such as dihedral angles, in the colours of their meta-states: one row a state in the order of `states`, or any points with their states as `labels`."""
        return _kinetics.plot_states(self, xy, ax, labels)

    def diff(self, other: Result | str | PathLike[str]) -> Difference:
        """What is different in another result over some of the same states: see ``metastate.diff``."""
        from ._api import diff

        return diff(self, other)

    def to_polars(self) -> Any:
        """The table of `to_pandas`, for polars."""
        import polars

        columns: dict[str, Any] = {"label": list(self.states), "weight": self.weights, "metastate": self.metastates + 1, "zone": self.labels + 1}
        columns.update({f"membership_{k + 1}": self.memberships[:, k] for k in range(self.rank)})
        if self.coordinates is not None:
            columns["lon"], columns["lat"] = self.coordinates.T
        return polars.DataFrame(columns)

    def to_networkx(self) -> Any:
        """The kinetic chain as a directed graph: nodes are meta-states from 0 with their stationary share, edges their probabilities."""
        import networkx

        graph = networkx.DiGraph()
        share, chain = self.stationary_distribution.value, _kinetics.chain(self)
        for j in range(self.rank):
            graph.add_node(j, stationary=float(share[j]), states=[s for s, m in zip(self.states, self.metastates) if m == j])
        graph.add_edges_from((int(i), int(j), {"probability": float(chain[i, j])}) for i, j in zip(*np.nonzero(chain)))
        return graph

    def to_anndata(self, adata: Any, key: str = "metastates") -> Any:
        """Writes memberships into ``adata.obsm[key]``, meta-states into ``adata.obs[key]`` and chain and timescales into ``adata.uns[key]``; cells are found by ``obs_names``."""
        place = {str(label): k for k, label in enumerate(self.states)}
        at = np.array([place.get(str(name), -1) for name in adata.obs_names])
        soft = self.memberships[at].copy()
        soft[at < 0] = np.nan
        adata.obsm[key] = soft
        adata.obs[key] = [str(self.metastates[k]) if k >= 0 else "none" for k in at]
        adata.uns[key] = {"chain": np.asarray(_kinetics.chain(self)), "timescales": np.asarray(self.timescales().value), "lag": self.lagtime}
        return adata

    # Pictures, through matplotlib.

    def plot_map(self, ax: Axes | None = None, places: Mapping[Any, tuple[float, float]] | None = None) -> Axes:
        """The zones on a map; `places` gives (lon, lat) by label where the data had no coordinates."""
        from ._plots import plot_map

        return plot_map(self, ax, places)

    def plot_path(self, ax: Axes | None = None) -> Axes:
        """Rank and held-out score along lambda."""
        from ._plots import plot_path

        return plot_path(self, ax)

    def plot_latent(self, ax: Axes | None = None) -> Axes:
        """The latent chain as a matrix."""
        from ._plots import plot_latent

        return plot_latent(self, ax)

    def __repr__(self) -> str:
        c = self.certificate
        return (
            f"<metastate.Result: {self.rank} meta-states behind {len(self.states)} states, {_gap_in_words(c)}>"
        )

    def _repr_html_(self) -> str:
        c = self.certificate
        mass = self.weights @ self.memberships
        sizes = np.bincount(self.metastates, minlength=self.rank)
        head = (
            f"<b>{self.rank} meta-states</b> behind {len(self.states)} states: {html.escape(_gap_in_words(c))}"
        )
        chain = self.latent_chain
        stays = ["" if chain is None else f"{100 * chain[k, k]:.1f} %" for k in range(self.rank)]
        rows = "".join(
            f"<tr><td>{k + 1}</td><td>{100 * mass[k]:.1f} %</td><td>{sizes[k]}</td><td>{stays[k]}</td>"
            f"<td style='text-align:left'>{html.escape(', '.join(str(s) for s in self.top_states(k)))}</td></tr>"
            for k in range(self.rank)
        )
        columns = "".join(f"<th>{name}</th>" for name in ("meta-state", "mass", "states", "stays", "foremost states"))
        return f"<div>{head}<table><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></div>"


def _value(text: str) -> Any:
    try:
        return float(text) if text else float("nan")
    except ValueError:
        return text


def _read_folder(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def _from_files(files: dict[str, bytes], arrivals: Array, lagtime: int) -> Result:
    with tempfile.TemporaryDirectory(prefix="metastate-") as parent:
        place = Path(parent) / "result"
        _core.write_files(place, list(files.items()), False)
        summary, arrays = _core.load(place)
    return Result(json.loads(summary), {**arrays, "arrivals": arrivals}, files=files, lagtime=lagtime)


def from_live(live: _core.Fitted, lagtime: int | None) -> Result:
    """The result of a fit that is still in memory."""
    return Result(json.loads(live.summary()), live.arrays(), live=live, lagtime=lagtime)


def from_folder(folder: str | PathLike[str]) -> Result:
    """The result in a folder."""
    place = Path(folder)
    if not place.exists():
        raise MissingFileError(f"error[E-CLI-RESULT]: there is no result at {str(place)!r}\n  try: name a folder that `metastate fit` wrote")
    summary, arrays = _core.load(place)
    return Result(json.loads(summary), arrays, files=place)


class Verification(Frozen):
    """What a recheck found: true when all that was computed a second time agrees.

    Attributes
    ----------
    agrees : bool
    checks : tuple of dict
        Name, what was reported, what was recomputed, whether the two agree, and the verdict: "yes", "NO", "hash only" or "not checked".
    """

    agrees: bool
    checks: tuple[dict[str, Any], ...]

    def __init__(self, outcome: Mapping[str, Any]) -> None:
        self._set(agrees=bool(outcome["agrees"]), checks=tuple(outcome["checks"]))

    def __bool__(self) -> bool:
        return self.agrees

    def __repr__(self) -> str:
        failed = [c["name"] for c in self.checks if not c["agrees"]]
        checked = sum(c["verdict"] in ("yes", "NO") for c in self.checks)
        said = f"all {checked} checks agree" if not failed else f"{len(failed)} of {checked} DO NOT agree: {', '.join(failed)}"
        if checked < len(self.checks):
            said += f"; {len(self.checks) - checked} lines are compared by hash only or not checked"
        return f"<metastate.Verification: {said}>"

    def _repr_html_(self) -> str:
        keys = ("name", "reported", "recomputed")
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(c[k]))}</td>" for k in keys) + f"<td>{c['verdict'] if c['agrees'] else '<b>NO</b>'}</td></tr>"
            for c in self.checks
        )
        return f"<table><thead><tr><th></th><th>reported</th><th>recomputed</th><th>agrees</th></tr></thead><tbody>{rows}</tbody></table>"


class Difference(Frozen):
    """What is different between two results.

    Attributes
    ----------
    adjusted_rand, normalised_mutual_information : float or None
        Agreement of the zones on the states that both have.
    stayed : float
        Share of the weight of these states that stayed in its zone.
    zones : tuple of dict
        Zones of the first with their partners, and how many states stayed, left and came.
    moves : tuple of dict
        States that moved, the heaviest first.
    flows : tuple of dict
        Flows between matched zones, those that changed most first.
    summary : dict
        All that stands in ``diff.json``.
    """

    adjusted_rand: float | None
    normalised_mutual_information: float | None
    stayed: float
    zones: tuple[dict[str, Any], ...]
    moves: tuple[dict[str, Any], ...]
    flows: tuple[dict[str, Any], ...]
    summary: dict[str, Any]

    def __init__(self, found: dict[str, Any]) -> None:
        self._set(
            adjusted_rand=found["adjusted_rand"], normalised_mutual_information=found["normalised_mutual_information"], stayed=found["stayed"],
            zones=tuple(found["zones"]), moves=tuple(found["moves"]), flows=tuple(found["flows"]), summary=found,
        )  # fmt: skip

    def to_pandas(self) -> pandas.DataFrame:
        """One row a state that moved."""
        import pandas

        columns = ["label", "name", "first", "second", "first_mass", "second_mass", "shift"]
        return pandas.DataFrame(list(self.moves), columns=columns).set_index("label")

    def __repr__(self) -> str:
        states = self.summary["states"]
        ari = "–" if self.adjusted_rand is None else f"{self.adjusted_rand:.4f}"
        return (
            f"<metastate.Difference: {states['common']} common states, {self.summary['moved']} moved, {100 * self.stayed:.2f} % of the weight stayed, "
            f"adjusted Rand index {ari}; {states['only_first']} only in the first, {states['only_second']} only in the second>"
        )


class Comparison(Frozen):
    """This method and its rivals on the same held-out folds.

    Attributes
    ----------
    methods : tuple of dict
        One row a method: scores with their standard errors, agreement, seconds.
    verdicts : tuple of str
        For each measure, whether ours is best or who beats it.
    summary : dict
        All that stands in ``compare.json``.
    """

    methods: tuple[dict[str, Any], ...]
    verdicts: tuple[str, ...]
    summary: dict[str, Any]

    def __init__(self, compared: dict[str, Any]) -> None:
        self._set(methods=tuple(compared["methods"]), verdicts=tuple(compared["verdicts"]), summary=compared)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.methods)

    def to_pandas(self) -> pandas.DataFrame:
        """One row a method."""
        import pandas

        return pandas.DataFrame(list(self.methods)).set_index("method")

    def __repr__(self) -> str:
        return "<metastate.Comparison:\n  " + "\n  ".join(self.verdicts) + ">"

    def _repr_html_(self) -> str:
        keys = ("method", "log_likelihood", "log_likelihood_se", "squared_error", "coherence", "ari", "nmi", "seconds")

        def cell(value: Any) -> str:
            return "" if value is None else f"{value:.4f}" if isinstance(value, float) else html.escape(str(value))

        head = "".join(f"<th>{k.replace('_', ' ')}</th>" for k in keys)
        rows = "".join("<tr>" + "".join(f"<td>{cell(m.get(k))}</td>" for k in keys) + "</tr>" for m in self.methods)
        said = "".join(f"<li>{html.escape(v)}</li>" for v in self.verdicts)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><ul>{said}</ul>"


class Simulated(Frozen):
    """Data with a known answer; what is there depends on what was simulated.

    Attributes
    ----------
    U, V : arrays, or None
        The planted factors: P = U V^T.
    xi : array, or None
        The stationary law of the chain.
    P : array, or None
        The transition matrix of a planted chain without `steps`.
    counts : dict of arrays, or None
        ``from``, ``to`` and ``count`` of a planted chain with `steps`; `fit` takes it as it is.
    trajectory : array of int, or None
    trips : dict of arrays, or None
        ``from_lon``, ``from_lat``, ``to_lon``, ``to_lat`` of a toy city.
    zones : dict of arrays, or None
        ``lon``, ``lat``, ``zone`` and ``activity`` of its cells.
    log : dict of arrays, or None
        ``state``, ``action``, ``reward`` and ``next`` of a controlled chain, with ``episode`` and ``step`` where it has episodes; U then has a row for each state and action.
    rewards : array, or None
        What each pair of state and action of a controlled chain is paid in the mean.
    groups : array of int, or None
        The planted group of each state, from 1.
    """

    U: Array | None
    V: Array | None
    xi: Array | None
    P: Array | None
    counts: dict[str, NDArray[Any]] | None
    trajectory: NDArray[np.int64] | None
    trips: dict[str, NDArray[Any]] | None
    zones: dict[str, NDArray[Any]] | None
    groups: NDArray[np.int64] | None
    log: dict[str, NDArray[Any]] | None
    rewards: Array | None

    def __init__(self, what: str, **found: Any) -> None:
        names = ("U", "V", "xi", "P", "counts", "trajectory", "trips", "zones", "groups", "log", "rewards")
        self._set(_what=what, **{name: found.get(name) for name in names})

    def __repr__(self) -> str:
        there = [n for n in ("U", "V", "xi", "P", "counts", "trajectory", "trips", "zones", "groups", "log", "rewards") if getattr(self, n) is not None]
        return f"<metastate.Simulated {getattr(self, '_what')}: {', '.join(there)}>"

    def counts_matrix(self) -> Any:
        """The counts as SciPy's sparse matrix."""
        from scipy.sparse import coo_array

        if self.counts is None:
            raise refuse("no counts were drawn", "simulate('planted', steps=...)")
        d = len(self.xi) if self.xi is not None else int(max(self.counts["from"].max(), self.counts["to"].max())) + 1
        return coo_array((self.counts["count"], (self.counts["from"], self.counts["to"])), shape=(d, d)).tocsr()
